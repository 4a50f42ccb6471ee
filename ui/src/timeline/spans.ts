// Spans of one row, made ready for drawing and for finding what is under the pointer. Pure.
import type { Span, TimelineRow, TimelineView } from "../rows";

export interface Row {
  node: string;
  worker: string | null;
  label: string;
  spans: Span[];
  /** The latest end of this span and all before it: spans may overlap, and a search needs order. */
  ends: Float64Array;
}

/** An answer of the server for a range, at a width in pixels. */
export interface Dataset {
  from: number;
  to: number;
  width: number;
  names: string[];
  rows: Map<string, Row>;
}

/** What tells rows apart in all answers. */
export function rowKey(
  row: Pick<TimelineRow, "node_id" | "worker_id" | "pid" | "label" | "lane">,
): string {
  return `${row.node_id}/${row.worker_id ?? row.pid ?? row.label}/${row.lane}`;
}

export function prepared(view: TimelineView, width: number): Dataset {
  const rows = new Map(view.rows.map((row) => [rowKey(row), preparedRow(row)]));
  return { from: view.from, to: view.to, width, names: view.names, rows };
}

function preparedRow(row: TimelineRow): Row {
  const ends = new Float64Array(row.spans.length);
  let latest = -Infinity;
  row.spans.forEach((span, i) => {
    latest = Math.max(latest, span[0] + span[1]);
    ends[i] = latest;
  });
  return { node: row.node_id, worker: row.worker_id, label: row.label, spans: row.spans, ends };
}

/** The first span that may reach to or beyond `moment`. */
export function firstAt(row: Row, moment: number): number {
  let low = 0;
  let high = row.ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.ends[middle]! < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The span at a moment, give or take: of several the one that began last, which is drawn on top. */
export function spanAt(row: Row, moment: number, tolerance: number): Span | null {
  let found: Span | null = null;
  let distance = Infinity;
  for (let i = firstAt(row, moment - tolerance); i < row.spans.length; i++) {
    const span = row.spans[i]!;
    if (span[0] > moment + tolerance) break;
    const away = Math.max(0, span[0] - moment, moment - span[0] - span[1]);
    if (away <= distance && away <= tolerance) {
      distance = away;
      found = span;
    }
  }
  return found;
}

/** The first span that begins after a moment, or the last before it; the finer data come first. */
export function nextAfter(data: Dataset[], moment: number, backwards: boolean): Span | null {
  let found: Span | null = null;
  const nearer = (start: number) =>
    found === null || (backwards ? start > found[0] : start < found[0]);
  for (const [i, { rows }] of data.entries()) {
    // What finer data cover, they alone tell.
    const told = (at: number) => data.slice(0, i).some(({ from, to }) => at >= from && at <= to);
    for (const row of rows.values()) {
      for (const span of row.spans) {
        const start = span[0];
        if (backwards ? start >= moment : start <= moment) continue;
        if (nearer(start) && !told(start)) found = span;
      }
    }
  }
  return found;
}

/** How much of each of `columns` equal parts of a range is filled, over all rows: 0 to 1. */
export function density(data: Dataset, from: number, to: number, columns: number): Float32Array {
  const filled = new Float32Array(columns);
  const scale = columns / (to - from);
  for (const row of data.rows.values()) {
    for (const [start, duration] of row.spans) {
      const a = Math.max(0, (start - from) * scale);
      const b = Math.min(columns, (start + duration - from) * scale);
      for (let i = Math.floor(a); i < b; i++) {
        filled[i] = filled[i]! + Math.min(b, i + 1) - Math.max(a, i);
      }
    }
  }
  const most = Math.max(1e-9, ...filled);
  return filled.map((value) => value / most);
}

/** How many tasks, and as how many spans, are within a range. */
export function counted(data: Dataset, from: number, to: number): { tasks: number; spans: number } {
  let tasks = 0;
  let spans = 0;
  for (const row of data.rows.values()) {
    for (const span of row.spans) {
      if (span[0] + span[1] < from || span[0] > to) continue;
      tasks += span[3];
      spans++;
    }
  }
  return { tasks, spans };
}
