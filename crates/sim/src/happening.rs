//! What happens, in the order of its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oxiray_ids::{GroupId, ProcessId};
use oxiray_node::{DiskNews, Transfer};
use oxiray_wire::cluster::{between_nodes, from_control, to_control};
use oxiray_wire::control::{from_node, to_node};

use crate::rings::Way;

/// What goes over the connection of two nodes.
#[derive(Debug)]
pub(crate) enum Said {
    Message(Box<between_nodes::Body>),
    /// What a process says to another.
    Frame(ProcessId, ProcessId, Vec<u8>),
}

/// Something happens. Machines and drivers go by their places in the world's lists.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A machine tries to become a member.
    Join(usize),
    /// A message of a machine comes to the control service.
    ToControl {
        connection: u64,
        body: to_control::Body,
    },
    /// The control service sees a connection end.
    ControlSeesEnd {
        connection: u64,
    },
    /// The control service gives up a connection over which nothing comes.
    ControlSeesSilence {
        connection: u64,
    },
    /// A message of the control service comes to a machine.
    FromControl {
        machine: usize,
        connection: u64,
        body: from_control::Body,
    },
    /// A machine sees its connection with the control service end.
    UplinkEnds {
        machine: usize,
        connection: u64,
    },
    ControlTick,
    ControlStops,
    ControlStarts,
    /// A node's message comes to another. What an older connection carried is lost.
    Peer {
        from: usize,
        to: usize,
        epoch: u64,
        said: Said,
    },
    /// A machine sees the connection with another end.
    Lost {
        at: usize,
        of: usize,
        epoch: u64,
    },
    /// A machine sees that no way leads to another,
    Away {
        at: usize,
        of: usize,
    },
    /// and that one does again.
    Back {
        at: usize,
        of: usize,
    },
    /// It has given up what was between it and another, which lives.
    Parts {
        at: usize,
        of: usize,
        epoch: u64,
    },
    /// A message of its node comes to a process,
    ToProcess(ProcessId, from_node::Body),
    /// and of a process to its node.
    FromProcess(ProcessId, to_node::Body),
    /// Whoever reads a channel looks into it.
    RingRead(Way),
    /// A process lets its owner know that time has passed.
    Tick(ProcessId),
    /// A program has slept.
    Wake(ProcessId, u64),
    /// A task has waited for long.
    Lend(ProcessId, u64),
    /// A worker that was asked for is there.
    WorkerStarts(usize, u32),
    /// The template of an environment is there.
    TemplateIsThere(usize, u32),
    /// A process ends; its node hears of it then.
    ProcessEnds(ProcessId, &'static str),
    NodeHearsOfEnd(ProcessId, &'static str),
    /// A disk is done.
    Disk(usize, DiskNews),
    /// The bytes of an object have come from another node, or will not.
    Transfer(usize, Transfer),
    NodeTick(usize),
    DriverStarts(usize),
    /// Troubles.
    NodeDies,
    /// A node is to leave in an orderly way.
    NodeDrains,
    LinkBreaks,
    /// A machine is cut off from the control service.
    CutOff,
    /// Two machines do not reach each other.
    PairIsCut,
    DriverDies(usize),
    ActorIsKilled,
    /// A program makes a placement group,
    GroupIsMade,
    /// and removes it.
    GroupIsRemoved(GroupId),
    /// A worker crashes, if it is still there.
    Crash(ProcessId),
    /// All of the world is looked at.
    Review,
}

struct Entry(u64, u64, Happening);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Everything that is to happen.
#[derive(Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    last: u64,
}

impl Agenda {
    /// Of two things at the same time, the one that was added first comes first.
    pub(crate) fn add(&mut self, at: u64, happening: Happening) {
        self.last += 1;
        self.heap.push(Reverse(Entry(at, self.last, happening)));
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Happening)> {
        self.heap.pop().map(|Reverse(Entry(at, _, happening))| (at, happening))
    }
}
