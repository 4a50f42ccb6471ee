//! Tasks that are not wanted any more.
//!
//! One that has not begun ends here and now. Of one that a worker has, that worker is told, and
//! answers as ever: that it was cancelled, or what became of it if it had ended by then. Either way
//! its returns get a content (O-1), and it is not tried again (O-8).

use std::sync::Arc;

use oxiray_ids::{ObjectId, TaskId};
use oxiray_wire::frame::{Cancelling, FailureCode, Frame};

use crate::object::{Content, Failure, ObjectKey};
use crate::owner::{Outbox, Owner};
use crate::task::{Place, Target, TaskKey};

/// What others get of a task that was cancelled.
pub fn cancelled(task: TaskId, name: &str) -> Content {
    let message = match name {
        "" => format!("Task {task} was cancelled"),
        name => format!("Task {name} ({task}) was cancelled"),
    };
    Content::Failed(Arc::new(Failure::new(FailureCode::Cancelled, message, task.0.to_vec())))
}

impl Owner {
    /// The task that is to return this object, if it is one of ours and has not ended.
    pub(crate) fn maker(&self, object: ObjectKey) -> Option<TaskKey> {
        let object = &self.objects[object.index()];
        let key = object.maker?;
        // The key of a task that ended may be another's by now.
        let task = self.tasks.get(key.0 as usize)?;
        (task.spec.id == object.id.task()).then_some(key)
    }

    /// The task that is to return this object is not wanted any more. What has ended is left alone.
    pub fn cancel(&mut self, object: ObjectKey, how: Cancelling, out: &mut impl Outbox) {
        let (id, owner) = (self.objects[object.index()].id, self.objects[object.index()].owner);
        match owner {
            Some(owner) if !self.dead.contains(&owner) => {
                out.send(owner, &Frame::CancelObject(id, how));
            }
            Some(_) => {}
            None => {
                if let Some(key) = self.maker(object) {
                    self.cancel_task(key, how, out);
                }
            }
        }
    }

    /// Somebody who looks says so of a task, if it is one of ours and has not ended.
    pub fn cancel_by_id(&mut self, id: TaskId, how: Cancelling, out: &mut impl Outbox) {
        let key = self.tasks.iter().find(|(_, task)| task.spec.id == id).map(|(key, _)| key);
        if let Some(key) = key {
            let force = how.force && id.actor().is_home();
            self.cancel_task(TaskKey(key as u32), Cancelling { force, ..how }, out);
        }
    }

    /// A borrower says so.
    pub fn on_cancel(&mut self, id: ObjectId, how: Cancelling, out: &mut impl Outbox) {
        if let Some(object) = self.by_id.get(&id).copied() {
            self.cancel(object, how, out);
        }
    }

    /// A task that runs here was cancelled: so is what it submitted and what has not ended.
    pub fn cancel_children(&mut self, parent: TaskId, how: Cancelling, out: &mut impl Outbox) {
        let of_parent = self.tasks.iter().filter(|(_, task)| task.spec.parent == parent);
        let children: Vec<(u32, TaskId)> =
            of_parent.map(|(index, task)| (index as u32, task.spec.id)).collect();
        for (index, id) in children {
            // The end of one may be that of others.
            let is_there = self.tasks.get(index as usize).is_some_and(|task| task.spec.id == id);
            // Actors' processes are not ended by it.
            let calls_actor = !id.actor().is_home();
            if is_there {
                let force = how.force && !calls_actor;
                self.cancel_task(TaskKey(index), Cancelling { force, ..how }, out);
            }
        }
    }

    fn cancel_task(&mut self, key: TaskKey, how: Cancelling, out: &mut impl Outbox) {
        let task = &mut self.tasks[key.0 as usize];
        // An actor that is being made is ended by `kill`.
        if matches!(task.spec.target, Target::Constructor { .. }) {
            return;
        }
        task.cancelled = true;
        let token = u64::from(task.attempt) << 32 | u64::from(key.0);
        let target = task.spec.target.clone();
        match task.place {
            Place::Waiting(_) | Place::Ready | Place::Aside(_) => self.end_cancelled(key, out),
            place @ Place::Leased(lease) => {
                let peer = self.leases[lease].peer;
                let flights = &self.leases[lease].in_flight;
                let number = flights.iter().find(|flight| flight.task == key).map(|f| f.number);
                if number.is_some_and(|number| out.take_back(peer, number)) {
                    self.leave_place(key, place, None);
                    self.end_cancelled(key, out);
                    self.dispatch_to(lease, out);
                } else {
                    out.send(peer, &Frame::Cancel(token, how));
                }
            }
            Place::AtActor => {
                if let Target::Method { actor, .. } = target
                    && let Ok(Some(peer)) = self.actor_peer(actor)
                {
                    out.send(peer, &Frame::Cancel(token, how));
                }
            }
        }
    }

    /// Ends a cancelled task that no worker has.
    pub(crate) fn end_cancelled(&mut self, key: TaskKey, out: &mut impl Outbox) {
        let task = &self.tasks[key.0 as usize];
        let failure = cancelled(task.spec.id, &task.spec.name);
        let target = task.spec.target.clone();
        match task.place {
            Place::Waiting(_) => {
                for argument in task.spec.refs.clone() {
                    self.objects[argument.index()].dependents.retain(|other| *other != key);
                }
            }
            Place::Aside(_) => self.aside.retain(|other| *other != key),
            Place::Ready | Place::Leased(_) | Place::AtActor => {}
        }
        match target {
            Target::Function { shape, .. } => {
                self.shapes[shape as usize].ready.retain(|other| *other != key);
                self.fail(key, failure, out);
                self.dispatch(shape, out);
            }
            Target::Method { actor, .. } => {
                if let Some(state) = self.actors.get_mut(&actor) {
                    state.queue.retain(|other| *other != key);
                }
                self.fail(key, failure, out);
                self.push_calls(actor, out);
            }
            Target::Constructor { .. } => {}
        }
    }
}
