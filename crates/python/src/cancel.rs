//! Cancelling: asking for it, and stopping a task that runs here.
//!
//! A task runs in the main thread of its worker, and is stopped by a signal to that thread: it also
//! ends sleeps. The signal's handler is Python's and raises `KeyboardInterrupt`, but only while the
//! code of the very task that is meant runs ([`is_to_stop`]): neither the engine's own code nor the
//! next task is ever hit, however late a signal comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxiray_ids::{PUT_INDEX, TaskId};
use oxiray_sys::process;
use oxiray_wire::frame::Cancelling;
use oxiray_worker::{Asked, Call};
use parking_lot::Mutex;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::import_exception;
use pyo3::prelude::*;

use crate::execute::Worker;
use crate::loops;
use crate::refs::ObjectRef;
use crate::running;
use crate::session;

/// Which of the signals for programs it is.
const SIGNAL: i32 = 7;

import_exception!(asyncio, CancelledError);

/// The task that was last asked to stop.
static TO_STOP: Mutex<Option<TaskId>> = Mutex::new(None);

/// The code of a task runs in the main thread.
static IN_TASK: AtomicBool = AtomicBool::new(false);

/// Lets tasks of this worker be stopped; in its main thread.
pub(crate) fn listen(py: Python<'_>, worker: &Worker) -> PyResult<()> {
    let signal = process::own_signal(SIGNAL);
    worker.hooks.bind(py).call_method1("listen_for_cancel", (signal,))?;
    let main = process::this_thread();
    worker.session.runtime.interrupt_by(Arc::new(move |task: TaskId, asked: Asked| {
        let mut to_stop = TO_STOP.lock();
        // An actor's methods are asked, not stopped: its state would be left half changed.
        if !task.actor().is_home() || (asked == Asked::Again && *to_stop != Some(task)) {
            return false;
        }
        *to_stop = Some(task);
        process::signal_thread(main, signal);
        true
    }));
    Ok(())
}

/// While it lives the code of a task runs, and may be stopped.
pub(crate) struct Stoppable(());

impl Stoppable {
    /// The code of `call` is about to run; an error if it is not to.
    pub(crate) fn begin(call: &Call) -> PyResult<Self> {
        IN_TASK.store(true, Ordering::SeqCst);
        let this = Self(());
        if *TO_STOP.lock() == Some(call.id) {
            return Err(PyKeyboardInterrupt::new_err("the task was cancelled"));
        }
        Ok(this)
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        IN_TASK.store(false, Ordering::SeqCst);
    }
}

/// Whether an error is that of code that was stopped, by whomever: as in Ray, a task that raises
/// `KeyboardInterrupt` and a coroutine that raises `CancelledError` count as cancelled.
pub(crate) fn stopped(py: Python<'_>, call: &Call, error: &PyErr) -> bool {
    let is_coroutine = || loops::runs_here() || call.is_cancelled();
    error.is_instance_of::<PyKeyboardInterrupt>(py)
        || (error.is_instance_of::<CancelledError>(py) && is_coroutine())
}

/// For the handler of the signal: whether it comes while the code that is to stop runs.
#[pyfunction]
pub(crate) fn is_to_stop(py: Python<'_>) -> bool {
    if !IN_TASK.load(Ordering::SeqCst) {
        return false;
    }
    let running = running::call(py).map(|call| call.task);
    let mut to_stop = TO_STOP.lock();
    let meant = to_stop.is_some() && *to_stop == running;
    if meant {
        *to_stop = None;
    }
    meant
}

/// Whether the call that the caller is in was cancelled.
#[pyfunction]
pub(crate) fn is_cancelled(py: Python<'_>) -> PyResult<bool> {
    if loops::runs_here() {
        return Err(PyRuntimeError::new_err(
            "This method is not supported in an async actor. Its coroutines that are cancelled get \
             asyncio.CancelledError.",
        ));
    }
    Ok(match (session::existing(), running::call(py)) {
        (Some(session), Some(call)) => session.runtime.is_cancelled(call.task),
        _ => false,
    })
}

/// The task that is to return `reference` is not wanted any more.
#[pyfunction]
pub(crate) fn cancel(
    py: Python<'_>,
    reference: &Bound<'_, ObjectRef>,
    force: bool,
    recursive: bool,
) -> PyResult<()> {
    let reference = reference.get();
    let session = session::current(py)?;
    let key = reference.held_in(py, &session)?;
    if reference.id.index() >= PUT_INDEX {
        return Err(PyValueError::new_err(
            "cancel() is for what a task is to return; this ref was made by put(), and there is no \
             task to cancel",
        ));
    }
    if force && !reference.id.task().actor().is_home() {
        return Err(PyValueError::new_err(
            "force=True is not supported for actor tasks: it would end the actor, which kill() does",
        ));
    }
    session.runtime.cancel(key, Cancelling { force, recursive });
    Ok(())
}
