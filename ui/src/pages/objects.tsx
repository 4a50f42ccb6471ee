// Objects and who holds them.
import { bytes, count, plural } from "../format";
import { cluster } from "../live";
import { nodeName } from "../node-name";
import { Id } from "../parts/id";
import { List, type Chip } from "../parts/list";
import { Meter } from "../parts/progress";
import { State } from "../parts/state";
import type { Column } from "../parts/table";
import { link, type Route } from "../router";
import type { ObjectPlace } from "../row-types";
import type { StoredObject } from "../rows";
import { useStore } from "../store";

/** The words of `oxiray list objects`, and what they mean. */
const PLACES: Record<ObjectPlace, string> = {
  pending: "it is not made yet",
  process: "in the memory of the process that owns it",
  memory: "in the object store",
  disk: "in a file: the object store was full",
  failed: "the task that was to make it failed",
};

const COLUMNS: Column<StoredObject>[] = [
  {
    title: "Object",
    cell: (object) => (object.object_id ? <Id id={object.object_id} copy /> : "–"),
  },
  {
    title: "Size",
    sort: "object_size",
    numeric: true,
    cell: (object) => bytes(object.object_size),
  },
  {
    title: "Place",
    sort: "place",
    cell: (object) => <span title={PLACES[object.place]}>{object.place}</span>,
  },
  { title: "Held by", wide: true, cell: (object) => <Holder object={object} /> },
  { title: "References", numeric: true, cell: (object) => <References object={object} /> },
  { title: "Borrowers", numeric: true, cell: (object) => count(object.borrowers) },
  {
    title: "Task",
    cell: (object) =>
      object.task_status && object.task_status !== "NIL" ? (
        <State state={object.task_status} />
      ) : (
        ""
      ),
  },
];

const CHIPS: Chip[] = Object.entries({
  memory: "Memory",
  disk: "Disk",
  process: "Process",
  pending: "Pending",
  failed: "Failed",
}).map(([place, label]) => ({ label, value: place, filters: [`place=${place}`] }));

export function ObjectsPage({ route }: { route: Route }) {
  const now = useStore(cluster);
  return (
    <>
      <div class="page-head">
        <h1>Objects</h1>
      </div>
      {now && (
        <div class="meters card">
          {now.nodes
            .filter((node) => node.state !== "DEAD")
            .map((node) => (
              <Meter
                key={node.node_id}
                label={`${nodeName(now.nodes, node.node_id)}: ${plural(node.store_objects ?? 0, "object")}`}
                used={node.store_used}
                total={node.store_size}
                worry
                text={`${bytes(node.store_used)} of ${bytes(node.store_size)}${
                  node.disk_bytes ? `, ${bytes(node.disk_bytes)} on disk` : ""
                }`}
              />
            ))}
        </div>
      )}
      <List<StoredObject>
        route={route}
        resource="objects"
        noun="object"
        columns={COLUMNS}
        keyOf={(object) => `${object.object_id}/${object.node_id}/${object.pid}`}
        sort="-object_size"
        chips={CHIPS}
        empty="No process holds a reference to an object."
      />
    </>
  );
}

function Holder({ object }: { object: StoredObject }) {
  const who = object.type === "DRIVER" ? "driver" : "worker";
  return (
    <>
      {who} <a href={link(["workers"], { q: `pid=${object.pid}` })}>{object.pid}</a>
      {object.ip && ` on ${object.ip}`}
      {object.pinned && <span class="tag">in use</span>}
      {object.call_site && <small> made at {object.call_site}</small>}
    </>
  );
}

const KINDS: Record<string, string> = {
  local: "in Python",
  tasks: "by tasks under way",
  captured: "in other objects",
  in_flight: "on their way",
};

function References({ object }: { object: StoredObject }) {
  const counts = Object.entries(object.references ?? {}).filter(([, n]) => n > 0);
  const total = counts.reduce((sum, [, n]) => sum + n, 0);
  return (
    <span title={counts.map(([kind, n]) => `${n} ${KINDS[kind] ?? kind}`).join(", ")}>
      {count(total)}
    </span>
  );
}
