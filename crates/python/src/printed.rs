//! What a task printed without an end of line goes out before its answer does: with that its
//! driver may leave.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Whether Python's streams hold the beginning of a line.
static UNFINISHED: AtomicBool = AtomicBool::new(false);

/// The worker's streams say that one of them is in the middle of a line.
#[pyfunction]
pub(crate) fn line_begun() {
    UNFINISHED.store(true, Ordering::Relaxed);
}

/// Writes out the beginning of a line, if there is one.
pub(crate) fn flush_unfinished(py: Python<'_>) {
    if UNFINISHED.load(Ordering::Relaxed) {
        flush_output(py);
    }
}

/// What Python code printed must not be lost with the process.
pub(crate) fn flush_output(py: Python<'_>) {
    UNFINISHED.store(false, Ordering::Relaxed);
    for stream in ["stdout", "stderr"] {
        let _ = py.import("sys").and_then(|sys| sys.getattr(stream)?.call_method0("flush"));
    }
}
