//! How much a driver may have submitted that is not done: `init(max_pending_tasks=)`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxiray_sys::clock::monotonic_ns;
use oxiray_worker::State;
use pyo3::prelude::*;

use crate::access::sleep_for;
use crate::session::{self, Session};

/// The limit of a session; 0: none.
#[derive(Default)]
pub(crate) struct PendingLimit {
    most: AtomicUsize,
    /// Whoever would exceed it hears an error, where it would wait else.
    raises: AtomicBool,
}

impl Session {
    /// Before another task: waits until fewer are under way than there may be, or raises.
    #[inline]
    pub(crate) fn make_room(&self, py: Python<'_>, what: &str) -> PyResult<()> {
        match self.pending.most.load(Ordering::Relaxed) {
            0 => Ok(()),
            most => self.wait_for_room(py, most, what),
        }
    }

    #[cold]
    fn wait_for_room(&self, py: Python<'_>, most: usize, what: &str) -> PyResult<()> {
        let has_room = move |state: &mut State| state.owner.pending() < most;
        if has_room(&mut self.runtime.lock()) {
            return Ok(());
        }
        let raises = self.pending.raises.load(Ordering::Relaxed);
        // Even then what has come meanwhile is looked at first.
        let deadline = raises.then(monotonic_ns);
        if sleep_for(py, self, deadline, ".remote()", has_room)? {
            return Ok(());
        }
        let message = format!(
            "{what} could not be submitted: {most} tasks and calls of this process are not done, as \
             many as init(max_pending_tasks=) allows. Wait for some of them, or raise the limit."
        );
        let exceptions = py.import("oxiray.exceptions")?;
        let error = exceptions.getattr("PendingCallsLimitExceeded")?.call1((message,))?;
        Err(PyErr::from_value(error))
    }
}

/// Limits what this process may have under way in the current session.
#[pyfunction]
pub(crate) fn limit_pending(most: usize, raises: bool) {
    if let Some(session) = session::existing() {
        session.pending.raises.store(raises, Ordering::Relaxed);
        session.pending.most.store(most, Ordering::Relaxed);
    }
}
