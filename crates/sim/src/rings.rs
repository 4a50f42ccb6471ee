//! Channels between processes: rings with claims, and the gateways between nodes, as
//! `crates/channel` and `crates/daemon/src/net/bridge.rs` do them.

use std::collections::{HashMap, VecDeque};

use oxiray_ids::ProcessId;
use oxiray_wire::frame::{Frame, renumber_task, take_back_number, task_number};

/// A direction of a channel, in the memory of a node: from whom, to whom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Way {
    pub(crate) node: u32,
    pub(crate) from: ProcessId,
    pub(crate) to: ProcessId,
}

#[derive(Default)]
struct Ring {
    frames: VecDeque<Vec<u8>>,
    /// The last number that was offered, and those that nobody has taken.
    last: u64,
    open: VecDeque<u64>,
}

/// All rings of the world.
#[derive(Default)]
pub(crate) struct Rings {
    rings: HashMap<Way, Ring>,
    /// Written to, and nobody was woken for it.
    pub(crate) written: Vec<Way>,
}

impl Rings {
    pub(crate) fn push(&mut self, way: Way, frame: Vec<u8>) {
        self.rings.entry(way).or_default().frames.push_back(frame);
        self.written.push(way);
    }

    pub(crate) fn pop(&mut self, way: Way) -> Option<Vec<u8>> {
        self.rings.get_mut(&way)?.frames.pop_front()
    }

    /// A number for a task, which its reader takes, or its writer takes back.
    pub(crate) fn offer(&mut self, way: Way) -> u64 {
        let ring = self.rings.entry(way).or_default();
        ring.last += 1;
        ring.open.push_back(ring.last);
        ring.last
    }

    /// Takes a task, or takes it back: whoever comes first.
    pub(crate) fn claim(&mut self, way: Way, number: u64) -> bool {
        let Some(ring) = self.rings.get_mut(&way) else { return false };
        let at = ring.open.iter().position(|open| *open == number);
        at.is_some_and(|at| ring.open.remove(at).is_some())
    }

    /// Nobody reads or writes it any more.
    pub(crate) fn forget(&mut self, way: Way) {
        self.rings.remove(&way);
    }
}

/// The end of a channel with a process of another node, at the service of this one.
#[derive(Default)]
pub(crate) struct Bridge {
    /// Numbers of tasks: their owner's, and this ring's.
    numbers: VecDeque<(u64, u64)>,
}

impl Bridge {
    /// A local process wrote this for one of another node: whether it goes there.
    pub(crate) fn passes(rings: &mut Rings, way: Way, frame: &[u8]) -> bool {
        // Its owner may have taken it back.
        let number = task_number(frame).filter(|number| *number != 0);
        number.is_none_or(|number| rings.claim(way, number))
    }

    /// This came for a local process: what is said in return.
    pub(crate) fn write(
        &mut self,
        rings: &mut Rings,
        way: Way,
        mut frame: Vec<u8>,
    ) -> Option<Vec<u8>> {
        if let Some(number) = take_back_number(&frame) {
            let at = self.numbers.iter().position(|(theirs, _)| *theirs == number)?;
            let (_, ours) = self.numbers.remove(at)?;
            return rings.claim(way, ours).then(|| encoded(&Frame::TakenBack(number)));
        }
        if let Some(number) = task_number(&frame).filter(|number| *number != 0) {
            let ours = rings.offer(way);
            renumber_task(&mut frame, ours);
            self.numbers.push_back((number, ours));
        }
        rings.push(way, frame);
        None
    }

    /// The channel is closed: what the worker never began, its owner need not count as begun.
    pub(crate) fn close(self, rings: &mut Rings, way: Way) -> Vec<Vec<u8>> {
        let back = self.numbers.into_iter().filter(|(_, ours)| rings.claim(way, *ours));
        back.map(|(theirs, _)| encoded(&Frame::TakenBack(theirs))).collect()
    }
}

pub(crate) fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}
