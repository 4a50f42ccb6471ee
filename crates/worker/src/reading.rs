//! An event loop that reads frames for itself.
//!
//! A loop sleeps on descriptors, and so somebody else has to read for it: one more thread to be woken
//! on the way of each call. But most loops of actors have nothing to sleep on but what is the engine's
//! own. Such a loop sleeps on the bell like any thread that waits, and reads what has come. Once there
//! is a descriptor of the user's, the loop ceases to read, and is rung for as others are.
//!
//! - **R-1** While a loop reads, what is there for it is seen before it sleeps, or ends its sleep.
//! - **R-2** A loop that ceases to read hears by descriptor of what it has not seen.

use std::sync::Arc;

use oxiray_sys::clock::monotonic_ns;

use crate::executor::Runner;
use crate::lend::without_lending;
use crate::runtime::{Runtime, State, Waited};

/// Whether the loop of the first lane reads for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// The pump does.
    No,
    /// It will before it sleeps.
    Awake,
    /// On the bell.
    Asleep,
}

/// What is there for a loop.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Found {
    /// It is to take its turn: calls to begin, and the like.
    pub turn: bool,
    /// Values that it awaits.
    pub values: bool,
    /// Another thread called it.
    pub called: bool,
    /// The session is over: there is nothing to sleep for on the bell.
    pub over: bool,
}

impl Found {
    fn is_anything(self) -> bool {
        self != Self::default()
    }
}

impl State {
    /// What is there for the loop of the first lane.
    fn find_for_loop(&mut self) -> Found {
        self.executor.call_loops();
        Found {
            turn: self.executor.lanes[0].rung_since().is_some(),
            values: self
                .ports
                .iter()
                .any(|(_, port)| port.is_readers && port.doorbell.rung_since().is_some()),
            called: std::mem::take(&mut self.executor.is_called),
            over: false,
        }
    }

    /// Every doorbell of that loop is heard, or seen.
    fn set_reading(&mut self, reading: Reading) {
        let is_hushed = reading != Reading::No;
        if is_hushed != (self.executor.reading != Reading::No) {
            self.executor.lanes[0].hush(is_hushed);
            let ports = self.ports.iter_mut().filter(|(_, port)| port.is_readers);
            ports.for_each(|(_, port)| port.doorbell.hush(is_hushed));
        }
        if reading == Reading::Awake {
            self.executor.lanes[0].note_look(monotonic_ns());
        }
        self.executor.reading = reading;
    }

    /// Whether a loop waits for what somebody else has to read.
    pub(crate) fn has_deaf_loops(&self) -> bool {
        match self.executor.reading {
            Reading::No => self.has_loops(),
            Reading::Awake | Reading::Asleep => self.ports.iter().any(|(_, port)| !port.is_readers),
        }
    }
}

impl Runtime {
    /// Whether the loop of the first lane may read for itself: it is the only one. Else each frame
    /// would wake them all.
    pub fn may_read_in_loop(&self) -> bool {
        let executor = &self.lock().executor;
        executor.runner == Runner::Loops && executor.lanes.len() == 1
    }

    /// In the thread of that loop: looks what is there, without sleeping.
    pub fn look_in_loop(&self) -> Found {
        let mut found = Found::default();
        self.look_around(|state| {
            found = state.find_for_loop();
            state.set_reading(Reading::Awake);
            found.is_anything()
        });
        // As one that waits: the pump need not read.
        self.activity.fetch_add(1, crate::sync::Ordering::Relaxed);
        found
    }

    /// In the thread of that loop: sleeps until something is there, `deadline` has come, or
    /// `interrupted` says so.
    pub fn sleep_in_loop(
        self: &Arc<Self>,
        deadline: Option<u64>,
        interrupted: impl FnMut() -> bool,
    ) -> Found {
        let mut found = Found::default();
        let done = |state: &mut State| {
            found = state.find_for_loop();
            // Who calls it from now on rings: its ticket is older than this look.
            state.set_reading(if found.is_anything() { Reading::Awake } else { Reading::Asleep });
            found.is_anything()
        };
        let near = |state: &mut State| state.near_caller();
        match without_lending(|| self.wait(deadline, None, interrupted, done, near)) {
            Waited::Done => return found,
            Waited::Stopped(_) => (found.turn, found.over) = (true, true),
            Waited::TimedOut | Waited::Interrupted => {}
        }
        self.lock().set_reading(Reading::Awake);
        found
    }

    /// In the thread of that loop: it sleeps on its descriptors from now on. Whether it was called
    /// meanwhile, so that it must not.
    pub fn cease_to_read_in_loop(&self) -> bool {
        let state = &mut *self.lock();
        if state.executor.reading == Reading::No {
            return false;
        }
        state.set_reading(Reading::No);
        std::mem::take(&mut state.executor.is_called)
    }

    /// In any thread: the loop is to look for what its own program has for it. `false`: it does not
    /// read, and is to be told by a descriptor.
    pub fn call_loop(&self) -> bool {
        let state = &mut *self.lock();
        // Also of one that does not read yet: it may be about to, and then hears no descriptor.
        state.executor.is_called = true;
        if state.executor.reading == Reading::Asleep {
            self.bell().ring();
        }
        state.executor.reading != Reading::No
    }
}
