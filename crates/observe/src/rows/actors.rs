//! Actors.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::ActorInfo;
use oxiray_wire::control::ActorPhase;

use super::{Nodes, amounts, hex, if_said};
use crate::row::{Amounts, row, words};

words! {
    /// Where an actor is in its life.
    ActorState {
        /// Its constructor waits for arguments.
        DependenciesUnready = "DEPENDENCIES_UNREADY",
        /// It waits for a node, or its constructor runs.
        Pending = "PENDING_CREATION",
        /// It takes calls.
        Alive = "ALIVE",
        /// Its process died, and it is started again.
        Restarting = "RESTARTING",
        /// For good.
        Dead = "DEAD",
    }
}

row! {
    /// An actor, alive or dead.
    ActorRow of actor: &ActorInfo, nodes: &Nodes;
    /// The actor.
    actor_id: String [Id, Searched, Table] = hex(&actor.actor);
    /// Its class.
    class_name: String [Searched, Table] = actor.class_name.clone();
    /// Where it is in its life.
    state: ActorState [Table, State] = state(actor);
    /// The program that made it.
    job_id: Option<String> = ActorId::from_slice(&actor.actor).map(|id| id.job().to_string());
    /// Its name, if it was given one.
    name: Option<String> [Searched, Table] = if_said(&actor.name);
    /// Its node. When that leaves the actor is on none any more; where its process was is known.
    node_id: Option<String> [Table] = process(actor).and_then(|process| nodes.id(process.node()));
    /// Its process.
    pid: Option<u32> [Table] = Some(actor.pid).filter(|pid| *pid != 0);
    /// In which its name is: names are apart in each.
    ray_namespace: Option<String> =
        Some(actor.namespace.clone()).filter(|_| !actor.name.is_empty());
    /// It lives until it is killed.
    is_detached: bool = actor.detached;
    /// How often it was started again.
    num_restarts: u64 = actor.restarts;
    /// What it holds while it lives.
    required_resources: Amounts = amounts(&actor.resources);
    /// Why it died.
    death_cause: Option<String> [Table] = if_said(&actor.reason).filter(|_| is_dead(actor));
    /// The worker that it is in.
    worker_id: Option<String> = process(actor).and_then(|process| nodes.worker_id(process));
}

row! {
    /// What else is known of an actor.
    ActorDetail of actor: &ActorInfo;
    /// Why it is not alive yet.
    why: Option<String> = if_said(&actor.reason).filter(|_| !is_dead(actor));
}

fn state(actor: &ActorInfo) -> ActorState {
    match actor.phase() {
        ActorPhase::Pending if actor.expected => ActorState::DependenciesUnready,
        ActorPhase::Pending => ActorState::Pending,
        ActorPhase::Alive => ActorState::Alive,
        ActorPhase::Restarting => ActorState::Restarting,
        ActorPhase::Dead => ActorState::Dead,
    }
}

fn is_dead(actor: &ActorInfo) -> bool {
    actor.phase() == ActorPhase::Dead
}

fn process(actor: &ActorInfo) -> Option<ProcessId> {
    Some(ProcessId(actor.process)).filter(|process| process.0 != 0)
}
