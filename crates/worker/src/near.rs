//! Sleeping near the process that one takes turns with.
//!
//! Two processes that take turns, a caller that waits for each answer and its
//! worker, do best on one processor: each leaves it as the other needs it. The
//! kernel does not know that they take turns, and wakes the sleeper on another,
//! idle processor; on a virtual machine that is an interrupt to a halted one
//! and costs several times the call itself. So a caller that takes turns says
//! in its bell where it is, and a sleeper that finds itself moved away binds its
//! next sleeps, and only its sleeps, to that processor: what a task sees of its
//! affinity is what it was.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxiray_channel::Bell;
use oxiray_sys::cpu::{self, Allowed};
use oxiray_sys::futex::Woken;

/// Turns in a row before they count as taking turns.
const TURNS: u32 = 3;

/// Sleeps to bind after having been moved; then the kernel may choose again.
const BOUND_SLEEPS: u32 = 256;

/// Whether this process submits one call at a time and waits for it.
#[derive(Default)]
pub(crate) struct Turns {
    submitted: u32,
    turns: u32,
}

impl Turns {
    pub(crate) fn submitted(&mut self) {
        self.submitted += 1;
        if self.submitted > 1 {
            self.turns = 0;
        }
    }

    pub(crate) fn waited(&mut self) {
        if std::mem::take(&mut self.submitted) == 1 {
            self.turns = self.turns.saturating_add(1);
        }
    }

    pub(crate) fn are_taken(&self) -> bool {
        self.turns > TURNS
    }
}

/// How often the next sleeps are bound.
#[derive(Default)]
pub(crate) struct Near(AtomicU32);

impl Near {
    /// Sleeps on the bell, on processor `near` if there is a reason to.
    pub(crate) fn sleep(
        &self,
        bell: &Bell,
        ticket: u32,
        limit: Option<Duration>,
        near: Option<u32>,
    ) -> Woken {
        let Some(processor) = near else { return bell.sleep(ticket, limit) };
        let left = self.0.load(Ordering::Relaxed);
        let allowed = (left > 0)
            .then(Allowed::now)
            .and_then(|allowed| allowed.ok().filter(|allowed| allowed.only(processor)));
        let woken = bell.sleep(ticket, limit);
        match allowed {
            Some(allowed) => {
                allowed.restore();
                self.0.store(left - 1, Ordering::Relaxed);
            }
            None if cpu::current() != processor => self.0.store(BOUND_SLEEPS, Ordering::Relaxed),
            None => {}
        }
        woken
    }
}
