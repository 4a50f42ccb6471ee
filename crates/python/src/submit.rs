//! Arguments of calls, and `RemoteCall`: what stands at `f.remote`.
//!
//! ```text
//! arguments: positional count u32, keyword count u32, then each value
//!            (len u32, bytes); before a keyword's value its name (len u32, text)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use oxiray_events::Label;
use oxiray_ids::{FunctionId, TaskId};
use oxiray_wire::control::Shape;
use oxiray_wire::frame::Returns;
use oxiray_worker::{Content, ObjectKey, SmallBytes, Target, TaskSpec};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_128;

use crate::call_site;
use crate::generator::ObjectRefGenerator;
use crate::groups;
use crate::guard::guarded;
use crate::refs::ObjectRef;
use crate::running;
use crate::session::{self, Session};
use crate::values::{self, PLACE, is_type};

/// Room beyond their length that the arguments of a task may keep: queued tasks are many.
const MOST_SLACK: usize = 512;

/// From so many bytes on somebody is told who passes the same value by value again and again.
const LARGE_ARGUMENT: u64 = 4 << 20;

/// Serialised arguments and the references in them, each counted once until taken.
pub(crate) struct Arguments {
    session: Arc<Session>,
    pub(crate) bytes: SmallBytes,
    pub(crate) refs: SmallVec<[ObjectKey; 2]>,
    pub(crate) nested: SmallVec<[ObjectKey; 1]>,
    /// Large values among the arguments, by identity, and their places: one that
    /// is passed twice is put once.
    large: SmallVec<[(*mut pyo3::ffi::PyObject, u32); 1]>,
}

impl Drop for Arguments {
    /// What was not taken, because the call failed half-way, is let go.
    fn drop(&mut self) {
        if !self.refs.is_empty() || !self.nested.is_empty() {
            self.session.release(self.refs.drain(..).chain(self.nested.drain(..)));
        }
    }
}

impl Arguments {
    pub(crate) fn encode(
        py: Python<'_>,
        session: &Arc<Session>,
        what: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut this = Self {
            session: session.clone(),
            bytes: SmallBytes::new(),
            refs: SmallVec::new(),
            nested: SmallVec::new(),
            large: SmallVec::new(),
        };
        let keywords = kwargs.map_or(0, |kwargs| kwargs.len());
        this.bytes.extend_from_slice(&(args.len() as u32).to_le_bytes());
        this.bytes.extend_from_slice(&(keywords as u32).to_le_bytes());
        for (index, value) in args.iter().enumerate() {
            let put = this.value(py, &value);
            let put = put.map_err(|error| named(py, error, what, &index.to_string()))?;
            if put >= LARGE_ARGUMENT {
                tell_large(py, &value, what, put)?;
            }
        }
        if let Some(kwargs) = kwargs {
            for (name, value) in kwargs.iter() {
                let name: String = name.extract()?;
                this.bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
                this.bytes.extend_from_slice(name.as_bytes());
                let put = this.value(py, &value);
                let put = put.map_err(|error| named(py, error, what, &name))?;
                if put >= LARGE_ARGUMENT {
                    tell_large(py, &value, what, put)?;
                }
            }
        }
        if this.bytes.capacity() - this.bytes.len() > MOST_SLACK {
            this.bytes.shrink_to_fit();
        }
        Ok(this)
    }

    /// Adds an argument; the bytes of the object that it became, if it is a large one.
    fn value(&mut self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let at = self.bytes.len();
        let mut put = 0;
        self.bytes.extend_from_slice(&[0; 4]);
        if is_type::<ObjectRef>(py, value) {
            let reference = value.cast::<ObjectRef>()?.get();
            let key = reference.held_in(py, &self.session)?;
            self.session.runtime.lock().owner.add_ref(key);
            self.place(key);
        } else if let Some(&(_, index)) =
            self.large.iter().find(|(object, _)| *object == value.as_ptr())
        {
            self.refer(index);
        } else if !values::encode_scalar(value, &mut self.bytes)? {
            let owner = self.session.runtime.identity.process;
            let (content, contained) = values::encode(&self.session, value, owner)?;
            match content {
                Content::Inline(bytes) => {
                    self.bytes.extend_from_slice(&bytes);
                    self.nested.extend(contained);
                }
                // Large: an object of its own, which the task reads from the store.
                content => {
                    if let Content::Stored { len, .. } = content {
                        put = len;
                    }
                    let key = self.session.runtime.put(content, contained);
                    self.large.push((value.as_ptr(), self.refs.len() as u32));
                    self.place(key);
                }
            }
        }
        let len = (self.bytes.len() - at - 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
        Ok(put)
    }

    fn place(&mut self, key: ObjectKey) {
        self.refer(self.refs.len() as u32);
        self.refs.push(key);
    }

    fn refer(&mut self, index: u32) {
        self.bytes.push(PLACE);
        self.bytes.extend_from_slice(&index.to_le_bytes());
    }
}

/// Lets Python see whether it is passed again and again.
#[cold]
fn tell_large(py: Python<'_>, value: &Bound<'_, PyAny>, what: &str, bytes: u64) -> PyResult<()> {
    py.import("oxiray._large")?.call_method1("passed", (value, what, bytes)).map(drop)
}

/// Says which argument of which call could not be serialised.
fn named(py: Python<'_>, error: PyErr, what: &str, argument: &str) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let why = error.value(py).to_string();
    // Of the value as a whole, which is this argument.
    let why = why.strip_prefix("Could not serialize the value: value: ").unwrap_or(&why);
    let message = format!("Could not serialize the argument {argument} of {what}: {why}");
    let named = PyTypeError::new_err(message);
    named.set_cause(py, Some(error));
    named
}

/// What `num_returns=` means: a number, "streaming" or "dynamic".
pub(crate) fn given_back(num_returns: &Bound<'_, PyAny>, ahead: u32) -> PyResult<Returns> {
    match num_returns.extract::<&str>() {
        Ok("streaming") => Ok(Returns::Stream { ahead }),
        Ok("dynamic") => Ok(Returns::Gathered),
        _ => num_returns.extract().map(Returns::Fixed),
    }
}

/// What a call returns to its caller.
pub(crate) fn returned<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    task: TaskId,
    returns: Returns,
    keys: SmallVec<[ObjectKey; 1]>,
) -> PyResult<Bound<'py, PyAny>> {
    let reference = |(key, index): (ObjectKey, u32)| {
        Bound::new(py, ObjectRef::new(session, key, task.object(index))).map(Bound::into_any)
    };
    match keys.as_slice() {
        [key] if matches!(returns, Returns::Stream { .. }) => {
            let completed = ObjectRef::new(session, *key, task.object(1));
            ObjectRefGenerator::new(py, completed).map(Bound::into_any)
        }
        [] => Ok(py.None().into_bound(py)),
        [key] => reference((*key, 1)),
        _ => {
            let refs: Vec<_> = keys.into_iter().zip(1..).map(reference).collect::<PyResult<_>>()?;
            Ok(PyList::new(py, refs)?.into_any())
        }
    }
}

/// A function as the current session knows it.
#[derive(Clone, Copy)]
struct Known {
    /// Of [`Session::calling`].
    calling: u64,
    function: FunctionId,
    stats: u32,
    shape: u32,
}

/// What stands at `f.remote`: calling it submits one task.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct RemoteCall {
    make_payload: Py<PyAny>,
    /// Its function's, unless it was given another.
    name: Arc<str>,
    function: Arc<str>,
    returns: Returns,
    shape: Shape,
    /// Makes the runtime environment of its own, if it has one; else it has its session's.
    environment: Option<Py<PyAny>>,
    /// It goes into the placement group of whoever calls it, if that wants so.
    captured: bool,
    max_retries: i32,
    recorded: bool,
    /// Positional arguments it takes at least and at most, if that is known.
    arity: Arity,
    /// Raises what a wrong call of the function itself would; asked in case of doubt.
    bind: Py<PyAny>,
    known: Mutex<Option<Known>>,
}

/// Positional arguments that a function takes at least and at most, if that is known.
pub(crate) type Arity = Option<(usize, Option<usize>)>;

/// Whether a function takes such a call for certain; else its parameters are to be looked at.
#[inline]
pub(crate) fn takes(
    arity: Arity,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> bool {
    let Some((least, most)) = arity else { return true };
    let count = args.len();
    kwargs.is_none() && count >= least && most.is_none_or(|most| count <= most)
}

impl RemoteCall {
    /// Refuses a call that the function does not take, here rather than in a worker.
    fn check<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        match takes(self.arity, args, kwargs) {
            true => Ok(()),
            false => self.bind.bind(py).call(args, kwargs).map(drop),
        }
    }

    fn known(&self, py: Python<'_>, session: &Arc<Session>) -> PyResult<Known> {
        if let Some(known) = *self.known.lock()
            && known.calling == session.calling()
        {
            return Ok(known);
        }
        let calling = session.calling();
        let shape = groups::captured(py, self.shape.clone(), self.captured, &self.name)?;
        let payload: Vec<u8> = self.make_payload.call0(py)?.extract(py)?;
        let function = FunctionId(xxh3_128(&payload).to_le_bytes());
        let stats = session.runtime.ship_function(function, &payload);
        let environment = session.environment_of(py, self.environment.as_ref())?;
        let unrepeatable = self.max_retries == 0;
        let shape = session.runtime.shape(Shape { environment, unrepeatable, ..shape });
        let known = Known { calling, function, stats, shape };
        *self.known.lock() = Some(known);
        Ok(known)
    }
}

#[pymethods]
impl RemoteCall {
    #[new]
    #[pyo3(signature = (make_payload, name, function, num_returns, resources, max_retries, arity, bind, *, ahead, strategy, captured, priority, environment, recorded))]
    #[expect(clippy::too_many_arguments, reason = "arguments of one Python caller")]
    fn new(
        make_payload: Py<PyAny>,
        name: Option<&str>,
        function: &str,
        num_returns: &Bound<'_, PyAny>,
        resources: BTreeMap<String, f64>,
        max_retries: i32,
        arity: Arity,
        bind: Py<PyAny>,
        ahead: u32,
        strategy: Option<Bound<'_, PyDict>>,
        captured: bool,
        priority: i32,
        environment: Option<Py<PyAny>>,
        recorded: bool,
    ) -> PyResult<Self> {
        let function: Arc<str> = function.into();
        Ok(Self {
            make_payload,
            name: name.map_or_else(|| function.clone(), Into::into),
            function,
            returns: given_back(num_returns, ahead)?,
            shape: session::shape(resources, strategy.as_ref(), priority)?,
            environment,
            captured,
            max_retries,
            recorded,
            arity,
            bind,
            known: Mutex::new(None),
        })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(py, || {
            self.check(py, args, kwargs)?;
            let session = session::current(py)?;
            session.make_room(py, &self.name)?;
            let Known { function, stats, shape, .. } = self.known(py, &session)?;
            let mut arguments = Arguments::encode(py, &session, &self.name, args, kwargs)?;
            let id = session.runtime.next_task_id(None);
            let spec = TaskSpec {
                id,
                target: Target::Function { function, stats, shape },
                name: self.name.clone(),
                returns: self.returns,
                args: std::mem::take(&mut arguments.bytes),
                refs: std::mem::take(&mut arguments.refs),
                nested: std::mem::take(&mut arguments.nested),
                handle: None,
                retries: self.max_retries,
                attempt: 0,
                recorded: self.recorded,
                parent: TaskId::NIL,
            };
            let label = Label { name: &self.name, function: &self.function };
            let keys = session.runtime.submit(spec, label, running::one_of_several(py));
            call_site::note(py, &session, &self.name, keys.iter().copied());
            returned(py, &session, id, self.returns, keys)
        })
    }

    fn __repr__(&self) -> String {
        format!("<remote call of {}>", self.name)
    }
}
