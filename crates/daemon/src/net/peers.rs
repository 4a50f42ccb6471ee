//! Other nodes, and what is said to them: each has a conversation, which goes over one connection
//! at a time, and a way by which that leads (`oxiray_net`: `Conversation`, `Ways`).
//!
//! What this node says goes over a connection that it made; over the same one come receipts. What
//! the other says comes over one that the other made.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use oxiray_net::{Conversation, Cursor, Fate, Links, MAX_FRAME, Receipt, Step, Way, Ways};
use oxiray_wire::cluster::{Hello, Purpose};
use prost::Message;

use super::{ASKED, Incoming, OPENING, Whose};
use crate::poller::Poller;

/// A connection that is silent for so long is left for another.
pub(super) const SILENCE: Duration = Duration::from_secs(2);
/// A node that no way leads to for so long is not counted on any more, if it lives.
const PATIENCE: u64 = 10_000_000_000;
/// Between two times that this is said.
const SAID_EVERY: u64 = 1_000_000_000;

/// Another node.
#[derive(Default)]
struct Peer {
    /// None: nothing was said of it yet but by itself.
    address: Option<SocketAddr>,
    is_head: bool,
    talk: Conversation,
    ways: Ways,
    /// Over which it is spoken to.
    slot: Option<usize>,
    /// By which the straight way is tried.
    trial: Option<usize>,
    /// When it is to be said that no way leads there.
    unreached_at: Option<u64>,
}

/// All other nodes.
pub(super) struct Peers {
    own: u32,
    by_number: BTreeMap<u32, Peer>,
}

/// What there is to speak over, and what comes of it.
pub(super) struct Wires<'a> {
    pub(super) links: &'a mut Links<Whose>,
    pub(super) poller: &'a Poller,
    pub(super) incoming: &'a mut Vec<Incoming>,
    pub(super) now: u64,
}

impl Wires<'_> {
    fn end(&mut self, slot: impl IntoIterator<Item = usize>) {
        for slot in slot {
            self.links.end(slot, self.poller);
        }
    }

    /// Says over a connection all that the other may not have.
    fn say_all(&mut self, talk: &Conversation, slot: usize) {
        send(self.links, slot, &[&opening(talk.opening())]);
        talk.kept().for_each(|frame| send(self.links, slot, &[frame]));
    }
}

impl Peers {
    pub(super) fn new(own: u32) -> Self {
        Self { own, by_number: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, number: u32, address: SocketAddr, is_head: bool) {
        let peer = self.by_number.entry(number).or_default();
        (peer.address, peer.is_head) = (Some(address), is_head);
    }

    pub(super) fn address(&self, number: u32) -> Option<SocketAddr> {
        self.by_number.get(&number)?.address
    }

    /// Where a node is reached: at its own address, or at that of another which leads there.
    pub(super) fn reached_at(&self, number: u32) -> Option<SocketAddr> {
        match self.by_number.get(&number)?.ways.working() {
            Some(Way::Through(other)) => self.address(other),
            _ => self.address(number),
        }
    }

    /// A node is gone: nothing is kept of it, and it leads to no others any more.
    pub(super) fn remove(&mut self, number: u32, wires: &mut Wires<'_>) {
        self.by_number.remove(&number);
        let theirs = wires.links.iter().filter(|(_, whose)| whose.node() == Some(number));
        let theirs: Vec<usize> = theirs.map(|(slot, _)| slot).collect();
        wires.end(theirs);
        let through = |peer: &Peer| peer.ways.working() == Some(Way::Through(number));
        let led_to = self.by_number.iter().filter(|(_, peer)| through(peer));
        let led_to: Vec<u32> = led_to.map(|(number, _)| *number).collect();
        for node in led_to {
            self.take(node, Step::Leave, wires);
        }
    }

    /// Says something to another node.
    pub(super) fn say(&mut self, node: u32, parts: &[&[u8]], wires: &mut Wires<'_>) {
        let Some(peer) = self.by_number.get_mut(&node).filter(|peer| peer.address.is_some()) else {
            return tracing::debug!(node, "nothing is said to a node that is no member");
        };
        if parts.iter().map(|part| part.len()).sum::<usize>() > MAX_FRAME {
            // None of ours is.
            return tracing::error!(node, "a message is too long, and lost");
        }
        peer.talk.say(parts);
        match (peer.ways.on_said(wires.now), peer.slot) {
            (Some(step), _) => self.take(node, step, wires),
            (None, Some(slot)) => send(wires.links, slot, parts),
            (None, None) => {}
        }
    }

    /// Nodes through which a way may lead to another: the head's reaches whoever is a member.
    fn others(&self, node: u32) -> Vec<u32> {
        let reached = |peer: &Peer| {
            let straight = peer.ways.working().is_none_or(|way| way == Way::Straight);
            peer.address.is_some() && straight && peer.ways.away_since().is_none()
        };
        let others = self.by_number.iter();
        let others = others.filter(|(number, peer)| **number != node && reached(peer));
        let mut others: Vec<(bool, u32)> =
            others.map(|(number, peer)| (!peer.is_head, *number)).collect();
        others.sort_unstable();
        others.into_iter().map(|(_, number)| number).collect()
    }

    /// Does what the way to a node asks for.
    fn take(&mut self, node: u32, step: Step, wires: &mut Wires<'_>) {
        let mut next = Some(step);
        while let Some(step) = next.take() {
            let Some(peer) = self.by_number.get_mut(&node) else { return };
            match step {
                Step::Take(way) => {
                    wires.end(peer.slot.take());
                    wires.end(peer.trial.take());
                    match self.dial(node, way, Whose::To(node), wires) {
                        Ok(slot) => self.speak_over(node, slot, wires),
                        Err(error) => {
                            tracing::debug!(node, ?way, %error, "no connection can be made");
                            next = self.failed(node, true, wires);
                        }
                    }
                }
                Step::Try => {
                    let tried = self.dial(node, Way::Straight, Whose::Trial(node), wires);
                    let peer = self.by_number.get_mut(&node).expect("just seen");
                    match tried {
                        Ok(slot) => {
                            send(wires.links, slot, &[&opening(peer.talk.opening())]);
                            peer.trial = Some(slot);
                        }
                        Err(_) => peer.ways.on_trial_failed(wires.now),
                    }
                }
                Step::Ask => {
                    peer.slot.into_iter().for_each(|slot| send(wires.links, slot, &[&[ASKED]]));
                }
                Step::Leave => {
                    wires.end(peer.slot.take());
                    next = self.failed(node, true, wires);
                }
                Step::LeaveTrial => {
                    wires.end(peer.trial.take());
                    peer.ways.on_trial_failed(wires.now);
                }
                Step::Nobody => {
                    if self.end(node, wires) {
                        wires.incoming.push(Incoming::Lost(node, "nobody is there".into()));
                    }
                }
            }
        }
    }

    fn dial(&self, node: u32, way: Way, whose: Whose, wires: &mut Wires<'_>) -> io::Result<usize> {
        let first = match way {
            Way::Straight => node,
            Way::Through(other) => other,
        };
        let unknown = || io::Error::other("the node is not a member");
        let address = self.address(first).ok_or_else(unknown)?;
        let version = oxiray_wire::VERSION;
        let mut hello = Hello { version, node: self.own, to: node, purpose: 0 };
        hello.set_purpose(Purpose::Node);
        let slot = wires.links.connect(address, &hello.encode_to_vec(), whose, wires.poller)?;
        wires.links.hurry(slot, SILENCE);
        Ok(slot)
    }

    fn speak_over(&mut self, node: u32, slot: usize, wires: &mut Wires<'_>) {
        if let Some(peer) = self.by_number.get_mut(&node) {
            peer.slot = Some(slot);
            wires.say_all(&peer.talk, slot);
        }
    }

    /// A way to a node failed: what is next.
    fn failed(&mut self, node: u32, silently: bool, wires: &mut Wires<'_>) -> Option<Step> {
        let others = self.others(node);
        let peer = self.by_number.get_mut(&node)?;
        let was_away = peer.ways.away_since().is_some();
        let step = peer.ways.on_failed(silently, &others, wires.now);
        if !was_away && let Some(since) = peer.ways.away_since() {
            peer.unreached_at = Some(since + PATIENCE);
            wires.incoming.push(Incoming::Away(node));
        }
        step
    }

    /// A connection is over.
    pub(super) fn on_over(&mut self, whose: &Whose, silently: bool, wires: &mut Wires<'_>) {
        let Some(peer) = whose.node().and_then(|node| self.by_number.get_mut(&node)) else {
            return;
        };
        match whose {
            Whose::To(node) => {
                peer.slot = None;
                if let Some(step) = self.failed(*node, silently, wires) {
                    self.take(*node, step, wires);
                }
            }
            Whose::Trial(_) => {
                peer.trial = None;
                peer.ways.on_trial_failed(wires.now);
            }
            // It is the other's to make another.
            _ => {}
        }
    }

    /// Another node opens a connection to speak over; whether this side, too, begins anew.
    pub(super) fn on_opening(
        &mut self,
        node: u32,
        opening: Cursor,
        incoming: &mut Vec<Incoming>,
    ) -> bool {
        let talk = &mut self.by_number.entry(node).or_default().talk;
        let epoch = talk.opening().epoch;
        if talk.on_opening(opening) == Fate::Ended {
            incoming.push(lost_there(node));
        }
        talk.opening().epoch != epoch
    }

    /// What is said over the connection that there is: all of it.
    pub(super) fn reopen(&mut self, node: u32, wires: &mut Wires<'_>) {
        if let Some(peer) = self.by_number.get(&node)
            && let Some(slot) = peer.slot
        {
            wires.say_all(&peer.talk, slot);
        }
    }

    /// A frame of another node comes: whether it is to be taken in, and whether to say so.
    pub(super) fn hear(&mut self, node: u32, cursor: &mut Cursor, bytes: usize) -> (bool, bool) {
        let talk = &mut self.by_number.entry(node).or_default().talk;
        (talk.hear(cursor, bytes), talk.owes_receipt())
    }

    /// How far a node was heard.
    pub(super) fn receipt(&mut self, node: u32) -> Receipt {
        self.by_number.entry(node).or_default().talk.receipt()
    }

    /// Another node says how far it has heard this one; by which way it is reached, if that is new.
    pub(super) fn on_receipt(
        &mut self,
        (node, slot): (u32, usize),
        receipt: Receipt,
        wires: &mut Wires<'_>,
    ) -> Option<Way> {
        let peer = self.by_number.get_mut(&node)?;
        let is_trial = peer.trial == Some(slot);
        if !is_trial && peer.slot != Some(slot) {
            return None;
        }
        let (before, epoch) = (peer.ways.working(), peer.talk.opening().epoch);
        if peer.talk.on_receipt(receipt) == Fate::Ended {
            wires.incoming.push(lost_there(node));
        }
        let was_away = match is_trial {
            true => peer.ways.on_trial_heard(wires.now),
            false => peer.ways.on_heard(wires.now),
        };
        if is_trial {
            wires.end(std::mem::replace(&mut peer.slot, peer.trial.take()));
            if let Some(whose) = wires.links.whose_mut(slot) {
                *whose = Whose::To(node);
            }
        }
        if is_trial || peer.talk.opening().epoch != epoch {
            wires.say_all(&peer.talk, slot);
        }
        if was_away {
            peer.unreached_at = None;
            wires.incoming.push(Incoming::Back(node));
        }
        peer.ways.working().filter(|way| Some(*way) != before)
    }

    /// What was between this node and another is over; whether there was anything.
    pub(super) fn end(&mut self, node: u32, wires: &mut Wires<'_>) -> bool {
        let Some(peer) = self.by_number.get_mut(&node).filter(|peer| peer.talk.is_begun()) else {
            return false;
        };
        peer.talk.end();
        // What is said from now on is waited for as long again.
        peer.unreached_at = peer.unreached_at.map(|_| wires.now + PATIENCE);
        self.reopen(node, wires);
        true
    }

    /// Does what is due.
    pub(super) fn on_time(&mut self, wires: &mut Wires<'_>) {
        let now = wires.now;
        let due = self.by_number.iter().filter(|(_, p)| next_of(p).is_some_and(|at| now >= at));
        let due: Vec<u32> = due.map(|(number, _)| *number).collect();
        for node in due {
            let others = self.others(node);
            let peer = self.by_number.get_mut(&node).expect("just seen");
            if peer.unreached_at.is_some_and(|at| now >= at) {
                peer.unreached_at = Some(now + SAID_EVERY);
                wires.incoming.push(Incoming::Unreached(node));
            }
            for step in peer.ways.on_time(&others, now) {
                self.take(node, step, wires);
            }
        }
    }

    /// When [`Self::on_time`] is due.
    pub(super) fn next_wakeup(&self) -> Option<u64> {
        self.by_number.values().filter_map(next_of).min()
    }
}

fn next_of(peer: &Peer) -> Option<u64> {
    peer.ways.next_wakeup().into_iter().chain(peer.unreached_at).min()
}

fn lost_there(node: u32) -> Incoming {
    Incoming::Lost(node, "it could not reach this node for long".into())
}

fn opening(cursor: Cursor) -> Vec<u8> {
    [&[OPENING][..], &cursor.epoch.to_le_bytes(), &cursor.next.to_le_bytes()].concat()
}

/// Sends a frame, which is not too long.
pub(super) fn send(links: &mut Links<Whose>, slot: usize, parts: &[&[u8]]) {
    if let Err(error) = links.send(slot, parts) {
        tracing::error!(%error, "a message to another node is lost");
    }
}
