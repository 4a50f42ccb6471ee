//! Why tasks of this process are not done yet: facts, which who asks follows and puts into words.

use std::collections::BTreeMap;

use oxiray_ids::{ActorId, ObjectId, ProcessId, TaskId};

use crate::actor::Phase;
use crate::object::ObjectKey;
use crate::owner::Owner;
use crate::task::{Place, Target, TaskKey};

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It is about to go on.
    Nothing,
    /// For its end: it is the first of ours in this process.
    Running(ProcessId),
    /// For the one before it in this process.
    Turn(ProcessId),
    /// For an argument, which a task is to return.
    Argument {
        /// The argument.
        object: ObjectId,
        /// Whose it is, if it is not ours.
        owner: Option<ProcessId>,
    },
    /// For news of an argument whose node could not be reached.
    News,
    /// For another try: memory ran out where it was.
    Memory,
    /// For a worker of this shape.
    Worker(u32),
    /// For its actor, which is not there yet.
    Actor(ActorId),
    /// For its end or its turn at its actor, which is this process.
    AtActor(ActorId, ProcessId),
    /// For a place for the actor that it makes, or for the end of its constructor.
    Construction(ActorId),
}

/// Why one task is not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The task.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// What it waits for.
    pub wait: Wait,
}

/// Objects that are not there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Missing {
    /// How many.
    pub count: usize,
    /// The tasks of ours that make them, by name, and how many each, the first one first.
    pub makers: Vec<(String, usize)>,
    /// The first of them.
    pub first: Option<ObjectId>,
    /// What its task waits for, then what that is, to the last that this process knows of.
    pub chain: Vec<Reason>,
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

    /// Tasks that workers and actors have, and the first of each queue, at most `most`.
    pub fn under_way(&self, most: usize) -> Vec<TaskId> {
        let leased = self.leases.iter().flat_map(|(_, lease)| lease.in_flight.iter());
        let leased = leased.map(|flight| flight.task);
        let at_actors = self.actors.values().flat_map(|state| {
            state.at_actor.iter().chain(state.queue.front()).chain(state.constructing()).copied()
        });
        let ready = self.shapes.iter().filter_map(|shape| shape.ready.front().copied());
        let keys = leased.chain(at_actors).chain(ready).take(most);
        keys.map(|key| self.tasks[key.0 as usize].spec.id).collect()
    }

    /// Which of these objects are not there, and why the first is not.
    pub fn missing(&self, keys: &[ObjectKey]) -> Missing {
        let tasks: BTreeMap<TaskId, TaskKey> =
            self.tasks.iter().map(|(index, task)| (task.spec.id, TaskKey(index as u32))).collect();
        let mut missing = Missing::default();
        for key in keys.iter().filter(|key| self.content(**key).is_none()) {
            let object = self.objects[key.index()].id;
            missing.count += 1;
            missing.first.get_or_insert(object);
            let Some(maker) = tasks.get(&object.task()) else {
                continue;
            };
            let name = &self.tasks[maker.0 as usize].spec.name;
            match missing.makers.iter_mut().find(|(known, _)| **known == **name) {
                Some((_, count)) => *count += 1,
                None => missing.makers.push((name.to_string(), 1)),
            }
        }
        let mut next = missing.first.and_then(|object| tasks.get(&object.task()));
        while let Some(task) = next.filter(|_| missing.chain.len() < DEEPEST) {
            let reason = self.reason(*task);
            next = match reason.wait {
                Wait::Argument { object, .. } => tasks.get(&object.task()),
                _ => None,
            };
            missing.chain.push(reason);
        }
        missing
    }

    /// The id of an object.
    pub fn object_id(&self, key: ObjectKey) -> ObjectId {
        self.objects[key.index()].id
    }

    fn reason(&self, key: TaskKey) -> Reason {
        let spec = &self.tasks[key.0 as usize].spec;
        Reason { id: spec.id, name: spec.name.to_string(), wait: self.wait_of(key) }
    }

    fn wait_of(&self, key: TaskKey) -> Wait {
        let task = &self.tasks[key.0 as usize];
        match (task.place, &task.spec.target) {
            (Place::Waiting(_), _) => self.argument_missing(key),
            (Place::Aside(_), _) if task.memory_tries > 0 => Wait::Memory,
            (Place::Aside(_), _) => Wait::News,
            (Place::Ready, Target::Function { shape, .. }) => Wait::Worker(*shape),
            (Place::Leased(lease), _) => {
                let lease = &self.leases[lease];
                let first = lease.in_flight.front().is_some_and(|flight| flight.task == key);
                if first { Wait::Running(lease.peer) } else { Wait::Turn(lease.peer) }
            }
            (Place::Ready | Place::AtActor, Target::Method { actor, .. }) => {
                match self.actors.get(actor).map(|state| &state.phase) {
                    Some(Phase::Alive(process)) => Wait::AtActor(*actor, *process),
                    Some(Phase::Dead(_)) => Wait::Nothing,
                    Some(Phase::Pending) | None => Wait::Actor(*actor),
                }
            }
            (Place::Ready | Place::AtActor, Target::Constructor { actor, .. }) => {
                Wait::Construction(*actor)
            }
            (Place::AtActor, Target::Function { .. }) => Wait::Nothing,
        }
    }

    fn argument_missing(&self, key: TaskKey) -> Wait {
        let refs = &self.tasks[key.0 as usize].spec.refs;
        let missing = refs.iter().copied().find(|argument| self.content(*argument).is_none());
        missing.map_or(Wait::Nothing, |argument| {
            let object = &self.objects[argument.index()];
            Wait::Argument { object: object.id, owner: object.owner }
        })
    }
}
