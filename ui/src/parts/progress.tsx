// Bars: how far a group of tasks is, and how full something is.
import { count, plural } from "../format";
import { STAGES, type Progress, type Stage } from "../progress";

const WORDS = {
  done: "done",
  running: "running",
  failed: "failed",
  cancelled: "cancelled",
  unknown: "unknown",
  pending: "waiting",
};

/** Said only where there are any. */
const RARE: readonly Stage[] = ["cancelled", "unknown"];

export function ProgressBar({ progress, label }: { progress: Progress; label: string }) {
  const present = STAGES.filter((stage) => progress[stage] > 0);
  const text = present.map((stage) => `${count(progress[stage])} ${WORDS[stage]}`).join(", ");
  return (
    <div
      class="progress"
      role="img"
      aria-label={`${label}: ${text || "nothing"}`}
      title={`${text} of ${plural(progress.total, "task")}`}
    >
      {present.map((stage) => (
        <span key={stage} class={`tone-${stage}`} style={{ flexGrow: progress[stage] }} />
      ))}
    </div>
  );
}

/** What the colours of progress bars mean, with the numbers. */
export function Legend({ progress }: { progress: Progress }) {
  return (
    <ul class="legend">
      {STAGES.filter((stage) => !RARE.includes(stage) || progress[stage] > 0).map((stage) => (
        <li key={stage}>
          <span class={`dot tone-${stage}`} />
          {count(progress[stage])} {WORDS[stage]}
        </li>
      ))}
    </ul>
  );
}

interface MeterProps {
  label: string;
  used: number | null;
  total: number | null;
  text: string;
  /** Whether being full is a worry. For processors it is not: that is what they are for. */
  worry?: boolean;
}

/** How much of something is used. */
export function Meter({ label, used, total, text, worry }: MeterProps) {
  const share = used !== null && total ? Math.max(0, Math.min(1, used / total)) : 0;
  return (
    <div class="meter">
      <span class="meter-label">{label}</span>
      <span class="meter-text">{text}</span>
      <div
        class="meter-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={text}
      >
        <span class={worry && share > 0.9 ? "full" : ""} style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}
