// The stream of changes. One connection feeds the whole page: it brings the cluster and the task
// groups, and tells lists when to load again, so that nothing is asked for while nothing changes.
import { ApiError, get, url } from "./api";
import type { Cluster, Groups } from "./rows";
import { keep, sampleOf, type Sample } from "./samples";
import { cell } from "./store";

export type Connection =
  { state: "connecting" | "open" } | { state: "lost"; why: string; retryAt: number };

export const connection = cell<Connection>({ state: "connecting" });
export const cluster = cell<Cluster | null>(null);
export const groups = cell<Groups | null>(null);
export const samples = cell<Sample[]>([]);
/** Counts the changes that the stream told of, for lists to load again. */
export const changes = cell(0);

const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 15_000;
/** The server pings; a connection silent for longer is dead, whatever the browser thinks. */
const SILENCE_MS = 45_000;
/** A page in the background is nobody looking: after this the stream is closed until it is seen. A
 * browser has six connections to a server for all its tabs, so it should not be long. */
const HIDDEN_MS = 10_000;
const SAMPLE_MS = 1000;

let source: EventSource | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let hide: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
let failures = 0;

/** Opens the stream and keeps it open for as long as the page is looked at. */
export function start(): void {
  open();
  setInterval(takeSample, SAMPLE_MS);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hide);
    if (document.hidden) hide = setTimeout(close, HIDDEN_MS);
    else if (!source) open();
  });
}

/** Tries at once what would be tried later. */
export function reconnect(): void {
  failures = 0;
  open();
}

function open(): void {
  close();
  const opened = new EventSource(url("stream"));
  source = opened;
  const heard = <T>(handle: (data: T) => void) =>
    ((event: MessageEvent<string>) => {
      alive();
      handle(JSON.parse(event.data || "null") as T);
    }) as EventListener;
  opened.addEventListener("open", alive);
  opened.addEventListener("error", () => void lost());
  opened.addEventListener("ping", alive);
  opened.addEventListener(
    "cluster",
    heard<Cluster>((data) => {
      const before = cluster.get();
      cluster.set(data);
      if (!before || happenings(before) !== happenings(data)) changes.set(changes.get() + 1);
    }),
  );
  opened.addEventListener(
    "tasks",
    heard<Groups>((data) => {
      groups.set(data);
      changes.set(changes.get() + 1);
    }),
  );
}

/** What lists are about. The processor's load, for one, is not: it changes all the time. */
function happenings({ nodes, tasks, actors, jobs, placement_groups, waiting }: Cluster): string {
  const parts = nodes.map((node) => [node.node_id, node.state, node.workers, node.store_used]);
  return JSON.stringify([parts, tasks, actors, jobs, placement_groups, waiting]);
}

function close(): void {
  clearTimeout(retry);
  clearTimeout(silence);
  source?.close();
  source = null;
}

function alive(): void {
  failures = 0;
  if (connection.get().state !== "open") connection.set({ state: "open" });
  clearTimeout(silence);
  silence = setTimeout(() => void lost(), SILENCE_MS);
}

/** A stream does not say why it ended; an ordinary request does. */
async function lost(): Promise<void> {
  close();
  const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** failures++);
  const why = await get<Cluster>("cluster").then(
    () => "The stream of changes was cut.",
    (failure: unknown) => (failure instanceof ApiError ? failure.message : String(failure)),
  );
  if (source || document.hidden) return;
  connection.set({ state: "lost", why, retryAt: Date.now() + wait });
  retry = setTimeout(open, wait);
}

function takeSample(): void {
  const latest = cluster.get();
  if (latest && source && connection.get().state === "open") {
    samples.set(keep(samples.get(), sampleOf(latest, Date.now())));
  }
}
