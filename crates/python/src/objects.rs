//! `put`, `internal.free`, and where objects are.

use std::sync::Arc;

use oxiray_worker::{Content, Waited};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::access::{deadline, keys_of, wait_for};
use crate::actors::ActorRef;
use crate::call_site;
use crate::errors::session_ended;
use crate::guard::guarded;
use crate::refs::ObjectRef;
use crate::session::{self, Session};
use crate::values;

/// Puts a value into the store, for this process or the actor `_owner` to own.
#[pyfunction]
#[pyo3(signature = (value, *, _owner = None, _tensor_transport = None))]
pub(crate) fn put<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    _owner: Option<&Bound<'py, PyAny>>,
    _tensor_transport: Option<&str>,
) -> PyResult<ObjectRef> {
    guarded(py, || {
        if let Some(transport) = _tensor_transport.filter(|name| *name != "object_store") {
            return Err(PyValueError::new_err(format!(
                "_tensor_transport={transport:?} is not supported: leave it out, and the value goes \
                 through the object store"
            )));
        }
        if value.is_instance_of::<ObjectRef>() {
            return Err(PyTypeError::new_err(
                "put() takes a value, not an ObjectRef: it is in the store already",
            ));
        }
        let session = session::current(py)?;
        if let Some(owner) = _owner.filter(|owner| !owner.is_none()) {
            return put_for(py, &session, value, owner);
        }
        let owner = session.runtime.identity.process;
        let (content, contained) = values::encode(&session, value, owner)?;
        let id = session.runtime.next_put_id();
        let key = session.runtime.lock().owner.put(id, content, contained);
        call_site::note(py, &session, "put", [key]);
        Ok(ObjectRef::of(session, key, id))
    })
}

/// Puts a value that lives and dies with an actor, rather than with this process.
fn put_for<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    value: &Bound<'py, PyAny>,
    owner: &Bound<'py, PyAny>,
) -> PyResult<ObjectRef> {
    let actor = py.import("oxiray._actor")?.call_method1("owner_of_put", (owner,))?;
    let owner = actor.cast::<ActorRef>()?.get().process(py, session)?;
    let (content, contained) = values::encode(session, value, owner)?;
    let mut raised = None;
    let (id, key, waited) = py.detach(|| {
        let interrupted = || values::raises_signal(&mut raised);
        session.runtime.put_for(owner, content, contained, interrupted)
    });
    // Dropped on an error: it counts already.
    let reference = ObjectRef::new(session, key, id);
    match (waited, raised) {
        (Waited::Done, _) => {
            call_site::note(py, session, "put", [key]);
            Ok(reference)
        }
        (_, Some(error)) => Err(error),
        (_, None) => Err(session_ended(py)),
    }
}

/// Frees the values of references, whoever holds them.
#[pyfunction]
pub(crate) fn free(py: Python<'_>, refs: &Bound<'_, PyList>) -> PyResult<()> {
    guarded(py, || {
        let keys = keys_of(py, refs, "free")?;
        if let Ok(first) = refs.get_item(0) {
            first.cast::<ObjectRef>()?.get().held(py)?.0.runtime.free_values(&keys);
        }
        Ok(())
    })
}

/// Of each reference: the bytes of its value, if it is there, whether it is on disk, and the
/// number of its node.
#[pyfunction]
#[pyo3(signature = (refs, *, timeout = None))]
pub(crate) fn locations(
    py: Python<'_>,
    refs: &Bound<'_, PyList>,
    timeout: Option<f64>,
) -> PyResult<Vec<(Option<u64>, bool, u32)>> {
    guarded(py, || {
        let deadline = deadline(timeout)?;
        let list = refs.get_slice(0, refs.len());
        let keys = keys_of(py, &list, "get_object_locations")?;
        let Ok(first) = list.get_item(0) else { return Ok(Vec::new()) };
        let session = &first.cast::<ObjectRef>()?.get().held(py)?.0.clone();
        let complete = |state: &mut oxiray_worker::State| {
            keys.iter().for_each(|key| state.owner.want(*key, &mut state.io));
            keys.iter().all(|key| state.owner.content(*key).is_some())
        };
        wait_for(py, session, deadline, complete)?;
        let state = &mut *session.runtime.lock();
        let described = keys.iter().map(|key| match state.owner.content(*key) {
            Some(Content::Inline(bytes)) => {
                (Some(bytes.len() as u64), false, session.runtime.store.node())
            }
            Some(Content::Stored { origin, len })
                if origin.node != session.runtime.store.node() =>
            {
                (Some(*len), false, origin.node)
            }
            Some(Content::Stored { origin, len }) => {
                match session.runtime.store.is_on_disk(origin.key) {
                    Some(on_disk) => (Some(*len), on_disk, origin.node),
                    None => (None, false, 0),
                }
            }
            Some(Content::Failed(_)) | None => (None, false, 0),
        });
        Ok(described.collect())
    })
}
