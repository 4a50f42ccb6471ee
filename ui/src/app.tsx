// The frame around all pages: navigation, the state of the connection, light and dark.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plural } from "./format";
import { cluster, connection, reconnect } from "./live";
import { ActorPage, ActorsPage } from "./pages/actors";
import { ClusterPage } from "./pages/cluster";
import { GroupPage, GroupsPage } from "./pages/groups";
import { JobsPage } from "./pages/jobs";
import { LogPage, LogsPage } from "./pages/logs";
import { ObjectsPage } from "./pages/objects";
import { TaskPage } from "./pages/task";
import { TasksPage } from "./pages/tasks";
import { TimelinePage } from "./pages/timeline";
import { WorkersPage } from "./pages/workers";
import { Icon, type IconName } from "./parts/icons";
import { Empty } from "./parts/notice";
import { useRoute, type Route } from "./router";
import { useStore } from "./store";
import { choice, choose, type Choice } from "./theme";

const SECTIONS: { path: string; title: string; icon: IconName }[] = [
  { path: "", title: "Cluster", icon: "cluster" },
  { path: "timeline", title: "Timeline", icon: "timeline" },
  { path: "tasks", title: "Tasks", icon: "tasks" },
  { path: "actors", title: "Actors", icon: "actors" },
  { path: "objects", title: "Objects", icon: "objects" },
  { path: "groups", title: "Placement groups", icon: "groups" },
  { path: "jobs", title: "Jobs", icon: "jobs" },
  { path: "workers", title: "Workers", icon: "workers" },
  { path: "logs", title: "Logs", icon: "logs" },
];

export function App() {
  const route = useRoute();
  const section = SECTIONS.find(({ path }) => path === (route.path[0] ?? ""));
  const main = useRef<HTMLElement>(null);
  const place = route.path.join("/");

  useEffect(() => {
    document.title = section ? `${section.title} · Oxiray` : "Oxiray";
    main.current?.scrollTo(0, 0);
    scrollTo(0, 0);
  }, [place]);

  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => (event.preventDefault(), main.current?.focus())}
      >
        Skip to the page
      </a>
      <Navigation current={section?.path} place={place} />
      <main ref={main} id="main" tabIndex={-1}>
        <LostBanner />
        <MissingBanner />
        <Content route={route} />
      </main>
    </div>
  );
}

function Content({ route }: { route: Route }): JSX.Element {
  const [section = "", first, ...rest] = route.path;
  const page = { route };
  if (section === "") return <ClusterPage />;
  if (section === "timeline") return <TimelinePage {...page} />;
  if (section === "tasks")
    return first ? <TaskPage key={first} id={first} /> : <TasksPage {...page} />;
  if (section === "actors")
    return first ? <ActorPage key={first} id={first} /> : <ActorsPage {...page} />;
  if (section === "objects") return <ObjectsPage {...page} />;
  if (section === "groups")
    return first ? <GroupPage key={first} id={first} /> : <GroupsPage {...page} />;
  if (section === "jobs") return <JobsPage {...page} />;
  if (section === "workers") return <WorkersPage {...page} />;
  if (section === "logs") {
    const file = rest.join("/");
    return first && file ? (
      <LogPage key={`${first}/${file}`} node={first} file={file} />
    ) : (
      <LogsPage />
    );
  }
  return (
    <Empty>
      There is no page at this address. <a href="#/">Go to the cluster.</a>
    </Empty>
  );
}

function Navigation({ current, place }: { current: string | undefined; place: string }) {
  const [open, setOpen] = useState(false);
  // Before the other page is painted, or the menu would lie over it for a moment.
  useLayoutEffect(() => setOpen(false), [place]);
  return (
    <header class={`side${open ? " open" : ""}`}>
      <div class="brand">
        <a href="#/" aria-label="Oxiray, the cluster">
          <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" />
            <path d="M7 10.5h11M11 16h14M7 21.5h8" />
          </svg>
          Oxiray
        </a>
        <button
          type="button"
          class="quiet menu"
          aria-label={open ? "Close the menu" : "Open the menu"}
          aria-expanded={open}
          aria-controls="sections"
          onClick={() => setOpen(!open)}
        >
          <Icon name={open ? "close" : "menu"} />
        </button>
      </div>
      <nav id="sections" aria-label="Pages">
        {SECTIONS.map(({ path, title, icon }) => (
          <a key={path} href={`#/${path}`} aria-current={path === current ? "page" : undefined}>
            <Icon name={icon} />
            {title}
          </a>
        ))}
      </nav>
      <div class="side-foot">
        <Status />
        <ThemeChoice />
      </div>
    </header>
  );
}

function Status() {
  const state = useStore(connection).state;
  const now = useStore(cluster);
  const nodes = now?.nodes.filter((node) => node.state !== "DEAD").length ?? 0;
  const text = { open: "Live", connecting: "Connecting", lost: "Not connected" }[state];
  return (
    <p class="status" data-connection={state}>
      <span
        class={`dot ${state === "open" ? "tone-done" : state === "lost" ? "tone-failed" : "tone-pending"}`}
      />
      <span>
        {text}
        {state === "open" && now && <small>{plural(nodes, "node")}</small>}
      </span>
    </p>
  );
}

const CHOICES: { value: Choice; label: string; icon: IconName }[] = [
  { value: "light", label: "Light", icon: "light" },
  { value: "system", label: "As the system", icon: "system" },
  { value: "dark", label: "Dark", icon: "dark" },
];

function ThemeChoice() {
  const chosen = useStore(choice);
  return (
    <div class="segments" role="radiogroup" aria-label="Light or dark">
      {CHOICES.map(({ value, label, icon }) => (
        <button
          key={value}
          type="button"
          role="radio"
          aria-checked={value === chosen}
          aria-label={label}
          title={label}
          onClick={() => choose(value)}
        >
          <Icon name={icon} />
        </button>
      ))}
    </div>
  );
}

function LostBanner() {
  const state = useStore(connection);
  const [now, setNow] = useState(Date.now());
  const lost = state.state === "lost";
  useEffect(() => {
    if (!lost) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [lost]);
  if (!lost) return null;
  const seconds = Math.max(0, Math.ceil((state.retryAt - now) / 1000));
  return (
    <div class="banner" role="alert">
      <p>
        <strong>The connection is lost.</strong> {state.why} What you see is how it was.
      </p>
      <button type="button" onClick={reconnect}>
        {seconds > 0 ? `Try now (else in ${seconds} s)` : "Trying…"}
      </button>
    </div>
  );
}

/** Nodes that do not answer: what is shown of them, on any page, is missing or old. */
function MissingBanner() {
  const missing = useStore(cluster)?.missing ?? [];
  if (missing.length === 0) return null;
  return (
    <div class="banner" role="status">
      <p>
        <strong>Some of this is missing.</strong>{" "}
        {missing
          .map((sentence) => `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`)
          .join(" ")}
      </p>
    </div>
  );
}
