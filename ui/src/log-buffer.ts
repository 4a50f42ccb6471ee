// The lines of a log that are held in the page: text comes in pieces at the end (it grows) or at the
// beginning (somebody looks back), in any cut. Bounded, whatever a program prints.
import { parseLine, PLAIN, type Style } from "./ansi";

export interface LogLine {
  text: string;
  /** The style in which the line begins: colours go on over line ends. */
  style: Style;
}

/** Longer lines are cut into pieces of this length: a line of 100 MB is also only text. */
export const LONGEST_LINE = 2000;
/** So much is held; beyond it what is at the other end is let go. */
export const MOST_CHARACTERS = 8_000_000;

export class LogBuffer {
  lines: LogLine[] = [];
  /** Whether something at the beginning was let go because there was too much. */
  dropped = false;
  private characters = 0;
  /** Whether the last line may go on. */
  private open = false;

  constructor(private readonly most = MOST_CHARACTERS) {}

  append(text: string): void {
    if (!text) return;
    const before = this.open ? this.lines.pop() : undefined;
    if (before) this.characters -= before.text.length;
    let style = before?.style ?? this.endStyle();
    for (const line of cut((before?.text ?? "") + text)) {
      this.lines.push({ text: line, style });
      this.characters += line.length;
      style = styleAfter(line, style);
    }
    this.open = !text.endsWith("\n");
    this.bound();
  }

  /** Puts what comes before all lines. It ends where they begin, be it within a line. */
  prepend(text: string): void {
    const first = this.lines.shift();
    const earlier = cut(text + (first?.text ?? ""));
    if (first && text.endsWith("\n") && first.text === "") earlier.push("");
    this.lines = [...earlier.map((line) => ({ text: line, style: PLAIN })), ...this.lines];
    this.characters += text.length;
    let style: Style = PLAIN;
    for (const line of this.lines) {
      line.style = style;
      style = styleAfter(line.text, style);
    }
  }

  private endStyle(): Style {
    const last = this.lines.at(-1);
    return last ? styleAfter(last.text, last.style) : PLAIN;
  }

  private bound(): void {
    let drop = 0;
    while (this.characters > this.most && drop < this.lines.length - 1) {
      this.characters -= this.lines[drop++]!.text.length;
    }
    if (drop) {
      this.lines.splice(0, drop);
      this.dropped = true;
    }
  }
}

/** Lines without their ends; the empty one after a last line end is no line. */
function cut(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.flatMap((line) => {
    if (line.length <= LONGEST_LINE) return [line];
    const pieces = [];
    for (let i = 0; i < line.length; i += LONGEST_LINE)
      pieces.push(line.slice(i, i + LONGEST_LINE));
    return pieces;
  });
}

function styleAfter(line: string, style: Style): Style {
  return line.includes("\x1b") ? parseLine(line, style).style : style;
}
