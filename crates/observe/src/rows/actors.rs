//! Actors.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::ActorInfo;
use oxiray_wire::control::ActorPhase;
use serde_json::{Value, json};

use super::{Nodes, amounts, hex, optional_text};

pub(crate) fn row(actor: &ActorInfo, nodes: &Nodes, detail: bool) -> Value {
    let state = match actor.phase() {
        ActorPhase::Pending if actor.expected => "DEPENDENCIES_UNREADY",
        ActorPhase::Pending => "PENDING_CREATION",
        ActorPhase::Alive => "ALIVE",
        ActorPhase::Restarting => "RESTARTING",
        ActorPhase::Dead => "DEAD",
    };
    let dead = actor.phase() == ActorPhase::Dead;
    // Its name alone says nothing: names are apart in each namespace.
    let named = !actor.name.is_empty();
    let runs = actor.process != 0;
    // When the node leaves, the actor is on none any more; where its process was is known.
    let process = ProcessId(actor.process);
    let mut row = json!({
        "actor_id": hex(&actor.actor),
        "class_name": actor.class_name,
        "state": state,
        "job_id": ActorId::from_slice(&actor.actor).map(|id| id.job().to_string()),
        "name": optional_text(&actor.name),
        "node_id": if runs { nodes.id(process.node()) } else { Value::Null },
        "pid": if actor.pid == 0 { Value::Null } else { actor.pid.into() },
        "ray_namespace": if named { actor.namespace.as_str().into() } else { Value::Null },
        "is_detached": actor.detached,
        "num_restarts": actor.restarts,
        "required_resources": amounts(&actor.resources),
        "death_cause": if dead { optional_text(&actor.reason) } else { Value::Null },
        "worker_id": if runs { nodes.worker_id(process) } else { Value::Null },
    });
    if detail {
        row["why"] = if dead { Value::Null } else { optional_text(&actor.reason) };
    }
    row
}
