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
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::access;
use crate::guard::guarded;
use crate::session::{self, Session};

/// Bytes of an id.
const SIZE: usize = ObjectId::NIL.0.len();
/// In a pickle, of a reference that was made of bytes. No process has this number.
const NO_OWNER: u64 = u64::MAX;

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

/// Raises if nobody would know who holds a reference that is pickled now, and that is not allowed.
fn refuse_out_of_band(py: Python<'_>, id: ObjectId) -> PyResult<()> {
    let is_collected = COLLECTING.with_borrow(Option::is_some);
    if is_collected || oxiray_settings::ALLOW_OUT_OF_BAND.is_on() {
        return Ok(());
    }
    let text = format!(
        "ObjectRef({id}) is pickled by itself or as part of a function or class, where the engine cannot \
         see who holds it. Pass it as an argument, or inside of one; or set \
         RAY_allow_out_of_band_object_ref_serialization=1, and its value is kept for ever."
    );
    let exceptions = py.import("oxiray.exceptions")?;
    let class = exceptions.getattr("OufOfBandObjectRefSerializationException")?;
    Err(PyErr::from_value(class.call1((text,))?))
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
    match &reference.held {
        Some((session, _)) => {
            session::not_current(py, session, &format!("ObjectRef({})", reference.id))
        }
        None => PyValueError::new_err(format!(
            "ObjectRef({}) was made of bytes, and names no value that this process knows. Pass \
             references on as they are: they can be pickled",
            reference.id
        )),
    }
}

/// What `__reduce__` of a reference returns: who rebuilds it, from its id and owner.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, u64));

/// A name for a value that exists or will.
#[pyclass(frozen, weakref, module = "oxiray")]
pub(crate) struct ObjectRef {
    /// None: it was made of bytes, and names nothing that is known here.
    held: Option<(Arc<Session>, ObjectKey)>,
    pub(crate) id: ObjectId,
}

impl ObjectRef {
    /// Takes over one count of `key`.
    pub(crate) fn new(session: &Arc<Session>, key: ObjectKey, id: ObjectId) -> Self {
        Self::of(session.clone(), key, id)
    }

    pub(crate) fn of(session: Arc<Session>, key: ObjectKey, id: ObjectId) -> Self {
        Self { held: Some((session, key)), id }
    }

    /// The session that it is of, and what is held there.
    pub(crate) fn held(&self, py: Python<'_>) -> PyResult<(&Arc<Session>, ObjectKey)> {
        match &self.held {
            Some((session, key)) => Ok((session, *key)),
            None => Err(not_current(py, self)),
        }
    }

    /// What is held in `session`; an error, if it is of another.
    pub(crate) fn held_in(&self, py: Python<'_>, session: &Arc<Session>) -> PyResult<ObjectKey> {
        match &self.held {
            Some((own, key)) if Arc::ptr_eq(own, session) => Ok(*key),
            _ => Err(not_current(py, self)),
        }
    }

    /// A reference of this name: to the value, if this process knows one.
    fn named(id: ObjectId) -> Self {
        let known = session::existing().and_then(|session| {
            let key = session.runtime.lock().owner.find_ref(id)?;
            Some((session, key))
        });
        Self { held: known, id }
    }
}

impl Drop for ObjectRef {
    fn drop(&mut self) {
        if let Some((session, key)) = &self.held {
            session.release([*key]);
        }
    }
}

#[pymethods]
impl ObjectRef {
    /// Of what it does not have: whoever asks may have meant its value.
    fn __getattr__(&self, name: &str) -> PyResult<Py<PyAny>> {
        let hint = match name.starts_with('_') {
            true => "",
            false => ". It stands for a value that may not be there yet: get() gives that",
        };
        Err(PyAttributeError::new_err(format!(
            "'ObjectRef' object has no attribute '{name}'{hint}"
        )))
    }

    #[new]
    fn from_bytes(id: &[u8]) -> PyResult<Self> {
        ObjectId::from_slice(id).map(Self::named).ok_or_else(|| {
            PyValueError::new_err(format!("ObjectRef takes {SIZE} bytes, not {}", id.len()))
        })
    }

    #[classmethod]
    fn from_binary(_cls: &Bound<'_, PyType>, id_bytes: &[u8]) -> PyResult<Self> {
        Self::from_bytes(id_bytes)
    }

    #[classmethod]
    fn from_hex(cls: &Bound<'_, PyType>, hex_id: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = cls.py().get_type::<PyBytes>().call_method1("fromhex", (hex_id,))?;
        Self::from_bytes(bytes.cast::<PyBytes>()?.as_bytes())
    }

    #[classmethod]
    fn from_random(cls: &Bound<'_, PyType>) -> PyResult<Self> {
        let bytes = cls.py().import("os")?.call_method1("urandom", (SIZE,))?;
        Self::from_bytes(bytes.cast::<PyBytes>()?.as_bytes())
    }

    #[classmethod]
    fn nil(_cls: &Bound<'_, PyType>) -> Self {
        Self { held: None, id: ObjectId::NIL }
    }

    #[classmethod]
    fn size(_cls: &Bound<'_, PyType>) -> usize {
        SIZE
    }

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

    /// Calls `callback` with the value or the error, in a thread of ours.
    fn _on_completed<'py>(
        slf: &Bound<'py, Self>,
        callback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._futures")?.call_method1("on_completed", (slf, callback))
    }

    // What `asyncio.wait` asks of whatever it waits for.

    fn done(slf: &Bound<'_, Self>) -> PyResult<bool> {
        access::is_complete(slf.py(), slf.get())
    }

    fn cancelled(&self) -> bool {
        false
    }

    fn exception<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._futures")?.call_method1("exception_of", (slf,))
    }

    #[pyo3(signature = (callback, *, context = None))]
    fn add_done_callback<'py>(
        slf: &Bound<'py, Self>,
        callback: &Bound<'py, PyAny>,
        context: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let futures = slf.py().import("oxiray._futures")?;
        futures.call_method1("add_done_callback", (slf, callback, context)).map(drop)
    }

    fn remove_done_callback<'py>(
        slf: &Bound<'py, Self>,
        callback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._futures")?.call_method1("remove_done_callback", (slf, callback))
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
        let (id, owner) = match &self.held {
            Some((session, key)) => {
                refuse_out_of_band(py, self.id)?;
                let name = name_for_pickle(py, session, *key)?;
                (name.id, name.owner.0)
            }
            None => (self.id, NO_OWNER),
        };
        let rebuild = py.import("oxiray._native")?.getattr("rebuild_ref")?;
        Ok((rebuild, (PyBytes::new(py, &id.0), owner)))
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        _item: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        cls.clone()
    }
}

/// Unpickles a reference.
#[pyfunction]
pub(crate) fn rebuild_ref(py: Python<'_>, id: &[u8], owner: u64) -> PyResult<ObjectRef> {
    guarded(py, || {
        if owner == NO_OWNER {
            return ObjectRef::from_bytes(id);
        }
        let session = session::current(py)?;
        let id = ObjectId::from_slice(id)
            .ok_or_else(|| PyValueError::new_err("not the bytes of an ObjectRef"))?;
        let name = RefName { id, owner: ProcessId(owner) };
        let key = {
            let state = &mut *session.runtime.lock();
            state.owner.read_ref(name, &mut state.io)
        };
        Ok(ObjectRef::of(session, key, id))
    })
}
