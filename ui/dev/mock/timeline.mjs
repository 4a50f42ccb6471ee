// The timeline of the made-up tasks, with level of detail: what is narrower than a pixel is merged.
import { KINDS, lowerBound } from "./schedule.mjs";

export function timeline(world, { from, to, width, q }) {
  const { schedule } = world;
  const now = Date.now();
  const first = schedule.first;
  const last = now;
  from ??= first;
  to ??= last;
  const pixel = (to - from) / Math.max(1, width);
  const wanted = KINDS.map(({ name }) => !q || name.toLowerCase().includes(q.toLowerCase()));
  const rows = world.workers.map((worker, w) => ({
    node_id: worker.node.id,
    worker_id: worker.id,
    pid: worker.pid,
    label: `worker ${worker.pid}`,
    spans: spans(world, schedule.byWorker[w], { from, to, pixel, now, wanted }),
  }));
  return { from, to, first, last, names: KINDS.map(({ name }) => name), rows };
}

function spans(world, tasks, { from, to, pixel, now, wanted }) {
  const { start, end, kind } = world.schedule;
  const found = [];
  let merged = null;
  const flush = () => {
    if (!merged) return;
    const name = merged.names.indexOf(Math.max(...merged.names));
    const only = merged.count === 1 ? world.taskId(merged.task) : null;
    found.push([merged.start, merged.end - merged.start, name, merged.count, merged.state, only]);
    merged = null;
  };
  let i = Math.max(0, lowerBound(tasks, from, (at) => start[tasks[at]]) - 1);
  for (; i < tasks.length; i++) {
    const task = tasks[i];
    if (start[task] > to || start[task] > now) break;
    if (!wanted[kind[task]] || end[task] < from) continue;
    const ends = Math.min(end[task], now);
    const state = world.schedule.state(task, now);
    if (ends - start[task] >= pixel) {
      flush();
      found.push([start[task], ends - start[task], kind[task], 1, state, world.taskId(task)]);
      continue;
    }
    if (merged && ends - merged.start > pixel) flush();
    merged ??= {
      start: start[task],
      end: ends,
      count: 0,
      names: Array(KINDS.length).fill(0),
      state,
      task,
    };
    merged.end = Math.max(merged.end, ends);
    merged.count++;
    merged.names[kind[task]]++;
    if (state === "FAILED") merged.state = state;
  }
  flush();
  return found;
}

/** The same as a Chrome trace: the latest part of it. */
export function trace(world) {
  const { schedule } = world;
  const known = schedule.known(Date.now());
  const events = [];
  for (let i = Math.max(0, known - 10_000); i < known; i++) {
    events.push({
      name: KINDS[schedule.kind[i]].name,
      ph: "X",
      ts: schedule.start[i] * 1000,
      dur: (schedule.end[i] - schedule.start[i]) * 1000,
      pid: 1,
      tid: world.workers[schedule.worker[i]].pid,
    });
  }
  return events;
}
