"""A run as JSON and as a picture: what was done each second, and what went wrong meanwhile."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

_WIDTH, _LEFT, _TOP, _HEIGHT, _LANE = 1200, 110, 40, 220, 16
MOST_SAID = 12
_COLOURS = ["#b3261e", "#1f6feb", "#8250df", "#bf8700", "#116329", "#a40e7c", "#0a7d8c", "#57606a"]


def write(directory, result):
    """Both files; where they are."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"chaos-{result['seed']}"
    paths = [directory / f"{stem}.json", directory / f"{stem}.svg"]
    paths[0].write_text(json.dumps(result, indent=1) + "\n")
    paths[1].write_text(picture(result))
    return paths


def per_second(records, seconds):
    """Tasks and calls that ended well, in each second."""
    done = [0] * (int(seconds) + 1)
    for record in records:
        if record["outcome"] == "value" and 0 <= record["end"] < len(done):
            done[int(record["end"])] += record["tasks"]
    return done


def picture(result):
    """An SVG: a bar for each second, and below it a lane for each kind of fault."""
    done, faults = result["tasks_per_second"], result["faults"]
    kinds = sorted({fault["kind"] for fault in faults})
    most, wide = max([1, *done]), (_WIDTH - _LEFT - 20) / max(1, len(done))
    bottom = _TOP + _HEIGHT
    height = bottom + 30 + _LANE * (len(kinds) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        _text(_LEFT, 18, f"Tasks and calls done each second, and faults; seed {result['seed']}"),
        _text(_LEFT - 8, _TOP + 8, f"{most:,}", "end"),
        _text(_LEFT - 8, bottom, "0", "end"),
    ]
    for second, count in enumerate(done):
        tall = _HEIGHT * count / most
        parts.append(
            f'<rect x="{_LEFT + second * wide:.1f}" y="{bottom - tall:.1f}" '
            f'width="{max(0.5, wide - 0.5):.1f}" height="{tall:.1f}" fill="#8fb4d9"/>'
        )
    step = max(1, 10 ** (len(str(len(done))) - 1) // (1 if len(done) > 300 else 2))
    for second in range(0, len(done), step):
        parts.append(_text(_LEFT + second * wide, bottom + 14, f"{second} s", "middle"))
    for lane, kind in enumerate(kinds):
        y = bottom + 24 + lane * _LANE
        colour = _COLOURS[lane % len(_COLOURS)]
        parts.append(_text(_LEFT - 8, y + 11, kind, "end"))
        for fault in faults:
            if fault["kind"] != kind:
                continue
            long = max(2.0, (fault["end"] - fault["begin"]) * wide)
            parts.append(
                f'<rect x="{_LEFT + fault["begin"] * wide:.1f}" y="{y + 2}" width="{long:.1f}" '
                f'height="{_LANE - 5}" fill="{"#d0d7de" if fault["missed"] else colour}">'
                f"<title>{escape(_sentence(fault))}</title></rect>"
            )
    return "\n".join([*parts, "</svg>", ""])


def _text(x, y, text, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _sentence(fault):
    lasts = f" for {fault['end'] - fault['begin']:.1f} s" if fault["lasts"] else ""
    missed = f"; not done: {fault['missed']}" if fault["missed"] else ""
    return f"{fault['kind']} at host {fault['host']}{lasts}, {fault['begin']:.1f} s{missed}"


def summary(result):
    """The run in a screenful."""
    lines = [f"{'load':12} {'done':>7} {'values':>7} {'slowest':>8} {'beyond':>7}  errors"]
    for kind, row in sorted(result["by_kind"].items()):
        errors = ", ".join(f"{name} {count}" for name, count in sorted(row["errors"].items()))
        lines.append(
            f"{kind:12} {row['operations']:7} {row['values']:7} {row['slowest']:7.1f}s "
            f"{row['beyond']:6.1f}s  {errors or '-'}"
        )
    lines.append(
        f"\n{'fault':12} {'count':>7} {'missed':>7} {'met':>8} {'errors':>7}  longest stall"
    )
    for kind, row in sorted(result["by_fault"].items()):
        lines.append(
            f"{kind:12} {row['faults']:7} {row['missed']:7} {row['met']:8} {row['errors']:7}  "
            f"{row['stall']:.2f} s"
        )
    for kind, reason in result["left_out"].items():
        lines.append(f"left out: {kind}: {reason}")
    for what in ("problems", "late"):
        said = [f"{what.upper()}: {sentence}" for sentence in result[what]]
        lines += said[:MOST_SAID]
        if len(said) > MOST_SAID:
            lines.append(f"{what.upper()}: and {len(said) - MOST_SAID} more")
    lines.append(
        f"{len(result['faults'])} faults, {sum(result['tasks_per_second'])} tasks and calls, "
        f"{len(result['problems'])} problems, {len(result['late'])} late; seed {result['seed']}"
    )
    return "\n".join(lines)
