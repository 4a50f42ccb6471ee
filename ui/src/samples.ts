// What the charts show: one sample a second of the cluster, kept in this page for ten minutes.
// The server keeps nothing for it. Pure: samples come in with their time.
import { progressOf } from "./progress";
import type { Cluster } from "./rows";
import { mean, sum } from "./sums";

export const KEPT_SECONDS = 600;
/** Counts come at most once a second and not on the second: a rate is taken over some of them. */
const RATE_WINDOW = 3;

export interface Sample {
  /** Seconds since 1970. */
  time: number;
  ended: number;
  running: number;
  pending: number;
  failed: number;
  cpu: number | null;
  memory: number | null;
  store: number | null;
}

export function sampleOf(cluster: Cluster, now: number): Sample {
  const tasks = progressOf(cluster.tasks);
  const alive = cluster.nodes.filter((node) => node.state !== "DEAD");
  return {
    time: now / 1000,
    ended: tasks.done + tasks.failed + tasks.cancelled + tasks.unknown,
    running: tasks.running,
    pending: tasks.pending,
    failed: tasks.failed,
    cpu: mean(alive.map((node) => node.cpu_percent)),
    memory: sum(alive.map((node) => node.memory_used)),
    store: cluster.store_used,
  };
}

/** Adds a sample and forgets what is too old. */
export function keep(samples: readonly Sample[], sample: Sample): Sample[] {
  const oldest = sample.time - KEPT_SECONDS;
  return [...samples.filter((kept) => kept.time >= oldest && kept.time < sample.time), sample];
}

/** Tasks that ended per second, at each sample. */
export function rates(samples: readonly Sample[]): (number | null)[] {
  return samples.map((sample, i) => {
    const before = samples[Math.max(0, i - RATE_WINDOW)]!;
    const passed = sample.time - before.time;
    return passed > 0 ? Math.max(0, (sample.ended - before.ended) / passed) : null;
  });
}
