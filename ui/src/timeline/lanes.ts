// Where rows are from top to bottom: a heading for each node, under it a lane for each process, or as
// many as it runs calls at once. Pure.
import { type Dataset, firstAt, rowKey } from "./spans";
import type { TaskDetail, TimelineRow } from "../rows";

export const LANE_HEIGHT = 24;
export const HEADING_HEIGHT = 26;

export interface Lane {
  /** The row's key, or null for a node's heading. */
  key: string | null;
  node: string;
  worker: string | null;
  label: string;
  top: number;
  height: number;
}

export interface Layout {
  lanes: Lane[];
  height: number;
  byKey: Map<string, Lane>;
  byWorker: Map<string, Lane[]>;
}

/** Rows in the server's order, those of one node together. */
export function layout(rows: readonly TimelineRow[], nodeName: (id: string) => string): Layout {
  const nodes = new Map<string, TimelineRow[]>();
  for (const row of rows) {
    const list = nodes.get(row.node_id);
    if (list) list.push(row);
    else nodes.set(row.node_id, [row]);
  }
  const result: Layout = { lanes: [], height: 0, byKey: new Map(), byWorker: new Map() };
  const add = (lane: Omit<Lane, "top">) => {
    const placed = { ...lane, top: result.height };
    result.lanes.push(placed);
    result.height += lane.height;
    return placed;
  };
  for (const [node, list] of nodes) {
    add({ key: null, node, worker: null, label: nodeName(node), height: HEADING_HEIGHT });
    for (const row of list) {
      const key = rowKey(row);
      const lane = add({ key, node, worker: row.worker_id, label: row.label, height: LANE_HEIGHT });
      result.byKey.set(key, lane);
      if (!row.worker_id) continue;
      const lanes = result.byWorker.get(row.worker_id);
      if (lanes) lanes.push(lane);
      else result.byWorker.set(row.worker_id, [lane]);
    }
  }
  return result;
}

/** The lane at a height, by halving. */
export function laneAt(lanes: readonly Lane[], y: number): Lane | null {
  let low = 0;
  let high = lanes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const lane = lanes[middle]!;
    if (lane.top + lane.height <= y) low = middle + 1;
    else high = middle;
  }
  const lane = lanes[low];
  return lane && lane.top <= y ? lane : null;
}

/** The lane that a task is drawn in: of several of its process, the one whose data have it. */
export function laneOf(
  layout: Layout,
  task: Pick<TaskDetail, "task_id" | "worker_id" | "start_time_ms">,
  data: readonly (Dataset | null)[],
): Lane | undefined {
  const lanes = (task.worker_id && layout.byWorker.get(task.worker_id)) || [];
  if (lanes.length < 2 || task.start_time_ms === null) return lanes[0];
  for (const { rows } of data.filter((one) => one !== null)) {
    for (const lane of lanes) {
      const row = rows.get(lane.key ?? "");
      if (!row) continue;
      for (let i = firstAt(row, task.start_time_ms - 1); i < row.spans.length; i++) {
        const span = row.spans[i]!;
        if (span[5] === task.task_id) return lane;
        if (span[0] > task.start_time_ms + 1) break;
      }
    }
  }
  return lanes[0];
}
