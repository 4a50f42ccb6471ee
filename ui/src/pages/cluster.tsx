// The start page: is it well, what is it doing, and what failed last.
import { ago, amount, bytes, count, duration, plural, words } from "../format";
import { cluster } from "../live";
import { useLoad } from "../load";
import { nodeName } from "../node-name";
import { Card } from "../parts/card";
import { ClusterCharts } from "../parts/cluster-charts";
import { NodeCard } from "../parts/node-card";
import { Empty } from "../parts/notice";
import { Legend, Meter, ProgressBar } from "../parts/progress";
import { progressOf } from "../progress";
import { link } from "../router";
import type { Cluster, ClusterNode, Page, Task } from "../rows";
import { useStore } from "../store";
import { sum } from "../sums";

export function ClusterPage() {
  const now = useStore(cluster);
  if (!now) return <Empty>Waiting for the first news of the cluster…</Empty>;
  return (
    <>
      <div class="page-head">
        <h1>Cluster</h1>
        <p class="sub">
          {now.session}
          {now.address && ` at ${now.address}`}
          {now.started_ms &&
            `, up for ${duration(Math.floor((Date.now() - now.started_ms) / 1000) * 1000)}`}
        </p>
      </div>
      <Tiles now={now} />
      <Waiting sentences={now.waiting ?? []} />
      <ClusterCharts now={now} />
      <RecentFailures failed={progressOf(now.tasks).failed} />
      <Nodes nodes={now.nodes} />
      <p class="versions">
        {[
          now.oxiray_version && `Oxiray ${now.oxiray_version}`,
          now.python_version && `Python ${now.python_version}`,
          now.ray_version && `API of Ray ${now.ray_version}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </>
  );
}

function Tiles({ now }: { now: Cluster }) {
  const tasks = progressOf(now.tasks);
  const alive = now.nodes.filter((node) => node.state !== "DEAD");
  const memory = sum(alive.map((node) => node.memory_total));
  const used = sum(alive.map((node) => node.memory_used));
  const cpus = now.resources_total["CPU"] ?? 0;
  const busy = cpus - (now.resources_available["CPU"] ?? cpus);
  return (
    <div class="tiles">
      <section class="tile tile-wide" aria-label="Tasks">
        <h2>
          <a href="#/tasks">Tasks</a>
        </h2>
        <p class="figure">{count(tasks.total)}</p>
        <ProgressBar progress={tasks} label="All tasks" />
        <Legend progress={tasks} />
      </section>
      <section class="tile" aria-label="CPUs">
        <h2>CPUs in use</h2>
        <p class="figure">
          {amount(busy)} <small>of {amount(cpus)}</small>
        </p>
        <Meter label="Claimed" used={busy} total={cpus} text={share(busy, cpus)} />
        <OtherResources now={now} />
      </section>
      <section class="tile" aria-label="Memory">
        <h2>Memory</h2>
        <p class="figure">
          {bytes(used)} <small>of {bytes(memory)}</small>
        </p>
        <Meter
          label="Of the machines"
          used={used}
          total={memory}
          worry
          text={share(used, memory)}
        />
        <Meter
          label="Store"
          used={now.store_used}
          total={now.store_size}
          worry
          text={`${bytes(now.store_used)} of ${bytes(now.store_size)}`}
        />
      </section>
      <section class="tile" aria-label="Actors and jobs">
        <h2>
          <a href="#/actors">Actors</a>
        </h2>
        <p class="figure">
          {count(now.actors["ALIVE"] ?? 0)} <small>alive</small>
        </p>
        <p class="sub">
          {plural(alive.length, "node")}
          {alive.length < now.nodes.length && `, ${count(now.nodes.length - alive.length)} lost`}
          <br />
          {plural(now.jobs["RUNNING"] ?? 0, "job")} running
        </p>
      </section>
    </div>
  );
}

function OtherResources({ now }: { now: Cluster }) {
  const names = Object.keys(now.resources_total).filter(
    (name) => !["CPU", "memory", "object_store_memory"].includes(name) && !name.startsWith("node:"),
  );
  return (
    <>
      {names.slice(0, 2).map((name) => {
        const all = now.resources_total[name] ?? 0;
        const used = all - (now.resources_available[name] ?? all);
        return (
          <Meter
            key={name}
            label={name}
            used={used}
            total={all}
            text={`${amount(used)} of ${amount(all)}`}
          />
        );
      })}
    </>
  );
}

function Waiting({ sentences }: { sentences: string[] }) {
  if (!sentences.length) return null;
  return (
    <Card title="What waits" tone="pending">
      <ul class="sentences">
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </Card>
  );
}

function RecentFailures({ failed }: { failed: number }) {
  const { data } = useLoad<Page<Task>>(
    failed > 0 ? "tasks?filter=state=FAILED&limit=5&sort=-end_time_ms" : null,
  );
  if (!failed || !data?.rows.length) return null;
  return (
    <Card
      title="Failed last"
      tone="failed"
      aside={<a href={link(["tasks"], { state: "failed" })}>All {count(failed)}</a>}
    >
      <ul class="failures">
        {data.rows.map((task) => (
          <li key={task.task_id + task.attempt_number}>
            <a href={link(["tasks", task.task_id])}>{task.name}</a>
            <span>{words(task.error_type ?? "failed")}</span>
            <small>{ago(task.end_time_ms, Date.now())}</small>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Nodes({ nodes }: { nodes: ClusterNode[] }) {
  return (
    <section aria-label="Nodes">
      <h2 class="section">Nodes</h2>
      <div class="nodes">
        {nodes.map((node) => (
          <NodeCard key={node.node_id} node={node} name={nodeName(nodes, node.node_id)} />
        ))}
      </div>
    </section>
  );
}

function share(part: number | null, whole: number | null): string {
  return part === null || !whole ? "–" : `${Math.round((part / whole) * 100)} %`;
}
