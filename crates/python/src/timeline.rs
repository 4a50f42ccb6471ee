//! The timeline of the session, and spans of time that users mark in it.

use std::path::{Path, PathBuf};

use oxiray_events::timeline::{Filter, view};
use oxiray_events::{History, Role};
use oxiray_observe::{Error, Result as Observed, Session};
use oxiray_sys::clock::wall_ns;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::running;
use crate::session;

/// Looks at the session of this process, and at all nodes of it.
fn observe<T: Send>(
    py: Python<'_>,
    look: impl FnOnce(Session) -> Observed<T> + Send,
) -> PyResult<T> {
    let directory = session::current(py)?.runtime.identity.session_dir.clone();
    py.detach(|| Session::open(Path::new(&directory)).and_then(look)).map_err(raised)
}

fn raised(error: Error) -> PyErr {
    match &error {
        // As Python says it of a file that it cannot write: by the number it knows which error to
        // raise.
        Error::Unwritten { path, error } if error.raw_os_error().is_some() => {
            let said = error.to_string();
            let said = said.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((error.raw_os_error(), said, path.clone()))
        }
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// The session as a Chrome trace, as the bytes of a JSON array; and what is missing, in sentences.
#[pyfunction]
pub(crate) fn timeline(py: Python<'_>) -> PyResult<(Bound<'_, PyBytes>, Vec<String>)> {
    let mut json = Vec::new();
    let notes = observe(py, |mut session| session.write_trace(&mut json))?;
    Ok((PyBytes::new(py, &json), notes))
}

/// Writes the session as a Chrome trace to a file; what is missing, in sentences.
#[pyfunction]
pub(crate) fn write_timeline(py: Python<'_>, filename: PathBuf) -> PyResult<Vec<String>> {
    observe(py, |mut session| session.write_trace_file(&filename))
}

/// Start and duration in microseconds, number of the name, how many, whether one failed.
type Rectangle = (u64, u64, u32, u32, bool);

/// A process, and what it ran.
type RowTuple = (String, Vec<Rectangle>);

/// What processes ran, as many rectangles a row as `width`: names, each process with its own, and
/// what is missing, in sentences.
#[pyfunction]
pub(crate) fn timeline_view(
    py: Python<'_>,
    width: u32,
) -> PyResult<(Vec<String>, Vec<RowTuple>, Vec<String>)> {
    observe(py, |mut session| {
        let (names, rows) = shown(session.history()?, width);
        Ok((names, rows, session.missing().to_vec()))
    })
}

fn shown(history: &History, width: u32) -> (Vec<String>, Vec<RowTuple>) {
    let Some((first, last)) = history.extent_ns() else {
        return (Vec::new(), Vec::new());
    };
    // What runs is drawn up to now.
    let last = if history.is_running() { last.max(wall_ns()) } else { last };
    let seen = view(history, first, last, width, &Filter::default());
    let rows = seen.rows.iter().map(|row| {
        let what = if row.process.role == Role::Driver { "driver" } else { "worker" };
        let spans = row.spans.iter().map(|span| {
            let (start, duration) = ((span.start_ns - first) / 1000, span.duration_ns / 1000);
            (start, duration, span.name, span.count, span.state.has_failed())
        });
        let place = match row.process.node {
            0 => String::new(),
            node => format!("{node}: "),
        };
        let lane = if row.lane > 0 { format!(" · {}", row.lane + 1) } else { String::new() };
        (format!("{place}{what} {}{lane}", row.process.pid), spans.collect())
    });
    (seen.names.iter().map(|name| (*name).to_owned()).collect(), rows.collect())
}

/// Notes a span of time of this process: nanoseconds of the monotonic clock, and JSON.
#[pyfunction]
pub(crate) fn record_span(py: Python<'_>, name: &str, start: u64, duration: u64, extra: &str) {
    if let Some(session) = session::existing().filter(|session| session.is_ours()) {
        let task = running::one_of_several(py);
        session.runtime.record_span(task, name, start, duration, extra);
    }
}
