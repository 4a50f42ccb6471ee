//! What is free where, passed on to all, a few times a second at most.

use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{Load, Loads, from_control};

use crate::control::Control;
use crate::event::{Now, Outbox};

/// Loads are passed on together, at most this often, in nanoseconds.
const LOADS_EVERY: u64 = 50_000_000;

/// Groups that wait are looked at so long after news of room: several nodes' come together.
const LOOK_AFTER: u64 = 5_000_000;

impl Control {
    pub(crate) fn on_load(&mut self, number: u32, load: Load) {
        let Some(member) = self.members.get_mut(&number) else {
            return;
        };
        let waiting = u32::try_from(load.waiting).unwrap_or(u32::MAX);
        self.room.report(NodeNumber(number), &load.available, waiting);
        self.groups.look_again(self.now.ns + LOOK_AFTER);
        let info = &mut member.info;
        info.available = load.available;
        info.waiting = load.waiting;
        info.store_used = load.store_used;
        info.waiting_for = load.waiting_for;
        info.has_worked = load.has_worked;
        self.changed_loads.insert(number);
    }

    pub(crate) fn next_loads(&self) -> Option<u64> {
        // Everybody hears of everybody: the more there are, the less often.
        let every = LOADS_EVERY.max(self.members.len() as u64 * 1_000_000);
        let is_heard = self.peers.len() > 1 && !self.changed_loads.is_empty();
        is_heard.then_some(self.loads_told_at + every)
    }

    pub(crate) fn tell_loads(&mut self, now: Now, out: &mut impl Outbox) {
        if self.next_loads().is_none_or(|at| now.ns < at) {
            return;
        }
        self.loads_told_at = now.ns;
        let changed = std::mem::take(&mut self.changed_loads);
        let loads = changed.iter().filter_map(|number| {
            let info = &self.members.get(number)?.info;
            Some(Load {
                node: *number,
                available: info.available.clone(),
                waiting: info.waiting,
                store_used: info.store_used,
                waiting_for: info.waiting_for.clone(),
                has_worked: info.has_worked,
                suspect: self.members[number].suspect,
            })
        });
        let loads = Loads { loads: loads.collect() };
        self.broadcast(None, from_control::Body::Loads(loads), out);
    }
}
