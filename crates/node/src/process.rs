//! What is known of one process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_wire::control::ProcessKind;

use crate::demand::{Demand, LeaseId};
use crate::slots::Slots;

/// What a process is for, right now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A driver, an observer, or a worker that was not told its number yet.
    None,
    /// A worker without work.
    Idle,
    /// A worker that runs the tasks of a lease's holder.
    Leased(LeaseId),
    /// A worker that is an actor.
    Actor(ActorId),
    /// A worker that was told to exit, or killed.
    Leaving,
}

/// Why a process goes, known before it has gone.
#[derive(Clone, Debug)]
pub(crate) struct Farewell {
    pub(crate) reason: String,
    /// It said so itself.
    pub(crate) intended: bool,
    pub(crate) out_of_memory: bool,
}

/// What was last heard of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Watched {
    /// Where it was; 0: not known.
    pub(crate) node: u32,
    /// How often it had been started again.
    pub(crate) restarts: u64,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) kind: ProcessKind,
    /// Observers have none; those of other nodes share the gateway's.
    pub(crate) bell: Option<u32>,
    /// What it works for, once that is known.
    pub(crate) job: Option<JobId>,
    pub(crate) role: Role,
    /// Peer to our index for the channel with it.
    pub(crate) channels: BTreeMap<ProcessId, u32>,
    pub(crate) indexes: Slots,
    /// By the process's own name for the shape.
    pub(crate) demands: BTreeMap<u64, Demand>,
    /// Demands with something outstanding; the first is served next.
    pub(crate) pending: VecDeque<u64>,
    /// Whether it takes turns in the schedule.
    pub(crate) has_turn: bool,
    pub(crate) leases: BTreeSet<LeaseId>,
    pub(crate) actors: BTreeSet<ActorId>,
    pub(crate) watching: BTreeSet<ActorId>,
    /// Actors that it asked the control service about, wherever they are: what it heard last.
    pub(crate) watched: BTreeMap<ActorId, Watched>,
    /// Other nodes that know this process.
    pub(crate) known_at: BTreeSet<u32>,
    /// When it was ready.
    pub(crate) started: u64,
    pub(crate) idle_since: u64,
    pub(crate) asked_back_at: Option<u64>,
    pub(crate) farewell: Option<Farewell>,
}

impl Process {
    pub(crate) fn new(pid: u32, kind: ProcessKind, bell: Option<u32>, job: Option<JobId>) -> Self {
        Self {
            pid,
            kind,
            bell,
            job,
            role: Role::None,
            channels: BTreeMap::new(),
            indexes: Slots::default(),
            demands: BTreeMap::new(),
            pending: VecDeque::new(),
            has_turn: false,
            leases: BTreeSet::new(),
            actors: BTreeSet::new(),
            watching: BTreeSet::new(),
            watched: BTreeMap::new(),
            known_at: BTreeSet::new(),
            started: 0,
            idle_since: 0,
            asked_back_at: None,
            farewell: None,
        }
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.kind == ProcessKind::Foreign
    }

    pub(crate) fn is_worker(&self) -> bool {
        self.kind == ProcessKind::Worker
    }
}
