//! What threads of this process sleep for, kept for who asks why nothing goes on.

use oxiray_owner::ObjectKey;
use oxiray_wire::control::Awaited;
use slab::Slab;

use crate::runtime::State;

/// So many objects are named of one thread.
const MOST_OBJECTS: usize = 20;

/// Threads that have slept for a while, and for what.
#[derive(Default)]
pub(crate) struct Awaits(Slab<Await>);

struct Await {
    keys: Vec<ObjectKey>,
    any: bool,
}

impl State {
    /// A thread sleeps until all, or any, of these are there: a name for [`Self::end_await`].
    pub fn begin_await(&mut self, keys: &[ObjectKey], any: bool) -> usize {
        self.awaits.0.insert(Await { keys: keys.to_vec(), any })
    }

    /// It sleeps no more.
    pub fn end_await(&mut self, name: usize) {
        self.awaits.0.try_remove(name);
    }

    /// What all of them wait for.
    pub(crate) fn awaited(&self) -> Vec<Awaited> {
        let awaited = |one: &Await| {
            // Each is held by the thread that sleeps, so that its key is its own.
            let missing = one.keys.iter().filter(|key| self.owner.content(**key).is_none());
            let objects = missing.map(|key| self.owner.object_id(*key).0.to_vec());
            Awaited { objects: objects.take(MOST_OBJECTS).collect(), any: one.any }
        };
        self.awaits.0.iter().map(|(_, one)| awaited(one)).collect()
    }
}
