//! What processes ask for, and the leases they have.

use oxiray_ids::ProcessId;
use oxiray_scheduler::Allocation;
use oxiray_wire::control::{Granted, SetDemand, from_node};

use crate::event::Outbox;
use crate::node::Node;
use crate::process::Role;
use crate::schedule::{ShapeId, Turn};

/// Names a lease for the life of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LeaseId(pub(crate) u64);

/// One shape that a process asks for.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) shape: ShapeId,
    pub(crate) requested: u64,
    pub(crate) granted: u64,
    /// Would be granted if there were a worker; only used within one pass.
    pub(crate) tentative: u64,
}

impl Demand {
    pub(crate) fn outstanding(&self) -> u64 {
        self.requested - self.granted
    }
}

/// A worker that a process may push tasks to.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) holder: ProcessId,
    pub(crate) worker: ProcessId,
    pub(crate) shape: ShapeId,
    pub(crate) allocation: Allocation,
}

impl Node {
    pub(crate) fn on_set_demand(&mut self, from: ProcessId, message: SetDemand) {
        let process = self.processes.get_mut(&from).expect("a message has a sender");
        let key = message.shape_key;
        let demand = match process.demands.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let shape = self.schedule.intern(message.shape.unwrap_or_default());
                entry.insert(Demand { shape, requested: 0, granted: 0, tentative: 0 })
            }
        };
        demand.requested = message.requested_total.max(demand.granted);
        if demand.outstanding() == 0 {
            process.pending.retain(|&pending| pending != key);
        } else if !process.pending.contains(&key) {
            process.pending.push_back(key);
        }
        if !process.pending.is_empty() && !process.has_turn {
            process.has_turn = true;
            self.schedule.turns.push_back(Turn::Process(from));
        }
    }

    /// Gives `worker` to the holder of a demand. The demand is outstanding.
    pub(crate) fn grant(
        &mut self,
        holder: ProcessId,
        key: u64,
        worker: ProcessId,
        allocation: Allocation,
        out: &mut impl Outbox,
    ) {
        self.ensure_channel(holder, worker, out);
        self.last_lease += 1;
        let lease = LeaseId(self.last_lease);
        let process = self.processes.get_mut(&holder).expect("has a demand");
        let demand = process.demands.get_mut(&key).expect("is outstanding");
        demand.granted += 1;
        let shape = demand.shape;
        // The next turn of this process goes to its next shape.
        let done = demand.outstanding() == 0;
        process.pending.retain(|&pending| pending != key);
        if !done {
            process.pending.push_back(key);
        }
        process.leases.insert(lease);
        self.processes.get_mut(&worker).expect("was idle").role = Role::Leased(lease);
        let message = Granted {
            shape_key: key,
            lease: lease.0,
            worker: worker.0,
            devices: allocation.devices(),
        };
        self.leases.insert(lease, Lease { holder, worker, shape, allocation });
        out.send(holder, from_node::Body::Granted(message));
    }

    pub(crate) fn on_return_lease(&mut self, from: ProcessId, id: LeaseId, now: u64) {
        // The worker may have died, and the lease with it, before this came.
        if self.leases.get(&id).is_some_and(|lease| lease.holder == from) {
            let worker = self.end_lease(id);
            self.make_idle(worker, now);
        }
    }

    /// Forgets a lease and takes its resources back. The worker keeps its role:
    /// the caller gives it another.
    pub(crate) fn end_lease(&mut self, id: LeaseId) -> ProcessId {
        let lease = self.leases.remove(&id).expect("the lease is current");
        self.ledger.release(lease.allocation);
        if let Some(holder) = self.processes.get_mut(&lease.holder) {
            holder.leases.remove(&id);
        }
        lease.worker
    }
}
