//! What is known of one process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_scheduler::Allocation;
use oxiray_wire::control::{MemoryEnd, ProcessKind, incarnation};

use crate::demand::{Demand, LeaseId};
use crate::environments::EnvironmentId;
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
    /// A worker that was asked to be an actor, and has not answered.
    Asked(ActorId),
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
    /// Whether it is for want of memory.
    pub(crate) memory: MemoryEnd,
}

impl Farewell {
    /// For a reason that has nothing to do with memory, and not of its own will.
    pub(crate) fn of(reason: String) -> Self {
        Self { reason, intended: false, memory: MemoryEnd::Not }
    }
}

/// What was last heard of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Watched {
    /// Where it was; 0: not known.
    pub(crate) node: u32,
    /// Which of its stays at nodes that was,
    pub(crate) stay: u32,
    /// and how often it had been started again.
    pub(crate) restarts: u64,
    /// The process that it was, while it took calls.
    pub(crate) worker: Option<ProcessId>,
}

impl Watched {
    pub(crate) fn incarnation(self) -> u64 {
        incarnation(self.stay, self.restarts)
    }
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
    /// Of a worker: what it was forked from.
    pub(crate) environment: EnvironmentId,
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
    /// Of the actor that it was asked to be, and that has ended since: until it has answered, it may
    /// run its constructor.
    pub(crate) unanswered: Option<Allocation>,
    /// It had a lease, so that it may own something.
    pub(crate) has_worked: bool,
    /// Others hold what it owns, as it said: it is not asked before it has worked again.
    pub(crate) is_held: bool,
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
            environment: EnvironmentId::PLAIN,
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
            unanswered: None,
            has_worked: false,
            is_held: false,
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
