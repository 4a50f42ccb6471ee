//! Making objects again that were lost with their node.
//!
//! What a task returned to the store of another node can be lost with that node. So
//! its owner keeps how it was made, and its arguments, for as long as the object
//! lives, if the task may be run again. (What is in the store of our own node is
//! lost only when we are.)
//!
//! - **L-1** How an object was made is kept while one of its task's returns needs it,
//!   and not longer.
//! - **L-2** When a node is gone, every object that was there has another way to its
//!   value, or a failure.

use std::collections::BTreeSet;

use oxiray_ids::{ObjectId, TaskId};
use oxiray_wire::frame::FailureCode;
use smallvec::SmallVec;

use crate::object::{Content, Object, ObjectKey};
use crate::owner::{Outbox, Owner};
use crate::task::{Place, Target, TaskKey, TaskSpec};

/// How objects were made.
pub(crate) struct Lineage {
    pub(crate) spec: TaskSpec,
    /// Places of its returns; one that is gone may be another's now.
    returns: SmallVec<[ObjectKey; 1]>,
    /// Returns that need it.
    needed: u32,
}

impl Owner {
    /// A task has ended: keeps how its returns were made, if they may need it; gives
    /// the task back if not.
    pub(crate) fn keep_lineage(
        &mut self,
        spec: TaskSpec,
        returns: &[ObjectKey],
    ) -> Option<TaskSpec> {
        let may_run_again = matches!(spec.target, Target::Function { .. }) && spec.retries != 0;
        let mut needed = 0;
        for (&key, index) in returns.iter().zip(1..) {
            if may_run_again && self.is_elsewhere(key, spec.id.object(index)) {
                self.objects[key.index()].rare().has_lineage = true;
                needed += 1;
            }
        }
        if needed == 0 {
            return Some(spec);
        }
        let returns = SmallVec::from_slice(returns);
        self.lineage.insert(spec.id, Lineage { spec, returns, needed });
        None
    }

    fn is_elsewhere(&self, key: ObjectKey, id: ObjectId) -> bool {
        let object = self.objects.get(key.index()).filter(|object| object.id == id);
        let here = self.process.node();
        object.is_some_and(|object| {
            matches!(object.content, Some(Content::Stored { origin, .. }) if origin.node != here)
        })
    }

    /// An object is gone; what nothing needs any more to make it again (L-1).
    pub(crate) fn release_lineage(&mut self, id: ObjectId) -> Option<TaskSpec> {
        let task = id.task();
        let lineage = self.lineage.get_mut(&task)?;
        lineage.needed -= 1;
        if lineage.needed > 0 {
            return None;
        }
        self.lineage.remove(&task).map(|lineage| lineage.spec)
    }

    /// A node is gone, and every object in its store (L-2). The ends of its processes were told
    /// before: what they had answered has been read.
    pub fn on_node_lost(&mut self, node: u32, reason: &str, out: &mut impl Outbox) {
        let text = format!("the node where it was has left the cluster: {reason}");
        let lost = Content::failed(FailureCode::ObjectLost, text);
        let was_there = |object: &Object| matches!(object.content, Some(Content::Stored { origin, .. }) if origin.node == node);
        let keys: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|(_, object)| was_there(object))
            .map(|(index, _)| ObjectKey(index as u32))
            .collect();
        let mut again: BTreeSet<TaskId> = BTreeSet::new();
        let mut pending: BTreeSet<ObjectKey> = BTreeSet::new();
        for key in keys {
            let object = &mut self.objects[key.index()];
            let has_lineage =
                object.rare.as_mut().is_some_and(|rare| std::mem::take(&mut rare.has_lineage));
            let owner_lives = object.owner.is_some_and(|owner| !self.dead.contains(&owner));
            if has_lineage || owner_lives {
                object.content = None;
                object.wanted = false;
                pending.insert(key);
            } else {
                object.content = Some(lost.clone());
                self.failures += 1;
            }
            if has_lineage {
                again.insert(object.id.task());
            }
        }
        self.wait_again(&pending, out);
        self.end_all_waits_aside(out);
        for task in again {
            self.make_again(task, out);
        }
        for key in pending {
            if self.objects.get(key.index()).is_some_and(|object| object.owner.is_some()) {
                // Its owner makes it again, or says that it cannot.
                let inner = self.objects[key.index()].rare.as_mut();
                let inner = inner.map(|rare| std::mem::take(&mut rare.contained));
                self.want(key, out);
                for inner in inner.unwrap_or_default() {
                    self.drop_ref(inner, out);
                }
            }
        }
    }

    /// Tasks that are not under way and take one of these wait for it.
    pub(crate) fn wait_again(&mut self, pending: &BTreeSet<ObjectKey>, out: &mut impl Outbox) {
        if pending.is_empty() {
            return;
        }
        let mut missing: Vec<(TaskKey, ObjectKey)> = Vec::new();
        for (index, task) in &self.tasks {
            // Who has it finds out, and it goes back: see `await_arguments`.
            let here = matches!(task.place, Place::Waiting(_) | Place::Ready);
            let lost = task.spec.refs.iter().filter(|key| here && pending.contains(*key));
            missing.extend(lost.map(|argument| (TaskKey(index as u32), *argument)));
        }
        for (key, argument) in missing {
            self.wait_for(key, argument, out);
        }
        let Self { shapes, tasks, .. } = self;
        for shape in shapes {
            shape.ready.retain(|key| tasks[key.0 as usize].place == Place::Ready);
        }
    }

    /// Submits a task again whose returns were lost.
    fn make_again(&mut self, id: TaskId, out: &mut impl Outbox) {
        let Some(Lineage { mut spec, returns, .. }) = self.lineage.remove(&id) else {
            return;
        };
        spec.retries -= i32::from(spec.retries > 0);
        let returns: SmallVec<[ObjectKey; 1]> = returns
            .into_iter()
            .zip(1..)
            .map(|(key, index)| {
                let id = spec.id.object(index);
                match self.objects.get_mut(key.index()).filter(|object| object.id == id) {
                    Some(object) => {
                        object.refs += 1;
                        object.rare().has_lineage = false;
                        key
                    }
                    // Nobody holds it: what it will be is freed at once.
                    None => self.insert(Object::new(id, None)),
                }
            })
            .collect();
        let Target::Function { shape, .. } = spec.target else {
            unreachable!("only functions are made again")
        };
        let key = self.insert_task(spec, returns);
        let is_ready = self.await_arguments(key, out);
        self.next_attempt(key, out);
        if is_ready {
            self.enqueue(key, shape, out);
        }
    }
}
