//! What can be listed, and which columns it has.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A kind of thing that there are many of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Calls of remote functions and of actors' methods.
    Tasks,
    /// Actors, the dead included.
    Actors,
    /// Objects, a row for each process that holds one.
    Objects,
    /// Machines, those that left included.
    Nodes,
    /// Drivers and workers, those that ended included.
    Workers,
    /// Programs.
    Jobs,
}

/// The columns of a resource.
pub(crate) struct Columns {
    /// The one that names a row.
    pub(crate) id: &'static str,
    /// Those that every row has.
    pub(crate) all: &'static [&'static str],
    /// Those that a row has on demand.
    pub(crate) detail: &'static [&'static str],
    /// Those that a search looks into.
    pub(crate) searched: &'static [&'static str],
    /// Those of a narrow table.
    pub(crate) table: &'static [&'static str],
}

const TASKS: Columns = Columns {
    id: "task_id",
    all: &[
        "task_id",
        "attempt_number",
        "name",
        "state",
        "job_id",
        "actor_id",
        "type",
        "func_or_class_name",
        "parent_task_id",
        "node_id",
        "worker_id",
        "worker_pid",
        "error_type",
        "creation_time_ms",
        "start_time_ms",
        "end_time_ms",
        "duration_ms",
    ],
    detail: &[
        "error_message",
        "fetch_ms",
        "execute_ms",
        "store_ms",
        "needs",
        "feeds",
        "events",
        "attempts",
        "task_log_info",
        "why",
    ],
    searched: &["name", "task_id", "actor_id", "error_type"],
    table: &[
        "task_id",
        "name",
        "state",
        "type",
        "worker_pid",
        "error_type",
        "start_time_ms",
        "duration_ms",
    ],
};

const ACTORS: Columns = Columns {
    id: "actor_id",
    all: &[
        "actor_id",
        "class_name",
        "state",
        "job_id",
        "name",
        "node_id",
        "pid",
        "ray_namespace",
        "is_detached",
        "num_restarts",
        "required_resources",
        "death_cause",
        "worker_id",
    ],
    detail: &["why"],
    searched: &["actor_id", "class_name", "name"],
    table: &["actor_id", "class_name", "state", "name", "node_id", "pid", "death_cause"],
};

const OBJECTS: Columns = Columns {
    id: "object_id",
    all: &[
        "object_id",
        "object_size",
        "task_status",
        "reference_type",
        "call_site",
        "type",
        "pid",
        "ip",
        "node_id",
        "place",
        "references",
        "borrowers",
        "pinned",
    ],
    detail: &[],
    searched: &["object_id", "call_site", "reference_type"],
    table: &["object_id", "object_size", "place", "reference_type", "type", "pid", "ip"],
};

const NODES: Columns = Columns {
    id: "node_id",
    all: &[
        "node_id",
        "node_number",
        "node_ip",
        "node_name",
        "is_head_node",
        "state",
        "state_message",
        "resources_total",
        "resources_available",
        "labels",
        "start_time_ms",
        "end_time_ms",
        "store_size",
        "store_used",
        "store_objects",
        "disk_bytes",
        "spilled_bytes",
        "restored_bytes",
        "waiting",
        "workers",
        "pid",
        "cpu_percent",
        "memory_used",
        "memory_total",
    ],
    detail: &[],
    searched: &["node_id", "node_ip", "node_name"],
    table: &[
        "node_id",
        "node_ip",
        "node_name",
        "is_head_node",
        "state",
        "state_message",
        "resources_total",
        "workers",
    ],
};

const WORKERS: Columns = Columns {
    id: "worker_id",
    all: &[
        "worker_id",
        "pid",
        "node_id",
        "worker_type",
        "is_alive",
        "activity",
        "job_id",
        "actor_id",
        "start_time_ms",
        "end_time_ms",
        "exit_detail",
        "rss",
        "cpu_ms",
        "ip",
    ],
    detail: &[],
    searched: &["worker_id", "pid", "actor_id", "exit_detail"],
    table: &[
        "worker_id",
        "pid",
        "ip",
        "worker_type",
        "is_alive",
        "activity",
        "job_id",
        "rss",
        "exit_detail",
    ],
};

const JOBS: Columns = Columns {
    id: "job_id",
    all: &[
        "job_id",
        "status",
        "entrypoint",
        "driver_pid",
        "driver_node_id",
        "namespace",
        "start_time_ms",
        "end_time_ms",
        "message",
    ],
    detail: &[],
    searched: &["job_id", "entrypoint", "namespace"],
    table: &["job_id", "status", "entrypoint", "driver_pid", "start_time_ms", "end_time_ms"],
};

/// The columns that have few values, each with them, in the order in which a thing goes through
/// them.
type Values = &'static [(&'static str, &'static [&'static str])];

const TRUTHS: &[&str] = &["true", "false"];
const PROCESSES: &[&str] = &["DRIVER", "WORKER"];

const OF_TASKS: Values = &[
    (
        "state",
        &[
            "PENDING_ARGS_AVAIL",
            "PENDING_NODE_ASSIGNMENT",
            "SUBMITTED_TO_WORKER",
            "RUNNING",
            "FINISHED",
            "FAILED",
            "UNKNOWN",
        ],
    ),
    ("type", &["NORMAL_TASK", "ACTOR_CREATION_TASK", "ACTOR_TASK"]),
];
const OF_ACTORS: Values = &[
    ("state", &["DEPENDENCIES_UNREADY", "PENDING_CREATION", "ALIVE", "RESTARTING", "DEAD"]),
    ("is_detached", TRUTHS),
];
const OF_OBJECTS: Values = &[
    ("place", &["pending", "process", "memory", "disk", "failed"]),
    ("task_status", &["NIL", "PENDING", "FINISHED", "FAILED"]),
    (
        "reference_type",
        &[
            "ACTOR_HANDLE",
            "USED_BY_PENDING_TASK",
            "LOCAL_REFERENCE",
            "CAPTURED_IN_OBJECT",
            "PINNED_IN_MEMORY",
            "UNKNOWN_STATUS",
        ],
    ),
    ("type", PROCESSES),
    ("pinned", TRUTHS),
];
const OF_NODES: Values = &[("state", &["ALIVE", "DEAD"]), ("is_head_node", TRUTHS)];
const OF_WORKERS: Values = &[
    ("activity", &["driver", "idle", "task", "actor", "ended"]),
    ("worker_type", PROCESSES),
    ("is_alive", TRUTHS),
];
const OF_JOBS: Values = &[("status", &["RUNNING", "SUCCEEDED", "FAILED"])];

impl Resource {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Tasks, Self::Actors, Self::Objects, Self::Nodes, Self::Workers, Self::Jobs];

    /// Its name, `tasks`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Actors => "actors",
            Self::Objects => "objects",
            Self::Nodes => "nodes",
            Self::Workers => "workers",
            Self::Jobs => "jobs",
        }
    }

    pub(crate) fn columns(self) -> &'static Columns {
        match self {
            Self::Tasks => &TASKS,
            Self::Actors => &ACTORS,
            Self::Objects => &OBJECTS,
            Self::Nodes => &NODES,
            Self::Workers => &WORKERS,
            Self::Jobs => &JOBS,
        }
    }

    /// The values of a column that has few, in the order in which a thing goes through them.
    pub fn values(self, column: &str) -> Option<&'static [&'static str]> {
        let few = match self {
            Self::Tasks => OF_TASKS,
            Self::Actors => OF_ACTORS,
            Self::Objects => OF_OBJECTS,
            Self::Nodes => OF_NODES,
            Self::Workers => OF_WORKERS,
            Self::Jobs => OF_JOBS,
        };
        few.iter().find(|(name, _)| *name == column).map(|(_, values)| *values)
    }

    /// Values of a column that Ray has beside these: programs that look for them find nothing.
    pub(crate) fn values_of_ray(self, column: &str) -> &'static [&'static str] {
        match (self, column) {
            (Self::Tasks, "state") => &[
                "NIL",
                "PENDING_ACTOR_TASK_ARGS_FETCH",
                "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
                "PENDING_ARGS_FETCH",
                "PENDING_OBJ_STORE_MEM_AVAIL",
                "RUNNING_IN_RAY_GET",
                "RUNNING_IN_RAY_WAIT",
                "GETTING_AND_PINNING_ARGS",
            ],
            (Self::Tasks, "type") => &["DRIVER_TASK"],
            (Self::Workers, "worker_type") => &["SPILL_WORKER", "RESTORE_WORKER"],
            (Self::Jobs, "status") => &["PENDING", "STOPPED"],
            _ => &[],
        }
    }

    /// The column that says how far a thing is, or where: a summary counts by it.
    pub fn state_column(self) -> &'static str {
        match self {
            Self::Tasks | Self::Actors | Self::Nodes => "state",
            Self::Objects => "place",
            Self::Workers => "activity",
            Self::Jobs => "status",
        }
    }

    /// What is in [`Self::state_column`], in the order in which a thing goes through it.
    pub fn states(self) -> &'static [&'static str] {
        self.values(self.state_column()).unwrap_or_default()
    }

    /// The column that names a row.
    pub fn id_column(self) -> &'static str {
        self.columns().id
    }

    /// The columns for a narrow table.
    pub fn table_columns(self) -> &'static [&'static str] {
        self.columns().table
    }

    /// The columns that every row has, by which rows are filtered and sorted.
    pub fn list_columns(self) -> &'static [&'static str] {
        self.columns().all
    }

    /// Every column, those of `detail` last.
    pub fn all_columns(self) -> impl Iterator<Item = &'static str> {
        let columns = self.columns();
        columns.all.iter().chain(columns.detail).copied()
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Resource {
    type Err = Error;

    /// One or many: `task`, `tasks`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter();
        let mut known =
            known.filter(|r| r.name() == text || r.name().strip_suffix('s') == Some(text));
        known.next().ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::BadQuery(format!("there are no {text:?} to list; there are {names}"))
        })
    }
}
