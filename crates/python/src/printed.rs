//! What a task printed goes out before its answer does: with that its driver may leave.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Whether something was printed since output was last ended: the beginning of a line that streams
/// hold back, or what they marked as the running task's.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// The worker's streams say that there is something to end with the task.
#[pyfunction]
pub(crate) fn note_printed() {
    PRINTED.store(true, Ordering::Relaxed);
}

/// Ends the output of the task that has just run, if it printed something. Calls of an actor may
/// go on with one another's lines.
pub(crate) fn end_printed(py: Python<'_>, ends_line: bool) {
    if PRINTED.load(Ordering::Relaxed) {
        end_output(py, ends_line);
    }
}

/// What Python code printed must not be lost with the process.
pub(crate) fn end_output(py: Python<'_>, ends_line: bool) {
    static END_OUTPUT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    PRINTED.store(false, Ordering::Relaxed);
    // Errors of a stream that the user closed are not this task's.
    let _ = END_OUTPUT
        .import(py, "oxiray._child", "end_output")
        .and_then(|end| end.call1((ends_line,)));
}
