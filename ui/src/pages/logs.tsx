// Logs: the files of each node, and one of them as it grows.
import { bytes, count, plural } from "../format";
import { cluster } from "../live";
import { useLoad } from "../load";
import { nodeName } from "../node-name";
import { Card } from "../parts/card";
import { Id } from "../parts/id";
import { LogView } from "../parts/log-view";
import { Empty, Failure } from "../parts/notice";
import { Table, type Column } from "../parts/table";
import { link, useRoute } from "../router";
import type { LogFile } from "../rows";
import { useStore } from "../store";

const COLUMNS: Column<LogFile>[] = [
  {
    title: "File",
    wide: true,
    cell: (file) => <a href={link(["logs", file.node_id, file.file])}>{file.file}</a>,
  },
  { title: "Process", numeric: true, cell: (file) => file.pid ?? "–" },
  { title: "Size", numeric: true, cell: (file) => bytes(file.size) },
];

export function LogsPage() {
  const wanted = useRoute().params.get("node");
  const { data, error, reload } = useLoad<{ files: LogFile[] }>("logs");
  const nodes = useStore(cluster)?.nodes ?? [];
  const files = data?.files.filter((file) => !wanted || file.node_id === wanted);
  const byNode = groupedByNode(files ?? []);
  return (
    <>
      <div class="page-head">
        <h1>Logs</h1>
        {wanted && (
          <p class="sub">
            Of one node. <a href="#/logs">Show all</a>
          </p>
        )}
      </div>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Empty>Loading…</Empty>}
      {files?.length === 0 && <Empty>No process has written a log yet.</Empty>}
      {[...byNode].map(([id, list]) => {
        const name = nodeName(nodes, id);
        return (
          <Card
            key={id}
            title={name}
            aside={<span class="sub">{plural(list.length, "file")}</span>}
            flush
          >
            <Table
              label={`Logs of ${name}`}
              columns={COLUMNS}
              rows={list.slice(0, MOST_FILES)}
              keyOf={(file) => file.file}
              href={(file) => link(["logs", file.node_id, file.file])}
            />
            {list.length > MOST_FILES && (
              <p class="sub more">and {count(list.length - MOST_FILES)} more</p>
            )}
          </Card>
        );
      })}
    </>
  );
}

const MOST_FILES = 500;

export function LogPage({ node, file }: { node: string; file: string }) {
  return (
    <div class="fill">
      <nav class="crumbs" aria-label="Where this is">
        <a href="#/logs">Logs</a>
      </nav>
      <div class="page-head">
        <h1>{file}</h1>
        <p class="sub">
          On node <Id id={node} />
        </p>
      </div>
      <LogView node={node} file={file} />
    </div>
  );
}

function groupedByNode(files: LogFile[]): Map<string, LogFile[]> {
  const nodes = new Map<string, LogFile[]>();
  for (const file of files) nodes.set(file.node_id, [...(nodes.get(file.node_id) ?? []), file]);
  return nodes;
}
