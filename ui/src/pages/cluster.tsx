// The start page: is it well, what is it doing, and what failed last.
import { Card } from "../parts/card";
import { Chart } from "../parts/chart";
import { Empty } from "../parts/notice";
import { Legend, Meter, ProgressBar } from "../parts/progress";
import { Id } from "../parts/id";
import { State } from "../parts/state";
import { ago, amount, bytes, count, duration, plural, shortCount } from "../format";
import { cluster, samples } from "../live";
import { useLoad } from "../load";
import { progressOf } from "../progress";
import { link } from "../router";
import type { Cluster, ClusterNode, Page, Task } from "../rows";
import { rates } from "../samples";
import { useStore } from "../store";

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
      <Charts now={now} />
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
  const alive = now.nodes.filter((node) => node.state === "ALIVE");
  const memory = total(alive.map((node) => node.memory_total));
  const used = total(alive.map((node) => node.memory_used));
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
        <Meter label="Of the machines" used={used} total={memory} text={share(used, memory)} />
        <Meter
          label="Object store"
          used={now.store_used}
          total={now.store_size}
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

/** Round numbers of bytes are powers of two. */
const BYTE_STEPS = Array.from({ length: 45 }, (_, i) => 2 ** i);

function Charts({ now }: { now: Cluster }) {
  const kept = useStore(samples);
  const times = kept.map((sample) => sample.time);
  const span = 60;
  const memory = total(now.nodes.map((node) => node.memory_total)) ?? 1;
  return (
    <div class="charts">
      <Chart
        title="Tasks per second"
        times={times}
        lines={[{ label: "ended", colour: "--accent", values: rates(kept) }]}
        format={shortCount}
        atLeast={5}
        span={span}
      />
      <Chart
        title="Tasks now"
        times={times}
        lines={[
          { label: "running", colour: "--running", values: kept.map((sample) => sample.running) },
          { label: "waiting", colour: "--pending", values: kept.map((sample) => sample.pending) },
        ]}
        format={shortCount}
        atLeast={5}
        span={span}
      />
      <Chart
        title="CPU of the machines"
        times={times}
        lines={[{ label: "CPU", colour: "--accent", values: kept.map((sample) => sample.cpu) }]}
        format={(value) => `${Math.round(value)} %`}
        atLeast={100}
        span={span}
      />
      <Chart
        title="Memory"
        times={times}
        lines={[
          { label: "machines", colour: "--accent", values: kept.map((sample) => sample.memory) },
          { label: "store", colour: "--done", values: kept.map((sample) => sample.store) },
        ]}
        format={bytes}
        atLeast={memory}
        steps={BYTE_STEPS}
        span={span}
      />
    </div>
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
            <span>{task.error_type ?? "failed"}</span>
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
          <NodeCard key={node.node_id} node={node} />
        ))}
      </div>
    </section>
  );
}

function NodeCard({ node }: { node: ClusterNode }) {
  const cpus = node.resources_total["CPU"] ?? 0;
  const busy = cpus - (node.resources_available["CPU"] ?? cpus);
  const alive = node.state === "ALIVE";
  return (
    <article class={`card node${alive ? "" : " gone"}`} aria-label={node.node_name ?? node.node_id}>
      <header>
        <h3>
          {node.node_name ?? node.node_ip ?? `Node ${node.node_number}`}
          {node.is_head_node && <span class="tag">head</span>}
        </h3>
        <State state={node.state} />
      </header>
      <p class="sub">
        {node.node_ip} · <Id id={node.node_id} /> · {plural(node.workers ?? 0, "worker")}
      </p>
      {node.state_message && <p>{node.state_message}</p>}
      {alive && (
        <>
          <Meter
            label="CPUs claimed"
            used={busy}
            total={cpus}
            text={`${amount(busy)} of ${amount(cpus)}`}
          />
          <Meter
            label="CPU"
            used={node.cpu_percent}
            total={100}
            text={node.cpu_percent === null ? "–" : `${Math.round(node.cpu_percent)} %`}
          />
          <Meter
            label="Memory"
            used={node.memory_used}
            total={node.memory_total}
            text={`${bytes(node.memory_used)} of ${bytes(node.memory_total)}`}
          />
          <Meter
            label={`Store, ${plural(node.store_objects ?? 0, "object")}`}
            used={node.store_used}
            total={node.store_size}
            text={`${bytes(node.store_used)} of ${bytes(node.store_size)}`}
          />
          {!!node.spilled_bytes && <p class="sub">{bytes(node.spilled_bytes)} on disk</p>}
          {node.waiting?.map((sentence) => (
            <p class="sub" key={sentence}>
              {sentence}
            </p>
          ))}
        </>
      )}
      <p class="links">
        <a href={link(["workers"], { q: `node_id=${node.node_id}` })}>Workers</a>
        <a href={link(["tasks"], { q: `node_id=${node.node_id}` })}>Tasks</a>
        <a href={link(["logs"], { node: node.node_id })}>Logs</a>
      </p>
    </article>
  );
}

function share(part: number | null, whole: number | null): string {
  return part === null || !whole ? "–" : `${Math.round((part / whole) * 100)} %`;
}

function total(values: (number | null)[]): number | null {
  const known = values.filter((value) => value != null);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
}
