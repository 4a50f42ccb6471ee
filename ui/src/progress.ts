// Task states as the page groups them: what waits, what runs, what is done, what failed, what nobody
// wanted any more, and of what nobody knows the end.
import type { Counts } from "./rows";

export type Stage = "pending" | "running" | "done" | "failed" | "cancelled" | "unknown";

export const STAGES: readonly Stage[] = [
  "done",
  "running",
  "failed",
  "cancelled",
  "unknown",
  "pending",
];

export type Progress = Record<Stage, number> & { total: number };

export function stageOf(state: string): Stage {
  if (state === "FINISHED") return "done";
  if (state === "FAILED") return "failed";
  if (state === "CANCELLED") return "cancelled";
  if (state === "UNKNOWN") return "unknown";
  if (state === "RUNNING") return "running";
  return "pending";
}

export function progressOf(states: Counts): Progress {
  const none = { done: 0, running: 0, failed: 0, cancelled: 0, unknown: 0, pending: 0 };
  const progress: Progress = { ...none, total: 0 };
  for (const [state, n] of Object.entries(states)) {
    progress[stageOf(state)] += n ?? 0;
    progress.total += n ?? 0;
  }
  return progress;
}
