//! `ObjectRef`, and how references travel inside pickles.
//!
//! While a value is being serialised, references that pickle themselves are
//! collected, so that the engine holds them for the receiver. One pickled at
//! any other time goes where nobody can see: it is held for ever.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use oxiray_ids::{ObjectId, ProcessId};
use oxiray_wire::frame::RefName;
use oxiray_worker::ObjectKey;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::guard::guarded;
use crate::session::{self, Session};

thread_local! {
    static COLLECTING: RefCell<Option<Vec<ObjectKey>>> = const { RefCell::new(None) };
}

/// Collects the references that `body` pickles, each counted once.
pub(crate) fn collecting<T>(body: impl FnOnce() -> T) -> (T, Vec<ObjectKey>) {
    let outer = COLLECTING.replace(Some(Vec::new()));
    let result = body();
    let collected = COLLECTING.replace(outer).unwrap_or_default();
    (result, collected)
}

/// Counts on a reference for whoever receives the pickle: its name.
pub(crate) fn name_for_pickle(
    py: Python<'_>,
    session: &Session,
    key: ObjectKey,
) -> PyResult<RefName> {
    guarded(py, || {
        if !session.is_ours() {
            return Err(session::not_current(py, session, "A reference"));
        }
        let state = &mut *session.runtime.lock();
        state.owner.add_ref(key);
        COLLECTING.with_borrow_mut(|collecting| {
            if let Some(collected) = collecting {
                collected.push(key);
            }
        });
        Ok(state.owner.name(key))
    })
}

/// The error of using a reference of another session than the one that runs.
pub(crate) fn not_current(py: Python<'_>, reference: &ObjectRef) -> PyErr {
    session::not_current(py, &reference.session, &format!("ObjectRef({})", reference.id))
}

/// What `__reduce__` of a reference returns: who rebuilds it, from its id and owner.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, u64));

/// A name for a value that exists or will.
#[pyclass(frozen, weakref, module = "oxiray")]
pub(crate) struct ObjectRef {
    pub(crate) session: Arc<Session>,
    pub(crate) key: ObjectKey,
    pub(crate) id: ObjectId,
}

impl ObjectRef {
    /// Takes over one count of `key`.
    pub(crate) fn new(session: &Arc<Session>, key: ObjectKey, id: ObjectId) -> Self {
        Self { session: session.clone(), key, id }
    }
}

impl Drop for ObjectRef {
    fn drop(&mut self) {
        self.session.release([self.key]);
    }
}

#[pymethods]
impl ObjectRef {
    fn hex(&self) -> String {
        self.id.to_string()
    }

    fn binary<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.id.0)
    }

    fn is_nil(&self) -> bool {
        self.id.is_nil()
    }

    fn task_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyBytes::new(py, &self.id.task().0);
        py.import("oxiray._ids")?.getattr("TaskID")?.call1((bytes,))
    }

    fn job_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyBytes::new(py, &self.id.task().actor().job().0);
        py.import("oxiray._ids")?.getattr("JobID")?.call1((bytes,))
    }

    fn future<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._futures")?.call_method1("future_of", (slf,))
    }

    fn as_future<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._futures")?.call_method1("as_future", (slf,))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._futures")?.call_method1("await_of", (slf,))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.id.hash(&mut hasher);
        hasher.finish()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<ObjectRef>().is_ok_and(|other| other.get().id == self.id)
    }

    fn __repr__(&self) -> String {
        format!("ObjectRef({})", self.id)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let name = name_for_pickle(py, &self.session, self.key)?;
        let rebuild = py.import("oxiray._native")?.getattr("rebuild_ref")?;
        Ok((rebuild, (PyBytes::new(py, &name.id.0), name.owner.0)))
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, pyo3::types::PyType>,
        _item: &Bound<'py, PyAny>,
    ) -> Bound<'py, pyo3::types::PyType> {
        cls.clone()
    }
}

/// Unpickles a reference.
#[pyfunction]
pub(crate) fn rebuild_ref(py: Python<'_>, id: &[u8], owner: u64) -> PyResult<ObjectRef> {
    guarded(py, || {
        let session = session::current(py)?;
        let id = ObjectId::from_slice(id).ok_or_else(|| {
            pyo3::exceptions::PyValueError::new_err("not the bytes of an ObjectRef")
        })?;
        let name = RefName { id, owner: ProcessId(owner) };
        let key = {
            let state = &mut *session.runtime.lock();
            state.owner.read_ref(name, &mut state.io)
        };
        Ok(ObjectRef { session, key, id })
    })
}
