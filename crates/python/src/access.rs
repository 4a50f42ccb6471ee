//! `get`, `wait`.

use std::sync::Arc;
use std::time::Duration;

use oxiray_ids::Origin;
use oxiray_sys::clock::monotonic_ns;
use oxiray_worker::{Content, ObjectKey, Waited, Watcher};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors::{raised, system_error};
use crate::generator::{Head, ObjectRefGenerator};
use crate::guard::guarded;
use crate::loops;
use crate::refs::{self, ObjectRef};
use crate::session::{self, Session};
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
        Waited::Stopped(reason) => Err(system_error(py, &reason)),
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

fn get_one<'py>(
    py: Python<'py>,
    reference: &ObjectRef,
    deadline: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (session, key) = reference.held(py)?;
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
#[pyo3(signature = (object_refs, *, timeout = None, _use_object_store = false))]
pub(crate) fn get<'py>(
    py: Python<'py>,
    object_refs: &Bound<'py, PyAny>,
    timeout: Option<f64>,
    _use_object_store: bool,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(py, || got(py, object_refs, timeout))
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
    if is_type::<ObjectRefGenerator>(py, refs) {
        return Ok(refs.clone());
    }
    let list = match (refs.cast::<PyList>(), refs.cast::<PyTuple>()) {
        // A copy: the references must stay while we wait, whatever others do to the list.
        (Ok(list), _) => list.get_slice(0, list.len()),
        (_, Ok(tuple)) => tuple.to_list(),
        _ => {
            let hint = py.import("oxiray._hints")?.call_method1("of_get", (refs,))?;
            return Err(PyValueError::new_err(format!(
                "get() takes an ObjectRef or a list of ObjectRefs, not {}{hint}",
                refs.get_type().fully_qualified_name()?
            )));
        }
    };
    let keys = keys_of(py, &list, "get")?;
    if keys.is_empty() {
        return Ok(PyList::empty(py).into_any());
    }
    let session = &list.get_item(0)?.cast::<ObjectRef>()?.get().held(py)?.0.clone();
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
        Some(session) => reference.held_in(py, &session).map(drop),
        None => Err(refs::not_current(py, reference)),
    }
}

pub(crate) fn keys_of(
    py: Python<'_>,
    list: &Bound<'_, PyList>,
    what: &str,
) -> PyResult<Vec<ObjectKey>> {
    keys_and_heads(py, list, what).map(|(keys, _)| keys)
}

/// The same; to wait for, generators stand for their next items, which are there while the latter
/// are.
fn keys_and_heads(
    py: Python<'_>,
    list: &Bound<'_, PyList>,
    what: &str,
) -> PyResult<(Vec<ObjectKey>, Vec<Head>)> {
    let current = session::existing();
    let (mut keys, mut heads) = (Vec::with_capacity(list.len()), Vec::new());
    for (index, item) in list.iter().enumerate() {
        let Ok(reference) = item.cast::<ObjectRef>() else {
            if let ("wait", Ok(generator)) = (what, item.cast::<ObjectRefGenerator>()) {
                let head = generator.get().head(py)?;
                keys.push(head.key);
                heads.push(head);
                continue;
            }
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
        keys.push(match &current {
            Some(session) => reference.held_in(py, session)?,
            None => return Err(refs::not_current(py, reference)),
        });
    }
    Ok((keys, heads))
}

/// Splits references into `num_returns` that are complete, earliest first
/// chosen, and the rest; both in the order of the list.
#[pyfunction]
#[pyo3(signature = (ray_waitables, *, num_returns = 1, timeout = None, fetch_local = true))]
pub(crate) fn wait<'py>(
    py: Python<'py>,
    ray_waitables: &Bound<'py, PyAny>,
    num_returns: isize,
    timeout: Option<f64>,
    fetch_local: bool,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    guarded(py, || {
        let _ = fetch_local; // On one machine everything is local.
        let refs = ray_waitables;
        if refs.is_instance_of::<ObjectRef>() || refs.is_instance_of::<ObjectRefGenerator>() {
            return Err(PyTypeError::new_err(format!(
                "wait() takes a list of ObjectRefs, not one {}",
                refs.get_type().name()?
            )));
        }
        let list = refs.cast::<PyList>().map_err(|_| {
            PyTypeError::new_err("wait() takes a list of ObjectRefs as its first argument")
        })?;
        // A copy, as in `get`.
        let list = &list.get_slice(0, list.len());
        let (keys, _heads) = keys_and_heads(py, list, "wait")?;
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
        let session = &session::current(py)?;
        let mut complete: Vec<usize> = Vec::new();
        let mut asked = false;
        let mut look = |state: &mut oxiray_worker::State| {
            if !asked {
                asked = true;
                keys.iter().for_each(|key| state.owner.want(*key, &mut state.io));
            }
            let is_complete = |index: &usize| state.owner.completed(keys[*index]).is_some();
            complete.clear();
            complete.extend((0..count).filter(is_complete));
            complete.len() >= wanted
        };
        if !session.runtime.look(&mut look) {
            wait_for_objects(py, session, deadline, "wait", &keys, wanted < count, look)?;
        }
        // As Ray does: of those that are ready, the first of the list.
        complete.truncate(wanted);
        let mut is_ready = vec![false; count];
        complete.iter().for_each(|index| is_ready[*index] = true);
        let (ready, rest) = (PyList::empty(py), PyList::empty(py));
        for (item, is_ready) in list.iter().zip(is_ready) {
            if is_ready { ready.append(item)? } else { rest.append(item)? }
        }
        Ok((ready, rest))
    })
}

/// Whether it is known that there is a value, or an error.
#[pyfunction]
pub(crate) fn is_complete(py: Python<'_>, reference: &ObjectRef) -> PyResult<bool> {
    let (session, key) = reference.held(py)?;
    Ok(session.runtime.look(|state| state.owner.content(key).is_some()))
}

/// Whether `get` has the value at once, without bringing it from another node.
#[pyfunction]
pub(crate) fn is_near(py: Python<'_>, reference: &ObjectRef) -> PyResult<bool> {
    let (session, key) = reference.held(py)?;
    let here = session.runtime.identity.process.node();
    Ok(match session.runtime.lock().owner.content(key) {
        None => false,
        Some(Content::Stored { origin, .. }) => origin.node == here,
        Some(Content::Inline(_) | Content::Failed(_)) => true,
    })
}

/// Asks for `token` to come out of `next_watched` once the value is there.
#[pyfunction]
pub(crate) fn watch(py: Python<'_>, reference: &ObjectRef, token: u64) -> PyResult<()> {
    guarded(py, || {
        check_current(py, reference)?;
        let (session, key) = reference.held(py)?;
        session.runtime.lock().owner.add_ref(key);
        session.runtime.watch(key, Watcher::Thread, token);
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
