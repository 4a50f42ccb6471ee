// The timeline: every task as a span on the lane of its process.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { url } from "../api";
import { plural } from "../format";
import { changes, cluster } from "../live";
import { nodeName } from "../node-name";
import { Icon, type IconName } from "../parts/icons";
import { Empty, Failure } from "../parts/notice";
import { SearchBox } from "../parts/search-box";
import { go, link, type Route } from "../router";
import { useStore } from "../store";
import { TimelineChart } from "../timeline/chart";
import { pan, spanOf, zoom } from "../timeline/geometry";
import { Minimap } from "../timeline/minimap";
import { TimelineModel } from "../timeline/model";
import { Selected } from "../timeline/selected";
import { counted } from "../timeline/spans";

/** While things change, the overview is loaded again this often. */
const REFRESH_MS = 2000;

export function TimelinePage({ route }: { route: Route }) {
  const model = useMemo(
    () => new TimelineModel((id) => nodeName(cluster.get()?.nodes ?? [], id)),
    [],
  );
  const empty = useStore(model.empty);
  const error = useStore(model.error);
  const selection = useStore(model.selection);
  const [query, setQuery] = useState("");
  const wanted = route.params.get("task");

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const first = model.refresh();
    if (wanted) void first.then(() => model.select(wanted, true));
    const unfollow = changes.subscribe(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void model.refresh();
      }, REFRESH_MS);
    });
    return () => {
      clearTimeout(timer);
      unfollow();
      model.end();
    };
  }, [model]);
  useKeys(model);

  const search = (text: string) => {
    setQuery(text);
    model.search(text);
  };
  const middle = () => (model.view.get().from + model.view.get().to) / 2;
  const zoomBy = (factor: number) =>
    model.glideTo(zoom(model.view.get(), factor, middle(), model.limits));
  const tool = (label: string, icon: IconName, act: () => void) => (
    <button type="button" class="quiet" aria-label={label} title={label} onClick={act}>
      <Icon name={icon} />
    </button>
  );

  return (
    <div class="fill">
      <div class="page-head">
        <h1>Timeline</h1>
      </div>
      <div class="toolbar">
        <SearchBox
          label="Find tasks by name"
          placeholder="Find by name (f)"
          value={query}
          onValue={search}
          onEnter={(backwards) => model.nextMatch(backwards)}
        />
        {query && <Found model={model} />}
        <div class="buttons">
          {tool("Zoom in (+)", "plus", () => zoomBy(0.5))}
          {tool("Zoom out (-)", "minus", () => zoomBy(2))}
          {tool("Show everything (0)", "fit", () => model.glideTo(model.limits))}
        </div>
        <a class="button" href={url("timeline.json")} download="oxiray-timeline.json">
          <Icon name="download" /> Trace
        </a>
        <Drawn model={model} />
      </div>
      {error && <Failure error={error} retry={() => void model.refresh()} />}
      {empty === true && <Empty>No task has run yet. What runs will appear here.</Empty>}
      {empty === null && !error && <Empty>Loading…</Empty>}
      {empty === false && (
        <>
          <Minimap model={model} />
          <TimelineChart model={model} />
          {selection ? (
            <Selected selection={selection} close={() => void model.select(null)} />
          ) : (
            <p class="hint">
              The wheel zooms where the pointer is, dragging moves, a click shows what a task needs
              and feeds. Keys: <kbd>←</kbd> <kbd>→</kbd> <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd>{" "}
              <kbd>f</kbd>
            </p>
          )}
        </>
      )}
    </div>
  );
}

/** Keys act wherever the focus is on this page, but not while something is typed. */
function useKeys(model: TimelineModel): void {
  const held = useRef(model);
  held.current = model;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, dialog")) return;
      if (act(held.current, event.key, target)) event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

function act(model: TimelineModel, key: string, target: HTMLElement): boolean {
  const view = model.view.get();
  const middle = (view.from + view.to) / 2;
  const step = spanOf(view) * 0.2;
  const selected = model.selection.get()?.task.task_id;
  if (key === "ArrowLeft") model.glideTo(pan(view, -step, model.limits));
  else if (key === "ArrowRight") model.glideTo(pan(view, step, model.limits));
  else if (key === "+" || key === "=") model.glideTo(zoom(view, 0.5, middle, model.limits));
  else if (key === "-") model.glideTo(zoom(view, 2, middle, model.limits));
  else if (key === "0") model.glideTo(model.limits);
  else if (key === "f") document.querySelector<HTMLElement>(".toolbar input")?.focus();
  else if (key === "Escape") void model.select(null);
  else if (key === "Enter" && selected && target.tagName === "CANVAS")
    go(link(["tasks", selected]));
  else return false;
  return true;
}

/** How many tasks were found, and the way to the next. */
function Found({ model }: { model: TimelineModel }) {
  useStore(model.found);
  const count = model.matching();
  return (
    <span class="found" role="status">
      {count === null ? "…" : count === 0 ? "Nothing found" : `${plural(count, "task")} found `}
      {!!count && (
        <button
          type="button"
          class="quiet"
          title="Show the next (Enter; the one before: Shift+Enter)"
          onClick={() => model.nextMatch(false)}
        >
          Next
        </button>
      )}
    </span>
  );
}

/** The view must rest for so long before what is in it is counted. */
const COUNT_MS = 250;

function inView(model: TimelineModel): string {
  const data = model.detail.get() ?? model.overview.get();
  if (!data) return "";
  const { tasks, spans } = counted(data, model.view.get().from, model.view.get().to);
  return `${plural(tasks, "task")} in view, drawn as ${plural(spans, "span")}`;
}

/** How much is in view. It is counted when the view rests, not in every frame. */
function Drawn({ model }: { model: TimelineModel }) {
  const [text, setText] = useState("");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(() => setText(inView(model)), COUNT_MS);
    };
    const undo = [model.view, model.detail, model.overview].map((store) => store.subscribe(soon));
    return () => {
      clearTimeout(timer);
      for (const step of undo) step();
    };
  }, [model]);
  return <span class="found in-view">{text}</span>;
}
