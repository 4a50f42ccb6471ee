// Placement groups: the list, and one with its bundles.
import { ago, clock, count, words } from "../format";
import { cluster } from "../live";
import { useLoad } from "../load";
import { Card } from "../parts/card";
import { Facts } from "../parts/facts";
import { Id } from "../parts/id";
import { List, type Chip } from "../parts/list";
import { Empty, Failure } from "../parts/notice";
import { State } from "../parts/state";
import { type Column, Table } from "../parts/table";
import { link, type Route } from "../router";
import type { Bundle, PlacementGroup } from "../rows";
import { useStore } from "../store";

const COLUMNS: Column<PlacementGroup>[] = [
  {
    title: "Group",
    sort: "placement_group_id",
    cell: (group) => (
      <a href={link(["groups", group.placement_group_id])}>
        <Id id={group.placement_group_id} />
      </a>
    ),
  },
  { title: "Name", sort: "name", cell: (group) => group.name || "" },
  { title: "State", sort: "state", cell: (group) => <State state={group.state} /> },
  { title: "Strategy", sort: "strategy", cell: (group) => words(group.strategy) },
  {
    title: "Bundles",
    sort: "bundle_count",
    numeric: true,
    cell: (group) => count(group.bundle_count),
  },
  { title: "Nodes", numeric: true, cell: (group) => count(group.node_ids.length) },
  { title: "Why", wide: true, cell: (group) => group.why ?? "" },
  {
    title: "Asked for",
    sort: "start_time_ms",
    numeric: true,
    cell: (group) => (
      <span title={clock(group.start_time_ms)}>{ago(group.start_time_ms, Date.now())}</span>
    ),
  },
];

const TONES: Record<string, string> = { CREATED: "done", REMOVED: "failed" };

export function GroupsPage({ route }: { route: Route }) {
  const states = useStore(cluster)?.placement_groups ?? {};
  const chips: Chip[] = ["PENDING", "CREATED", "RESCHEDULING", "REMOVED"].map((state) => ({
    label: words(state),
    value: state.toLowerCase(),
    filters: [`state=${state}`],
    count: states[state] ?? 0,
    tone: TONES[state] ?? "pending",
  }));
  return (
    <>
      <div class="page-head">
        <h1>Placement groups</h1>
      </div>
      <List<PlacementGroup>
        route={route}
        resource="placement-groups"
        noun="placement group"
        columns={COLUMNS}
        keyOf={(group) => group.placement_group_id}
        href={(group) => link(["groups", group.placement_group_id])}
        sort="-start_time_ms"
        chips={chips}
        empty="No placement group has been made in this session yet."
      />
    </>
  );
}

const BUNDLES: Column<Bundle>[] = [
  { title: "Bundle", numeric: true, cell: (bundle) => bundle.bundle_index },
  { title: "Reserves", wide: true, cell: (bundle) => resources(bundle) },
  {
    title: "Node",
    cell: (bundle) => (bundle.node_id ? <Id id={bundle.node_id} /> : "nowhere yet"),
  },
];

export function GroupPage({ id }: { id: string }) {
  const path = `placement-groups/${encodeURIComponent(id)}`;
  const { data: group, error, reload } = useLoad<PlacementGroup>(path);
  if (error) return <Failure error={error} retry={reload} />;
  if (!group) return <Empty>Loading…</Empty>;
  const waits = group.state === "PENDING" || group.state === "RESCHEDULING";
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href="#/groups">Placement groups</a>
      </nav>
      <div class="page-head">
        <h1>
          {group.name || "Placement group"} <State state={group.state} />
        </h1>
        <p class="sub">
          <Id id={group.placement_group_id} copy />
        </p>
      </div>
      {group.why && (
        <Card title={waits ? "Why it waits" : "Why it is gone"} tone={waits ? "pending" : "failed"}>
          <p class="why">{group.why}</p>
        </Card>
      )}
      <Card title="Facts">
        <Facts
          facts={[
            ["Strategy", words(group.strategy)],
            ["Namespace", group.ray_namespace || "–"],
            ["Detached", group.is_detached ? "yes: it stays until it is removed" : "no"],
            ["Job", group.creator_job_id ?? "–"],
            ["Asked for", clock(group.start_time_ms)],
            group.end_time_ms === null ? null : ["Removed", clock(group.end_time_ms)],
          ]}
        />
      </Card>
      <Card title="Bundles" flush>
        <Table
          label="Bundles"
          columns={BUNDLES}
          rows={group.bundles ?? []}
          keyOf={(bundle) => String(bundle.bundle_index)}
        />
      </Card>
    </>
  );
}

function resources(bundle: Bundle): string {
  return Object.entries(bundle.resources)
    .map(([name, n]) => `${n} ${name}`)
    .join(", ");
}
