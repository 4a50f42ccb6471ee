// Terminal colours in logs and tracebacks: text with escape sequences becomes runs of plain text
// with a style. Only colours and weights are understood; whatever else a terminal would do is left
// out. Nothing here makes HTML.

export interface Style {
  /** 0 to 15: a colour of the theme. Else `#rrggbb`. */
  colour?: number | string;
  background?: number | string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
}

export interface Run {
  text: string;
  style: Style;
}

export const PLAIN: Style = Object.freeze({});

// In this order: CSI to its final byte, or cut off at the end of the text; OSC and its like up to BEL
// or ST; other escapes; control characters but for the tabulator.
const ESCAPES =
  /\x1b\[([0-?]*)[ -/]*(?:([@-~])|$)|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0a-\x1f\x7f]/g;

/** The runs of one line, and the style at its end, in which the next line begins. */
export function parseLine(line: string, style: Style = PLAIN): { runs: Run[]; style: Style } {
  const text = afterReturns(line);
  const runs: Run[] = [];
  let from = 0;
  for (const match of text.matchAll(ESCAPES)) {
    if (match.index > from) runs.push({ text: text.slice(from, match.index), style });
    from = match.index + match[0].length;
    if (match[2] === "m") style = applied(style, match[1] ?? "");
  }
  if (from < text.length) runs.push({ text: text.slice(from), style });
  return { runs, style };
}

/** The text without any escape sequence. */
export function plainText(line: string): string {
  return parseLine(line)
    .runs.map((run) => run.text)
    .join("");
}

/** A carriage return begins the line anew, as progress bars do: what was written last is seen. */
function afterReturns(line: string): string {
  const text = line.replace(/\r+$/, "");
  const at = text.lastIndexOf("\r");
  return at < 0 ? text : text.slice(at + 1);
}

function applied(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => Number(code || 0));
  const style: Style = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) for (const key of Object.keys(style)) delete style[key as keyof Style];
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 22) (delete style.bold, delete style.dim);
    else if (code === 23) delete style.italic;
    else if (code === 24) delete style.underline;
    else if (code === 27) delete style.inverse;
    else if (code === 39) delete style.colour;
    else if (code === 49) delete style.background;
    else if (code >= 30 && code <= 37) style.colour = code - 30;
    else if (code >= 90 && code <= 97) style.colour = code - 90 + 8;
    else if (code >= 40 && code <= 47) style.background = code - 40;
    else if (code >= 100 && code <= 107) style.background = code - 100 + 8;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(i + 1));
      i += used;
      if (colour !== undefined) style[code === 38 ? "colour" : "background"] = colour;
    }
  }
  return style;
}

/** The colour that follows 38 or 48, and how many codes it took: 5;n or 2;r;g;b. */
function extended(codes: number[]): [number | string | undefined, number] {
  if (codes[0] === 2) return [hex(codes.slice(1, 4)), 4];
  if (codes[0] !== 5) return [undefined, 1];
  const n = codes[1] ?? 0;
  if (!(n >= 0 && n <= 255)) return [undefined, 2];
  if (n < 16) return [n, 2];
  if (n >= 232) {
    const grey = 8 + (n - 232) * 10;
    return [hex([grey, grey, grey]), 2];
  }
  const step = (k: number) => (k === 0 ? 0 : 55 + 40 * k);
  const cube = n - 16;
  return [hex([step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6)]), 2];
}

function hex(rgb: number[]): string {
  const byte = (n: number | undefined) =>
    Math.max(0, Math.min(255, Math.round(n ?? 0) || 0))
      .toString(16)
      .padStart(2, "0");
  return `#${byte(rgb[0])}${byte(rgb[1])}${byte(rgb[2])}`;
}
