//! What `oxiray.util.state` asks: the session as an observer sees it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use oxiray_ids::TaskId;
use oxiray_observe::log_stream::LogPlace;
use oxiray_observe::logs::{AT_ONCE, Wanted};
use oxiray_observe::task_output::{Place, WantedTask};
use oxiray_observe::{Error, Filter, Query, Resource, Session, Sort};
use parking_lot::Mutex;
use pyo3::exceptions::{
    PyConnectionError, PyFileNotFoundError, PyOSError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A connection that only looks. Rows are JSON, for Python's own reader.
#[pyclass(frozen, module = "oxiray._native")]
pub(crate) struct Observer(Mutex<Session>);

/// How many there are, how many meet the conditions, the rows as JSON, what is missing.
type Listed = (usize, usize, String, Vec<String>);

/// Node, file, size, and the process that wrote it.
type LogTuple = (String, String, u64, Option<u32>);

/// Which file of a log, the byte to go on at, and the number in the file's name.
type LogPlaceTuple = (u64, u64, u32);

/// Node, log, and the byte to go on at.
type TaskPlaceTuple = (u32, String, u64);

fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::BadQuery(_) => PyValueError::new_err(text),
        Error::NoAnswer(_) => PyTimeoutError::new_err(text),
        Error::NothingRuns(_) | Error::NoSuchSession(_) | Error::Connection { .. } => {
            PyConnectionError::new_err(text)
        }
        Error::NoSuchFile(_) => PyFileNotFoundError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

impl Observer {
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&mut Session) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| question(&mut self.0.lock())).map_err(raised)
    }
}

#[pymethods]
impl Observer {
    /// Of the session in a directory, or else of an address, or else of the newest.
    #[new]
    #[pyo3(signature = (directory=None, address=None))]
    fn new(py: Python<'_>, directory: Option<&str>, address: Option<&str>) -> PyResult<Self> {
        let session = py.detach(|| match directory {
            Some(directory) => Session::open(Path::new(directory)),
            None => Session::find(address),
        });
        session.map(|session| Self(Mutex::new(session))).map_err(raised)
    }

    /// How long a node may take to answer.
    fn set_patience(&self, py: Python<'_>, seconds: f64) {
        // Beyond what a duration can be it has no bound.
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        py.detach(|| self.0.lock().set_patience(patience));
    }

    #[pyo3(signature = (resource, *, filters, limit, detail, sort=None))]
    fn rows(
        &self,
        py: Python<'_>,
        resource: &str,
        filters: Vec<(String, String, String)>,
        limit: Option<usize>,
        detail: bool,
        sort: Option<&str>,
    ) -> PyResult<Listed> {
        let resource: Resource = resource.parse().map_err(raised)?;
        let filters =
            filters.iter().map(|(key, operator, value)| Filter::new(key, operator, value));
        let filters = filters.collect::<Result<Vec<_>, _>>().map_err(raised)?;
        let sort = sort.map(Sort::from);
        let query = Query { filters, limit, detail, sort, ..Query::default() };
        let (page, rows) = self.ask(py, |session| session.list_json(resource, &query))?;
        Ok((page.total, page.filtered, rows, page.notes))
    }

    /// The row, if there is one; what is missing.
    fn get(
        &self,
        py: Python<'_>,
        resource: &str,
        id: &str,
    ) -> PyResult<(Option<String>, Vec<String>)> {
        let resource: Resource = resource.parse().map_err(raised)?;
        self.ask(py, |session| {
            let row = session.get(resource, id)?.map(|row| row.to_string());
            Ok((row, session.missing().to_vec()))
        })
    }

    /// The summary; what is missing.
    fn summary(&self, py: Python<'_>, resource: &str) -> PyResult<(String, Vec<String>)> {
        let resource: Resource = resource.parse().map_err(raised)?;
        self.ask(py, |session| {
            let summary = session.summary(resource)?.to_string();
            Ok((summary, session.missing().to_vec()))
        })
    }

    /// Of these tasks, by their ids, and what they wait for: what can never go on, in sentences.
    fn stuck(&self, py: Python<'_>, tasks: Vec<String>) -> PyResult<BTreeMap<String, String>> {
        let ids: Vec<TaskId> = tasks.iter().filter_map(|id| TaskId::from_hex(id)).collect();
        self.ask(py, |session| session.stuck(&ids))
    }

    /// What of the last answer on tasks is missing for good.
    fn gaps(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.0.lock().gaps().to_vec())
    }

    #[pyo3(signature = (node_id=None))]
    fn log_files(
        &self,
        py: Python<'_>,
        node_id: Option<&str>,
    ) -> PyResult<(Vec<LogTuple>, Vec<String>)> {
        let (files, notes) = self.ask(py, |session| session.log_files(node_id))?;
        let files = files.into_iter().map(|file| (file.node_id, file.file, file.size, file.pid));
        Ok((files.collect(), notes))
    }

    /// The node and the file of a log; none: nothing said which.
    #[pyo3(signature = (*, file, node_id, actor_id, pid, is_error, may_come))]
    #[expect(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn find_log(
        &self,
        py: Python<'_>,
        file: Option<String>,
        node_id: Option<String>,
        actor_id: Option<String>,
        pid: Option<u32>,
        is_error: bool,
        may_come: bool,
    ) -> PyResult<Option<(String, String)>> {
        let wanted = Wanted { file, node_id, actor_id, pid, is_error, may_come };
        self.ask(py, |session| session.find_log(&wanted))
    }

    /// Writes a package of the cluster into a file; false: no node has it.
    fn fetch_package(&self, py: Python<'_>, name: &str, path: &str) -> PyResult<bool> {
        self.ask(py, |session| session.fetch_package(name, Path::new(path)))
    }

    /// Where the last lines of a log begin.
    fn log_tail(
        &self,
        py: Python<'_>,
        node_id: &str,
        file: &str,
        lines: u64,
    ) -> PyResult<LogPlaceTuple> {
        let place = self.ask(py, |session| session.tail_of_log(node_id, file, lines))?;
        Ok((place.file, place.offset, place.number))
    }

    /// What follows a place in a log, the place to go on at, whether something is missing before
    /// it, and whether nothing will ever follow.
    fn read_log<'py>(
        &self,
        py: Python<'py>,
        node_id: &str,
        file: &str,
        place: LogPlaceTuple,
    ) -> PyResult<(Bound<'py, PyBytes>, LogPlaceTuple, bool, bool)> {
        let after = LogPlace { file: place.0, offset: place.1, number: place.2 };
        let chunk = self.ask(py, |session| session.read_on(node_id, file, &after, AT_ONCE))?;
        let place = (chunk.place.file, chunk.place.offset, chunk.place.number);
        let bytes = PyBytes::new(py, &chunk.part.bytes);
        Ok((bytes, place, chunk.is_after_loss, chunk.is_over))
    }

    /// What a task printed after a place, and the place to go on at.
    fn task_output<'py>(
        &self,
        py: Python<'py>,
        task_id: &str,
        is_error: bool,
        may_come: bool,
        place: Option<TaskPlaceTuple>,
    ) -> PyResult<(Bound<'py, PyBytes>, TaskPlaceTuple)> {
        let wanted = WantedTask { id: task_id.to_owned(), is_error, may_come };
        let after = place.map(|(node, log, next)| Place { node, log, next }).unwrap_or_default();
        let output = self.ask(py, |session| session.task_output(&wanted, &after, u64::MAX))?;
        let Place { node, log, next } = output.place;
        Ok((PyBytes::new(py, &output.bytes), (node, log, next)))
    }
}
