//! The invariants of a node:
//!
//! - **N-1 (resources)** the ledger's invariants hold over the allocations of
//!   all leases and actors: nothing is lost, nothing is negative.
//! - **N-2 (one thing at a time)** a worker has at most one lease or actor, and
//!   both sides of that agree.
//! - **N-3 (no more than asked)** a demand is granted at most as often as requested.
//! - **N-4 (channels)** a channel is known to both ends, and the indexes of a
//!   process are distinct.
//! - **N-5 (idle)** the pool lists exactly the idle workers, each once.
//! - **N-6 (living parties)** holder and worker of a lease, creator and worker of
//!   an actor live; but a detached actor outlives its creator, once it
//!   is alive, or if it can be made without.
//! - **N-7 (bells)** no two processes share a bell.
//! - **N-8 (turns)** who waits has exactly one turn.
//! - **N-9 (observers look)** an observer has no channel, demand or actor.

use std::collections::BTreeSet;

use oxiray_wire::control::ProcessKind;

use crate::actors::Stage;
use crate::node::Node;
use crate::process::Role;
use crate::schedule::Turn;

impl Node {
    /// Panics when an invariant of the module documentation does not hold.
    pub fn validate(&self) {
        let of_leases = self.leases.values().map(|lease| &lease.allocation);
        let of_actors = self.actors.values().filter_map(|actor| actor.allocation.as_ref());
        let unanswered = self.processes.values().filter_map(|process| process.unanswered.as_ref());
        self.ledger.validate(of_leases.chain(of_actors).chain(unanswered));
        self.keeper.validate();
        self.validate_processes();
        self.validate_work();
    }

    fn validate_processes(&self) {
        let mut bells = BTreeSet::new();
        let mut idle = BTreeSet::new();
        for (&id, process) in &self.processes {
            if let Some(bell) = process.bell.filter(|_| !process.is_foreign()) {
                assert!(bells.insert(bell), "N-7: {id}");
            }
            if process.role == Role::Idle {
                idle.insert(id);
            }
            if let Role::Leased(lease) = process.role {
                assert_eq!(self.leases[&lease].worker, id, "N-2: {id}");
            }
            if let Role::Actor(actor) = process.role {
                assert_eq!(self.actors[&actor].worker(), Some(id), "N-2: {id}");
            }
            for demand in process.demands.values() {
                demand.elsewhere.validate();
                assert!(demand.granted + demand.placed() <= demand.requested, "N-3, B-1: {id}");
                assert_eq!(demand.tentative, 0, "a pass leaves nothing behind");
            }
            let mut indexes = BTreeSet::new();
            for (peer, &index) in &process.channels {
                assert!(self.processes[peer].channels.contains_key(&id), "N-4: {id} {peer}");
                assert!(indexes.insert(index), "N-4: {id} index {index}");
            }
            if !process.is_foreign() {
                assert_eq!(indexes.len(), process.indexes.len(), "N-4: {id}");
            }
            let turns = self.schedule.turns.iter().filter(|&&turn| turn == Turn::Process(id));
            assert_eq!(turns.count(), usize::from(process.has_turn), "N-8: {id}");
            assert!(process.pending.is_empty() || process.has_turn, "N-8: {id}");
            if process.kind == ProcessKind::Observer {
                assert!(process.channels.is_empty() && process.demands.is_empty(), "N-9: {id}");
                assert!(process.actors.is_empty(), "N-9: {id}");
            }
        }
        assert!(bells.insert(self.member.gateway), "N-7: the gateway");
        assert_eq!(bells.len(), self.bells.len(), "N-7");
        assert_eq!(self.pool.idle.len(), idle.len(), "N-5");
        assert!(self.pool.idle.iter().all(|worker| idle.contains(worker)), "N-5");
    }

    fn validate_work(&self) {
        for (&id, lease) in &self.leases {
            assert_eq!(self.processes[&lease.worker].role, Role::Leased(id), "N-2: {id:?}");
            assert!(self.processes[&lease.holder].leases.contains(&id), "N-6: {id:?}");
        }
        for (&id, actor) in &self.actors {
            match self.processes.get(&actor.creator) {
                Some(creator) => assert!(creator.actors.contains(&id), "N-6: {id}"),
                None => assert!(actor.detached, "N-6: {id}"),
            }
            match actor.stage {
                Stage::Waiting(shape, order) => {
                    assert_eq!(self.schedule.waiting_actors[&(shape, order)], id);
                    assert!(actor.allocation.is_none(), "N-1: {id}");
                    assert!(self.schedule.turns.contains(&Turn::Actors), "N-8: {id}");
                }
                Stage::Starting(worker) | Stage::Alive(worker) => {
                    let role = self.processes[&worker].role;
                    let asked = role == Role::Asked(id) && actor.stage == Stage::Starting(worker);
                    assert!(role == Role::Actor(id) || asked, "N-2: {id}");
                    assert!(actor.allocation.is_some(), "N-1: {id}");
                }
            }
            for watcher in &actor.watchers {
                assert!(self.processes[watcher].watching.contains(&id), "{id} is watched");
            }
        }
        let waiting = self.actors.values().filter(|a| matches!(a.stage, Stage::Waiting(..)));
        assert_eq!(waiting.count(), self.schedule.waiting_actors.len());
    }
}
