// The rows that the server answers with, made from their declarations (crates/observe/src/rows) by
// `cargo run -p oxiray-observe --example row_types > ui/src/row-types.ts`; a test sees that it is.

export interface TaskRow {
  /** The task. */
  task_id: string;
  /** Which attempt this is. */
  attempt_number: number;
  /** What it is called. */
  name: string;
  /** How far it is. */
  state: TaskState;
  /** The program that it is of. */
  job_id: string;
  /** The actor that it is a call of. */
  actor_id: string | null;
  /** What it is. */
  type: TaskType;
  /** The function that it calls, with its class. */
  func_or_class_name: string;
  /** The task that submitted it. */
  parent_task_id: string | null;
  /** Where it runs, or ran. */
  node_id: string | null;
  /** The worker that it was sent to. */
  worker_id: string | null;
  /** The process that it runs in, or ran in. */
  worker_pid: number | null;
  /** Ray's word for why it failed. */
  error_type: string | null;
  /** When it was submitted. */
  creation_time_ms: number | null;
  /** When it began. */
  start_time_ms: number | null;
  /** When it ended. */
  end_time_ms: number | null;
  /** How long it took. */
  duration_ms: number | null;
}

export interface TaskDetail {
  /** The traceback, or why it failed in words: read by who asks. */
  error_message: string | null;
  /** How long it took to have its arguments, */
  fetch_ms: number | null;
  /** to run, */
  execute_ms: number | null;
  /** and to store what it returned. */
  store_ms: number | null;
  /** Tasks whose results it needs. */
  needs: string[];
  /** Tasks that need its results. */
  feeds: string[];
  /** When it came into which state. */
  events: TaskEvent[];
  /** All attempts, in the order of their numbers. */
  attempts: AttemptRow[];
  /** Where its worker prints to; its own lines of that are found by `Session::task_output`. */
  task_log_info: LogFiles | null;
  /** Why it is not done: found out by who asks. */
  why: string | null;
}

export interface ActorRow {
  /** The actor. */
  actor_id: string;
  /** Its class. */
  class_name: string;
  /** Where it is in its life. */
  state: ActorState;
  /** The program that made it. */
  job_id: string | null;
  /** Its name, if it was given one. */
  name: string | null;
  /** Its node. When that leaves the actor is on none any more; where its process was is known. */
  node_id: string | null;
  /** Its process. */
  pid: number | null;
  /** In which its name is: names are apart in each. */
  ray_namespace: string | null;
  /** It lives until it is killed. */
  is_detached: boolean;
  /** How often it was started again. */
  num_restarts: number;
  /** What it holds while it lives. */
  required_resources: Record<string, number>;
  /** Why it died. */
  death_cause: string | null;
  /** The worker that it is in. */
  worker_id: string | null;
}

export interface ActorDetail {
  /** Why it is not alive yet. */
  why: string | null;
}

export interface ObjectRow {
  /** The object; none: somebody looks at its memory, and its owner is gone. */
  object_id: string | null;
  /** Bytes; none while nobody knows. */
  object_size: number | null;
  /** Where it is. */
  place: ObjectPlace;
  /** How the task fares that makes it. */
  task_status: TaskStatus;
  /** What keeps it here; the strongest reason. */
  reference_type: ReferenceType;
  /** Where it was made, if that is recorded. */
  call_site: string | null;
  /** Which kind of process holds it. */
  type: ProcessType;
  /** The process that holds it. */
  pid: number;
  /** Where that process's node is reached. */
  ip: string | null;
  /** That process's node. */
  node_id: string | null;
  /** What keeps it here, counted. */
  references: References;
  /** Processes that hold it beside its owner. */
  borrowers: number;
  /** A value looks at its memory. */
  pinned: boolean;
}

export interface NodeRow {
  /** The node. */
  node_id: string;
  /** Its number in the cluster. */
  node_number: number;
  /** Where it is reached. */
  node_ip: string;
  /** What its machine calls itself. */
  node_name: string;
  /** Whether the control service is on its machine. */
  is_head_node: boolean;
  /** Whether it is a member. */
  state: NodeState;
  /** Why it left, or is about to. */
  state_message: string | null;
  /** What it has. */
  resources_total: Record<string, number>;
  /** What of that is free. */
  resources_available: Record<string, number>;
  /** Its labels. */
  labels: Record<string, string>;
  /** When it came. */
  start_time_ms: number | null;
  /** When it left. */
  end_time_ms: number | null;
  /** Bytes of its object store. */
  store_size: number;
  /** Those in use. */
  store_used: number;
  /** Objects in it. */
  store_objects: number | null;
  /** Bytes of objects that are on disk. */
  disk_bytes: number | null;
  /** Bytes that were written to disk so far. */
  spilled_bytes: number | null;
  /** Bytes that were read back so far. */
  restored_bytes: number | null;
  /** What waits there, in words. */
  waiting: string[];
  /** Its workers. */
  workers: number | null;
  /** The process of its service. */
  pid: number;
  /** How busy its processors are. */
  cpu_percent: number | null;
  /** Bytes of its machine's memory that are in use. */
  memory_used: number | null;
  /** Bytes of its machine's memory. */
  memory_total: number | null;
}

export interface WorkerRow {
  /** The process, in the cluster. */
  worker_id: string | null;
  /** The process, on its machine. */
  pid: number;
  /** Where its node is reached. */
  ip: string | null;
  /** Its node. */
  node_id: string | null;
  /** Which of the two it is. */
  worker_type: ProcessType;
  /** Whether it is there. */
  is_alive: boolean;
  /** What it is for at the moment. */
  activity: Activity;
  /** The program that it works for. */
  job_id: string | null;
  /** The actor that it is. */
  actor_id: string | null;
  /** When it began. */
  start_time_ms: number | null;
  /** When it ended. */
  end_time_ms: number | null;
  /** Bytes of memory that it takes. */
  rss: number | null;
  /** Processor time that it took. */
  cpu_ms: number | null;
  /** Why it ended. */
  exit_detail: string | null;
}

export interface JobRow {
  /** The program; of a job whose program has not come, its submission_id. */
  job_id: string;
  /** The id by which it was handed in. */
  submission_id: string | null;
  /** How it came. */
  type: JobType;
  /** How it fares. */
  status: JobStatus;
  /** The command that started it. */
  entrypoint: string;
  /** The driver's process. */
  driver_pid: number | null;
  /** The driver's node. */
  driver_node_id: string | null;
  /** In which names of its actors are. */
  namespace: string;
  /** When it began, or was handed in. */
  start_time_ms: number | null;
  /** When it ended. */
  end_time_ms: number | null;
  /** What it failed of, or what else there is to say. */
  message: string | null;
  /** The file of its node's logs in which is what it prints, if it was handed in and has begun. */
  log_file: string | null;
}

export interface PlacementGroupRow {
  /** The group. */
  placement_group_id: string;
  /** Its name, if it was given one. */
  name: string | null;
  /** Where it is in its life. */
  state: PlacementGroupState;
  /** The program that made it. */
  creator_job_id: string | null;
  /** Where its bundles are to be. */
  strategy: PlacementStrategy;
  /** It stays until it is removed. */
  is_detached: boolean;
  /** In which its name is: names are apart in each. */
  ray_namespace: string | null;
  /** How many bundles it has. */
  bundle_count: number;
  /** The nodes where its bundles are. */
  node_ids: string[];
  /** Why it waits, or is gone. */
  why: string | null;
  /** When it was asked for. */
  start_time_ms: number | null;
  /** When it was removed. */
  end_time_ms: number | null;
}

export interface PlacementGroupDetail {
  /** What is reserved, or to be. */
  bundles: BundleRow[];
  /** How it was placed. */
  stats: GroupStats;
}

export type Activity = "driver" | "idle" | "task" | "actor" | "ended";

export type ActorState =
  "DEPENDENCIES_UNREADY" | "PENDING_CREATION" | "ALIVE" | "RESTARTING" | "DEAD";

export interface AttemptRow {
  /** Which it is, from 0. */
  attempt_number: number;
  /** How far it came. */
  state: TaskState;
  /** The process that it ran in. */
  worker_pid: number | null;
  /** When it began. */
  start_time_ms: number | null;
  /** When it ended. */
  end_time_ms: number | null;
  /** Ray's word for why it failed. */
  error_type: string | null;
  /** The traceback, or why it failed in words: read by who asks. */
  error_message: string | null;
}

export interface BundleRow {
  /** Its place in the group. */
  bundle_index: number;
  /** What it has. */
  resources: Record<string, number>;
  /** The node where it is. */
  node_id: string | null;
}

export type GroupSchedulingState =
  "FINISHED" | "SCHEDULING_STARTED" | "NO_RESOURCES" | "INFEASIBLE" | "QUEUED" | "REMOVED";

export interface GroupStats {
  /** How the search for its room stands. */
  scheduling_state: GroupSchedulingState;
  /** How often nodes were asked for room. */
  scheduling_attempt: number;
  /** How long it waited for its first room. */
  end_to_end_creation_latency_ms: number | null;
}

export type JobStatus = "PENDING" | "RUNNING" | "STOPPED" | "SUCCEEDED" | "FAILED";

export type JobType = "SUBMISSION" | "DRIVER";

export interface LogFiles {
  /** Its standard output. */
  stdout_file: string;
  /** Its standard error. */
  stderr_file: string;
}

export type NodeState = "ALIVE" | "DRAINING" | "DEAD";

export type ObjectPlace = "pending" | "process" | "memory" | "disk" | "failed";

export type PlacementGroupState = "PENDING" | "CREATED" | "RESCHEDULING" | "REMOVED";

export type PlacementStrategy = "PACK" | "SPREAD" | "STRICT_PACK" | "STRICT_SPREAD";

export type ProcessType = "DRIVER" | "WORKER";

export type ReferenceType =
  | "ACTOR_HANDLE"
  | "USED_BY_PENDING_TASK"
  | "LOCAL_REFERENCE"
  | "CAPTURED_IN_OBJECT"
  | "PINNED_IN_MEMORY"
  | "UNKNOWN_STATUS";

export interface References {
  /** Variables of the program. */
  local: number;
  /** Tasks that are not done. */
  tasks: number;
  /** Objects that contain it. */
  captured: number;
  /** Messages that it is in. */
  in_flight: number;
}

export interface TaskEvent {
  /** Into which state it came. */
  state: TaskState;
  /** When. */
  created_ms: number | null;
}

export type TaskState =
  | "PENDING_ARGS_AVAIL"
  | "PENDING_NODE_ASSIGNMENT"
  | "SUBMITTED_TO_WORKER"
  | "RUNNING"
  | "FINISHED"
  | "FAILED"
  | "CANCELLED"
  | "UNKNOWN";

export type TaskStatus = "NIL" | "PENDING" | "FINISHED" | "FAILED";

export type TaskType = "NORMAL_TASK" | "ACTOR_CREATION_TASK" | "ACTOR_TASK";
