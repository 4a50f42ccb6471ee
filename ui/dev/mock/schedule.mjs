// A made-up past and future of tasks, in arrays: when each is created, starts and ends, and where.
// Its state at a moment follows from that, so the mock is alive without doing anything.
import { seeded } from "./random.mjs";

/** Names, how long they take relative to each other, how often they come and how often they fail. */
export const KINDS = [
  { name: "load_tile", size: 1, share: 40, fails: 0 },
  { name: "detect_edges", size: 2, share: 26, fails: 0 },
  { name: "encode_tile", size: 1.4, share: 18, fails: 0 },
  { name: "merge", size: 3, share: 8, fails: 0 },
  { name: "evaluate", size: 8, share: 5, fails: 0.04 },
  { name: "ParameterServer.apply", size: 0.6, share: 2, fails: 0, actor: true },
  { name: 'odd "<script>alert(1)</script>"', size: 1, share: 1, fails: 0 },
];

/** What lies in the future is slow enough to watch. */
const FUTURE_MS = 3_600_000;
const FUTURE_TASK_MS = 700;

export class Schedule {
  /** @param {{now: number, past: number, pastMs: number, workers: number}} options */
  constructor({ now, past, pastMs, workers }) {
    const random = seeded(7);
    const deck = KINDS.flatMap((kind, i) => Array(kind.share).fill(i));
    const future = Math.floor((FUTURE_MS / FUTURE_TASK_MS) * workers);
    const most = past + future;
    const start = new Float64Array(most);
    const end = new Float64Array(most);
    const kind = new Uint8Array(most);
    const worker = new Uint16Array(most);
    const failed = new Uint8Array(most);
    let n = 0;
    const fill = (w, from, to, mean, tasks) => {
      let at = from + random() * mean;
      for (let i = 0; i < tasks && at < to; i++) {
        const k = deck[Math.floor(random() * deck.length)];
        const took = mean * 0.5 * KINDS[k].size * (0.4 + 1.2 * random());
        start[n] = at;
        end[n] = at + took;
        kind[n] = k;
        worker[n] = w;
        failed[n] = random() < KINDS[k].fails ? 1 : 0;
        n++;
        // Now and then a worker has nothing to do.
        at += took + mean * 0.04 * random() + (random() < 0.02 ? mean * 4 * random() : 0);
      }
    };
    const each = Math.ceil(past / workers);
    for (let w = 0; w < workers; w++) fill(w, now - pastMs, now - 1, pastMs / each, each);
    for (let w = 0; w < workers; w++)
      fill(w, now, now + FUTURE_MS, FUTURE_TASK_MS, future / workers);

    const order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => start[a] - start[b]);
    const sorted = (array) => array.constructor.from(order, (i) => array[i]);
    this.start = sorted(start);
    this.end = sorted(end);
    this.kind = sorted(kind);
    this.worker = sorted(worker);
    this.failed = sorted(failed);
    this.length = n;
    this.first = this.start[0];
    /** The tasks of each worker, by start. */
    this.byWorker = Array.from({ length: workers }, () => []);
    for (let i = 0; i < n; i++) this.byWorker[this.worker[i]].push(i);
  }

  /** When a task was submitted: some time before it starts. */
  created(i) {
    return this.start[i] - 40 - ((i * 7919) % 3000);
  }

  /** How many tasks there are: those that start within the next second or so are waiting. */
  known(now) {
    return lowerBound(this.start, now + 1200);
  }

  state(i, now) {
    if (this.start[i] > now) return i % 3 ? "PENDING_NODE_ASSIGNMENT" : "PENDING_ARGS_AVAIL";
    if (this.end[i] > now) return "RUNNING";
    return this.failed[i] ? "FAILED" : "FINISHED";
  }

  /** Counts by kind and state. Only what is near now can change: the rest is counted once. */
  counts(now) {
    const known = this.known(now);
    this.counted ??= { to: 0, ended: KINDS.map(() => [0, 0]) };
    const { counted } = this;
    while (counted.to < known && this.end[counted.to] <= now - 60_000) {
      counted.ended[this.kind[counted.to]][this.failed[counted.to]]++;
      counted.to++;
    }
    const result = KINDS.map((_, k) => ({
      FINISHED: counted.ended[k][0],
      FAILED: counted.ended[k][1],
    }));
    for (let i = counted.to; i < known; i++) {
      const states = result[this.kind[i]];
      const state = this.state(i, now);
      states[state] = (states[state] ?? 0) + 1;
    }
    return result;
  }

  /** Up to two tasks of other workers that ended before this one began. */
  needs(i) {
    if (!["merge", "evaluate", "encode_tile"].includes(KINDS[this.kind[i]].name)) return [];
    const found = [];
    for (let j = i - 1; j >= 0 && j > i - 400 && found.length < 2; j--) {
      if (this.end[j] <= this.start[i] && this.worker[j] !== this.worker[i]) found.push(j);
    }
    return found;
  }

  feeds(i) {
    const found = [];
    for (let j = i + 1; j < this.length && j < i + 400 && found.length < 4; j++) {
      if (this.needs(j).includes(i)) found.push(j);
    }
    return found;
  }
}

/** The first index whose value is not less. */
export function lowerBound(sorted, value, at = (i) => sorted[i]) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
