//! What processes ask for, and the leases they have.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::ProcessId;
use oxiray_scheduler::Allocation;
use oxiray_wire::control::to_node::Body;
use oxiray_wire::control::{Granted, SetDemand, from_node};

use crate::event::Outbox;
use crate::node::Node;
use crate::process::Role;
use crate::schedule::ShapeId;

/// Names a lease for the life of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LeaseId(pub(crate) u64);

impl LeaseId {
    /// The first of a node: no two nodes' are the same.
    pub(crate) const fn first_of(node: u32) -> u64 {
        (node as u64) << 40
    }

    pub(crate) const fn node(self) -> u32 {
        (self.0 >> 40) as u32
    }
}

/// One shape that a process asks for.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) shape: ShapeId,
    pub(crate) requested: u64,
    pub(crate) granted: u64,
    /// Units that wait for this node.
    pub(crate) here: u64,
    /// Of a foreign process: of those, how many need not be declined.
    pub(crate) may_wait: u64,
    /// Units that other nodes were asked for.
    pub(crate) elsewhere: Elsewhere,
    /// Nodes at which one of those waits for room.
    pub(crate) waits_at: BTreeSet<u32>,
    /// Names of the first tasks that wait, for people; of a foreign process, none.
    pub(crate) tasks: String,
    /// Would be granted if there were a worker; only used within one pass.
    pub(crate) tentative: u64,
}

impl Demand {
    pub(crate) fn new(shape: ShapeId) -> Self {
        Self {
            shape,
            requested: 0,
            granted: 0,
            here: 0,
            may_wait: 0,
            elsewhere: Elsewhere::default(),
            waits_at: BTreeSet::new(),
            tasks: String::new(),
            tentative: 0,
        }
    }

    /// Units that wait somewhere.
    pub(crate) fn placed(&self) -> u64 {
        self.here + self.elsewhere.all
    }

    /// Units that wait nowhere yet.
    pub(crate) fn unplaced(&self) -> u64 {
        self.requested.saturating_sub(self.granted + self.placed())
    }
}

/// How many units each of the other nodes was asked for. Their sum is kept: it is wanted with
/// every unit, and there may be a thousand nodes.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// Nobody is here with none.
    by_node: BTreeMap<u32, u64>,
    all: u64,
}

impl Elsewhere {
    pub(crate) fn at(&self, node: u32) -> u64 {
        self.by_node.get(&node).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, node: u32) {
        *self.by_node.entry(node).or_default() += 1;
        self.all += 1;
    }

    /// Up to `units` of a node are not asked for any more. How many were?
    pub(crate) fn take(&mut self, node: u32, units: u64) -> u64 {
        let Some(asked) = self.by_node.get_mut(&node) else {
            return 0;
        };
        let taken = units.min(*asked);
        *asked -= taken;
        self.all -= taken;
        if *asked == 0 {
            self.by_node.remove(&node);
        }
        taken
    }

    /// Panics when the sum is not what was asked for.
    pub(crate) fn validate(&self) {
        assert!(!self.by_node.values().any(|asked| *asked == 0), "B-1: nothing is asked for");
        assert_eq!(self.all, self.by_node.values().sum::<u64>(), "B-1: the sum");
    }

    /// Up to `units` of any nodes are not asked for any more: of whom, and how many.
    pub(crate) fn take_any(&mut self, mut units: u64) -> Vec<(u32, u64)> {
        let mut taken = Vec::new();
        while units > 0
            && let Some((&node, _)) = self.by_node.first_key_value()
        {
            let some = self.take(node, units);
            units -= some;
            taken.push((node, some));
        }
        taken
    }
}

/// A worker that a process may push tasks to.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) holder: ProcessId,
    pub(crate) worker: ProcessId,
    pub(crate) shape: ShapeId,
    pub(crate) allocation: Allocation,
    /// When it was granted.
    pub(crate) since: u64,
    /// What runs on it waits for others.
    pub(crate) blocked: bool,
}

/// Nobody has so many tasks. What is asked for is counted together, and sums must not end the node.
pub(crate) const MOST_ASKED: u64 = 1 << 40;

impl Node {
    pub(crate) fn on_set_demand(
        &mut self,
        from: ProcessId,
        message: SetDemand,
        out: &mut impl Outbox,
    ) {
        let process = self.processes.get_mut(&from).expect("a message has a sender");
        let key = message.shape_key;
        let demand = match process.demands.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let shape =
                    self.schedule.intern(message.shape.unwrap_or_default(), &mut self.environments);
                entry.insert(Demand::new(shape))
            }
        };
        demand.requested = message.requested_total.min(MOST_ASKED).max(demand.granted);
        demand.tasks = message.tasks;
        let place = self.schedule.shapes[demand.shape.0].wanted.place;
        let surplus = (demand.granted + demand.placed()).saturating_sub(demand.requested);
        let (shape, unplaced) = (demand.shape, demand.unplaced());
        if let Some((group, _)) = place {
            self.get_to_know_group(group, out);
        }
        if surplus > 0 {
            self.withdraw(from, key, surplus, out);
        } else if self.stays_here(shape) {
            self.place_here(from, key, unplaced);
        } else if unplaced > 0 {
            self.member.unplaced.insert((from, key));
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
        let job = self.processes[&holder].job;
        self.bind_job(worker, job, out);
        self.ensure_channel(holder, worker, out);
        self.last_lease += 1;
        let lease = LeaseId(self.last_lease);
        let process = self.processes.get_mut(&holder).expect("has a demand");
        let demand = process.demands.get_mut(&key).expect("is outstanding");
        demand.granted += 1;
        demand.here -= 1;
        demand.may_wait = demand.may_wait.min(demand.here);
        let shape = demand.shape;
        // The next turn of this process goes to its next shape.
        let done = demand.here == 0;
        process.pending.retain(|&pending| pending != key);
        if !done {
            process.pending.push_back(key);
        }
        process.leases.insert(lease);
        let process = self.processes.get_mut(&worker).expect("was idle");
        (process.role, process.has_worked) = (Role::Leased(lease), true);
        self.has_worked = true;
        let message = Granted {
            shape_key: key,
            lease: lease.0,
            worker: worker.0,
            devices: allocation.devices(),
        };
        let since = self.schedule.passed_at;
        let granted = Lease { holder, worker, shape, allocation, since, blocked: false };
        self.leases.insert(lease, granted);
        out.confine(worker, &self.schedule.shapes[shape.0].shape.resources);
        out.send(holder, from_node::Body::Granted(message));
    }

    pub(crate) fn on_return_lease(
        &mut self,
        from: ProcessId,
        id: LeaseId,
        now: u64,
        out: &mut impl Outbox,
    ) {
        if id.node() != self.number {
            self.on_returned_elsewhere(id);
            let back = Body::ReturnLease(oxiray_wire::control::Lease { lease: id.0 });
            return self.pass_on(from, id.node(), back, out);
        }
        // The worker may have died, and the lease with it, before this came.
        if self.leases.get(&id).is_some_and(|lease| lease.holder == from) {
            let worker = self.end_lease(id);
            self.make_idle(worker, now);
        }
    }

    /// Nobody wants leases of this demand any more, nor will.
    pub(crate) fn end_demand(&mut self, id: ProcessId, key: u64, out: &mut impl Outbox) {
        self.withdraw(id, key, u64::MAX, out);
        self.member.unplaced.remove(&(id, key));
        if let Some(process) = self.processes.get_mut(&id) {
            process.demands.remove(&key);
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
