"""The timeline as a piece of HTML that needs nothing else: for notebooks.

A row each process, a rectangle each task, coloured by name. The wheel zooms around the pointer,
dragging moves, a double click shows everything again; the pointer over a rectangle says what it
is. Names are drawn or set as text, never as HTML.
"""

from __future__ import annotations

import json
from typing import Any

_PAGE = """
<div style="font:12px/1.5 system-ui,sans-serif;color:#333;background:#fff;border:1px solid #ddd;\
border-radius:4px;padding:6px">
<canvas tabindex="0" style="width:100%;display:block;cursor:grab;outline:none"></canvas>
<div style="min-height:1.5em;white-space:pre-wrap"></div>
<script>
(function (root) {
  const data = DATA;
  const [canvas, words] = [root.querySelector("canvas"), root.querySelector("div")];
  const pen = canvas.getContext("2d");
  const [rowHeight, left, bottom] = [22, 96, 18];
  const end = spans => spans.reduce((most, span) => Math.max(most, span[0] + span[1]), 1);
  const last = Math.max(1, ...data.rows.map(row => end(row.spans)));
  const colours = data.names.map(name => {
    let hash = 7;
    for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
    return `hsl(${hash % 360} 55% ${58 + (hash >> 9) % 14}%)`;
  });
  let [from, to, drag] = [0, last, null];
  const time = us => us >= 1e6 ? (us / 1e6).toFixed(3) + " s"
    : us >= 1e3 ? (us / 1e3).toFixed(3) + " ms" : us.toFixed(0) + " \\u00b5s";
  const width = () => canvas.clientWidth - left;
  const x = us => left + (us - from) / (to - from) * width();
  const at = px => from + (px - left) / width() * (to - from);

  function draw() {
    const height = data.rows.length * rowHeight + bottom;
    const scale = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = canvas.clientWidth * scale;
    canvas.height = height * scale;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.font = "11px system-ui,sans-serif";
    pen.textBaseline = "middle";
    data.rows.forEach((row, index) => {
      const top = index * rowHeight;
      pen.fillStyle = index % 2 ? "#fff" : "#f6f6f6";
      pen.fillRect(0, top, canvas.clientWidth, rowHeight);
      pen.save();
      pen.beginPath();
      pen.rect(left, top, width(), rowHeight);
      pen.clip();
      let drawn = -1;
      for (let i = first(row.spans); i < row.spans.length; i++) {
        const [start, duration, name, count, failed] = row.spans[i];
        if (start > to) break;
        const begin = x(start), end = Math.max(begin + 0.5, x(start + duration));
        if (end < drawn + 0.5) continue;
        drawn = end;
        pen.fillStyle = failed ? "#d33" : colours[name];
        pen.fillRect(begin, top + 2, end - begin, rowHeight - 4);
        const text = count > 1 ? count + " \\u00d7 " + data.names[name] : data.names[name];
        const shown = Math.max(begin, left) + 3;
        if (end - shown > 30) {
          pen.save();
          pen.beginPath();
          pen.rect(begin, top, end - begin - 2, rowHeight);
          pen.clip();
          pen.fillStyle = failed ? "#fff" : "#222";
          pen.fillText(text, shown, top + rowHeight / 2);
          pen.restore();
        }
      }
      pen.restore();
      pen.fillStyle = "#555";
      pen.fillText(row.label, 4, top + rowHeight / 2);
    });
    const step = nice((to - from) / Math.max(1, width() / 110));
    pen.fillStyle = "#777";
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      pen.fillRect(x(tick), height - bottom, 1, 4);
      pen.fillText(time(tick), x(tick) + 3, height - bottom / 2 + 1);
    }
  }

  function nice(step) {
    const power = Math.pow(10, Math.floor(Math.log10(Math.max(1, step))));
    return [1, 2, 5, 10].map(n => n * power).find(n => n >= step) || 1;
  }

  // The first span that may be seen: spans of a row follow each other.
  function first(spans) {
    let [low, high] = [0, spans.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[middle][0] + spans[middle][1] < from) low = middle + 1; else high = middle;
    }
    return low;
  }

  function show(begin, end) {
    const length = Math.min(Math.max(end - begin, 2), last * 1.02);
    from = Math.min(Math.max(begin, -0.01 * last), 1.01 * last - length);
    to = from + length;
    requestAnimationFrame(draw);
  }

  function zoom(factor, centre) {
    show(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(Math.pow(1.002, event.deltaY), at(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", event => {
    drag = [event.offsetX, from, to];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointermove", event => {
    if (drag) {
      const moved = (drag[0] - event.offsetX) / width() * (drag[2] - drag[1]);
      return show(drag[1] + moved, drag[2] + moved);
    }
    const row = data.rows[Math.floor(event.offsetY / rowHeight)];
    const slack = (to - from) / width();
    const here = at(event.offsetX);
    const found = row && row.spans.slice(first(row.spans)).find(
      s => s[0] - slack <= here && here <= s[0] + s[1] + slack);
    words.textContent = found
      ? `${found[3] > 1 ? found[3] + " tasks, most of them " : ""}${data.names[found[2]]}: `
        + `${time(found[1])}, from ${time(found[0])}${found[4] ? ", failed" : ""}`
      : HINT;
  });
  canvas.addEventListener("dblclick", () => show(0, last));
  canvas.addEventListener("keydown", event => {
    const quarter = (to - from) / 4;
    const keys = {
      ArrowLeft: () => show(from - quarter, to - quarter),
      ArrowRight: () => show(from + quarter, to + quarter),
      "+": () => zoom(0.5, (from + to) / 2),
      "-": () => zoom(2, (from + to) / 2),
      0: () => show(0, last),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  const HINT = data.rows.length
    ? "Wheel: zoom. Drag: move. Double click: everything. Red: failed."
    : "No task has run yet.";
  words.textContent = HINT;
  new ResizeObserver(draw).observe(canvas);
  draw();
})(document.currentScript.parentElement);
</script>
</div>
"""


def page(names: list[str], rows: list[tuple[str, list[Any]]]) -> str:
    """HTML that shows these rows of the native `timeline_view`."""
    data = {"names": names, "rows": [{"label": label, "spans": spans} for label, spans in rows]}
    encoded = json.dumps(data, separators=(",", ":"))
    # In a script, only these could end it or begin another kind of content.
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return _PAGE.replace("DATA", encoded, 1)
