// The timeline's state: what is seen, what is loaded for it, what is selected. It loads by itself
// when the view needs it: an overview of all time, which is always there, and the finer data of the
// view with some room around it. Until those are here, what is there is drawn, stretched.
import { get, isAbort } from "../api";
import type { TaskDetail, TimelineView } from "../rows";
import { cell, type Cell } from "../store";
import { between, clamp, covers, spanOf, whole, type Range } from "./geometry";
import { layout, type Layout } from "./lanes";
import { counted, nextAfter, prepared, type Dataset } from "./spans";

/** A task that is looked at, and those it is bound to. */
export interface Selection {
  task: TaskDetail;
  needs: TaskDetail[];
  feeds: TaskDetail[];
}

const OVERVIEW_WIDTH = 1500;
/** The view must rest for so long before finer data are asked for. */
const REST_MS = 90;
/** More relatives than these would be a thicket. */
const MOST_RELATIVES = 40;
const GLIDE_MS = 180;
const EMPTY: Layout = { lanes: [], height: 0, byKey: new Map(), byWorker: new Map() };

export class TimelineModel {
  readonly view: Cell<Range> = cell({ from: 0, to: 1 });
  readonly overview: Cell<Dataset | null> = cell<Dataset | null>(null);
  readonly detail: Cell<Dataset | null> = cell<Dataset | null>(null);
  /** Only what matches the search, or null while nothing is searched for. */
  readonly matches: Cell<Dataset | null> = cell<Dataset | null>(null);
  /** The same of all time; null while nothing is searched for, or it is not known yet. */
  readonly found: Cell<Dataset | null> = cell<Dataset | null>(null);
  readonly rows: Cell<Layout> = cell(EMPTY);
  readonly selection: Cell<Selection | null> = cell<Selection | null>(null);
  readonly error: Cell<string | null> = cell<string | null>(null);
  /** Null until it is known; then whether there is anything to see. */
  readonly empty: Cell<boolean | null> = cell<boolean | null>(null);

  limits: Range = { from: 0, to: 1 };
  /** When the first task began: the axis counts from here. */
  zero = 0;
  width = 800;
  private query = "";
  /** The moment after which the next match is looked for, once one was shown. */
  private shown: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private loading: AbortController | null = null;
  private finding: AbortController | null = null;
  private selecting: AbortController | null = null;
  private glide = 0;
  private readonly ended = new AbortController();

  constructor(private readonly nodeName: (id: string) => string) {}

  /** Loads the overview; again when there is news. A view of everything stays one. */
  async refresh(): Promise<void> {
    const answer = await this.ask({}, OVERVIEW_WIDTH, this.ended.signal);
    if (!answer) return;
    if (answer.first === null || answer.last === null || answer.rows.length === 0) {
      this.empty.set(true);
      return;
    }
    const all = this.seesAll();
    this.zero = answer.first;
    this.limits = whole(answer.first, answer.last);
    this.rows.set(layout(answer.rows, this.nodeName));
    this.overview.set(prepared(answer, OVERVIEW_WIDTH));
    if (this.empty.get() !== false || all) this.move(this.limits);
    this.empty.set(false);
    void this.loadFound();
    // What was loaded for a part that is still growing is old now.
    if (this.view.get().to >= answer.last - spanOf(this.limits) * 0.02) void this.loadDetail();
    else this.wantDetail();
  }

  /** Shows another part of time, at once. */
  move(view: Range): void {
    cancelAnimationFrame(this.glide);
    this.place(view);
  }

  /** Shows another part of time, gliding there. */
  glideTo(target: Range): void {
    cancelAnimationFrame(this.glide);
    const from = this.view.get();
    const to = clamp(target, this.limits);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.place(to);
    const start = performance.now();
    const step = (now: number) => {
      const share = Math.min(1, Math.max(0, (now - start) / GLIDE_MS));
      this.place(share === 1 ? to : between(from, to, 1 - (1 - share) ** 3));
      if (share < 1) this.glide = requestAnimationFrame(step);
    };
    this.glide = requestAnimationFrame(step);
  }

  setWidth(width: number): void {
    this.width = width;
    this.wantDetail();
  }

  search(query: string): void {
    this.query = query;
    this.shown = null;
    this.found.set(null);
    if (!query) this.matches.set(null);
    void this.loadDetail();
    void this.loadFound();
  }

  /** How many tasks match the search; null while that is not known. */
  matching(): number | null {
    const found = this.found.get();
    return found && counted(found, -Infinity, Infinity).tasks;
  }

  /** Selects a task and loads what it is bound to; null selects nothing. */
  async select(id: string | null, reveal = false): Promise<void> {
    this.selecting?.abort();
    if (id === null) return this.selection.set(null);
    const selecting = new AbortController();
    this.selecting = selecting;
    const load = (task: string) =>
      get<TaskDetail>(`tasks/${encodeURIComponent(task)}`, selecting.signal);
    try {
      const task = await load(id);
      this.selection.set({ task, needs: [], feeds: [] });
      if (reveal) this.reveal(task);
      const [needs, feeds] = await Promise.all(
        [task.needs ?? [], task.feeds ?? []].map((ids) =>
          Promise.all(ids.slice(0, MOST_RELATIVES).map((other) => load(other).catch(() => null))),
        ),
      );
      if (selecting.signal.aborted) return;
      const known = (tasks: (TaskDetail | null)[] = []) => tasks.filter((other) => other !== null);
      this.selection.set({ task, needs: known(needs), feeds: known(feeds) });
    } catch (failure) {
      if (!isAbort(failure)) this.error.set((failure as Error).message);
    }
  }

  /** Shows a task in the middle, with what was around it. */
  private reveal(task: TaskDetail): void {
    if (task.start_time_ms === null) return;
    const end = task.end_time_ms ?? task.start_time_ms;
    const room = Math.max((end - task.start_time_ms) * 6, spanOf(this.limits) / 1e5, 0.5);
    this.glideTo({ from: task.start_time_ms - room, to: end + room });
  }

  /** Shows and selects the next match, or the one before; behind the last comes the first. */
  nextMatch(backwards: boolean): void {
    const data = [this.matches.get(), this.found.get()].filter((part) => part !== null);
    const edge = backwards ? Infinity : -Infinity;
    const next = nextAfter(data, this.shown ?? edge, backwards) ?? nextAfter(data, edge, backwards);
    if (!next) return;
    const [start, took, , , , task] = next;
    this.shown = start;
    if (task) return void this.select(task, true);
    // Many, too near to each other to tell apart: nearer, they are found one by one.
    const around = { from: start - took / 2, to: start + took * 1.5 };
    const nearer = spanOf(around) < spanOf(this.view.get()) * 0.99;
    if (nearer) this.shown = backwards ? start + took : start - took / 2;
    this.glideTo(around);
  }

  end(): void {
    cancelAnimationFrame(this.glide);
    clearTimeout(this.timer);
    this.ended.abort();
    this.loading?.abort();
    this.finding?.abort();
    this.selecting?.abort();
  }

  private seesAll(): boolean {
    return spanOf(this.view.get()) >= spanOf(this.limits) * 0.999;
  }

  private place(view: Range): void {
    this.view.set(clamp(view, this.limits));
    this.wantDetail();
  }

  private wantDetail(): void {
    const have = this.detail.get();
    if (have && covers(have, have.width, this.view.get(), this.width)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.loadDetail(), REST_MS);
  }

  private async loadDetail(): Promise<void> {
    clearTimeout(this.timer);
    if (this.empty.get() !== false) return;
    this.loading?.abort();
    const loading = new AbortController();
    this.loading = loading;
    const view = this.view.get();
    const room = spanOf(view) / 2;
    const range = {
      from: Math.max(this.limits.from, view.from - room),
      to: Math.min(this.limits.to, view.to + room),
    };
    const width = Math.ceil((spanOf(range) / spanOf(view)) * this.width);
    const [all, matching] = await Promise.all([
      this.ask(range, width, loading.signal),
      this.query ? this.ask({ ...range, q: this.query }, width, loading.signal) : null,
    ]);
    if (loading.signal.aborted) return;
    if (all) this.detail.set(prepared({ ...all, ...range }, width));
    if (matching) this.matches.set(prepared({ ...matching, ...range }, width));
  }

  private async loadFound(): Promise<void> {
    this.finding?.abort();
    if (!this.query) return;
    const finding = new AbortController();
    this.finding = finding;
    const answer = await this.ask({ q: this.query }, OVERVIEW_WIDTH, finding.signal);
    if (answer && !finding.signal.aborted) this.found.set(prepared(answer, OVERVIEW_WIDTH));
  }

  private async ask(
    range: { from?: number; to?: number; q?: string },
    width: number,
    signal: AbortSignal,
  ): Promise<TimelineView | null> {
    const params = new URLSearchParams({ width: String(width) });
    for (const [key, value] of Object.entries(range)) params.set(key, String(value));
    try {
      const answer = await get<TimelineView>(`timeline?${params}`, signal);
      this.error.set(null);
      return answer;
    } catch (failure) {
      if (!signal.aborted && !isAbort(failure)) this.error.set((failure as Error).message);
      return null;
    }
  }
}
