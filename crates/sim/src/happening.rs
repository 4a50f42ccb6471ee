//! What happens, in the order of its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::{between_nodes, from_control, to_control};
use oxiray_wire::control::{from_node, to_node};

/// What processes say to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// Run this task; the number of the attempt.
    Task(usize, u32),
    /// This attempt has ended.
    Answer(usize, u32),
}

/// What goes over the connection of two nodes.
#[derive(Debug)]
pub(crate) enum Said {
    Message(Box<between_nodes::Body>),
    Frame(ProcessId, ProcessId, Frame),
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
    /// A message of its node comes to a process,
    ToProcess(ProcessId, from_node::Body),
    /// and of a process to its node.
    FromProcess(ProcessId, to_node::Body),
    /// A frame comes to a process of the same node.
    Frame(ProcessId, ProcessId, Frame),
    /// A worker that was asked for is there.
    WorkerStarts(usize),
    /// A process ends; its node hears of it then.
    ProcessEnds(ProcessId, &'static str),
    NodeHearsOfEnd(ProcessId, &'static str),
    /// A worker is done with what it runs.
    TaskEnds(ProcessId, usize, u32),
    ActorIsMade(ProcessId),
    NodeTick(usize),
    DriverStarts(usize),
    /// A driver looks at its idle leases.
    DriverTick(usize),
    /// Troubles.
    NodeDies,
    LinkBreaks,
    DriverDies(usize),
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
