//! What happens to tasks on their way, told for the record.

use oxiray_ids::{ProcessId, TaskId};
use oxiray_wire::frame::{Answer, Body, FailureCode, Outcome};

use crate::actor::ActorEnd;
use crate::cancel::cancelled;
use crate::object::Content;
use crate::owner::{Outbox, Owner};
use crate::task::{Place, Target, TaskKey};

/// What happened to a task. That it was pushed is said by the push itself, and how it ran by its
/// worker; where that may be lost, by [`Owner::note_answer`] as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// The arguments that it waited for are there; or it came back from a worker that had not
    /// begun it.
    Ready,
    /// It is to be tried again; the attempt that is named is the new one.
    Retried {
        /// Not all its arguments are there.
        waits: bool,
    },
    /// An actor was made in this process.
    Answered(ProcessId),
    /// This attempt came to nothing.
    Failed {
        /// What kind of failure.
        code: FailureCode,
        /// In words.
        message: &'a str,
    },
}

/// An attempt of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The task.
    pub task: TaskId,
    /// How often it was tried before.
    pub number: u16,
}

impl Owner {
    pub(crate) fn note(&self, key: TaskKey, change: Change<'_>, out: &mut impl Outbox) {
        let spec = &self.tasks[key.0 as usize].spec;
        if spec.recorded {
            out.task_changed(Attempt { task: spec.id, number: spec.attempt }, change);
        }
    }

    pub(crate) fn note_failed(&self, key: TaskKey, failure: &Content, out: &mut impl Outbox) {
        if let Content::Failed(failure) = failure {
            let message = match failure.code {
                FailureCode::TaskError => {
                    "an argument could not be computed: the task that was to return it failed"
                }
                _ => &failure.message,
            };
            self.note(key, Change::Failed { code: failure.code, message }, out);
        }
    }

    /// What a worker recorded goes with its node. Of a task that was sent there and of which its
    /// owner says nothing more, it is taken that it returned; so the owner says when it raised,
    /// and of constructors, which are not sent, where they returned.
    pub(crate) fn note_answer(
        &self,
        key: TaskKey,
        peer: ProcessId,
        answer: &Answer<'_>,
        out: &mut impl Outbox,
    ) {
        let spec = &self.tasks[key.0 as usize].spec;
        let constructs = matches!(spec.target, Target::Constructor { .. });
        match answer.outcome {
            Outcome::Done if constructs => self.note(key, Change::Answered(peer), out),
            Outcome::Done => {}
            // A worker that had not begun it recorded nothing.
            Outcome::Cancelled => self.note_failed(key, &cancelled(spec.id, &spec.name), out),
            _ if peer.node() == self.process.node() => {}
            _ => {
                let mut bodies = answer.values.iter().map(|value| &value.body);
                let failure = bodies.find_map(|body| match body {
                    Body::Failed { code, message, .. } => Some((*code, *message)),
                    _ => None,
                });
                let (code, message) = failure.unwrap_or((FailureCode::TaskError, ""));
                self.note(key, Change::Failed { code, message }, out);
            }
        }
    }

    pub(crate) fn note_ended(&self, key: TaskKey, end: &ActorEnd, out: &mut impl Outbox) {
        let code = FailureCode::ActorDied;
        self.note(key, Change::Failed { code, message: &end.reason }, out);
    }

    /// What follows is another attempt.
    pub(crate) fn next_attempt(&mut self, key: TaskKey, out: &mut impl Outbox) {
        let task = &mut self.tasks[key.0 as usize];
        task.spec.attempt = task.spec.attempt.saturating_add(1);
        let waits = matches!(task.place, Place::Waiting(_));
        self.note(key, Change::Retried { waits }, out);
    }
}
