//! What can be listed, and what its columns are for.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::row::{Column, Mark};
use crate::rows::actors::{ActorDetail, ActorRow};
use crate::rows::jobs::JobRow;
use crate::rows::nodes::NodeRow;
use crate::rows::objects::ObjectRow;
use crate::rows::placement_groups::{PlacementGroupDetail, PlacementGroupRow};
use crate::rows::tasks::{TaskDetail, TaskRow};
use crate::rows::workers::WorkerRow;

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
    /// Placement groups, the removed included.
    PlacementGroups,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Tasks,
        Self::Actors,
        Self::Objects,
        Self::Nodes,
        Self::Workers,
        Self::Jobs,
        Self::PlacementGroups,
    ];

    /// Its name, `tasks`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Actors => "actors",
            Self::Objects => "objects",
            Self::Nodes => "nodes",
            Self::Workers => "workers",
            Self::Jobs => "jobs",
            Self::PlacementGroups => "placement-groups",
        }
    }

    /// The columns that every row has, as they are declared with the rows.
    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Tasks => TaskRow::COLUMNS,
            Self::Actors => ActorRow::COLUMNS,
            Self::Objects => ObjectRow::COLUMNS,
            Self::Nodes => NodeRow::COLUMNS,
            Self::Workers => WorkerRow::COLUMNS,
            Self::Jobs => JobRow::COLUMNS,
            Self::PlacementGroups => PlacementGroupRow::COLUMNS,
        }
    }

    /// Those that a row has on demand.
    fn detail(self) -> &'static [Column] {
        match self {
            Self::Tasks => TaskDetail::COLUMNS,
            Self::Actors => ActorDetail::COLUMNS,
            Self::PlacementGroups => PlacementGroupDetail::COLUMNS,
            _ => &[],
        }
    }

    fn marked(self, mark: Mark) -> impl Iterator<Item = &'static str> {
        self.columns().iter().filter(move |column| column.is(mark)).map(|column| column.name)
    }

    /// The values of a column that has few, in the order in which a thing goes through them.
    pub fn values(self, column: &str) -> Option<&'static [&'static str]> {
        self.columns().iter().find(|known| known.name == column)?.values()
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
            _ => &[],
        }
    }

    /// The column that says how far a thing is, or where: a summary counts by it.
    pub fn state_column(self) -> &'static str {
        self.marked(Mark::State).next().unwrap_or_default()
    }

    /// What is in [`Self::state_column`], in the order in which a thing goes through it.
    pub fn states(self) -> &'static [&'static str] {
        self.values(self.state_column()).unwrap_or_default()
    }

    /// The column that names a row.
    pub fn id_column(self) -> &'static str {
        self.marked(Mark::Id).next().unwrap_or_default()
    }

    /// The columns for a narrow table.
    pub fn table_columns(self) -> impl Iterator<Item = &'static str> {
        self.marked(Mark::Table)
    }

    /// The columns that a search looks into.
    pub(crate) fn searched_columns(self) -> impl Iterator<Item = &'static str> {
        self.marked(Mark::Searched)
    }

    /// The columns that every row has, by which rows are filtered and sorted.
    pub fn list_columns(self) -> impl Iterator<Item = &'static str> {
        self.columns().iter().map(|column| column.name)
    }

    /// Every column, those of `detail` last.
    pub fn all_columns(self) -> impl Iterator<Item = &'static str> {
        self.columns().iter().chain(self.detail()).map(|column| column.name)
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
        let text = &*text.replace('_', "-");
        let mut known =
            known.filter(|r| r.name() == text || r.name().strip_suffix('s') == Some(text));
        known.next().ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::BadQuery(format!("there are no {text:?} to list; there are {names}"))
        })
    }
}
