//! A node that is to leave in an orderly way: it takes no new work, gives its objects to others,
//! lets what runs end, and leaves. What it has that may be started again elsewhere is, then.
//!
//! - **R-1** a node that drains grants no lease, starts no actor and adopts no object.
//! - **R-2** it does not leave before its time while something of it would be lost: a task that
//!   runs, a program, an actor that may not be started again, or an object of somebody elsewhere
//!   who has not heard of its new place.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ActorId, Origin, ProcessId, StoreKey};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{self, Adopt, Adopted, Drain, between_nodes};
use oxiray_wire::control::{Empty, NodeLost, ObjectMoved, ProcessKind, from_node};

use super::tell;
use crate::actors::Stage;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::{Process, Role};

const MILLISECOND: u64 = 1_000_000;
/// How often is looked at what is left.
const LOOK_EVERY: u64 = 20 * MILLISECOND;
/// How often leases are asked back: one may have been on its way.
const ASK_EVERY: u64 = 200 * MILLISECOND;
/// Objects on their way to others at the same time.
const MOST_MOVING: usize = 16;
/// So often an object is offered before it is given up: its owner may be able to make it again.
const MOST_OFFERS: u32 = 5;

/// What a node that is to leave knows of that.
#[derive(Debug)]
pub(crate) struct Draining {
    reason: String,
    /// When it leaves, done or not.
    until: Option<u64>,
    pub(super) looked_at: u64,
    asked_at: u64,
    /// Actors that the control service was told to have elsewhere.
    pub(super) returned: BTreeSet<ActorId>,
    /// Objects that somebody was asked to have: who.
    offered: BTreeMap<StoreKey, u32>,
    /// Those that others have, and those that nobody could have.
    settled: BTreeSet<StoreKey>,
    /// How often each was refused.
    refused: BTreeMap<StoreKey, u32>,
    /// Bytes that each node was asked to have.
    given: BTreeMap<u32, u64>,
    /// It has said that it leaves.
    left: bool,
}

/// An object of a node that is about to leave, and is ours now.
#[derive(Debug)]
pub(crate) struct Adoption {
    /// Here.
    key: StoreKey,
    /// There.
    origin: Origin,
}

impl Node {
    /// Whether this node takes no work any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// A member is to leave: this node, or another.
    pub(crate) fn on_drains(&mut self, said: Drain, now: u64, out: &mut impl Outbox) {
        let Some(info) = said.info else { return };
        let number = info.number;
        let Some(known) = self.member.infos.get_mut(&number) else {
            return;
        };
        known.draining.clone_from(&info.draining);
        known.drain_until_ms = info.drain_until_ms;
        self.take_no_more(number);
        if number != self.number {
            return;
        }
        let until = (said.within_ms > 0)
            .then(|| now.saturating_add(said.within_ms.saturating_mul(MILLISECOND)));
        match &mut self.draining {
            Some(draining) => draining.until = until,
            None => {
                self.draining = Some(Draining {
                    reason: info.draining,
                    until,
                    looked_at: 0,
                    asked_at: 0,
                    returned: BTreeSet::new(),
                    offered: BTreeMap::new(),
                    settled: BTreeSet::new(),
                    refused: BTreeMap::new(),
                    given: BTreeMap::new(),
                    left: false,
                });
                self.send_pending_on();
            }
        }
        self.mind_draining(now, out);
    }

    /// Nothing is sent to a node any more that is to leave.
    pub(crate) fn take_no_more(&mut self, node: u32) {
        self.member.view.leave(NodeNumber(node));
        self.member.view_changes += 1;
    }

    /// What our processes wait for here they are to have elsewhere.
    fn send_pending_on(&mut self) {
        for (&id, process) in &mut self.processes {
            if process.is_foreign() {
                continue; // Declined with the next pass.
            }
            for key in std::mem::take(&mut process.pending) {
                if let Some(demand) = process.demands.get_mut(&key) {
                    demand.here = 0;
                    self.member.unplaced.insert((id, key));
                }
            }
        }
    }

    /// When [`Self::mind_draining`] is due.
    pub(crate) fn next_draining_wakeup(&self) -> Option<u64> {
        let own = self.draining.as_ref().filter(|draining| !draining.left);
        let own = own.map(|draining| draining.looked_at + LOOK_EVERY);
        let adopting = !self.member.adopting.is_empty();
        let adopted = adopting.then_some(self.member.adoptions_seen_at + LOOK_EVERY);
        own.into_iter().chain(adopted).min()
    }

    /// Time has passed: gives away what can be, and leaves when nothing is left.
    pub(crate) fn mind_draining(&mut self, now: u64, out: &mut impl Outbox) {
        self.confirm_adopted(now, out);
        let Some(draining) = &mut self.draining else {
            return;
        };
        if draining.left || now < draining.looked_at + LOOK_EVERY {
            return;
        }
        draining.looked_at = now;
        let late = draining.until.is_some_and(|until| now >= until);
        self.send_idle_workers_away(out);
        self.ask_leases_back(now, out);
        self.return_actors(out);
        let stays = self.is_busy() || self.give_objects_away(out);
        if stays && !late {
            return;
        }
        let draining = self.draining.as_mut().expect("just seen");
        draining.left = true;
        let late = if stays { ", and its time was over before all had ended" } else { "" };
        let text = format!("it was drained ({}){late}", draining.reason);
        out.leave(text);
    }

    /// Whether something runs here that cannot go on elsewhere.
    fn is_busy(&self) -> bool {
        let ends_with_us = |process: &Process| match (process.kind, process.role) {
            (ProcessKind::Driver, _) => true,
            (ProcessKind::Worker, Role::Actor(id)) => {
                self.actors.get(&id).is_some_and(|actor| !actor.may_go_elsewhere())
            }
            // Idle ones were told to exit, and do once nobody holds what they own.
            (ProcessKind::Worker, _) => true,
            _ => false,
        };
        !self.leases.is_empty() || self.processes.values().any(ends_with_us)
    }

    fn send_idle_workers_away(&mut self, out: &mut impl Outbox) {
        for id in std::mem::take(&mut self.pool.idle) {
            if let Some(process) = self.processes.get_mut(&id) {
                process.role = Role::Leaving;
                out.send(id, from_node::Body::Exit(Empty {}));
            }
        }
    }

    /// Who has a lease here is to send nothing more, and to give it back.
    fn ask_leases_back(&mut self, now: u64, out: &mut impl Outbox) {
        let draining = self.draining.as_mut().expect("is draining");
        if now < draining.asked_at + ASK_EVERY {
            return;
        }
        draining.asked_at = now;
        let drains = NodeLost { node: self.number, reason: draining.reason.clone() };
        let holders: BTreeSet<ProcessId> = self.leases.values().map(|lease| lease.holder).collect();
        for holder in holders {
            out.send(holder, from_node::Body::NodeDrains(drains.clone()));
        }
    }

    /// Offers objects to other nodes; whether some are left that nobody has yet.
    fn give_objects_away(&mut self, out: &mut impl Outbox) -> bool {
        let all = self.keeper.to_move();
        let draining = self.draining.as_mut().expect("is draining");
        let here: BTreeSet<StoreKey> = all.objects.iter().map(|(key, ..)| *key).collect();
        draining.offered.retain(|key, _| here.contains(key));
        let mut left = all.more;
        for (key, len, owner) in all.objects {
            let draining = self.draining.as_ref().expect("is draining");
            if draining.settled.contains(&key) {
                continue;
            }
            left = true;
            let is_full = draining.offered.len() >= MOST_MOVING;
            if !draining.offered.contains_key(&key) && !is_full {
                self.offer(key, len, owner, out);
            }
        }
        left
    }

    fn offer(&mut self, key: StoreKey, len: u64, owner: ProcessId, out: &mut impl Outbox) {
        let Some(to) = self.heir() else { return };
        let draining = self.draining.as_mut().expect("is draining");
        draining.offered.insert(key, to);
        *draining.given.entry(to).or_default() += len;
        let wanted = Adopt { key: key.0, len, owner: owner.0 };
        tell(to, between_nodes::Body::Adopt(wanted), out);
    }

    /// Who is believed to have most memory free.
    fn heir(&self) -> Option<u32> {
        let given = |number: &u32| self.draining.as_ref()?.given.get(number).copied();
        let others = self.member.infos.values().filter(|info| {
            info.number != self.number
                && !info.is_draining()
                && !self.member.unreachable.contains(&info.number)
        });
        let free = |info: &cluster::NodeInfo| {
            let used = info.store_used.saturating_add(given(&info.number).unwrap_or(0));
            i128::from(info.store_size) - i128::from(used)
        };
        others.max_by_key(|info| (free(info), info.number)).map(|info| info.number)
    }

    /// A node has an object of ours, and its owner knows; or it cannot have it.
    pub(crate) fn on_adopted(&mut self, node: u32, answer: Adopted) {
        let key = StoreKey(answer.key);
        let Some(draining) = &mut self.draining else {
            return;
        };
        if draining.offered.get(&key) != Some(&node) {
            return;
        }
        draining.offered.remove(&key);
        let refused = draining.refused.entry(key).or_default();
        *refused += u32::from(answer.refused);
        if !answer.refused || *refused >= MOST_OFFERS {
            draining.settled.insert(key);
        }
        draining.looked_at = 0;
    }

    /// A node that was offered objects is gone, or the way to it is broken.
    pub(crate) fn forget_offers_to(&mut self, node: u32) {
        if let Some(draining) = &mut self.draining {
            draining.offered.retain(|_, to| *to != node);
        }
    }

    /// A node that is about to leave wants us to have an object of it.
    pub(crate) fn on_adopt(&mut self, node: u32, wanted: Adopt, now: u64, out: &mut impl Outbox) {
        let owner = ProcessId(wanted.owner);
        let is_known = match self.is_elsewhere(owner) {
            true => self.get_to_know(owner, out),
            false => self.processes.contains_key(&owner),
        };
        if self.is_draining() || !is_known {
            return refuse(node, wanted.key, out);
        }
        let origin = Origin { node, key: StoreKey(wanted.key) };
        self.copy_to_adopt(origin, wanted.len, owner, now, out);
    }

    /// A copy is the object from now on: its owner hears so.
    pub(crate) fn tell_adopted(
        &mut self,
        origin: Origin,
        key: StoreKey,
        owner: ProcessId,
        out: &mut impl Outbox,
    ) {
        self.member.adopting.push(Adoption { key, origin });
        let place = |node: u32, key: StoreKey| Some(cluster::Origin { node, key: key.0 });
        let (from, to) = (place(origin.node, origin.key), place(self.number, key));
        out.send(owner, from_node::Body::ObjectMoved(ObjectMoved { from, to }));
    }

    /// Owners that have taken up what was adopted for them: who gave it hears so.
    fn confirm_adopted(&mut self, now: u64, out: &mut impl Outbox) {
        if self.member.adopting.is_empty() {
            return;
        }
        self.member.adoptions_seen_at = now;
        let keeper = &self.keeper;
        let done = self.member.adopting.extract_if(.., |one| keeper.is_settled(one.key));
        for Adoption { origin, .. } in done.collect::<Vec<_>>() {
            let answer = Adopted { key: origin.key.0, refused: false };
            tell(origin.node, between_nodes::Body::Adopted(answer), out);
        }
    }
}

/// An object cannot be adopted.
pub(super) fn refuse(node: u32, key: u64, out: &mut impl Outbox) {
    tell(node, between_nodes::Body::Adopted(Adopted { key, refused: true }), out);
}

impl crate::actors::Actor {
    /// Whether it is started again elsewhere when its node leaves, or has yet to be started.
    fn may_go_elsewhere(&self) -> bool {
        match self.stage {
            Stage::Waiting(..) => true,
            Stage::Starting(_) => false,
            Stage::Alive(_) => self.restarts_left != 0,
        }
    }
}
