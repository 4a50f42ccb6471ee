// Where the time of a task's newest attempt went: waiting of each kind, then the parts of running. Pure.
import { duration } from "./format";
import { stageOf } from "./progress";
import type { TaskState } from "./row-types";
import type { Task, TaskDetail } from "./rows";

export interface Phase {
  name: string;
  ms: number;
  /** Its colour, as the style sheet names it. */
  tone: string;
}

/** Each kind of waiting, from the state that begins it to the one that ends it. */
const WAITS: [name: string, from: TaskState, to: TaskState, tone: string][] = [
  ["waited for arguments", "PENDING_ARGS_AVAIL", "PENDING_NODE_ASSIGNMENT", "arguments"],
  ["waited for a worker", "PENDING_NODE_ASSIGNMENT", "SUBMITTED_TO_WORKER", "pending"],
  ["waited at the worker", "SUBMITTED_TO_WORKER", "RUNNING", "queued"],
];

/** In the order in which they came; what is not known, or took no time, is left out. */
export function phases(task: TaskDetail): Phase[] {
  // One that did not live to say its parts was executed until it ended.
  const executed = task.execute_ms ?? task.duration_ms;
  const ran: [string, number | null | undefined, string][] = [
    ["fetched arguments", task.fetch_ms, "fetch"],
    ["executed", executed, stageOf(task.state) === "failed" ? "failed" : "running"],
    ["stored results", task.store_ms, "done"],
  ];
  return [...waits(task), ...ran]
    .map(([name, ms, tone]) => ({ name, ms, tone }))
    .filter((phase): phase is Phase => phase.ms != null && phase.ms > 0);
}

function waits(task: TaskDetail): [string, number | null, string][] {
  const times = new Map(task.events?.map((event) => [event.state, event.created_ms]));
  // Before a later attempt there were others: that time is theirs.
  const isFirst = !task.attempt_number;
  const wanted = isFirst ? WAITS : WAITS.slice(1);
  if (wanted.every(([, from, to]) => times.get(from) != null && times.get(to) != null)) {
    return wanted.map(([name, from, to, tone]) => [name, times.get(to)! - times.get(from)!, tone]);
  }
  // Not every step was recorded: then it is one wait.
  const began = isFirst ? task.creation_time_ms : (times.get("PENDING_NODE_ASSIGNMENT") ?? null);
  const started = task.start_time_ms;
  return [["waited", began === null || started === null ? null : started - began, "pending"]];
}

/** How long a task took, or has taken so far. */
export function took(task: Task, now: number): string {
  if (task.duration_ms !== null) return duration(task.duration_ms);
  if (task.start_time_ms === null || task.end_time_ms !== null) return "–";
  return `${duration(Math.max(0, now - task.start_time_ms))}…`;
}
