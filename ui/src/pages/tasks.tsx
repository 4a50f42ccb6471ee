// All tasks: how far each function is, and the list.
import { useState } from "preact/hooks";
import { clock, count, words } from "../format";
import { cluster, groups } from "../live";
import { useLoad } from "../load";
import { Card } from "../parts/card";
import { Id } from "../parts/id";
import { List, type Chip } from "../parts/list";
import { Empty } from "../parts/notice";
import { Legend, ProgressBar } from "../parts/progress";
import { State } from "../parts/state";
import type { Column } from "../parts/table";
import { took } from "../phases";
import { progressOf, type Progress } from "../progress";
import { condition } from "../query";
import { link, type Route } from "../router";
import type { Group, Groups, Task } from "../rows";
import { useStore } from "../store";

const COLUMNS: Column<Task>[] = [
  {
    title: "Name",
    sort: "name",
    wide: true,
    cell: (task) => <a href={link(["tasks", task.task_id])}>{task.name}</a>,
  },
  { title: "State", sort: "state", cell: (task) => <StateOf task={task} /> },
  { title: "Task", cell: (task) => <Id id={task.task_id} /> },
  { title: "Process", sort: "worker_pid", numeric: true, cell: (task) => task.worker_pid ?? "–" },
  {
    title: "Started",
    sort: "start_time_ms",
    numeric: true,
    cell: (task) => clock(task.start_time_ms),
  },
  { title: "Took", sort: "duration_ms", numeric: true, cell: (task) => took(task, Date.now()) },
];

function StateOf({ task }: { task: Task }) {
  return (
    <>
      <State state={task.state} />
      {task.error_type && <small> {words(task.error_type)}</small>}
    </>
  );
}

export function TasksPage({ route }: { route: Route }) {
  const all = progressOf(useStore(cluster)?.tasks ?? {});
  return (
    <>
      <div class="page-head">
        <h1>Tasks</h1>
      </div>
      <ByName all={all} />
      <List<Task>
        route={route}
        resource="tasks"
        noun="task"
        columns={COLUMNS}
        keyOf={(task) => `${task.task_id}/${task.attempt_number}`}
        href={(task) => link(["tasks", task.task_id])}
        sort="-start_time_ms"
        chips={chips(all)}
        empty="No task has been submitted in this session yet."
      />
    </>
  );
}

function chips(all: Progress): Chip[] {
  const ended = ["RUNNING", "FINISHED", "FAILED", "CANCELLED", "UNKNOWN"];
  return [
    {
      label: "Waiting",
      value: "waiting",
      filters: ended.map((state) => `state!=${state}`),
      count: all.pending,
      tone: "pending",
    },
    {
      label: "Running",
      value: "running",
      filters: ["state=RUNNING"],
      count: all.running,
      tone: "running",
    },
    { label: "Done", value: "done", filters: ["state=FINISHED"], count: all.done, tone: "done" },
    {
      label: "Failed",
      value: "failed",
      filters: ["state=FAILED"],
      count: all.failed,
      tone: "failed",
    },
    ...(all.cancelled > 0 ? [rare("Cancelled", all.cancelled)] : []),
    // A node took with it how they ended.
    ...(all.unknown > 0 ? [rare("Unknown", all.unknown)] : []),
  ];
}

function rare(label: "Cancelled" | "Unknown", count: number): Chip {
  const value = label.toLowerCase();
  return { label, value, filters: [`state=${label.toUpperCase()}`], count, tone: value };
}

/** So many names are shown at first: a program rarely has more that matter. */
const FEW = 8;

function ByName({ all }: { all: Progress }) {
  const streamed = useStore(groups);
  const loaded = useLoad<Groups>(streamed ? null : "summary/tasks", { live: false });
  const [whole, setWhole] = useState(false);
  const rows = (streamed ?? loaded.data)?.rows;
  if (!rows) return <Empty>Loading…</Empty>;
  if (!rows.length) return null;
  const named = rows
    .map((group) => ({ group, progress: progressOf(group.states) }))
    .sort(
      (a, b) => b.progress.total - a.progress.total || a.group.name.localeCompare(b.group.name),
    );
  return (
    <Card title="By name" aside={<Legend progress={all} />}>
      <ul class="groups">
        {named.slice(0, whole ? undefined : FEW).map(({ group, progress }) => (
          <GroupLine key={`${group.name}/${group.type}`} group={group} progress={progress} />
        ))}
      </ul>
      {named.length > FEW && (
        <button type="button" class="quiet more" onClick={() => setWhole(!whole)}>
          {whole ? "Show fewer" : `Show all ${count(named.length)} names`}
        </button>
      )}
    </Card>
  );
}

function GroupLine({ group, progress }: { group: Group; progress: Progress }) {
  return (
    <li>
      <a
        href={link(["tasks"], { q: condition("func_or_class_name", group.name) })}
        title={group.name}
      >
        {group.name}
      </a>
      <ProgressBar progress={progress} label={group.name} />
      <span class="groups-count">
        {count(progress.done)} of {count(progress.total)}
        {progress.failed > 0 && <b class="bad"> {count(progress.failed)} failed</b>}
      </span>
    </li>
  );
}
