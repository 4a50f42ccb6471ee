//! Values that could not be read where they are said to be, and the tasks that take them.
//!
//! A worker may hear before us that a node has left, and then cannot read an argument that was
//! there. Its task has not begun, and to send it again at once would lead to the same. So it is put
//! aside: until we hear of the node, which is soon if it has left; or for a moment, if only the way
//! between the two is broken, or if the argument belongs to somebody who has yet to hear.

use std::collections::BTreeSet;

use crate::object::{Content, ObjectKey};
use crate::owner::{Outbox, Owner};
use crate::task::{Place, Target, TaskKey};

/// A task is put aside for so long.
const MOMENT_NS: u64 = 100_000_000;

/// So often; after that it counts as a task that raised.
const MOST_TIMES: u16 = 100;

impl Owner {
    /// A task could not read an argument, and leaves its place; whether that is free of charge.
    pub(crate) fn set_aside(&mut self, key: TaskKey, place: Place, out: &mut impl Outbox) -> bool {
        let task = &mut self.tasks[key.0 as usize];
        let target = task.spec.target.clone();
        if task.unread == MOST_TIMES || matches!(target, Target::Constructor { .. }) {
            return false;
        }
        task.unread += 1;
        self.leave_place(key, place, None);
        if let Target::Method { actor, .. } = target {
            self.put_back_call(key, actor);
        }
        if self.await_arguments(key, out) {
            // As far as we know everything is there.
            self.tasks[key.0 as usize].place = Place::Aside(self.now + MOMENT_NS);
            self.aside.push(key);
            self.alarm = true;
        }
        self.next_attempt(key, out);
        match (place, target) {
            (Place::Leased(lease), _) => self.dispatch_to(lease, out),
            (_, Target::Method { actor, .. }) => self.push_calls(actor, out),
            _ => {}
        }
        true
    }

    /// Whether [`Self::on_tick`] is to be called sooner than it said last, asked once.
    pub fn take_alarm(&mut self) -> bool {
        std::mem::take(&mut self.alarm)
    }

    /// The time of some may be over. Says when to look again, if at all.
    pub(crate) fn end_waits_aside(&mut self, out: &mut impl Outbox) -> Option<u64> {
        let until = |owner: &Self, key: &TaskKey| match owner.tasks[key.0 as usize].place {
            Place::Aside(until) => until,
            _ => 0,
        };
        let aside = std::mem::take(&mut self.aside);
        let (due, rest): (Vec<_>, Vec<_>) =
            aside.into_iter().partition(|key| until(self, key) <= self.now);
        self.aside = rest;
        due.into_iter().for_each(|key| self.bring_back(key, out));
        self.aside.iter().map(|key| until(self, key)).min()
    }

    /// A node is lost: what could not be read may have been there.
    pub(crate) fn end_all_waits_aside(&mut self, out: &mut impl Outbox) {
        for key in std::mem::take(&mut self.aside) {
            self.bring_back(key, out);
        }
    }

    fn bring_back(&mut self, key: TaskKey, out: &mut impl Outbox) {
        let arguments = self.tasks[key.0 as usize].spec.refs.clone();
        self.doubt(&arguments, out);
        if !self.await_arguments(key, out) {
            return;
        }
        match self.tasks[key.0 as usize].spec.target {
            Target::Function { shape, .. } => self.enqueue(key, shape, out),
            Target::Method { actor, .. } => self.push_calls(actor, out),
            Target::Constructor { .. } => {}
        }
    }

    /// A value could not be read because its node is gone, of which we may not have
    /// heard; whether that is all we know of it.
    pub fn is_still_at(&self, key: ObjectKey, node: u32) -> bool {
        matches!(self.content(key), Some(Content::Stored { origin, .. }) if origin.node == node)
    }

    /// If somebody else owns such a value, that one is asked again where it is.
    pub fn ask_again(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        self.doubt(&[key], out);
    }

    /// Forgets where values are that belong to others: they may know better by now.
    fn doubt(&mut self, keys: &[ObjectKey], out: &mut impl Outbox) {
        let here = self.process.node();
        let mut doubted: BTreeSet<ObjectKey> = BTreeSet::new();
        for argument in keys {
            let object = &mut self.objects[argument.index()];
            let is_elsewhere = matches!(object.content, Some(Content::Stored { origin, .. }) if origin.node != here);
            if is_elsewhere && object.owner.is_some_and(|owner| !self.dead.contains(&owner)) {
                object.content = None;
                object.wanted = false;
                doubted.insert(*argument);
            }
        }
        self.wait_again(&doubted);
        doubted.into_iter().for_each(|key| self.want(key, out));
    }
}
