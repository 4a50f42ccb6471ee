// A state as a small coloured word: the colour never stands alone.
import { words } from "../format";

const TONES: Record<string, string> = {
  FINISHED: "done",
  SUCCEEDED: "done",
  ALIVE: "done",
  CREATED: "done",
  RUNNING: "running",
  FAILED: "failed",
  CANCELLED: "cancelled",
  DEAD: "failed",
  REMOVED: "failed",
  RESTARTING: "pending",
};

export function State({ state }: { state: string }) {
  return <span class={`state tone-${TONES[state] ?? "pending"}`}>{words(state)}</span>;
}
