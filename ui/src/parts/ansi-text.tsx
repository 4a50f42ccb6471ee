// Text with terminal colours, as elements. Text stays text: there is no HTML on the way.
import { parseLine, PLAIN, type Run, type Style } from "../ansi";

export function AnsiRuns({ runs }: { runs: Run[] }) {
  return (
    <>
      {runs.map((run, i) =>
        Object.keys(run.style).length ? (
          <span key={i} class={classes(run.style)} style={colours(run.style)}>
            {run.text}
          </span>
        ) : (
          run.text
        ),
      )}
    </>
  );
}

/** A whole text, for tracebacks and the like; long logs are shown by LogView. */
export function AnsiText({ text }: { text: string }) {
  let style: Style = PLAIN;
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <>
      {lines.map((line, i) => {
        const parsed = parseLine(line, style);
        style = parsed.style;
        return (
          <span key={i}>
            <AnsiRuns runs={parsed.runs} />
            {i < lines.length - 1 ? "\n" : ""}
          </span>
        );
      })}
    </>
  );
}

function classes(style: Style): string {
  const [fore, back] = sides(style);
  return [
    typeof fore === "number" ? `ansi-${fore}` : "",
    typeof back === "number" ? `ansi-back-${back}` : "",
    style.bold ? "ansi-bold" : "",
    style.dim ? "ansi-dim" : "",
    style.italic ? "ansi-italic" : "",
    style.underline ? "ansi-underline" : "",
    style.inverse && fore === undefined && back === undefined ? "ansi-inverse" : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function colours(style: Style): Record<string, string> {
  const [fore, back] = sides(style);
  return {
    ...(typeof fore === "string" && { color: fore }),
    ...(typeof back === "string" && { backgroundColor: back }),
  };
}

function sides(style: Style): [Style["colour"], Style["background"]] {
  return style.inverse ? [style.background, style.colour] : [style.colour, style.background];
}
