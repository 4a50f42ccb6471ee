//! The timeline of the session, and spans of time that users mark in it.

use std::fs::File;
use std::io;
use std::path::Path;

use oxiray_events::timeline::{Filter, view};
use oxiray_events::{History, LocalFiles, Role, State, texts, trace};
use oxiray_sys::clock::wall_ns;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::session;

fn read(session_dir: &str) -> io::Result<(History, LocalFiles)> {
    let mut files = LocalFiles::of_session(Path::new(session_dir));
    let mut history = History::new();
    history.update(0, &mut files)?;
    Ok((history, files))
}

fn write(session_dir: &str, out: impl io::Write) -> io::Result<()> {
    let (history, mut files) = read(session_dir)?;
    trace::write(&history, |place| texts::read(&mut files, place).ok().flatten(), out)
}

/// The session as a Chrome trace, as the bytes of a JSON array.
#[pyfunction]
pub(crate) fn timeline(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let directory = session::current(py)?.runtime.identity.session_dir.clone();
    let mut json = Vec::new();
    py.detach(|| write(&directory, &mut json))?;
    Ok(PyBytes::new(py, &json))
}

/// Writes the session as a Chrome trace to a file.
#[pyfunction]
pub(crate) fn write_timeline(py: Python<'_>, filename: std::path::PathBuf) -> PyResult<()> {
    let directory = session::current(py)?.runtime.identity.session_dir.clone();
    py.detach(|| write(&directory, File::create(filename)?))?;
    Ok(())
}

/// Start and duration in microseconds, number of the name, how many, whether one failed.
type Rectangle = (u64, u64, u32, u32, bool);

/// A process, and what it ran.
type RowTuple = (String, Vec<Rectangle>);

/// What processes ran, as many rectangles a row as `width`: names, and each process with its own.
#[pyfunction]
pub(crate) fn timeline_view(py: Python<'_>, width: u32) -> PyResult<(Vec<String>, Vec<RowTuple>)> {
    let directory = session::current(py)?.runtime.identity.session_dir.clone();
    let (history, _) = py.detach(|| read(&directory))?;
    let Some((first, last)) = history.extent_ns() else {
        return Ok((Vec::new(), Vec::new()));
    };
    // What runs is drawn up to now.
    let last = if history.is_running() { last.max(wall_ns()) } else { last };
    let seen = view(&history, first, last, width, &Filter::default());
    let rows = seen.rows.iter().map(|row| {
        let what = if row.process.role == Role::Driver { "driver" } else { "worker" };
        let spans = row.spans.iter().map(|span| {
            let (start, duration) = ((span.start_ns - first) / 1000, span.duration_ns / 1000);
            (start, duration, span.name, span.count, span.state == State::Failed)
        });
        (format!("{what} {}", row.process.pid), spans.collect())
    });
    Ok((seen.names.iter().map(|name| (*name).to_owned()).collect(), rows.collect()))
}

/// Notes a span of time of this process: nanoseconds of the monotonic clock, and JSON.
#[pyfunction]
pub(crate) fn record_span(name: &str, start: u64, duration: u64, extra: &str) {
    if let Some(session) = session::existing().filter(|session| session.is_ours()) {
        session.runtime.lock().io.events.span(name, start, duration, extra);
    }
}
