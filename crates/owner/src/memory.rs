//! Tasks whose worker was ended because memory ran out.
//!
//! They are tried again by a count of their own, whatever is left of `max_retries`, and after a
//! pause that doubles: memory that was short a moment ago is short still. A task that may not be
//! tried again at all (`max_retries=0`) is not. Nor is one that took more than it had asked for,
//! which it would take again; and one that fell while nothing else of its owner ran there is tried
//! [`LONE_TRIES`] times more at most: nothing is left to make room for it.

use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::FailureCode;

use crate::object::Content;
use crate::owner::{Outbox, Owner};
use crate::task::{Place, TaskKey};

/// See the module documentation.
const LONE_TRIES: u16 = 2;
/// The pause doubles up to this.
const LONGEST_PAUSE_NS: u64 = 60_000_000_000;

/// How tasks are tried again that fell for want of memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRetries {
    /// How often; `None`: for as long as others of the same owner run beside them.
    pub most: Option<u64>,
    /// The first pause, in nanoseconds; it doubles each time.
    pub first_pause_ns: u64,
}

impl Default for MemoryRetries {
    fn default() -> Self {
        Self { most: None, first_pause_ns: 1_000_000_000 }
    }
}

impl Owner {
    /// How tasks are tried again that fall for want of memory, from now on.
    pub fn set_memory_retries(&mut self, retries: MemoryRetries) {
        self.memory_retries = retries;
    }

    /// The failure of tasks whose worker died.
    pub(crate) fn crash(memory: MemoryEnd, message: &str) -> Content {
        let code = match memory {
            MemoryEnd::Not => FailureCode::WorkerCrashed,
            _ => FailureCode::OutOfMemory,
        };
        Content::failed(code, message)
    }

    /// A task fell for want of memory: whether it waits for a while and is tried again. It has
    /// left its place.
    pub(crate) fn waits_for_memory(
        &mut self,
        key: TaskKey,
        end: MemoryEnd,
        failure: &Content,
        out: &mut impl Outbox,
    ) -> bool {
        let MemoryRetries { most, first_pause_ns } = self.memory_retries;
        let task = &mut self.tasks[key.0 as usize];
        let tried = task.memory_tries;
        let goes_again = match end {
            MemoryEnd::Not | MemoryEnd::OverLimit => false,
            MemoryEnd::Shared => true,
            MemoryEnd::Alone => tried < LONE_TRIES,
        };
        let is_allowed = task.spec.retries != 0 && most.is_none_or(|most| u64::from(tried) < most);
        if !goes_again || !is_allowed {
            return false;
        }
        task.memory_tries = tried.saturating_add(1);
        let pause = first_pause_ns.saturating_mul(1 << tried.min(16)).min(LONGEST_PAUSE_NS);
        task.place = Place::Aside(self.now + pause);
        self.aside.push(key);
        self.alarm = true;
        self.note_failed(key, failure, out);
        self.next_attempt(key, out);
        true
    }
}
