//! Worlds in which something is broken on purpose: what must hold is then seen not to.

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::{Welcome, from_control};

use crate::process::Queued;
use crate::world::World;

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Workers run some tasks again, whoever has claimed them (H-1).
    Tasks,
    /// Actors run some calls again (H-2).
    Calls,
    /// Actors begin with what came last (H-3).
    Order,
    /// News are of another incarnation than they say, and actors do not look (H-4).
    Incarnations,
    /// Nodes know of no lease, and go on for as long as they like (S-4).
    Leases,
}

impl World {
    pub(crate) fn is_broken(&self, what: Broken) -> bool {
        self.plan.broken == Some(what)
    }

    /// What a machine hears of the control service.
    pub(crate) fn without_lease(&self, body: from_control::Body) -> from_control::Body {
        match body {
            from_control::Body::Welcome(welcome) if self.is_broken(Broken::Leases) => {
                from_control::Body::Welcome(Welcome { lease_ms: 0, ..welcome })
            }
            body => body,
        }
    }

    /// What a process takes from its queue.
    pub(crate) fn next_queued(&mut self, id: ProcessId) -> Option<Queued> {
        let is_backwards = self.is_broken(Broken::Order);
        let process = self.process_mut(id);
        match is_backwards && process.actor.is_some() {
            true => process.queue.pop_back(),
            false => process.queue.pop_front(),
        }
    }

    /// A process begins this, and in some worlds will again.
    pub(crate) fn may_run_again(&mut self, id: ProcessId, queued: &Queued) {
        let is_actor = self.processes[&id].actor.is_some();
        let again = match self.plan.broken {
            Some(Broken::Tasks) => !is_actor && queued.number != 0,
            Some(Broken::Calls) => is_actor && self.random.once_in(2),
            _ => false,
        };
        if again {
            let (giver, bytes) = (queued.giver, queued.bytes.clone());
            self.process_mut(id).queue.push_front(Queued { giver, number: 0, bytes });
        }
    }
}
