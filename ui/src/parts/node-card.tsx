// One node: what it is, how full it is.
import { amount, bytes, plural } from "../format";
import { link } from "../router";
import type { ClusterNode } from "../rows";
import { Id } from "./id";
import { Meter } from "./progress";
import { State } from "./state";

export function NodeCard({ node, name }: { node: ClusterNode; name: string }) {
  const cpus = node.resources_total["CPU"] ?? 0;
  const busy = cpus - (node.resources_available["CPU"] ?? cpus);
  const alive = node.state !== "DEAD";
  return (
    <article class={`card node${alive ? "" : " gone"}`} aria-label={name}>
      <header>
        <h3>
          {name}
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
            worry
            text={`${bytes(node.memory_used)} of ${bytes(node.memory_total)}`}
          />
          <Meter
            label={`Store, ${plural(node.store_objects ?? 0, "object")}`}
            used={node.store_used}
            total={node.store_size}
            worry
            text={`${bytes(node.store_used)} of ${bytes(node.store_size)}`}
          />
          {!!node.disk_bytes && <p class="sub">{bytes(node.disk_bytes)} on disk</p>}
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
