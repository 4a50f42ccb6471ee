//! The folder of sessions, for Python: a session's directory from its making to its end, and the
//! nodes that `oxiray start` has started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use oxiray_session::{Folder, Session, Started};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The directory that was made last, held until its node service holds it.
static MADE: Mutex<Option<Session>> = Mutex::new(None);

/// Where sessions live.
#[pyfunction]
pub(crate) fn sessions_folder() -> OsString {
    oxiray_session::folder_path().into()
}

/// The path of a new session, in `parent` if that is given. Nothing is made yet.
#[pyfunction]
pub(crate) fn new_session(parent: Option<PathBuf>) -> PyResult<OsString> {
    let parent = parent.unwrap_or_else(oxiray_session::folder_path);
    Ok(std::path::absolute(parent)?.join(Folder::new_name()).into())
}

/// Makes the directory of a session, and ends what killed ones left beside it.
#[pyfunction]
pub(crate) fn make_session(py: Python<'_>, path: PathBuf, is_elsewhere: bool) -> PyResult<()> {
    let made = py.detach(|| {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let folder = match is_elsewhere {
            true => Folder::of_user(parent)?,
            false => Folder::open_or_make()?,
        };
        folder.sweep();
        folder.make_session(&path.file_name().unwrap_or_default().to_string_lossy())
    });
    let made = made.map_err(|error| match error.raw_os_error() {
        Some(_) => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        None => error,
    })?;
    *MADE.lock() = Some(made);
    Ok(())
}

/// The session's node service holds its directory now.
#[pyfunction]
pub(crate) fn hand_over_session() {
    *MADE.lock() = None;
}

/// Ends what is left of a session whose node service has gone, or never came.
#[pyfunction]
pub(crate) fn end_session(py: Python<'_>, path: PathBuf) {
    py.detach(|| {
        match MADE.lock().take() {
            Some(made) if made.path() == path => made.discard(),
            _ => {}
        }
        if let Ok(session) = Session::at(&path) {
            session.end_if_left();
        }
    });
}

/// In a forked child: the session is its parent's.
pub(crate) fn forget() {
    // Forgotten, not dropped: the file is the parent's, too.
    std::mem::forget(MADE.lock().take());
}

/// Where the dashboard of a session is, with its token; none: it has none, here.
#[pyfunction]
pub(crate) fn dashboard_url(session_dir: PathBuf) -> Option<String> {
    Session::at(&session_dir).ok()?.dashboard_url()
}

/// The nodes of clusters that run on this machine, the latest last.
#[pyfunction]
pub(crate) fn started_nodes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let started = py.detach(|| -> std::io::Result<Vec<Started>> {
        let Some(folder) = Folder::find()? else {
            return Ok(Vec::new());
        };
        let mut started = folder.started();
        started.retain(|started| started.node().is_some());
        Ok(match started.is_empty() {
            true => folder.beginning_again(),
            false => started,
        })
    })?;
    started.iter().map(|started| fields(py, started)).collect()
}

fn fields<'py>(py: Python<'py>, started: &Started) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("address", &started.address)?;
    fields.set_item("node_address", &started.node_address)?;
    fields.set_item("node_id", &started.node_id)?;
    fields.set_item("session_dir", started.session_dir.as_os_str())?;
    fields.set_item("is_head", started.is_head)?;
    fields.set_item("heads", started.heads())?;
    Ok(fields)
}

/// Removes the directory of a cluster on this machine.
#[pyfunction]
pub(crate) fn forget_cluster(py: Python<'_>, name: &str) {
    py.detach(|| {
        if let Ok(Some(folder)) = Folder::find() {
            folder.remove_cluster(name);
        }
    });
}

/// Removes what a node that ended has left in the folder.
#[pyfunction]
pub(crate) fn forget_node(py: Python<'_>, name: &str) {
    py.detach(|| {
        if let Ok(Some(folder)) = Folder::find() {
            folder.forget(name);
        }
    });
}
