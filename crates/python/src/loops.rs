//! Event loops: how asyncio begins the calls of an actor, answers them, and hears of values.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use oxiray_worker::{Call, Descriptor, LoopServer, PortKey, Watcher};
use parking_lot::Mutex;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::access::check_current;
use crate::arguments::Unreadable;
use crate::execute::Worker;
use crate::language::{Callable, Here};
use crate::refs::ObjectRef;
use crate::session::{self, Session};

thread_local! {
    static RUNS_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// The caller is about to sleep in `what`: warns if that stops the event loop of an actor.
pub(crate) fn warn_of_sleep(py: Python<'_>, what: &str) -> PyResult<()> {
    if !RUNS_LOOP.get() {
        return Ok(());
    }
    py.import("oxiray._event_loop")?.call_method1("warn_of_sleep", (what,)).map(drop)
}

/// The calls of one lane of an actor, for the loop that runs them: `oxiray._event_loop`.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct LaneOfCalls {
    worker: Arc<Worker>,
    event_loop: Py<PyAny>,
    server: Mutex<LoopServer<Callable>>,
    descriptor: Descriptor,
}

impl LaneOfCalls {
    /// Runs the loop of a lane until the process is to exit; why.
    pub(crate) fn run(
        py: Python<'_>,
        worker: &Arc<Worker>,
        event_loop: &Py<PyAny>,
        lane: usize,
    ) -> PyResult<String> {
        RUNS_LOOP.set(true);
        let server = LoopServer::new(&worker.session.runtime, lane);
        let Some(descriptor) = server.descriptor() else {
            return Ok("its event loop has no lane".into());
        };
        let calls = Self {
            worker: worker.clone(),
            event_loop: event_loop.clone_ref(py),
            server: Mutex::new(server),
            descriptor,
        };
        event_loop.bind(py).call_method1("run", (calls,))?.extract()
    }
}

#[pymethods]
impl LaneOfCalls {
    fn fileno(&self) -> i32 {
        self.descriptor.as_fd().as_raw_fd()
    }

    /// Begins calls that may begin; why the process is to exit, if it is.
    fn turn(&self, py: Python<'_>) -> Option<String> {
        let event_loop = Some(self.event_loop.clone_ref(py));
        let mut here = Here { py, worker: self.worker.clone(), event_loop };
        self.server.lock().turn(&mut here)
    }

    /// Callers hear now of what was answered.
    fn tell_answers(&self) {
        self.worker.session.runtime.tell_answers();
    }
}

/// A call that a coroutine answers. One that goes unanswered has failed.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct Reply {
    worker: Arc<Worker>,
    name: Arc<str>,
    retry: Py<PyAny>,
    call: Mutex<Option<Call>>,
}

impl Reply {
    pub(crate) fn new(worker: Arc<Worker>, name: Arc<str>, retry: Py<PyAny>, call: Call) -> Self {
        Self { worker, name, retry, call: Mutex::new(Some(call)) }
    }
}

#[pymethods]
impl Reply {
    /// The id of the task that it answers, until it did.
    fn task_id(&self) -> Option<Vec<u8>> {
        self.call.lock().as_ref().map(|call| call.id.0.to_vec())
    }

    fn succeed(&self, result: Bound<'_, PyAny>) {
        let call = self.call.lock().take();
        if let Some(call) = call {
            call.note_return();
            self.worker.finish(result.py(), call, &self.name, &self.retry, Ok(result));
        }
    }

    fn fail(&self, error: Bound<'_, PyAny>) {
        let call = self.call.lock().take();
        if let Some(call) = call {
            call.note_return();
            let py = error.py();
            let raised = Unreadable::from(PyErr::from_value(error));
            self.worker.finish(py, call, &self.name, &self.retry, Err(raised));
        }
    }
}

/// Where an event loop hears of values that it awaits.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct LoopPort {
    session: Arc<Session>,
    port: PortKey,
    descriptor: Descriptor,
}

#[pymethods]
impl LoopPort {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let session = session::current(py)?;
        let (port, descriptor) = session.runtime.open_port().map_err(PyOSError::new_err)?;
        Ok(Self { session, port, descriptor })
    }

    fn fileno(&self) -> i32 {
        self.descriptor.as_fd().as_raw_fd()
    }

    /// Whether it is of the session that runs now.
    fn is_current(&self) -> bool {
        self.session.is_current() && self.session.runtime.lock().stopped.is_none()
    }

    /// Asks for `token` to come out of `take` once the value is there.
    fn watch(&self, py: Python<'_>, reference: &ObjectRef, token: u64) -> PyResult<()> {
        check_current(py, reference)?;
        let runtime = &self.session.runtime;
        runtime.lock().owner.add_ref(reference.key);
        runtime.watch(reference.key, Watcher::Port(self.port), token);
        Ok(())
    }

    /// Tokens of values that are there.
    fn take(&self) -> Vec<u64> {
        self.session.runtime.take_complete(self.port)
    }
}

impl Drop for LoopPort {
    fn drop(&mut self) {
        if self.session.is_ours() {
            self.session.runtime.close_port(self.port);
        }
    }
}
