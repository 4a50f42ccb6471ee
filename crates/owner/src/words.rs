//! What failures of this process's tasks say to people: which task, which attempt, which actor.

use std::fmt::Write;
use std::sync::Arc;

use oxiray_ids::ActorId;
use oxiray_wire::frame::FailureCode;

use crate::actor::ActorEnd;
use crate::object::{Content, Failure};
use crate::owner::Owner;
use crate::task::TaskKey;

impl Owner {
    /// The failure of a task that was running in a worker whose end `death` tells.
    pub(crate) fn crashed(&self, key: TaskKey, death: &Content) -> Content {
        let Content::Failed(death) = death else {
            return death.clone();
        };
        let spec = &self.tasks[key.0 as usize].spec;
        let attempt = u32::from(spec.attempt) + 1;
        let attempts = match u32::try_from(spec.retries) {
            Ok(left) => format!("attempt {attempt} of {}", attempt + left),
            Err(_) => format!("attempt {attempt}"),
        };
        let message = format!("{} was lost in {attempts}: {}", spec.name, death.message);
        Content::failed(death.code, message)
    }

    /// The failure of a call of an actor whose process died and which begins again.
    pub(crate) fn interrupted(&self, key: TaskKey, actor: ActorId, reason: &str) -> Content {
        let name = &self.tasks[key.0 as usize].spec.name;
        let message =
            format!("the actor {actor} is being started again, and {name} was lost: {reason}");
        about(FailureCode::ActorUnavailable, message, actor)
    }

    /// The failure of a call of an actor that is dead. `had_it`: the actor had been given it.
    pub(crate) fn died(
        &self,
        key: TaskKey,
        actor: ActorId,
        end: &ActorEnd,
        had_it: bool,
    ) -> Content {
        if !end.creation_error.is_empty() {
            let data = end.creation_error.clone();
            let failure = Failure::new(FailureCode::ActorCreation, &*end.reason, data);
            return Content::Failed(Arc::new(failure));
        }
        let name = &self.tasks[key.0 as usize].spec.name;
        let class = if end.class_name.is_empty() { "of unknown class" } else { &end.class_name };
        let mut message = format!("The actor {class} ({actor}) ");
        let _ = match (had_it, &end.during) {
            (true, Some(first)) if **first == **name => write!(message, "died during {name}"),
            (true, Some(first)) => write!(message, "died before {name}, during or after {first}"),
            (true, None) => write!(message, "died before it had finished {name}"),
            (false, Some(first)) => {
                write!(message, "died during {first}, and {name} was not begun")
            }
            (false, None) => write!(message, "is dead, and {name} was not begun"),
        };
        let _ = write!(message, ": {}", end.reason);
        about(FailureCode::ActorDied, message, actor)
    }
}

/// A failure with the id that it is about.
fn about(code: FailureCode, message: String, actor: ActorId) -> Content {
    Content::Failed(Arc::new(Failure::new(code, message, actor.0.to_vec())))
}
