// Jobs: the programs that used this session, and what was handed in to run in it.
import { ago, clock, duration } from "../format";
import { List } from "../parts/list";
import { State } from "../parts/state";
import type { Column } from "../parts/table";
import { link, type Route } from "../router";
import type { Job } from "../rows";

const COLUMNS: Column<Job>[] = [
  {
    title: "Job",
    sort: "job_id",
    cell: (job) => <code class="id">{job.submission_id ?? job.job_id}</code>,
  },
  { title: "Program", sort: "entrypoint", wide: true, cell: (job) => job.entrypoint || "–" },
  {
    title: "Why it failed",
    cell: (job) => (job.status === "FAILED" ? (job.message ?? "") : ""),
  },
  { title: "Status", sort: "status", cell: (job) => <State state={job.status} /> },
  { title: "Process", sort: "driver_pid", numeric: true, cell: (job) => job.driver_pid ?? "–" },
  {
    title: "Started",
    sort: "start_time_ms",
    numeric: true,
    cell: (job) => (
      <span title={clock(job.start_time_ms)}>{ago(job.start_time_ms, Date.now())}</span>
    ),
  },
  { title: "Took", numeric: true, cell: (job) => took(job) },
  {
    title: "Look at",
    cell: (job) => (
      <span class="links">
        <a href={link(["tasks"], { q: `job_id=${job.job_id}` })}>Tasks</a>
        <a href={link(["actors"], { q: `job_id=${job.job_id}` })}>Actors</a>
        {job.log_file && job.driver_node_id && (
          <a href={link(["logs", job.driver_node_id, job.log_file])}>Log</a>
        )}
      </span>
    ),
  },
];

export function JobsPage({ route }: { route: Route }) {
  return (
    <>
      <div class="page-head">
        <h1>Jobs</h1>
      </div>
      <List<Job>
        route={route}
        resource="jobs"
        noun="job"
        columns={COLUMNS}
        keyOf={(job) => `${job.job_id}/${job.driver_pid}`}
        sort="-start_time_ms"
        empty="No program has connected to this session, and no job was handed in."
      />
    </>
  );
}

function took(job: Job): string {
  if (job.start_time_ms === null) return "–";
  const ended = job.end_time_ms ?? Date.now();
  return duration(Math.floor((ended - job.start_time_ms) / 1000) * 1000);
}
