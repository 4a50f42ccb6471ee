//! `ObjectRefGenerator`: reading what a task yields.

use std::sync::Arc;

use oxiray_ids::{ObjectId, TaskId};
use oxiray_wire::frame::FailureCode;
use oxiray_worker::{Content, Next, ObjectKey, State, breakdown};
use pyo3::exceptions::{PyNotImplementedError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::access::{self, check_current};
use crate::guard::guarded;
use crate::refs::ObjectRef;
use crate::session::Session;
use crate::waiting::wait_for_objects;

/// The references to what a task yields, one after the other.
#[pyclass(frozen, weakref, module = "oxiray")]
pub(crate) struct ObjectRefGenerator {
    session: Arc<Session>,
    task: TaskId,
    /// What the task returns when it has yielded everything.
    completed: Py<ObjectRef>,
}

/// The next item of a stream, whether it has come or not: one count of it.
pub(crate) struct Head {
    session: Arc<Session>,
    pub(crate) key: ObjectKey,
}

impl Drop for Head {
    fn drop(&mut self) {
        self.session.release([self.key]);
    }
}

impl Drop for ObjectRefGenerator {
    /// Nobody reads on.
    fn drop(&mut self) {
        let Self { session, task, .. } = self;
        if !session.is_ours() || session.runtime.broken().is_some() || std::thread::panicking() {
            return;
        }
        if let Err(said) = breakdown::caught(|| session.runtime.drop_reader(*task)) {
            session.runtime.break_down(&said);
        }
    }
}

impl ObjectRefGenerator {
    pub(crate) fn new(py: Python<'_>, completed: ObjectRef) -> PyResult<Bound<'_, Self>> {
        let (session, task) = (completed.held(py)?.0.clone(), completed.id.task());
        Bound::new(py, Self { session, task, completed: Py::new(py, completed)? })
    }

    /// What stands for it where references are waited for: its next item.
    pub(crate) fn head(&self, py: Python<'_>) -> PyResult<Head> {
        check_current(py, self.completed.get())?;
        let state = &mut *self.session.runtime.lock();
        let key = state.owner.peek(self.task, 1, &mut state.io).pop();
        let key = key.ok_or_else(|| PyValueError::new_err("the generator is being dropped"))?;
        Ok(Head { session: self.session.clone(), key })
    }

    fn reference<'py>(
        &self,
        py: Python<'py>,
        key: ObjectKey,
        id: ObjectId,
    ) -> PyResult<Bound<'py, ObjectRef>> {
        Bound::new(py, ObjectRef::new(&self.session, key, id))
    }

    /// The next item that has come.
    fn take(&self, state: &mut State) -> (Next, ObjectId) {
        let next = state.owner.next_item(self.task, &mut state.io);
        let id = match next {
            Next::Item(key) => state.owner.id_of(key),
            Next::NotYet | Next::End => ObjectId::NIL,
        };
        (next, id)
    }

    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, ObjectRef>> {
        let (session, reference) = (&self.session, self.completed.get());
        check_current(py, reference)?;
        let deadline = access::deadline(timeout.filter(|seconds| *seconds >= 0.0))?;
        let mut found = (Next::NotYet, ObjectId::NIL);
        let mut look = |state: &mut State| {
            found = self.take(state);
            found.0 != Next::NotYet
        };
        if !session.runtime.look(&mut look) {
            let head = self.head(py)?;
            wait_for_objects(py, session, deadline, "next", &[head.key], false, look)?;
        }
        match found {
            (Next::Item(key), id) => self.reference(py, key, id),
            (Next::NotYet, _) => ObjectRef::none(py, session),
            (Next::End, _) => Err(PyStopIteration::new_err(())),
        }
    }
}

#[pymethods]
impl ObjectRefGenerator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, ObjectRef>> {
        guarded(py, || self.next(py, None))
    }

    #[pyo3(signature = (timeout_s = None))]
    fn _next_sync<'py>(
        &self,
        py: Python<'py>,
        timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, ObjectRef>> {
        guarded(py, || self.next(py, timeout_s))
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._generators")?.call_method1("next_of", (slf, slf.py().None()))
    }

    #[pyo3(signature = (timeout_s = None))]
    fn _next_async<'py>(
        slf: &Bound<'py, Self>,
        timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oxiray._generators")?.call_method1("next_of", (slf, timeout_s))
    }

    /// The next item, if it has come; and whether there are no more.
    fn _take<'py>(&self, py: Python<'py>) -> PyResult<(Option<Bound<'py, ObjectRef>>, bool)> {
        guarded(py, || {
            check_current(py, self.completed.get())?;
            let found = self.take(&mut self.session.runtime.lock());
            let taken = match found {
                (Next::Item(key), id) => Some(self.reference(py, key, id)?),
                (Next::NotYet | Next::End, _) => None,
            };
            Ok((taken, found.0 == Next::End))
        })
    }

    /// A reference that stands for no item: that of one that did not come in time.
    fn _nil<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, ObjectRef>> {
        ObjectRef::none(py, &self.session)
    }

    fn completed(&self, py: Python<'_>) -> Py<ObjectRef> {
        self.completed.clone_ref(py)
    }

    #[getter]
    fn _generator_ref(&self, py: Python<'_>) -> Py<ObjectRef> {
        self.completed.clone_ref(py)
    }

    fn next_ready(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(py, || {
            check_current(py, self.completed.get())?;
            let is_ready = |state: &mut State| state.owner.is_next_ready(self.task);
            Ok(self.session.runtime.look(is_ready))
        })
    }

    fn is_finished(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(py, || {
            check_current(py, self.completed.get())?;
            Ok(self.session.runtime.look(|state| state.owner.is_read(self.task)))
        })
    }

    /// The next items, whether they have come or not; they are not taken.
    fn _get_next_ref_n<'py>(
        &self,
        py: Python<'py>,
        num_refs: isize,
    ) -> PyResult<Vec<Bound<'py, ObjectRef>>> {
        guarded(py, || {
            check_current(py, self.completed.get())?;
            let count = positive(num_refs)?;
            let keys = {
                let state = &mut *self.session.runtime.lock();
                let keys = state.owner.peek(self.task, count, &mut state.io);
                let named = |key: ObjectKey| (key, state.owner.id_of(key));
                keys.into_iter().map(named).collect::<Vec<_>>()
            };
            keys.into_iter().map(|(key, id)| self.reference(py, key, id)).collect()
        })
    }

    /// Takes items that have come.
    fn _consume_next_ref_n(&self, py: Python<'_>, num_refs: isize) -> PyResult<()> {
        guarded(py, || {
            for _ in 0..positive(num_refs)? {
                match self._take(py)? {
                    (None, true) => break,
                    (None, false) => {
                        return Err(PyValueError::new_err(
                            "the items have not come: wait for the last of them first",
                        ));
                    }
                    (Some(_), _) => {}
                }
            }
            Ok(())
        })
    }

    fn _get_next_object_id_binary(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let next = self._get_next_ref_n(py, 1)?;
        Ok(next.first().map(|next| next.get().id.0.to_vec()).unwrap_or_default())
    }

    #[pyo3(signature = (*_args))]
    fn send(&self, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        Err(unsupported("send"))
    }

    #[pyo3(signature = (*_args))]
    fn throw(&self, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        Err(unsupported("throw"))
    }

    fn close(&self) -> PyResult<()> {
        Err(unsupported("close"))
    }

    #[pyo3(signature = (*_args))]
    fn asend(&self, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        Err(unsupported("asend"))
    }

    #[pyo3(signature = (*_args))]
    fn athrow(&self, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        Err(unsupported("athrow"))
    }

    fn aclose(&self) -> PyResult<()> {
        Err(unsupported("aclose"))
    }

    fn __repr__(&self) -> String {
        format!("ObjectRefGenerator({})", self.completed.get().id)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "You cannot return or pass a generator to other task. Serializing a \
             ObjectRefGenerator is not allowed: pass the refs that it gives, or their values.",
        ))
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        _item: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        cls.clone()
    }
}

fn positive(count: isize) -> PyResult<usize> {
    usize::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| PyValueError::new_err("num_refs must be positive"))
}

fn unsupported(what: &str) -> PyErr {
    PyNotImplementedError::new_err(format!("`gen.{what}` is not supported."))
}

impl ObjectRef {
    /// A reference that stands for nothing: `is_nil()` is true.
    pub(crate) fn none<'py>(py: Python<'py>, session: &Arc<Session>) -> PyResult<Bound<'py, Self>> {
        let id = ObjectId::NIL;
        let content = Content::failed(FailureCode::ObjectLost, "this reference stands for nothing");
        let key = session.runtime.lock().owner.put(id, content, Vec::new());
        Bound::new(py, Self::new(session, key, id))
    }
}
