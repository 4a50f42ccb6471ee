// What the server answers, as types. Names are those of the REST API (docs/dashboard.md). Rows of
// lists are as the engine declares them: row-types.ts is made from that.

import type * as made from "./row-types";

/** Counts by state; states that nothing is in may be absent. */
export type Counts = Partial<Record<string, number>>;

/** Milliseconds since 1970, or null while there is no such moment. */
export type Moment = number | null;

export type Task = made.TaskRow;

/** A task as its own page has it; in a list the rest is missing. */
export type TaskDetail = made.TaskRow & Partial<made.TaskDetail>;

/** An actor; why it is not alive yet is known where it was asked for. */
export type Actor = made.ActorRow & Partial<made.ActorDetail>;

export type ClusterNode = made.NodeRow;
export type Worker = made.WorkerRow;
export type Job = made.JobRow;
export type StoredObject = made.ObjectRow;
export type Bundle = made.BundleRow;

/** A placement group; its bundles where one alone is asked for. */
export type PlacementGroup = made.PlacementGroupRow & Partial<made.PlacementGroupDetail>;

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
  placement_groups?: Counts;
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
  /** Of a process that runs several calls at once, from 0. */
  lane: number;
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
