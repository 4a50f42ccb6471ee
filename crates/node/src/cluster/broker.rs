//! Which nodes the demands of our processes go to.
//!
//! Every unit of a demand is in one of these places: granted, waiting *here*,
//! asked for *elsewhere*, or without a place. What any node will do for waits here
//! first, and goes elsewhere when there is room there and none here; the rest is
//! placed by its strategy. A node that cannot serve a unit at once declines it, so
//! that its asker looks on; where no node has room, one unit at a time may wait at
//! a node that will.
//!
//! - **B-1** granted + here + elsewhere never exceeds what was requested.

use oxiray_ids::ProcessId;
use oxiray_scheduler::{Choice, NodeNumber, Request, choose};
use oxiray_wire::cluster::{AskLeases, Declined, between_nodes};
use oxiray_wire::control::{Unschedulable, from_node};

use super::tell;
use crate::demand::{Demand, LeaseId, MOST_ASKED};
use crate::event::Outbox;
use crate::node::Node;
use crate::schedule::{KnownShape, ShapeId, Turn};

/// Units of one demand that are placed in one pass: the next pass goes on.
const MOST_AT_ONCE: usize = 64;

impl Node {
    /// Whether units of this shape wait here before anything else.
    pub(crate) fn stays_here(&self, shape: ShapeId) -> bool {
        let known = &self.schedule.shapes[shape.0];
        known.wanted.is_any() && [0, self.number].contains(&known.shape.near) && !self.is_draining()
    }

    fn choose_for(&mut self, shape: ShapeId, of: (ProcessId, u64)) -> Choice {
        self.member.turn += 1;
        if let Some(place) = self.schedule.shapes[shape.0].wanted.place {
            let demand = self.processes.get(&of.0).and_then(|p| p.demands.get(&of.1));
            let asked = |node| demand.map_or(0, |demand| demand.elsewhere.at(node));
            return self.choose_in_group(shape, place, asked);
        }
        self.refresh_own_room();
        let own = NodeNumber(self.number);
        for placed in &self.member.placed_here {
            self.member.view.take(own, &self.schedule.shapes[placed.0].shape);
        }
        choose(&self.member.view, &self.request(shape))
    }

    /// What is known of this node's own room is true again.
    pub(crate) fn refresh_own_room(&mut self) {
        self.member.view.report(NodeNumber(self.number), &self.ledger.available(), 0);
    }

    /// What a shape asks of the nodes.
    pub(crate) fn request(&self, shape: ShapeId) -> Request<'_> {
        let KnownShape { shape, wanted, .. } = &self.schedule.shapes[shape.0];
        Request {
            shape,
            strategy: &wanted.strategy,
            selectors: &wanted.selectors,
            fallbacks: &wanted.fallbacks,
            local: NodeNumber(self.number),
            prefer: (shape.near != 0).then_some(NodeNumber(shape.near)),
            turn: self.member.turn,
        }
    }

    /// Whether a node that may serve a shape could ever do so.
    pub(crate) fn can_ever_be_served(&self, shape: ShapeId) -> bool {
        let known = &self.schedule.shapes[shape.0];
        // Of a group that waits the control service tells.
        known.wanted.place.is_some()
            || (known.wanted.is_any() && self.ledger.can_ever_fit(&known.shape))
            || !matches!(choose(&self.member.view, &self.request(shape)), Choice::Infeasible)
    }

    /// Finds places for units that have none, and for those that wait here in vain.
    pub(crate) fn place_elsewhere(&mut self, out: &mut impl Outbox) {
        let member = &mut self.member;
        member.placed_here.clear();
        if member.waits_reviewed_at != member.view_changes {
            member.waits_reviewed_at = member.view_changes;
            self.call_back_waiting(out);
        }
        for (process, key) in std::mem::take(&mut self.member.unplaced) {
            self.place(process, key, out);
        }
        let turns: Vec<Turn> = self.schedule.turns.iter().copied().collect();
        for turn in turns {
            let Turn::Process(id) = turn else {
                continue;
            };
            let Some(process) = self.processes.get(&id) else {
                continue;
            };
            let keys: Vec<u64> = process.pending.iter().copied().collect();
            let foreign = process.is_foreign();
            for key in keys {
                match foreign {
                    true => self.decline(id, key, out),
                    false => self.send_on(id, key, out),
                }
            }
        }
    }

    /// Units that wait at a node while another has room by now are called back.
    fn call_back_waiting(&mut self, out: &mut impl Outbox) {
        let mut waiting = Vec::new();
        for (&id, process) in &self.processes {
            for (&key, demand) in &process.demands {
                waiting.extend(demand.waits_at.first().map(|&at| (id, key, demand.shape, at)));
            }
        }
        for (id, key, shape, at) in waiting {
            let Choice::Now(node) = self.choose_for(shape, (id, key)) else {
                continue;
            };
            if node.0 == at {
                continue; // It is about to be served there.
            }
            let demand = self.demand(id, key).expect("just seen");
            demand.waits_at.remove(&at);
            if demand.elsewhere.take(at, 1) == 0 {
                continue;
            }
            let fewer =
                AskLeases { process: id.0, shape_key: key, more: -1, ..AskLeases::default() };
            tell(at, between_nodes::Body::AskLeases(fewer), out);
            self.settle_unplaced(id, key);
        }
    }

    fn demand(&mut self, process: ProcessId, key: u64) -> Option<&mut Demand> {
        self.processes.get_mut(&process)?.demands.get_mut(&key)
    }

    /// Gives places to units without one.
    fn place(&mut self, process: ProcessId, key: u64, out: &mut impl Outbox) {
        for _ in 0..MOST_AT_ONCE {
            let Some(demand) = self.demand(process, key).filter(|demand| demand.unplaced() > 0)
            else {
                return;
            };
            let (shape, waits_here) = (demand.shape, demand.here > demand.tentative);
            let number = self.number;
            let (node, wait) = match self.choose_for(shape, (process, key)) {
                Choice::Now(node) => (node.0, false),
                Choice::Queue(node) => (node.0, true),
                Choice::Infeasible => break,
                Choice::Unschedulable(reason) => {
                    return self.give_up(process, key, reason, out);
                }
            };
            if node == number {
                if self.is_draining() {
                    break; // A bundle of its group is here, and will be elsewhere.
                }
                // As elsewhere, one unit at a time waits where there is no room.
                if wait && waits_here {
                    break;
                }
                self.place_here(process, key, 1);
                self.member.placed_here.push(shape);
            } else if !self.ask(process, key, node, wait, out) {
                break;
            }
        }
        self.still_unplaced(process, key);
    }

    fn still_unplaced(&mut self, process: ProcessId, key: u64) {
        if self.demand(process, key).is_some_and(|demand| demand.unplaced() > 0) {
            self.member.unplaced.insert((process, key));
        }
    }

    /// Units wait here from now on.
    pub(crate) fn place_here(&mut self, id: ProcessId, key: u64, units: u64) {
        let process = self.processes.get_mut(&id).expect("has a demand");
        let demand = process.demands.get_mut(&key).expect("is known");
        demand.here += units;
        if demand.here > 0 && !process.pending.contains(&key) {
            process.pending.push_back(key);
        }
        if !process.pending.is_empty() && !process.has_turn {
            process.has_turn = true;
            self.schedule.turns.push_back(Turn::Process(id));
        }
    }

    /// Asks another node for one unit; false when one waits there already, or when
    /// the node cannot be reached for now.
    fn ask(
        &mut self,
        id: ProcessId,
        key: u64,
        node: u32,
        wait: bool,
        out: &mut impl Outbox,
    ) -> bool {
        if self.member.unreachable.contains(&node) {
            return false;
        }
        let demand = self.demand(id, key).expect("has units to place");
        let shape = demand.shape;
        if wait && demand.elsewhere.at(node) > 0 {
            return false;
        }
        demand.elsewhere.add(node);
        if wait {
            demand.waits_at.insert(node);
        }
        let known = &self.schedule.shapes[shape.0];
        let shape = known.shape.clone();
        if known.wanted.place.is_none() {
            self.member.view.take(NodeNumber(node), &shape);
        }
        self.introduce(id, node, out);
        let asked = AskLeases { process: id.0, shape_key: key, shape: Some(shape), more: 1, wait };
        tell(node, between_nodes::Body::AskLeases(asked), out);
        true
    }

    /// Sends units elsewhere that wait here in vain.
    fn send_on(&mut self, id: ProcessId, key: u64, out: &mut impl Outbox) {
        for _ in 0..MOST_AT_ONCE {
            let Some(demand) = self.demand(id, key).filter(|d| d.here > d.tentative) else {
                return;
            };
            let shape = demand.shape;
            let known = &self.schedule.shapes[shape.0];
            let member = &self.member;
            // What fits here waits for a worker only, or for its turn.
            if self.ledger.fits(&known.shape)
                || known.nothing_elsewhere_at == Some(member.view_changes)
            {
                return;
            }
            let changes = member.view_changes;
            let (node, wait) = match self.choose_for(shape, (id, key)) {
                Choice::Now(node) => (node.0, false),
                Choice::Queue(node) if self.stays_here(shape) => (node.0, true),
                _ => (self.number, true),
            };
            if node == self.number || !self.ask_instead(id, key, node, wait, out) {
                self.schedule.shapes[shape.0].nothing_elsewhere_at = Some(changes);
                return;
            }
        }
    }

    /// Asks another node for a unit that waits here.
    fn ask_instead(
        &mut self,
        id: ProcessId,
        key: u64,
        node: u32,
        wait: bool,
        out: &mut impl Outbox,
    ) -> bool {
        self.take_from_here(id, key, 1);
        let asked = self.ask(id, key, node, wait, out);
        if !asked {
            self.place_here(id, key, 1);
        }
        asked
    }

    fn take_from_here(&mut self, id: ProcessId, key: u64, units: u64) {
        let process = self.processes.get_mut(&id).expect("has a demand");
        let demand = process.demands.get_mut(&key).expect("is known");
        demand.here -= units;
        if demand.here == 0 {
            process.pending.retain(|&pending| pending != key);
        }
    }

    /// Takes back units that are not wanted any more: here first, then elsewhere.
    pub(crate) fn withdraw(&mut self, id: ProcessId, key: u64, units: u64, out: &mut impl Outbox) {
        let Some(demand) = self.demand(id, key) else {
            return;
        };
        let here = demand.here.min(units);
        let fewer = demand.elsewhere.take_any(units - here);
        self.take_from_here(id, key, here);
        for (node, some) in fewer {
            let more = -i64::try_from(some).unwrap_or(i64::MAX);
            let asked = AskLeases { process: id.0, shape_key: key, more, ..AskLeases::default() };
            tell(node, between_nodes::Body::AskLeases(asked), out);
        }
    }

    /// A demand can never be served: its tasks fail.
    fn give_up(&mut self, id: ProcessId, key: u64, reason: String, out: &mut impl Outbox) {
        let Some(demand) = self.demand(id, key) else {
            return;
        };
        demand.requested -= demand.unplaced();
        let failed = Unschedulable { shape_key: key, reason, ..Unschedulable::default() };
        out.send(id, from_node::Body::Unschedulable(failed));
    }

    /// Nothing more of a demand is wanted here, nor elsewhere: what it has stays.
    pub(crate) fn abandon(&mut self, id: ProcessId, key: u64, out: &mut impl Outbox) {
        if let Some(units) = self.demand(id, key).map(|demand| demand.placed()) {
            self.withdraw(id, key, units, out);
        }
        if let Some(demand) = self.demand(id, key) {
            demand.requested = demand.granted;
            demand.may_wait = 0;
            demand.waits_at.clear();
        }
        self.member.unplaced.remove(&(id, key));
    }

    /// Another node wants leases for one of its processes, or fewer.
    pub(crate) fn on_ask_leases(&mut self, node: u32, asked: AskLeases, out: &mut impl Outbox) {
        let id = ProcessId(asked.process);
        if id.node() != node || !self.get_to_know(id, out) {
            return;
        }
        let key = asked.shape_key;
        if asked.more < 0 && self.demand(id, key).is_none() {
            return; // It was forgotten, with the connection that it came by.
        }
        let shape = self.intern(asked.shape.unwrap_or_default());
        let process = self.processes.get_mut(&id).expect("is known");
        let demand = process.demands.entry(key).or_insert_with(|| Demand::new(shape));
        match u64::try_from(asked.more) {
            Ok(more) => {
                let more = more.min(MOST_ASKED);
                demand.requested += more;
                demand.may_wait += if asked.wait { more } else { 0 };
                self.place_here(id, key, more);
            }
            Err(_) => {
                let fewer = asked.more.unsigned_abs().min(demand.here);
                demand.requested -= fewer;
                demand.may_wait = demand.may_wait.min(demand.here - fewer);
                self.take_from_here(id, key, fewer);
            }
        }
    }

    /// Declines what cannot be served at once and may not wait.
    fn decline(&mut self, id: ProcessId, key: u64, out: &mut impl Outbox) {
        let Some(demand) = self.processes.get(&id).and_then(|p| p.demands.get(&key)) else {
            return;
        };
        let known = &self.schedule.shapes[demand.shape.0];
        let may_wait = if self.is_draining() { 0 } else { demand.may_wait.max(demand.tentative) };
        let count = demand.here.saturating_sub(may_wait);
        // What fits lacks only a worker.
        if count == 0 || (self.ledger.fits(&known.shape) && !self.is_draining()) {
            return;
        }
        if let Some((group, _)) = known.wanted.place {
            self.groups.declined.entry(group).or_default().insert(id.node());
        }
        let demand = self.demand(id, key).expect("just seen");
        demand.requested -= count;
        demand.may_wait = demand.may_wait.min(demand.here - count);
        self.take_from_here(id, key, count);
        let draining = self.is_draining();
        let declined = Declined { process: id.0, shape_key: key, count, draining };
        tell(id.node(), between_nodes::Body::Declined(declined), out);
    }

    /// Another node has no room for units of ours.
    pub(crate) fn on_declined(&mut self, node: u32, declined: &Declined) {
        let (id, key) = (ProcessId(declined.process), declined.shape_key);
        if declined.draining {
            // Faster than the control service's word, which may have been missed.
            self.take_no_more(node);
        }
        let shape = self.demand(id, key).map(|demand| demand.shape);
        // Until it says otherwise.
        match shape.and_then(|shape| self.schedule.shapes[shape.0].wanted.place) {
            Some((group, _)) => self.note_full(group, node, true),
            None => self.member.view.report(NodeNumber(node), &[], 0),
        }
        let Some(demand) = self.demand(id, key) else {
            return;
        };
        demand.waits_at.remove(&node);
        demand.elsewhere.take(node, declined.count);
        self.settle_unplaced(id, key);
    }

    /// Units lost their place: they wait here, or for the next pass.
    fn settle_unplaced(&mut self, id: ProcessId, key: u64) {
        let Some(demand) = self.demand(id, key) else {
            return;
        };
        let (units, shape) = (demand.unplaced(), demand.shape);
        if units > 0 && self.stays_here(shape) {
            self.place_here(id, key, units);
        } else {
            self.still_unplaced(id, key);
        }
    }

    /// Another node granted a lease to a process of ours.
    pub(crate) fn on_granted_elsewhere(
        &mut self,
        node: u32,
        id: ProcessId,
        key: u64,
        lease: LeaseId,
    ) {
        if let Some(demand) = self.demand(id, key) {
            let shape = demand.shape;
            demand.waits_at.remove(&node);
            demand.elsewhere.take(node, 1);
            demand.granted += 1;
            demand.requested = demand.requested.max(demand.granted + demand.placed());
            self.member.leased.insert(lease.0, shape);
            self.still_unplaced(id, key);
        }
    }

    /// A process of ours gives a lease back: its node is believed to have room again,
    /// before it says so itself.
    pub(crate) fn on_returned_elsewhere(&mut self, lease: LeaseId) {
        let member = &mut self.member;
        if let Some(shape) = member.leased.remove(&lease.0) {
            let known = &self.schedule.shapes[shape.0];
            if let Some((group, _)) = known.wanted.place {
                return self.note_full(group, lease.node(), false);
            }
            member.view.give_back(NodeNumber(lease.node()), &known.shape);
            member.view_changes += 1;
        }
    }

    /// Nothing is heard of a node at the moment: what it was asked for and has not granted is looked
    /// for elsewhere. What it has granted meanwhile is granted.
    pub(crate) fn call_back_from(&mut self, node: u32, out: &mut impl Outbox) {
        let mut called_back = Vec::new();
        for (&id, process) in &mut self.processes {
            for (&key, demand) in &mut process.demands {
                demand.waits_at.remove(&node);
                let count = demand.elsewhere.take(node, u64::MAX);
                called_back.extend((count > 0).then_some((id, key, count)));
            }
        }
        for (id, key, count) in called_back {
            let more = -i64::try_from(count).unwrap_or(i64::MAX);
            let fewer = AskLeases { process: id.0, shape_key: key, more, ..AskLeases::default() };
            tell(node, between_nodes::Body::AskLeases(fewer), out);
            self.settle_unplaced(id, key);
        }
    }

    /// A node is gone: what it was asked for is looked for elsewhere.
    pub(crate) fn forget_placed_at(&mut self, node: u32) {
        let mut lost = Vec::new();
        for (&id, process) in &mut self.processes {
            for (&key, demand) in &mut process.demands {
                demand.waits_at.remove(&node);
                if demand.elsewhere.take(node, u64::MAX) > 0 {
                    lost.push((id, key));
                }
            }
        }
        for (id, key) in lost {
            self.settle_unplaced(id, key);
        }
        self.member.leased.retain(|lease, _| LeaseId(*lease).node() != node);
    }
}
