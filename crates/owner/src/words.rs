//! What failures of this process's tasks say to people: which task, which attempt, which actor.

use std::fmt::Write;
use std::sync::Arc;

use oxiray_ids::ActorId;
use oxiray_wire::control::why_unmade;
use oxiray_wire::frame::FailureCode;

use crate::actor::ActorEnd;
use crate::object::{Content, Failure};
use crate::owner::Owner;
use crate::task::TaskKey;

/// So many tasks are named of those that a failure ran through: a chain can be of any length, and
/// each of its failures says its own part of it.
const MOST_NAMED: usize = 16;
/// In place of the names that were left out.
const LEFT_OUT: &str = "...";
const NOT_RUN: &str = " was not run, because an argument could not be computed: ";

impl Failure {
    /// The tasks that it ran through without their being run, the outermost first, and its own words.
    /// Of an exception they are apart already: see [`Owner::handed_on`].
    pub fn path(&self) -> (Vec<&str>, &str) {
        if self.code == FailureCode::TaskError {
            return (Vec::new(), &self.message);
        }
        let mut parts: Vec<&str> = self.message.split(NOT_RUN).collect();
        let own = parts.pop().unwrap_or_default();
        (parts, own)
    }
}

impl Owner {
    /// The failure of a task whose argument failed.
    ///
    /// The words of a task's exception are the names of the tasks that it ran through, a line each,
    /// from its cause outwards; those of anything else are a sentence.
    pub(crate) fn handed_on(&self, key: TaskKey, failure: &Arc<Failure>) -> Content {
        let name = &*self.tasks[key.0 as usize].spec.name;
        let before = &*failure.message;
        let message = match failure.code {
            FailureCode::TaskError => further(before, name),
            _ if before.matches(NOT_RUN).count() >= MOST_NAMED => before.to_owned(),
            _ => format!("{name}{NOT_RUN}{before}"),
        };
        Content::Failed(Arc::new(failure.reworded(message)))
    }

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

    /// The failure of a call that an actor had when its process could not be reached for a while.
    pub(crate) fn unknown_fate(&self, key: TaskKey, actor: ActorId) -> Content {
        let name = &self.tasks[key.0 as usize].spec.name;
        let message = format!(
            "the connection with the actor {actor} broke while it had {name}. It may have run, and \
             the same process does not run it again; the actor can be called"
        );
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
            if let Some((code, reason)) = why_unmade(&end.creation_error) {
                return Content::failed(code, reason);
            }
            let data = end.creation_error.clone();
            let failure = Failure::new(FailureCode::ActorCreation, &*end.reason, data);
            return Content::Failed(Arc::new(failure));
        }
        if let Some(code) = end.failure {
            return about(code, end.reason.clone(), actor);
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

/// One name more on the way of an exception.
fn further(path: &str, name: &str) -> String {
    let name = name.replace('\n', " ");
    if path.is_empty() {
        return name;
    }
    if path.split('\n').count() < MOST_NAMED {
        return format!("{path}\n{name}");
    }
    let nearest: Vec<_> = path.split('\n').take(MOST_NAMED - 2).collect();
    format!("{}\n{LEFT_OUT}\n{name}", nearest.join("\n"))
}
