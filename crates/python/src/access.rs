//! `get`, `wait`.

use std::sync::Arc;
use std::time::Duration;

use oxiray_ids::Origin;
use oxiray_sys::clock::monotonic_ns;
use oxiray_worker::{Content, Failure, ObjectKey, Waited, Watcher};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::guard::guarded;
use crate::loops;
use crate::refs::{self, ObjectRef};
use crate::session::{self, Session, engine_error};
use crate::values::{self, Source, Unread, is_type};
use crate::waiting::{timed_out, wait_for_objects};

/// The deadline that a `timeout=` argument means.
pub(crate) fn deadline(timeout: Option<f64>) -> PyResult<Option<u64>> {
    let Some(seconds) = timeout else {
        return Ok(None);
    };
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "timeout must be a number of seconds >= 0 or None, not {seconds}"
        )));
    }
    // Beyond a century a wait is for ever.
    let limit = std::time::Duration::from_secs_f64(seconds.min(3e9));
    Ok(Some(monotonic_ns() + limit.as_nanos() as u64))
}

/// Waits without the GIL until `done`; signals are Python's to handle.
pub(crate) fn wait_for(
    py: Python<'_>,
    session: &Session,
    deadline: Option<u64>,
    mut done: impl FnMut(&mut oxiray_worker::State) -> bool + Send,
) -> PyResult<bool> {
    let mut raised = None;
    let waited = py.detach(|| {
        let interrupted = || values::raises_signal(&mut raised);
        session.runtime.wait_until(deadline, interrupted, &mut done)
    });
    match waited {
        Waited::Done => Ok(true),
        Waited::TimedOut => Ok(false),
        Waited::Interrupted => {
            Err(raised.unwrap_or_else(|| PyRuntimeError::new_err("the wait was interrupted")))
        }
        Waited::Stopped(reason) => Err(engine_error(py, 9, &reason, &[])),
    }
}

/// [`wait_for`], for the user's `what`.
pub(crate) fn sleep_for(
    py: Python<'_>,
    session: &Session,
    deadline: Option<u64>,
    what: &str,
    done: impl FnMut(&mut oxiray_worker::State) -> bool + Send,
) -> PyResult<bool> {
    loops::warn_of_sleep(py, what)?;
    wait_for(py, session, deadline, done)
}

/// How long to wait for other news of a value whose node has left.
const MAKE_AGAIN_WITHIN: Duration = Duration::from_secs(10);

/// Who owns such a value may hear later than we, and is asked again after this.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The value of a complete object, or its failure raised. If it was lost with its node
/// and is being made again, that is waited for.
fn value_of_key<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    key: ObjectKey,
    mut content: Content,
    deadline: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut patience: Option<(Origin, u64)> = None;
    loop {
        let error = match value_of(py, session, &content, deadline) {
            Err(Unread::NodeLeft(error)) => error,
            Err(Unread::TimedOut) => return Err(timed_out(py, session, &[key])),
            read => return Ok(read?),
        };
        let Content::Stored { origin, .. } = content else { return Err(error) };
        // That it is not there any more comes first; then it may take its time.
        let now = monotonic_ns();
        let until = match patience {
            Some((same, until)) if same == origin => until,
            _ => now + MAKE_AGAIN_WITHIN.as_nanos() as u64,
        };
        patience = Some((origin, until));
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let soon = until.min(now + ASK_AGAIN_AFTER.as_nanos() as u64);
        let elsewhere =
            |state: &mut oxiray_worker::State| !state.owner.is_still_at(key, origin.node);
        if !wait_for(py, session, Some(soon), elsewhere)? {
            if soon == until {
                return Err(error);
            }
            let state = &mut *session.runtime.lock();
            state.owner.ask_again(key, &mut state.io);
        }
        let mut found = None;
        let complete = |state: &mut oxiray_worker::State| {
            found = state.owner.content(key).cloned();
            if found.is_none() {
                state.owner.want(key, &mut state.io);
            }
            found.is_some()
        };
        if !wait_for(py, session, deadline, complete)? {
            return Err(timed_out(py, session, &[key]));
        }
        content = found.expect("complete");
    }
}

fn value_of<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    content: &Content,
    deadline: Option<u64>,
) -> Result<Bound<'py, PyAny>, Unread> {
    let read = match content {
        Content::Inline(bytes) => values::decode(py, Source::Inline(bytes)),
        Content::Stored { origin, len } => {
            let look = values::look_at(py, session, *origin, *len, deadline)?;
            values::decode(py, Source::Looked(look))
        }
        Content::Failed(failure) => Err(raised(py, failure)),
    };
    read.map_err(Unread::Failed)
}

/// The exception of an object that has no value.
fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    failure.see();
    if failure.code as u8 == 0 {
        let errors = py.import("oxiray._errors");
        let error = errors.and_then(|e| e.call_method1("rebuild", (failure.data.as_slice(),)));
        return error.map_or_else(|error| error, PyErr::from_value);
    }
    engine_error(py, failure.code as u8, &failure.message, &failure.data)
}

fn check_session(py: Python<'_>, session: &Arc<Session>, reference: &ObjectRef) -> PyResult<()> {
    if Arc::ptr_eq(session, &reference.session) {
        return Ok(());
    }
    Err(refs::not_current(py, reference))
}

fn get_one<'py>(
    py: Python<'py>,
    reference: &ObjectRef,
    deadline: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (session, key) = (&reference.session, reference.key);
    check_current(py, reference)?;
    let mut content = None;
    let mut look = |state: &mut oxiray_worker::State| {
        content = state.owner.content(key).cloned();
        if content.is_none() {
            state.owner.want(key, &mut state.io);
        }
        content.is_some()
    };
    if !session.runtime.look(&mut look)
        && !wait_for_objects(py, session, deadline, "get", &[key], false, look)?
    {
        return Err(timed_out(py, session, &[key]));
    }
    value_of_key(py, session, key, content.expect("complete"), deadline)
}

/// The value of a reference, or the values of a list of them.
#[pyfunction]
#[pyo3(signature = (refs, *, timeout = None))]
pub(crate) fn get<'py>(
    py: Python<'py>,
    refs: &Bound<'py, PyAny>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(py, || got(py, refs, timeout))
}

fn got<'py>(
    py: Python<'py>,
    refs: &Bound<'py, PyAny>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let deadline = deadline(timeout)?;
    if is_type::<ObjectRef>(py, refs) {
        return get_one(py, refs.cast::<ObjectRef>()?.get(), deadline);
    }
    let list = match (refs.cast::<PyList>(), refs.cast::<PyTuple>()) {
        // A copy: the references must stay while we wait, whatever others do to the list.
        (Ok(list), _) => list.get_slice(0, list.len()),
        (_, Ok(tuple)) => tuple.to_list(),
        _ => {
            return Err(PyValueError::new_err(format!(
                "get() takes an ObjectRef or a list of ObjectRefs, not {}",
                refs.get_type().fully_qualified_name()?
            )));
        }
    };
    let keys = keys_of(py, &list, "get")?;
    if keys.is_empty() {
        return Ok(PyList::empty(py).into_any());
    }
    let session = &list.get_item(0)?.cast::<ObjectRef>()?.get().session.clone();
    let mut contents: Vec<Content> = Vec::with_capacity(keys.len());
    let (mut failures, mut failed) = (0, None);
    let mut wanted = false;
    let mut look = |state: &mut oxiray_worker::State| {
        if !wanted {
            wanted = true;
            keys.iter().for_each(|key| state.owner.want(*key, &mut state.io));
        }
        while let Some(key) = keys.get(contents.len()) {
            match state.owner.content(*key) {
                Some(content) => contents.push(content.clone()),
                None => break,
            }
        }
        // A failure is raised at once, whatever the rest does. They are rare:
        // look for one only if there was one since the last look.
        if state.owner.failures() != failures {
            failures = state.owner.failures();
            // The first is raised; who gets it knows that others may have failed, too.
            for content in keys.iter().filter_map(|key| state.owner.content(*key)) {
                if let Content::Failed(failure) = content {
                    failure.see();
                    failed.get_or_insert_with(|| content.clone());
                }
            }
        }
        failed.is_some() || contents.len() == keys.len()
    };
    if !session.runtime.look(&mut look)
        && !wait_for_objects(py, session, deadline, "get", &keys, false, look)?
    {
        return Err(timed_out(py, session, &keys));
    }
    if let Some(failure) = failed {
        return Ok(value_of(py, session, &failure, deadline)?);
    }
    let values = PyList::empty(py);
    for (key, content) in keys.iter().zip(contents) {
        values.append(value_of_key(py, session, *key, content, deadline)?)?;
    }
    Ok(values.into_any())
}

pub(crate) fn check_current(py: Python<'_>, reference: &ObjectRef) -> PyResult<()> {
    match session::existing() {
        Some(session) => check_session(py, &session, reference),
        None => Err(refs::not_current(py, reference)),
    }
}

pub(crate) fn keys_of(
    py: Python<'_>,
    list: &Bound<'_, PyList>,
    what: &str,
) -> PyResult<Vec<ObjectKey>> {
    let current = session::existing();
    let mut keys = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let Ok(reference) = item.cast::<ObjectRef>() else {
            let message = format!(
                "{what}() takes ObjectRefs, but item {index} of the list is {}",
                item.get_type().fully_qualified_name()?
            );
            // Ray's choice of exceptions.
            return Err(match what {
                "wait" => PyTypeError::new_err(message),
                _ => PyValueError::new_err(message),
            });
        };
        let reference = reference.get();
        match &current {
            Some(session) => check_session(py, session, reference)?,
            None => check_current(py, reference)?,
        }
        keys.push(reference.key);
    }
    Ok(keys)
}

/// Splits references into `num_returns` that are complete, earliest first
/// chosen, and the rest; both in the order of the list.
#[pyfunction]
#[pyo3(signature = (refs, *, num_returns = 1, timeout = None, fetch_local = true))]
pub(crate) fn wait<'py>(
    py: Python<'py>,
    refs: &Bound<'py, PyAny>,
    num_returns: isize,
    timeout: Option<f64>,
    fetch_local: bool,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    guarded(py, || {
        let _ = fetch_local; // On one machine everything is local.
        if refs.is_instance_of::<ObjectRef>() {
            return Err(PyTypeError::new_err(
                "wait() takes a list of ObjectRefs, not one ObjectRef",
            ));
        }
        let list = refs.cast::<PyList>().map_err(|_| {
            PyTypeError::new_err("wait() takes a list of ObjectRefs as its first argument")
        })?;
        // A copy, as in `get`.
        let list = &list.get_slice(0, list.len());
        let keys = keys_of(py, list, "wait")?;
        let count = keys.len();
        let deadline = deadline(timeout)?;
        if count == 0 {
            return Ok((PyList::empty(py), PyList::empty(py)));
        }
        if num_returns <= 0 {
            return Err(PyValueError::new_err(format!(
                "num_returns must be at least 1, not {num_returns}"
            )));
        }
        let wanted = num_returns as usize;
        if wanted > count {
            return Err(PyValueError::new_err(format!(
                "num_returns ({wanted}) cannot be larger than the number of ObjectRefs ({count})"
            )));
        }
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(PyValueError::new_err(
                "wait() takes a list of distinct ObjectRefs, but it contains duplicates",
            ));
        }
        let session = &list.get_item(0)?.cast::<ObjectRef>()?.get().session.clone();
        let mut complete: Vec<(u64, usize)> = Vec::new();
        let mut asked = false;
        let mut look = |state: &mut oxiray_worker::State| {
            if !asked {
                asked = true;
                keys.iter().for_each(|key| state.owner.want(*key, &mut state.io));
            }
            let stamps = keys.iter().enumerate();
            complete.clear();
            complete.extend(
                stamps.filter_map(|(index, key)| Some((state.owner.completed(*key)?, index))),
            );
            complete.len() >= wanted
        };
        if !session.runtime.look(&mut look) {
            wait_for_objects(py, session, deadline, "wait", &keys, wanted < count, look)?;
        }
        complete.sort_unstable();
        complete.truncate(wanted);
        let mut is_ready = vec![false; count];
        complete.iter().for_each(|(_, index)| is_ready[*index] = true);
        let (ready, rest) = (PyList::empty(py), PyList::empty(py));
        for (item, is_ready) in list.iter().zip(is_ready) {
            if is_ready { ready.append(item)? } else { rest.append(item)? }
        }
        Ok((ready, rest))
    })
}

/// Whether `get` has the value at once, without bringing it from another node.
#[pyfunction]
pub(crate) fn is_near(reference: &ObjectRef) -> bool {
    let runtime = &reference.session.runtime;
    let here = runtime.identity.process.node();
    match runtime.lock().owner.content(reference.key) {
        None => false,
        Some(Content::Stored { origin, .. }) => origin.node == here,
        Some(Content::Inline(_) | Content::Failed(_)) => true,
    }
}

/// Asks for `token` to come out of `next_watched` once the value is there.
#[pyfunction]
pub(crate) fn watch(py: Python<'_>, reference: &ObjectRef, token: u64) -> PyResult<()> {
    guarded(py, || {
        check_current(py, reference)?;
        let runtime = &reference.session.runtime;
        runtime.lock().owner.add_ref(reference.key);
        runtime.watch(reference.key, Watcher::Thread, token);
        Ok(())
    })
}

/// Sleeps until watched values are there: their tokens; `None` when the session ended.
#[pyfunction]
pub(crate) fn next_watched(py: Python<'_>) -> Option<Vec<u64>> {
    let session = session::existing()?;
    let fired = guarded(py, || Ok(py.detach(|| session.runtime.next_fired().ok())));
    fired.ok().flatten()
}
