//! Event loops: how asyncio begins the calls of an actor, answers them, and hears of values.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use oxiray_worker::{Call, Descriptor, Flow, LoopServer, PortKey, Watcher};
use parking_lot::Mutex;
use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::access::{check_current, deadline};
use crate::execute::Worker;
use crate::language::{Callable, Here};
use crate::refs::ObjectRef;
use crate::returns::{Made, Unreturned};
use crate::session::{self, Session};
use crate::values;
use crate::yields;

/// What `LaneOfCalls.wait` has found for the loop: see [`oxiray_worker::Found`].
const VALUES: u8 = 1;
const OVER: u8 = 2;

thread_local! {
    static RUNS_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread runs the event loop of an actor.
pub(crate) fn runs_here() -> bool {
    RUNS_LOOP.get()
}

/// The caller is about to sleep in `what`: warns if that stops the event loop of an actor.
pub(crate) fn warn_of_sleep(py: Python<'_>, what: &str) -> PyResult<()> {
    if !RUNS_LOOP.get() {
        return Ok(());
    }
    py.import("oxiray._event_loop")?.call_method1("warn_of_sleep", (what,)).map(drop)
}

/// Has it said where the code is that blocks a loop of this process. In a thread each: who holds the
/// interpreter may not let it go for long.
fn tell_when_blocked(worker: &Arc<Worker>) {
    let runtime = worker.session.runtime.clone();
    let said = move |lane: usize| {
        let runtime = runtime.clone();
        let say = move || {
            Python::attach(|py| {
                let Some(late) = runtime.late_for(lane) else { return };
                let told = py
                    .import("oxiray._event_loop")
                    .and_then(|module| module.call_method1("tell_blocked", (lane, late.as_secs())))
                    .and_then(|place| place.extract::<String>());
                match told {
                    Ok(place) => runtime.note_blocked(lane, place),
                    Err(error) => error.print(py),
                }
            });
        };
        // Without a thread nobody is told: the loop is late all the same.
        let _ = std::thread::Builder::new().name("late-loop".into()).spawn(say);
    };
    worker.session.runtime.tell_of_blocked_by(Arc::new(said));
}

/// The calls of one lane of an actor, for the loop that runs them: `oxiray._event_loop`.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct LaneOfCalls {
    #[pyo3(get)]
    lane: usize,
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
        if lane == 0 {
            tell_when_blocked(worker);
        }
        let server = LoopServer::new(&worker.session.runtime, lane);
        let Some(descriptor) = server.descriptor() else {
            return Ok("its event loop has no lane".into());
        };
        let calls = Self {
            lane,
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
        // A task that begins at once may run the loop from inside of it.
        self.server.try_lock()?.turn(&mut here)
    }

    /// Whether the loop may sleep in `wait`.
    fn may_read(&self) -> bool {
        self.worker.session.runtime.may_read_in_loop()
    }

    /// Sleeps, reading what comes, until something is there for the loop, or for so many seconds, and
    /// begins calls that may begin. What else there is: `VALUES` and `OVER`.
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<u8> {
        let runtime = &self.worker.session.runtime;
        let found = match timeout {
            Some(seconds) if seconds <= 0.0 => runtime.look_in_loop(),
            timeout => {
                let deadline = deadline(timeout)?;
                let mut raised = None;
                let interrupted = || values::raises_signal(&mut raised);
                let found = py.detach(|| runtime.sleep_in_loop(deadline, interrupted));
                raised.map_or(Ok(found), Err)?
            }
        };
        if found.turn
            && let Some(reason) = self.turn(py)
        {
            self.event_loop.call_method1(py, intern!(py, "leave"), (reason,))?;
        }
        let bits = [(found.values, VALUES), (found.over, OVER)];
        Ok(bits.into_iter().filter(|(is_so, _)| *is_so).map(|(_, bit)| bit).sum())
    }

    /// The loop sleeps on its descriptors from now on; whether it was called meanwhile.
    fn cease(&self) -> bool {
        self.worker.session.runtime.cease_to_read_in_loop()
    }

    /// In any thread: ends `wait`. `false`: the loop does not sleep there.
    fn call(&self) -> bool {
        self.worker.session.runtime.call_loop()
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

    /// What it was declared with; from now on it yields.
    fn begin_items(&self) -> &'static str {
        let call = self.call.lock();
        call.as_ref().into_iter().for_each(Call::begin_items);
        call.as_ref().map_or("streaming", yields::kind)
    }

    /// Yields an item: whether the call is to go on, to wait for its reader, to end, or was cancelled.
    fn send(&self, item: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        let Some(call) = self.call.lock().take() else { return Ok("end") };
        let flow = yields::yield_value(&self.worker, &call, item);
        *self.call.lock() = Some(call);
        flow.map(words)
    }

    /// The same, now.
    fn flow(&self) -> &'static str {
        self.call.lock().as_ref().map_or("end", |call| words(call.flow()))
    }

    fn succeed(&self, result: Bound<'_, PyAny>) {
        let call = self.call.lock().take();
        if let Some(call) = call {
            call.note_return();
            let (py, made) = (result.py(), Made::Value(result));
            self.worker.finish(py, call, &self.name, &self.retry, Ok(made));
        }
    }

    fn fail(&self, error: Bound<'_, PyAny>) {
        let call = self.call.lock().take();
        if let Some(call) = call {
            call.note_return();
            let py = error.py();
            let raised = Unreturned::from(PyErr::from_value(error));
            self.worker.finish(py, call, &self.name, &self.retry, Err(raised));
        }
    }
}

fn words(flow: Flow) -> &'static str {
    match flow {
        Flow::On => "on",
        Flow::Full => "full",
        Flow::NoReader => "end",
        Flow::Cancelled => "cancelled",
    }
}

/// Where an event loop hears of values that it awaits.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct LoopPort {
    /// Whether it is of a loop that may read for itself, and then sees what is there.
    #[pyo3(get)]
    is_readers: bool,
    session: Arc<Session>,
    port: PortKey,
    descriptor: Descriptor,
}

#[pymethods]
impl LoopPort {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let session = session::current(py)?;
        let is_readers = runs_here() && session.runtime.may_read_in_loop();
        let (port, descriptor) =
            session.runtime.open_port(is_readers).map_err(PyOSError::new_err)?;
        Ok(Self { is_readers, session, port, descriptor })
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
        let (_, key) = reference.held(py)?;
        runtime.lock().owner.add_ref(key);
        runtime.watch(key, Watcher::Port(self.port), token);
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
