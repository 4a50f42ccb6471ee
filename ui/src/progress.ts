// Task states as the page groups them: what waits, what runs, what is done, what
// failed, and of what nobody knows the end.
import type { Counts } from "./rows";

export type Stage = "pending" | "running" | "done" | "failed" | "unknown";

export const STAGES: readonly Stage[] = ["done", "running", "failed", "unknown", "pending"];

export type Progress = Record<Stage, number> & { total: number };

export function stageOf(state: string): Stage {
  if (state === "FINISHED") return "done";
  if (state === "FAILED") return "failed";
  if (state === "UNKNOWN") return "unknown";
  if (state === "RUNNING") return "running";
  return "pending";
}

export function progressOf(states: Counts): Progress {
  const progress: Progress = { done: 0, running: 0, failed: 0, unknown: 0, pending: 0, total: 0 };
  for (const [state, n] of Object.entries(states)) {
    progress[stageOf(state)] += n ?? 0;
    progress.total += n ?? 0;
  }
  return progress;
}
