// The timeline's canvas, and what is said of the task under the pointer.
import { useEffect, useRef, useState } from "preact/hooks";
import { clock, duration, plural, words } from "../format";
import { Hands, type Hover } from "./hands";
import type { TimelineModel } from "./model";

export function TimelineChart({ model }: { model: TimelineModel }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<Hover | null>(null);

  useEffect(() => {
    const hands = new Hands(canvas.current!, model, setHover);
    return () => hands.end();
  }, [model]);

  return (
    <div class="timeline-chart">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label="Timeline of tasks by process. Arrows move, plus and minus zoom, 0 shows everything, f finds, Enter opens the selected task."
      />
      {hover && <Tooltip hover={hover} zero={model.zero} />}
    </div>
  );
}

function Tooltip({ hover, zero }: { hover: Hover; zero: number }) {
  const [start, took, , n, state] = hover.span;
  const right = hover.x > innerWidth * 0.6;
  return (
    <div
      class="tooltip"
      style={{
        transform: `translate(${hover.x}px, ${hover.y}px) translate(${right ? "calc(-100% - 12px)" : "12px"}, 16px)`,
      }}
    >
      <strong>{hover.name}</strong>
      {n > 1 ? (
        <span>{plural(n, "task")}, too small to tell apart here: click to zoom in</span>
      ) : (
        <span>
          {words(state)},{" "}
          {state === "RUNNING" ? `for ${duration(took)} so far` : `took ${duration(took)}`}
        </span>
      )}
      <span class="sub">
        {duration(start - zero)} after the first, at {clock(start)}
      </span>
    </div>
  );
}
