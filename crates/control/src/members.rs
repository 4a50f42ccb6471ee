//! Members, and whether they are still there.
//!
//! A member whose process ends is seen to: its connection closes. One that says nothing is judged by
//! thresholds (`health`). When the control service was away itself, started again or stopped for a
//! while, members have time to come back.

use std::collections::BTreeSet;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{NodeInfo, OfProcess, Ping, Pong, from_control};

use crate::control::Control;
use crate::event::{Now, Outbox, PeerId};
use crate::gone::Gone;
use crate::health::{MILLISECOND, show_seconds};
use crate::leaving::Told;

/// How long members have to come back after the control service was away; longer, if they would
/// have been given up later.
pub const GRACE: u64 = 10_000_000_000;

/// A node of the cluster.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) info: NodeInfo,
    /// None: it has not come back yet since the control service was away, or could not be reached.
    pub(crate) peer: Option<PeerId>,
    /// When something was heard of it, or when its time to come back began.
    pub(crate) heard_at: u64,
    /// How often it was asked,
    asked: u64,
    /// and what its last answer was marked with.
    mark: u64,
    /// It is not judged before.
    pub(crate) judged_from: u64,
    /// Nothing was heard of it for a while (H-1).
    pub(crate) suspect: bool,
    /// Actors that live or start there.
    pub(crate) actors: BTreeSet<ActorId>,
    /// Which of its processes ended.
    pub(crate) gone: Gone,
    /// What processes of others say to actors there, while it is away.
    pub(crate) held: Vec<OfProcess>,
    /// What of that was said to it and may be lost if its connection is: until it answers this
    /// question.
    on_its_way: Vec<(u64, OfProcess)>,
}

impl Member {
    pub(crate) fn new(info: NodeInfo, peer: Option<PeerId>, now: Now) -> Self {
        Self {
            info,
            peer,
            heard_at: now.ns,
            asked: 0,
            mark: 0,
            judged_from: now.ns,
            suspect: false,
            actors: BTreeSet::new(),
            gone: Gone::default(),
            held: Vec::new(),
            on_its_way: Vec::new(),
        }
    }

    /// This is said to it now.
    pub(crate) fn said(&mut self, message: OfProcess) {
        self.on_its_way.push((self.asked + 1, message));
    }

    /// Its connection is over: what may not have come is said again over the next one (C-3).
    pub(crate) fn lose_connection(&mut self) -> Option<PeerId> {
        let lost = std::mem::take(&mut self.on_its_way);
        self.held.extend(lost.into_iter().map(|(_, message)| message));
        self.peer.take()
    }

    /// A node that has just started may be slow for a while.
    pub(crate) fn not_judged_for(self, delay: u64) -> Self {
        Self { judged_from: self.judged_from + delay, ..self }
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
        } else if late > self.health.absence() {
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
        if let Some(peer) = member.lose_connection() {
            self.peers.remove(&peer);
        }
        member.heard_at = now.ns;
        self.room.leave(NodeNumber(number));
        self.give_up_attempts_at(number, out);
    }

    /// The connection of a member was silent for so long that it broke, or the member gave it up. When
    /// it is itself given up does not change by that; it makes another when it can.
    pub(crate) fn on_broken(&mut self, peer: PeerId, out: &mut impl Outbox) {
        let Some(number) = self.peers.remove(&peer) else {
            return;
        };
        out.note(format!("the connection with node {number} broke; it may come back"));
        self.members.get_mut(&number).expect("has a connection").lose_connection();
        self.room.leave(NodeNumber(number));
        self.give_up_attempts_at(number, out);
    }

    /// Whether nothing was heard of a member just now: that its connection ends may be no end (H-3).
    pub(crate) fn was_silent(&self, number: u32, now: Now) -> bool {
        let member = self.members.get(&number);
        let silent = member.map_or(0, |member| now.ns.saturating_sub(member.heard_at));
        silent >= self.health.doubted_after()
    }

    /// How long a member may say nothing, in nanoseconds.
    fn patience(&self, member: &Member) -> u64 {
        let promised = member.info.patience_ms.saturating_mul(MILLISECOND);
        let limit = self.health.given_up_after().max(promised);
        if member.peer.is_some() { limit } else { limit.max(GRACE) }
    }

    /// Asks everybody whether they are there; those that are not have left.
    pub(crate) fn beat(&mut self, now: Now, out: &mut impl Outbox) {
        if now.ns < self.next_beat || !self.asks_members {
            return;
        }
        self.next_beat = now.ns + self.health.ask_every();
        self.suspect(now, out);
        let silent = |member: &Member| {
            let since = member.heard_at.max(member.judged_from);
            now.ns.saturating_sub(since) >= self.patience(member)
        };
        let silent: Vec<(u32, bool, u64)> = self
            .members
            .iter()
            .filter(|(_, member)| silent(member))
            .map(|(&number, member)| (number, member.peer.is_some(), self.patience(member)))
            .collect();
        for (number, was_there, limit) in silent {
            let limit = show_seconds(limit);
            let why = match was_there {
                true => format!("nothing was heard of it for {limit}"),
                false => format!("it could not be reached, and did not come back within {limit}"),
            };
            self.remove_member(number, &why, Told::GivenUp, now, out);
        }
        for (&peer, number) in &self.peers {
            let member = self.members.get_mut(number).expect("is connected");
            member.asked += 1;
            let ping = Ping { heard: member.mark, number: member.asked };
            out.send(peer, from_control::Body::Ping(ping));
        }
    }

    /// A member answers (H-5).
    pub(crate) fn on_pong(&mut self, number: u32, pong: &Pong) {
        if let Some(member) = self.members.get_mut(&number) {
            member.mark = member.mark.max(pong.mark);
            member.on_its_way.retain(|(question, _)| *question > pong.answers);
        }
    }
}
