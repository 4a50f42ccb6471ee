//! Why tasks of this process are not done yet, in words.

use oxiray_ids::{ProcessId, TaskId};

use crate::actor::Phase;
use crate::owner::Owner;
use crate::task::{Place, Target, TaskKey};

/// Why one task is not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The task.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// Reads on after "it": `runs`, `waits for …`.
    pub text: String,
    /// The words end with a wait for a worker of this shape: the node knows why.
    pub shape: Option<u32>,
    /// The words end with this process: who asks knows what people call it.
    pub process: Option<ProcessId>,
}

/// What the words of a reason end with, that others know more of.
#[derive(Clone, Copy)]
enum End {
    Nothing,
    Worker(u32),
    Process(ProcessId),
}

/// Causes of causes are followed this far.
const DEEPEST: usize = 8;

impl Owner {
    /// Of the tasks that `wanted` accepts by id and name, at most `most`: why they are
    /// not done.
    pub fn reasons(&self, most: usize, wanted: impl Fn(TaskId, &str) -> bool) -> Vec<Reason> {
        let known = self.tasks.iter().map(|(index, task)| (TaskKey(index as u32), &task.spec));
        let asked = known.filter(|(_, spec)| wanted(spec.id, &spec.name));
        asked.take(most).map(|(key, _)| self.reason(key)).collect()
    }

    fn reason(&self, key: TaskKey) -> Reason {
        let spec = &self.tasks[key.0 as usize].spec;
        let (text, end) = self.state(key, 0);
        let (shape, process) = match end {
            End::Nothing => (None, None),
            End::Worker(shape) => (Some(shape), None),
            End::Process(process) => (None, Some(process)),
        };
        Reason { id: spec.id, name: spec.name.to_string(), text, shape, process }
    }

    fn state(&self, key: TaskKey, depth: usize) -> (String, End) {
        let task = &self.tasks[key.0 as usize];
        match (task.place, &task.spec.target) {
            (Place::Waiting(_), _) => self.argument_missing(key, depth),
            (Place::Aside(_), _) => (
                "waits for news of an argument whose node could not be reached".into(),
                End::Nothing,
            ),
            (Place::Ready, Target::Function { shape, .. }) => {
                ("waits for a worker".into(), End::Worker(*shape))
            }
            (Place::Leased(lease), _) => {
                let lease = &self.leases[lease];
                let first = lease.in_flight.front().is_some_and(|flight| flight.task == key);
                let text = match first {
                    true => "runs in",
                    false => "is next, behind the task that runs in",
                };
                (text.into(), End::Process(lease.peer))
            }
            (Place::Ready, Target::Method { actor, .. }) => {
                let phase = self.actors.get(actor).map(|state| &state.phase);
                match phase {
                    Some(Phase::Alive(_)) => {
                        ("waits behind other calls of its actor".into(), End::Nothing)
                    }
                    Some(Phase::Dead(end)) => {
                        (format!("fails: its actor died: {}", end.reason), End::Nothing)
                    }
                    _ => (
                        format!("waits for its actor {actor}, which is not there yet"),
                        End::Nothing,
                    ),
                }
            }
            (Place::AtActor, Target::Method { actor, .. }) => (
                format!("is at its actor {actor}, and runs there or is among the next"),
                End::Nothing,
            ),
            (Place::Ready | Place::AtActor, _) => {
                ("is being started as an actor".into(), End::Nothing)
            }
        }
    }

    fn argument_missing(&self, key: TaskKey, depth: usize) -> (String, End) {
        let refs = &self.tasks[key.0 as usize].spec.refs;
        let missing = refs.iter().copied().find(|argument| self.content(*argument).is_none());
        let Some(argument) = missing else {
            return ("is about to be ready".into(), End::Nothing);
        };
        let object = &self.objects[argument.index()];
        let wait = format!("waits for its argument {}", object.id);
        if let Some(owner) = object.owner {
            let text = format!("{wait}, which is not there yet and belongs to");
            return (text, End::Process(owner));
        }
        match self.maker(argument).filter(|_| depth < DEEPEST) {
            Some(maker) => {
                let (cause, end) = self.state(maker, depth + 1);
                let name = &self.tasks[maker.0 as usize].spec.name;
                (format!("{wait}, to be returned by {name}, which {cause}"), end)
            }
            None => (format!("{wait}, which is not made yet"), End::Nothing),
        }
    }
}
