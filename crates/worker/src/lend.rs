//! Lending: a process whose calls all wait for others lends its CPUs meanwhile.
//!
//! - **B-1** CPUs are lent while every thread that runs a call here waits, and at no other time:
//!   the node and the owners of what is queued are told of both. A call that waits for its own
//!   function has not begun: its CPUs would be given out just before it needs them.

use std::cell::Cell;

use oxiray_ids::ProcessId;
use oxiray_owner::Outbox;
use oxiray_wire::control::{self, to_node};
use oxiray_wire::frame::Frame;

use crate::runtime::State;

crate::sync::thread_local! {
    /// Calls run in this thread.
    static RUNS_CALLS: Cell<bool> = const { Cell::new(false) };
}

/// Calls run in the calling thread from now on.
pub(crate) fn runs_calls_here() {
    RUNS_CALLS.with(|runs| runs.set(true));
}

/// Whether that is so: then whoever waits for its answers hears of them when it looks for more.
pub(crate) fn are_calls_run_here() -> bool {
    RUNS_CALLS.with(Cell::get)
}

/// Waits for what no call that runs waits for: for the next one, which is no reason to lend the CPUs
/// of those in other threads; or for what a call needs before it begins, which is about to run.
pub(crate) fn without_lending<T>(wait: impl FnOnce() -> T) -> T {
    let runs = RUNS_CALLS.with(|runs| runs.replace(false));
    let waited = wait();
    RUNS_CALLS.with(|now| now.set(runs));
    waited
}

/// Of the whole process.
#[derive(Default)]
pub(crate) struct Lending {
    /// Threads that run calls and have waited for long.
    waiting: u32,
    /// Who was told, while CPUs are lent.
    lent_to: Option<Vec<ProcessId>>,
}

/// Of one thread that is about to sleep.
pub(crate) enum Lend {
    /// It runs no call.
    None,
    /// Not yet: most waits are short.
    Pending { due: bool },
    /// It counts among those that wait.
    Waits,
}

impl Lend {
    /// Of the calling thread.
    pub(crate) fn new(state: &State) -> Self {
        let runs = are_calls_run_here() && state.executor.busy_threads() > 0;
        if runs { Lend::Pending { due: false } } else { Lend::None }
    }

    pub(crate) fn is_pending(&self) -> bool {
        matches!(self, Lend::Pending { .. })
    }

    pub(crate) fn time_is_up(&mut self) {
        if let Lend::Pending { due } = self {
            *due = true;
        }
    }

    pub(crate) fn advance(&mut self, state: &mut State) {
        if !matches!(self, Lend::Pending { due: true }) {
            return;
        }
        *self = Lend::Waits;
        state.executor.lending.waiting += 1;
        state.lend_or_take_back();
    }

    pub(crate) fn end(self, state: &mut State) {
        if matches!(self, Lend::Waits) {
            state.executor.lending.waiting -= 1;
            state.lend_or_take_back();
        }
    }
}

impl State {
    /// Lends CPUs, or takes them back, as the calls that run now ask for (B-1).
    pub(crate) fn lend_or_take_back(&mut self) {
        let busy = self.executor.busy_threads();
        let all_wait = busy > 0 && self.executor.lending.waiting >= busy;
        match (all_wait, self.executor.lending.lent_to.is_some()) {
            (true, false) => {
                self.io.tell_node(to_node::Body::Blocked(control::Empty {}));
                let told = self.tell_owners();
                self.executor.lending.lent_to = Some(told);
            }
            (false, true) => {
                self.io.tell_node(to_node::Body::Unblocked(control::Empty {}));
                let told = self.executor.lending.lent_to.take().unwrap_or_default();
                told.iter().for_each(|peer| self.io.send(*peer, &Frame::Unblocked));
                self.io.wake_peers();
            }
            _ => {}
        }
    }

    /// Lets owners take back what is queued here: who was told.
    pub(crate) fn tell_owners(&mut self) -> Vec<ProcessId> {
        let told = self.executor.givers();
        told.iter().for_each(|peer| self.io.send(*peer, &Frame::Blocked));
        self.io.wake_peers();
        told
    }
}

impl Lending {
    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn is_lent(&self) -> bool {
        self.lent_to.is_some()
    }

    /// Whether somebody may have to be told when a call begins or ends.
    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting == 0 && self.lent_to.is_none()
    }
}
