// Actors: the list, and one with its calls.
import { clock, count, words } from "../format";
import { cluster } from "../live";
import { useLoad } from "../load";
import { Card } from "../parts/card";
import { EndButton } from "../parts/end-button";
import { Facts } from "../parts/facts";
import { Id } from "../parts/id";
import { List, type Chip } from "../parts/list";
import { Empty, Failure } from "../parts/notice";
import { State } from "../parts/state";
import { type Column, Table } from "../parts/table";
import { took } from "../phases";
import { link, type Route } from "../router";
import type { Actor, Page, Task } from "../rows";
import { useStore } from "../store";

const COLUMNS: Column<Actor>[] = [
  {
    title: "Class",
    sort: "class_name",
    wide: true,
    cell: (actor) => <a href={link(["actors", actor.actor_id])}>{actor.class_name}</a>,
  },
  { title: "Name", sort: "name", cell: (actor) => actor.name || "" },
  { title: "State", sort: "state", cell: (actor) => <State state={actor.state} /> },
  { title: "Actor", cell: (actor) => <Id id={actor.actor_id} /> },
  { title: "Process", sort: "pid", numeric: true, cell: (actor) => actor.pid ?? "–" },
  {
    title: "Restarts",
    sort: "num_restarts",
    numeric: true,
    cell: (actor) => count(actor.num_restarts),
  },
  { title: "Holds", cell: (actor) => resources(actor) },
];

const TONES: Record<string, string> = { ALIVE: "done", DEAD: "failed" };

export function ActorsPage({ route }: { route: Route }) {
  const states = useStore(cluster)?.actors ?? {};
  const chips: Chip[] = ["PENDING_CREATION", "ALIVE", "RESTARTING", "DEAD"].map((state) => ({
    label: words(state),
    value: state.toLowerCase(),
    filters: [`state=${state}`],
    count: states[state] ?? 0,
    tone: TONES[state] ?? "pending",
  }));
  return (
    <>
      <div class="page-head">
        <h1>Actors</h1>
      </div>
      <List<Actor>
        route={route}
        resource="actors"
        noun="actor"
        columns={COLUMNS}
        keyOf={(actor) => actor.actor_id}
        href={(actor) => link(["actors", actor.actor_id])}
        sort="class_name"
        chips={chips}
        empty="No actor has been made in this session yet."
      />
    </>
  );
}

export function ActorPage({ id }: { id: string }) {
  const { data: actor, error, reload } = useLoad<Actor>(`actors/${encodeURIComponent(id)}`);
  if (error) return <Failure error={error} retry={reload} />;
  if (!actor) return <Empty>Loading…</Empty>;
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href="#/actors">Actors</a>
      </nav>
      <div class="page-head">
        <h1>
          {actor.class_name} <State state={actor.state} />
        </h1>
        <p class="sub">
          <Id id={actor.actor_id} copy />
        </p>
        {actor.state !== "DEAD" && (
          <EndButton
            path={`actors/${encodeURIComponent(actor.actor_id)}/kill`}
            label="Kill"
            question="End this actor for good, with all that it does?"
            done={reload}
          />
        )}
      </div>
      {actor.death_cause && (
        <Card title="Why it died" tone="failed">
          <p class="why">{actor.death_cause}</p>
        </Card>
      )}
      {actor.why && (
        <Card title="Why it is not there yet" tone="pending">
          <p class="why">{actor.why}</p>
        </Card>
      )}
      <Card title="Facts">
        <Facts
          facts={[
            ["Name", actor.name || "none"],
            ["Namespace", actor.ray_namespace || "–"],
            ["Detached", actor.is_detached ? "yes: it outlives its program" : "no"],
            ["Restarts", count(actor.num_restarts)],
            ["Process", actor.pid ?? "–"],
            actor.node_id ? ["Node", <Id id={actor.node_id} />] : null,
            ["Job", actor.job_id ?? "–"],
            ["Holds", resources(actor) || "nothing"],
          ]}
        />
      </Card>
      <Calls id={id} />
    </>
  );
}

const CALLS: Column<Task>[] = [
  {
    title: "Call",
    wide: true,
    cell: (task) => <a href={link(["tasks", task.task_id])}>{task.name}</a>,
  },
  { title: "State", cell: (task) => <State state={task.state} /> },
  { title: "Started", numeric: true, cell: (task) => clock(task.start_time_ms) },
  { title: "Took", numeric: true, cell: (task) => took(task, Date.now()) },
];

function Calls({ id }: { id: string }) {
  const filter = encodeURIComponent(`actor_id=${id}`);
  const { data } = useLoad<Page<Task>>(`tasks?filter=${filter}&limit=20&sort=-start_time_ms`);
  if (!data) return null;
  return (
    <Card
      title="Latest calls"
      flush
      aside={<a href={link(["tasks"], { q: `actor_id=${id}` })}>All {count(data.filtered)}</a>}
    >
      {data.rows.length ? (
        <Table
          label="Latest calls"
          columns={CALLS}
          rows={data.rows}
          keyOf={(task) => `${task.task_id}/${task.attempt_number}`}
          href={(task) => link(["tasks", task.task_id])}
        />
      ) : (
        <Empty>It has not been called yet.</Empty>
      )}
    </Card>
  );
}

function resources(actor: Actor): string {
  return Object.entries(actor.required_resources ?? {})
    .map(([name, n]) => `${n} ${name}`)
    .join(", ");
}
