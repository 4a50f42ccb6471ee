//! Asking for leases back while others wait, and telling the user about what
//! cannot run.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_control::unschedulable;
use oxiray_ids::ProcessId;
use oxiray_scheduler::{Choice, choose, show_amounts};
use oxiray_wire::control::{Empty, Shape, from_node};

use crate::demand::Lease;
use crate::event::Outbox;
use crate::node::Node;
use crate::schedule::{ShapeId, Turn, WantedRoom};

const MILLISECOND: u64 = 1_000_000;
/// A holder is asked at most this often.
const ASK_AGAIN: u64 = 10 * MILLISECOND;
/// Room is made for a placement group for so long after it was last asked for.
const ROOM_WANTED_FOR: u64 = 1_500 * MILLISECOND;
/// How long something that can never run waits before the user hears of it.
const INFEASIBLE_WARNING: u64 = 1_000 * MILLISECOND;
/// How long something waits for resources that others hold before the user hears of it.
const BUSY_WARNING: u64 = 10_000 * MILLISECOND;

/// Who waits for a shape: one process, or several.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiters {
    One(ProcessId),
    Several,
}

impl Node {
    /// A placement group waits for room here.
    pub(crate) fn on_want_room(&mut self, shape: Shape, now: u64) {
        let before = self.schedule.wanted_room.take().filter(|room| room.shape == shape);
        let since = before.map_or(now, |room| room.since);
        self.schedule.wanted_room = Some(WantedRoom { shape, since, until: now + ROOM_WANTED_FOR });
    }

    /// Looks at all that still waits after a pass.
    pub(crate) fn review(&mut self, now: u64, out: &mut impl Outbox) {
        let soon = self.schedule.reviewed_at.is_some_and(|at| now < at + ASK_AGAIN);
        if self.schedule.pressed && soon {
            return;
        }
        self.schedule.reviewed_at = Some(now);
        let waiters = self.waiters();
        for (index, known) in self.schedule.shapes.iter_mut().enumerate() {
            match waiters.contains_key(&ShapeId(index)) {
                true => _ = known.waiting_since.get_or_insert(now),
                false => known.waiting_since = None,
            }
        }
        if waiters.is_empty() && self.schedule.wanted_room.is_none() {
            self.schedule.pressed = false;
            return;
        }
        self.ask_back(&waiters, now, out);
        self.warn_of_waiting(now, out);
    }

    fn waiters(&self) -> BTreeMap<ShapeId, Waiters> {
        let mut waiters = BTreeMap::new();
        for turn in &self.schedule.turns {
            match turn {
                Turn::Actors => {
                    for shape in self.schedule.shapes_of_actors() {
                        waiters.insert(shape, Waiters::Several);
                    }
                }
                Turn::Process(id) => {
                    let Some(process) = self.processes.get(id) else {
                        continue;
                    };
                    for key in &process.pending {
                        let one = Waiters::One(*id);
                        let entry = waiters.entry(process.demands[key].shape).or_insert(one);
                        if *entry != one {
                            *entry = Waiters::Several;
                        }
                    }
                }
            }
        }
        // Units that found no node yet.
        for (id, key) in &self.member.unplaced {
            if let Some(demand) = self.processes.get(id).and_then(|p| p.demands.get(key)) {
                waiters.entry(demand.shape).or_insert(Waiters::One(*id));
            }
        }
        waiters
    }

    fn ask_back(&mut self, waiters: &BTreeMap<ShapeId, Waiters>, now: u64, out: &mut impl Outbox) {
        let mut holders = BTreeSet::new();
        for (&id, &who) in waiters {
            let known = &self.schedule.shapes[id.0];
            if known.failed_in != self.schedule.pass || !self.ledger.can_ever_fit(&known.shape) {
                continue;
            }
            for lease in self.leases.values() {
                // Who alone wants more of a shape gains nothing by giving it back.
                let own = lease.shape == id && who == Waiters::One(lease.holder);
                if !own && self.ledger.stands_in_the_way(&lease.allocation, &known.shape) {
                    holders.insert(lease.holder);
                }
            }
        }
        if let Some(room) = self.schedule.wanted_room.as_ref().map(|room| &room.shape) {
            let is_in_the_way =
                |lease: &&Lease| self.ledger.stands_in_the_way(&lease.allocation, room);
            holders.extend(self.leases.values().filter(is_in_the_way).map(|lease| lease.holder));
        }
        self.schedule.pressed = !holders.is_empty();
        for id in holders {
            let Some(holder) = self.processes.get_mut(&id) else {
                continue;
            };
            if holder.asked_back_at.is_none_or(|at| now >= at + ASK_AGAIN) {
                holder.asked_back_at = Some(now);
                out.send(id, from_node::Body::Reclaim(Empty {}));
            }
        }
    }

    fn warn_of_waiting(&mut self, now: u64, out: &mut impl Outbox) {
        for index in 0..self.schedule.shapes.len() {
            if self.warning_due(index).is_none_or(|due| now < due) {
                continue;
            }
            self.refresh_own_room();
            let request = self.request(ShapeId(index));
            let needs = show_amounts(&request.shape.resources);
            let who = self.who_waits(ShapeId(index));
            let why = self.why(ShapeId(index));
            let is_free = self.schedule.shapes[index].wanted.place.is_none();
            let text = match choose(&self.member.view, &request) {
                Choice::Infeasible if is_free => unschedulable(&who, &needs, &why),
                _ => format!(
                    "{who} needs {needs} and has waited for 10 s: {why}. Actors hold their \
                     resources for as long as they live; `oxiray status` shows what waits."
                ),
            };
            self.schedule.shapes[index].warned = true;
            self.warn(&text, out);
        }
    }

    /// When the user is to hear that a shape waits; `None` when that is not so or was said.
    fn warning_due(&self, index: usize) -> Option<u64> {
        let known = &self.schedule.shapes[index];
        let since = known.waiting_since.filter(|_| !known.warned)?;
        if !self.can_ever_be_served(ShapeId(index)) {
            return Some(since + INFEASIBLE_WARNING);
        }
        // Long tasks are no news; resources that never come back are.
        let by_actors_only = !self.is_held_by_leases(&known.shape);
        let lacking = known.failed_in == self.schedule.pass;
        (lacking && by_actors_only).then_some(since + BUSY_WARNING)
    }

    /// When [`crate::Event::Tick`] is wanted, if at all.
    pub fn next_wakeup(&self) -> Option<u64> {
        let again = self.schedule.reviewed_at.map(|at| at + ASK_AGAIN);
        let ask = again.filter(|_| self.schedule.pressed);
        let warnings = (0..self.schedule.shapes.len()).filter_map(|index| self.warning_due(index));
        // They are said when all that waits is looked at, and no sooner.
        let warnings = warnings.map(|at| at.max(ask.unwrap_or(0)));
        // An elder's time ends by itself, and then others may have what it left.
        let room = self.schedule.wanted_room.as_ref().map(|room| room.until);
        let elder = self.schedule.elder.map(|_| self.schedule.passed_at + ASK_AGAIN);
        let retry = self.pool.next_retry();
        let times = warnings.chain(ask).chain(elder).chain(retry).chain(room);
        let times = times.chain(self.environments.next_end()).chain(self.next_without_worker());
        let times = times.chain(self.next_retirement()).chain(self.keeper.next_wakeup());
        // What found its place here is served in the next pass: now.
        let placed = (!self.member.placed_here.is_empty()).then_some(self.schedule.passed_at);
        let times = times.chain(placed);
        times.chain(self.next_uplink_wakeup()).chain(self.next_draining_wakeup()).min()
    }
}
