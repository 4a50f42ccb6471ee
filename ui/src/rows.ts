// What the server answers, as types. Names are those of the REST API (docs/dashboard.md).

export type TaskState =
  | "PENDING_ARGS_AVAIL"
  | "PENDING_NODE_ASSIGNMENT"
  | "SUBMITTED_TO_WORKER"
  | "RUNNING"
  | "FINISHED"
  | "FAILED"
  | "UNKNOWN";

/** Counts by state; states that nothing is in may be absent. */
export type Counts = Partial<Record<string, number>>;

/** Milliseconds since 1970, or null while there is no such moment. */
export type Moment = number | null;

export interface Task {
  task_id: string;
  attempt_number: number;
  name: string;
  state: TaskState;
  job_id: string | null;
  actor_id: string | null;
  type: string;
  func_or_class_name: string | null;
  parent_task_id: string | null;
  node_id: string | null;
  worker_id: string | null;
  worker_pid: number | null;
  error_type: string | null;
  creation_time_ms: Moment;
  start_time_ms: Moment;
  end_time_ms: Moment;
  duration_ms: number | null;
}

/** A task as its own page has it. */
export interface TaskDetail extends Task {
  error_message?: string | null;
  fetch_ms?: number | null;
  execute_ms?: number | null;
  store_ms?: number | null;
  needs?: string[];
  feeds?: string[];
  events?: { state: string; created_ms: Moment }[];
  attempts?: Attempt[];
  task_log_info?: { stdout_file: string; stderr_file: string } | null;
  why?: string | null;
}

/** One try of a task. */
export interface Attempt {
  attempt_number: number;
  state: string;
  worker_pid: number | null;
  start_time_ms: Moment;
  end_time_ms: Moment;
  error_type: string | null;
  error_message?: string | null;
}

export interface Actor {
  actor_id: string;
  class_name: string;
  state: string;
  job_id: string | null;
  name: string | null;
  node_id: string | null;
  pid: number | null;
  ray_namespace: string | null;
  is_detached: boolean | null;
  num_restarts: number | null;
  required_resources: Record<string, number> | null;
  death_cause: string | null;
  /** Why it is not alive yet. */
  why?: string | null;
}

export interface ClusterNode {
  node_id: string;
  node_number: number | null;
  node_ip: string | null;
  node_name: string | null;
  is_head_node: boolean;
  state: string;
  state_message: string | null;
  resources_total: Record<string, number>;
  resources_available: Record<string, number>;
  labels: Record<string, string> | null;
  start_time_ms: Moment;
  end_time_ms: Moment;
  store_size: number | null;
  store_used: number | null;
  store_objects: number | null;
  disk_bytes: number | null;
  waiting: string[] | null;
  workers: number | null;
  pid: number | null;
  cpu_percent: number | null;
  memory_used: number | null;
  memory_total: number | null;
}

export interface Worker {
  worker_id: string;
  pid: number | null;
  node_id: string | null;
  worker_type: string;
  is_alive: boolean;
  activity: string | null;
  job_id: string | null;
  actor_id: string | null;
  start_time_ms: Moment;
  exit_detail: string | null;
  rss: number | null;
}

export interface Job {
  job_id: string;
  status: string;
  entrypoint: string | null;
  driver_pid: number | null;
  driver_node_id: string | null;
  namespace: string | null;
  /** What it failed of. */
  message?: string | null;
  start_time_ms: Moment;
  end_time_ms: Moment;
}

export interface StoredObject {
  object_id: string;
  object_size: number | null;
  task_status: string | null;
  reference_type: string | null;
  call_site: string | null;
  type: string | null;
  pid: number | null;
  ip: string | null;
  node_id: string | null;
  place: string | null;
  /** By kind: local, tasks, captured, in_flight. */
  references: Record<string, number> | null;
  borrowers: number | null;
  pinned: boolean | null;
}

/** One page of a list: of `total` rows `filtered` match, and these are some of them. */
export interface Page<Row> {
  total: number;
  filtered: number;
  rows: Row[];
  /** What is to be known of it, for instance that a node did not answer. */
  notes?: string[];
}

export interface Cluster {
  session: string;
  address: string | null;
  python_version: string | null;
  oxiray_version: string | null;
  ray_version: string | null;
  started_ms: Moment;
  nodes: ClusterNode[];
  resources_total: Record<string, number>;
  resources_available: Record<string, number>;
  store_used: number | null;
  store_size: number | null;
  tasks: Counts;
  actors: Counts;
  jobs: Counts;
  waiting: string[] | null;
  /** What no node could be asked for, in sentences. */
  missing?: string[];
}

/** How many tasks (actors, objects) of one name are in which state. */
export interface Group {
  name: string;
  type: string | null;
  states: Counts;
}

export interface Groups {
  rows: Group[];
}

export interface LogFile {
  node_id: string;
  file: string;
  size: number;
  pid: number | null;
}

export interface LogPiece {
  /** The file that it is in: a log has older parts. */
  part: string;
  offset: number;
  next: number;
  size: number;
  text: string;
  /** What was before it was removed before it could be read. */
  is_after_loss: boolean;
}

/** Start, duration, index of the name, how many tasks, state, and the task if it is only one. */
export type Span = [number, number, number, number, string, string | null];

export interface TimelineRow {
  node_id: string;
  worker_id: string | null;
  pid: number | null;
  label: string;
  spans: Span[];
}

export interface TimelineView {
  from: number;
  to: number;
  first: number | null;
  last: number | null;
  names: string[];
  rows: TimelineRow[];
}
