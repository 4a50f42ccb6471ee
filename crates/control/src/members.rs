//! Members, and whether they are still there.
//!
//! A member lives as long as its connection. Only when the control service was
//! away itself, started again or stopped for a while, do members have time to come back.

use std::collections::BTreeSet;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{NodeInfo, OfProcess, from_control};
use oxiray_wire::control::Empty;

use crate::control::Control;
use crate::event::{Now, Outbox, PeerId};
use crate::gone::Gone;

/// How often members are asked whether they are there, in nanoseconds.
pub const PING_EVERY: u64 = 500_000_000;
/// A member of which nothing was heard for so long is gone.
pub const SILENCE: u64 = 3_000_000_000;
/// How long members have to come back after the control service was away.
pub const GRACE: u64 = 10_000_000_000;
/// The control service was away itself when it comes this late to ask others.
const ABSENCE: u64 = 1_500_000_000;

/// A node of the cluster.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) info: NodeInfo,
    /// None: it has not come back yet since the control service was away.
    pub(crate) peer: Option<PeerId>,
    /// When something was heard of it, or when its time to come back began.
    pub(crate) heard_at: u64,
    /// Actors that live or start there.
    pub(crate) actors: BTreeSet<ActorId>,
    /// Which of its processes ended.
    pub(crate) gone: Gone,
    /// What processes of others say to actors there, while it is away.
    pub(crate) held: Vec<OfProcess>,
}

impl Member {
    pub(crate) fn new(info: NodeInfo, peer: Option<PeerId>, now: Now) -> Self {
        Self {
            info,
            peer,
            heard_at: now.ns,
            actors: BTreeSet::new(),
            gone: Gone::default(),
            held: Vec::new(),
        }
    }
}

impl Control {
    /// Whether a process may still say something: nobody said that it is gone.
    pub(crate) fn is_alive(&self, process: ProcessId) -> bool {
        let member = self.members.get(&process.node());
        member.is_some_and(|member| !member.gone.contains(process.number()))
    }

    /// Whether a member has not come back yet.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.members.len() > self.peers.len()
    }

    /// Says something to all members but one.
    pub(crate) fn broadcast(
        &self,
        but: Option<u32>,
        body: from_control::Body,
        out: &mut impl Outbox,
    ) {
        let others = self.peers.iter().filter(|(_, number)| but != Some(**number));
        out.send_all(others.map(|(peer, _)| *peer).collect(), body);
    }

    /// If this service itself stood still, nobody else is to blame: who was not heard
    /// of could not be, and who gave up waiting may come back.
    pub(crate) fn notice_own_absence(&mut self, now: Now) {
        let late = now.ns.saturating_sub(self.next_beat);
        if self.members.is_empty() || !self.asks_members {
            self.next_beat = self.next_beat.max(now.ns);
        } else if late > ABSENCE {
            for member in self.members.values_mut() {
                member.heard_at += late;
            }
            self.next_beat = now.ns;
            self.forgiving_until = now.ns + GRACE;
        }
    }

    /// The connection of a member broke while this service was away, or just after.
    pub(crate) fn await_return(&mut self, number: u32, now: Now, out: &mut impl Outbox) {
        let Some(member) = self.members.get_mut(&number) else {
            return;
        };
        out.note(format!("node {number} may come back: the control service was away itself"));
        if let Some(peer) = member.peer.take() {
            self.peers.remove(&peer);
        }
        member.heard_at = now.ns;
        self.room.leave(NodeNumber(number));
    }

    /// Asks everybody whether they are there; those that are not have left.
    pub(crate) fn beat(&mut self, now: Now, out: &mut impl Outbox) {
        if now.ns < self.next_beat || !self.asks_members {
            return;
        }
        self.next_beat = now.ns + PING_EVERY;
        let silent = |member: &Member| {
            let limit = if member.peer.is_some() { SILENCE } else { GRACE };
            now.ns.saturating_sub(member.heard_at) >= limit
        };
        let silent: Vec<(u32, bool)> = self
            .members
            .iter()
            .filter(|(_, member)| silent(member))
            .map(|(&number, member)| (number, member.peer.is_some()))
            .collect();
        for (number, was_there) in silent {
            let why = if was_there {
                "nothing was heard of it for 3 s"
            } else {
                "it did not come back within 10 s after the control service was away"
            };
            self.remove_member(number, why, true, now, out);
        }
        self.broadcast(None, from_control::Body::Ping(Empty {}), out);
    }
}
