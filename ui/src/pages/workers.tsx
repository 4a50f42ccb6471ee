// Processes: what each does, and a look inside: its stack now, or where its time goes.
import { useState } from "preact/hooks";
import { ago, bytes, clock } from "../format";
import { Id } from "../parts/id";
import { Inspection, type Look } from "../parts/inspection";
import { List, type Chip } from "../parts/list";
import type { Column } from "../parts/table";
import { link, type Route } from "../router";
import type * as made from "../row-types";
import type { Worker } from "../rows";

const CHIPS: Chip[] = [
  { label: "Working", value: "task", filters: ["is_alive=true", "activity=task"], tone: "running" },
  { label: "Actors", value: "actor", filters: ["is_alive=true", "activity=actor"], tone: "done" },
  { label: "Idle", value: "idle", filters: ["is_alive=true", "activity=idle"], tone: "pending" },
  { label: "Gone", value: "gone", filters: ["is_alive=false"], tone: "failed" },
];

export function WorkersPage({ route }: { route: Route }) {
  const [look, setLook] = useState<Look | null>(null);
  const columns: Column<Worker>[] = [
    { title: "Process", sort: "pid", numeric: true, cell: (worker) => worker.pid ?? "–" },
    {
      title: "Kind",
      sort: "worker_type",
      cell: (worker) => (worker.worker_type === "DRIVER" ? "driver" : "worker"),
    },
    { title: "Does", wide: true, cell: (worker) => <Activity worker={worker} /> },
    { title: "Node", cell: (worker) => worker.node_id && <Id id={worker.node_id} /> },
    { title: "Memory", sort: "rss", numeric: true, cell: (worker) => bytes(worker.rss) },
    {
      title: "Started",
      sort: "start_time_ms",
      numeric: true,
      cell: (worker) => (
        <span title={clock(worker.start_time_ms)}>{ago(worker.start_time_ms, Date.now())}</span>
      ),
    },
    {
      title: "Look inside",
      cell: (worker) =>
        worker.is_alive && (
          <span class="buttons">
            <button type="button" onClick={() => setLook({ worker, kind: "stack" })}>
              Stack
            </button>
            <button type="button" onClick={() => setLook({ worker, kind: "profile" })}>
              Flame graph
            </button>
          </span>
        ),
    },
  ];
  return (
    <>
      <div class="page-head">
        <h1>Workers</h1>
      </div>
      <List<Worker>
        route={route}
        resource="workers"
        noun="process"
        nouns="processes"
        columns={columns}
        keyOf={(worker) => worker.worker_id ?? `${worker.node_id}/${worker.pid}`}
        sort="pid"
        chips={CHIPS}
        empty="No process takes part in this session."
      />
      {look && <Inspection look={look} close={() => setLook(null)} />}
    </>
  );
}

const DOES: Record<made.Activity, string> = {
  idle: "nothing",
  task: "runs a task",
  driver: "runs a program",
  actor: "is an actor",
  ended: "ended",
};

function Activity({ worker }: { worker: Worker }) {
  if (!worker.is_alive) return <>ended{worker.exit_detail && `: ${worker.exit_detail}`}</>;
  if (worker.actor_id) {
    return (
      <>
        is actor <Id id={worker.actor_id} href={link(["actors", worker.actor_id])} />
      </>
    );
  }
  return <>{DOES[worker.activity]}</>;
}
