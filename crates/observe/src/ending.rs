//! What may be asked for by who looks: that a task is cancelled, or an actor ended.

use oxiray_ids::{ActorId, TaskId};
use oxiray_wire::control::{Actor, ActorPhase, Query as Asked, Topic, from_node::Body, to_node};

use crate::error::Result;
use crate::session::{Session, topic};

impl Session {
    /// Asks the owner of a task to cancel it, and what it has submitted; `force` ends the process
    /// that runs it. Whether it had not ended by then; none: that is no task's id.
    pub fn cancel(&mut self, id: &str, force: bool) -> Result<Option<bool>> {
        let Some(task) = TaskId::from_hex(id) else { return Ok(None) };
        let nodes: Vec<u32> = self.members()?.alive().map(|node| node.number).collect();
        let question = Asked { about: task.to_string(), force, ..topic(Topic::Cancel) };
        let (mut found, mut missing) = (false, Vec::new());
        self.ask_nodes(&nodes, &question, &mut missing, |_, body| match body {
            Body::TaskReport(report) => {
                found |= report.tasks.iter().any(|reason| reason.id == task.0);
                report.process == 0
            }
            _ => false,
        })?;
        self.missing = missing;
        Ok(Some(found))
    }

    /// Ends an actor at once and for good. Whether it had not ended by then; none: there is none.
    pub fn kill(&mut self, id: &str) -> Result<Option<bool>> {
        let Some(actor) = ActorId::from_hex(id) else { return Ok(None) };
        let actors = self.actors()?;
        let Some(info) = actors.iter().find(|info| info.actor == actor.0) else {
            return Ok(None);
        };
        if info.phase() == ActorPhase::Dead {
            return Ok(Some(false));
        }
        let named = Actor { actor: actor.0.to_vec(), no_restart: true, ..Actor::default() };
        self.observer.tell(to_node::Body::KillActor(named))?;
        Ok(Some(true))
    }
}
