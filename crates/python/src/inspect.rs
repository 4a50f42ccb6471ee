//! Questions about the cluster and this process.

use std::time::Duration;

use oxiray_wire::cluster::{Kv, KvVerb, NodeInfo};
use oxiray_wire::control::{Amount, UNIT};
use oxiray_worker::{LogItem, NextLog};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{session_ended, unhandled_text};
use crate::guard::guarded;
use crate::running::{self, HERE};
use crate::session;
use crate::values::raises_signal;

/// Kind, name, process id, machine, whether to standard error, lines.
type LogTuple = (&'static str, String, u32, String, bool, Vec<String>);

/// The next thing for the driver's terminal; after `patience` seconds without one, "nothing".
#[pyfunction]
pub(crate) fn next_log(py: Python<'_>, patience: Option<f64>) -> Option<LogTuple> {
    let session = session::printing()?;
    // What is no duration, such as infinity, is no limit.
    let patience = patience.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    let item = match py.detach(|| session.runtime.logs.next(patience)) {
        NextLog::Item(item) => item,
        NextLog::Nothing => {
            return Some(("nothing", String::new(), 0, String::new(), false, Vec::new()));
        }
        NextLog::Closed => {
            session::printed(&session);
            return None;
        }
    };
    let text = match item {
        LogItem::Printed { name, pid, host, is_error, lines } => {
            return Some(("log", name, pid, host, is_error, lines));
        }
        LogItem::Warning(text) => Some(text),
        LogItem::Unhandled(failure) => unhandled_text(py, &failure),
    };
    Some(("warning", String::new(), 0, String::new(), true, text.into_iter().collect()))
}

/// A number of bytes as people read it.
#[pyfunction]
pub(crate) fn show_bytes(bytes: u64) -> String {
    oxiray_words::show_bytes(bytes)
}

/// The cluster as it is now.
#[pyfunction]
pub(crate) fn cluster_view(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    guarded(py, || {
        let session = session::current(py)?;
        let mut raised = None;
        let view = py.detach(|| session.runtime.cluster_view(|| raises_signal(&mut raised)));
        let view = match (view, raised) {
            (_, Some(error)) => return Err(error),
            (Some(view), None) => view,
            (None, None) => return Err(session_ended(py)),
        };
        let dict = PyDict::new(py);
        dict.set_item("total", resources(py, &view.total)?)?;
        dict.set_item("available", resources(py, &view.available)?)?;
        dict.set_item("held", resources(py, &view.held)?)?;
        dict.set_item("node_id", PyBytes::new(py, &view.node))?;
        dict.set_item("workers", view.workers)?;
        dict.set_item("actors", view.actors)?;
        dict.set_item("store_used", view.store_used)?;
        dict.set_item("store_size", view.store_size)?;
        dict.set_item("store_objects", view.store_objects)?;
        dict.set_item("on_disk", view.on_disk)?;
        dict.set_item("objects_on_disk", view.objects_on_disk)?;
        dict.set_item("spilled", view.spilled)?;
        dict.set_item("restored", view.restored)?;
        dict.set_item("waiting", view.waiting)?;
        dict.set_item("host", view.host)?;
        dict.set_item("pid", view.pid)?;
        let nodes = view.nodes.iter().map(|info| node(py, info));
        dict.set_item("nodes", nodes.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    })
}

fn node<'py>(py: Python<'py>, info: &NodeInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", info.number)?;
    dict.set_item("id", PyBytes::new(py, &info.id))?;
    dict.set_item("address", &info.address)?;
    dict.set_item("host", &info.host)?;
    dict.set_item("pid", info.pid)?;
    dict.set_item("total", resources(py, &info.total)?)?;
    dict.set_item("available", resources(py, &info.available)?)?;
    dict.set_item("labels", info.labels.clone())?;
    dict.set_item("is_head", info.is_head)?;
    dict.set_item("left", &info.left)?;
    dict.set_item("draining", &info.draining)?;
    dict.set_item("store_size", info.store_size)?;
    dict.set_item("store_used", info.store_used)?;
    dict.set_item("waiting", info.waiting)?;
    Ok(dict)
}

fn resources<'py>(py: Python<'py>, amounts: &[Amount]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for amount in amounts {
        dict.set_item(&amount.name, amount.amount as f64 / UNIT as f64)?;
    }
    Ok(dict)
}

/// A value, how many keys were set or removed, keys.
type KeyValueTuple<'py> = (Option<Bound<'py, PyBytes>>, u64, Vec<Bound<'py, PyBytes>>);

/// The longest value that goes into a control message.
const MOST_VALUE_BYTES: usize = 100 << 10;

/// Asks the key-value table: the value if one was asked for, how many keys were set or
/// removed, and the keys if those were.
#[pyfunction]
pub(crate) fn key_value<'py>(
    py: Python<'py>,
    verb: &str,
    namespace: String,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    wide: bool,
) -> PyResult<KeyValueTuple<'py>> {
    guarded(py, || {
        let verb = match verb {
            "get" => KvVerb::Get,
            "put" => KvVerb::Put,
            "delete" => KvVerb::Delete,
            "list" => KvVerb::List,
            other => return Err(PyValueError::new_err(format!("no such thing to do: {other}"))),
        };
        let bytes = namespace.len() + key.len() + value.as_ref().map_or(0, Vec::len);
        if bytes > MOST_VALUE_BYTES {
            return Err(PyValueError::new_err(format!(
                "namespace, key and value can have {MOST_VALUE_BYTES} bytes together, not {bytes}; \
             put larger values into the object store with put()"
            )));
        }
        let question = Kv { verb: verb as i32, namespace, key, value, wide, ..Kv::default() };
        let session = session::current(py)?;
        let mut raised = None;
        let answer =
            py.detach(|| session.runtime.key_value(question, || raises_signal(&mut raised)));
        match (answer, raised) {
            (_, Some(error)) => Err(error),
            (None, None) => Err(session_ended(py)),
            (Some(answer), None) => Ok((
                answer.value.map(|value| PyBytes::new(py, &value)),
                answer.count,
                answer.keys.iter().map(|key| PyBytes::new(py, key)).collect(),
            )),
        }
    })
}

/// Who and where this process is, and what it runs.
#[pyfunction]
pub(crate) fn context(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let session = session::current(py)?;
    let identity = &session.runtime.identity;
    let (here, call) = (HERE.read().clone(), running::call(py));
    let task = call.as_ref().map(|call| PyBytes::new(py, &call.task.0));
    let mut worker = [0; 28];
    worker[..8].copy_from_slice(&identity.process.0.to_le_bytes());
    worker[8..].copy_from_slice(&identity.node.0[..20]);
    let job = session.runtime.job_config();
    let dict = PyDict::new(py);
    dict.set_item("job_id", PyBytes::new(py, &session.runtime.job().0))?;
    dict.set_item("node_id", PyBytes::new(py, &identity.node.0))?;
    dict.set_item("worker_id", PyBytes::new(py, &worker))?;
    dict.set_item("task_id", task)?;
    dict.set_item("actor_id", here.actor.map(|actor| PyBytes::new(py, &actor.0)))?;
    dict.set_item("task_name", call.as_ref().map_or("", |call| &*call.name))?;
    dict.set_item("function_name", call.as_ref().map_or("", |call| &*call.function))?;
    dict.set_item("namespace", &job.namespace)?;
    dict.set_item("address", &identity.address)?;
    dict.set_item("control", &identity.control)?;
    dict.set_item("node_number", identity.process.node())?;
    dict.set_item("session_dir", &identity.session_dir)?;
    dict.set_item("is_driver", identity.is_driver)?;
    dict.set_item("device_ids", here.devices)?;
    dict.set_item("restarts", here.restarts)?;
    dict.set_item("creator", here.creator)?;
    dict.set_item("settings", &job.settings)?;
    dict.set_item("group", here.group.map(|(group, _)| PyBytes::new(py, &group.0)))?;
    dict.set_item("captures", here.group.is_some_and(|(_, captures)| captures))?;
    Ok(dict)
}

/// Tasks that one look takes in.
const MOST_UNDER_WAY: usize = 100;

/// Ids of tasks of this process that are under way, or next to be.
#[pyfunction]
pub(crate) fn tasks_under_way() -> Vec<String> {
    let session = session::existing();
    let ids = session.map(|session| session.runtime.lock().owner.under_way(MOST_UNDER_WAY));
    ids.unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// How many objects and tasks this process keeps track of.
#[pyfunction]
pub(crate) fn counts() -> Option<(usize, usize)> {
    session::existing().map(|session| session.runtime.lock().owner.counts())
}
