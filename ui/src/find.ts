// Finding text in lines, without regard to upper and lower case.
import { plainText, type Run } from "./ansi";

/** The indexes of the lines that contain it. */
export function findLines(lines: readonly { text: string }[], wanted: string): number[] {
  const needle = wanted.toLowerCase();
  if (!needle) return [];
  const found: number[] = [];
  lines.forEach((line, i) => {
    // Most lines do not have it, and most have no escape sequences: the cheap question first.
    const text = /[\x00-\x1f]/.test(line.text) ? plainText(line.text) : line.text;
    if (text.toLowerCase().includes(needle)) found.push(i);
  });
  return found;
}

export interface MarkedRun extends Run {
  marked: boolean;
}

/** The same runs, cut where the wanted text begins and ends; it may span several runs. */
export function markRuns(runs: readonly Run[], wanted: string): MarkedRun[] {
  const text = runs.map((run) => run.text).join("");
  const places = occurrences(text.toLowerCase(), wanted.toLowerCase());
  const marked: MarkedRun[] = [];
  let start = 0;
  for (const run of runs) {
    let from = start;
    const end = start + run.text.length;
    for (const [first, last] of places) {
      if (last <= from || first >= end) continue;
      if (first > from) marked.push({ ...run, text: text.slice(from, first), marked: false });
      const to = Math.min(last, end);
      marked.push({ ...run, text: text.slice(Math.max(first, from), to), marked: true });
      from = to;
    }
    if (from < end) marked.push({ ...run, text: text.slice(from, end), marked: false });
    start = end;
  }
  return marked;
}

function occurrences(text: string, needle: string): [number, number][] {
  const places: [number, number][] = [];
  if (!needle) return places;
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
    places.push([at, at + needle.length]);
  }
  return places;
}
