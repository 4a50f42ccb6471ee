//! A worker: its main loop, and what its threads share.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use oxiray_wire::frame::Outcome;
use oxiray_worker::{Call, Content, ObjectKey, Raised, serve, serve_lane};
use parking_lot::Mutex;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PySystemExit};
use pyo3::prelude::*;

use crate::arguments::Unreadable;
use crate::cancel;
use crate::language::Here;
use crate::loops::LaneOfCalls;
use crate::printed::end_printed;
use crate::running::HERE;
use crate::session::{self, Session};
use crate::values;

/// An error that goes by way of the node service, which carries no larger ones.
const LARGE_ERROR: usize = 48 * 1024;

/// Threads of actors run whatever the main thread could.
const STACK_BYTES: usize = 8 << 20;

/// The actor that this worker has become.
pub(crate) struct Actor {
    pub(crate) instance: Py<PyAny>,
    pub(crate) class_name: Arc<str>,
}

/// What all threads of a worker know.
pub(crate) struct Worker {
    pub(crate) session: Arc<Session>,
    pub(crate) actor: OnceLock<Actor>,
    pub(crate) hooks: Py<PyModule>,
    errors: Py<PyModule>,
    devices: Mutex<Vec<u32>>,
}

/// Runs tasks until told to exit; the exit code.
#[pyfunction]
pub(crate) fn run_worker(py: Python<'_>) -> i32 {
    let Some(session) = session::existing() else {
        return 1;
    };
    match Worker::new(py, session) {
        Ok(worker) => {
            if let Err(error) = cancel::listen(py, &worker) {
                error.print(py);
            }
            let runtime = worker.session.runtime.clone();
            serve(&runtime, &mut Here { py, worker: Arc::new(worker), event_loop: None });
            0
        }
        Err(error) => {
            error.print(py);
            1
        }
    }
}

impl Worker {
    fn new(py: Python<'_>, session: Arc<Session>) -> PyResult<Self> {
        Ok(Self {
            session,
            actor: OnceLock::new(),
            hooks: py.import("oxiray._worker")?.unbind(),
            errors: py.import("oxiray._errors")?.unbind(),
            devices: Mutex::new(Vec::new()),
        })
    }

    /// An event loop for the calling thread: `oxiray._event_loop.ActorLoop`.
    pub(crate) fn new_event_loop(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(py.import("oxiray._event_loop")?.getattr("ActorLoop")?.call0()?.unbind())
    }

    /// Starts a thread that runs calls of a lane, on an event loop or one after the other.
    pub(crate) fn start_thread(self: &Arc<Self>, lane: usize, on_loop: bool) {
        let worker = self.clone();
        let body = move || {
            // Attached for as long as it lives: what is local to the thread stays.
            Python::attach(|py| match on_loop {
                true => {
                    let ran = worker.new_event_loop(py).and_then(|event_loop| {
                        LaneOfCalls::run(py, &worker, &event_loop, lane).map(drop)
                    });
                    ran.unwrap_or_else(|error| error.print(py));
                }
                false => {
                    let runtime = worker.session.runtime.clone();
                    serve_lane(&runtime, lane, &mut Here { py, worker, event_loop: None });
                }
            });
        };
        let builder = std::thread::Builder::new().name(format!("lane-{lane}"));
        if let Err(error) = builder.stack_size(STACK_BYTES).spawn(body) {
            let mut err = std::io::stderr();
            // Who closed it does not hear of it; the calls of the lane wait all the same.
            let _ = writeln!(err, "A thread of the actor could not be started: {error}");
        }
    }

    pub(crate) fn set_devices(&self, py: Python<'_>, devices: &[u32]) {
        let mut known = self.devices.lock();
        if *known == devices {
            return;
        }
        *known = devices.to_vec();
        HERE.write().devices = devices.to_vec();
        let set = self.hooks.bind(py).call_method1("set_devices", (devices.to_vec(),));
        if let Err(error) = set {
            error.print(py);
        }
    }

    /// Answers a call with what it returned or raised. What it printed goes first.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        call: Call,
        name: &Arc<str>,
        retry: &Py<PyAny>,
        result: Result<Bound<'_, PyAny>, Unreadable>,
    ) {
        let is_actor = self.actor.get().is_some();
        let (giver, count) = (call.giver, call.num_returns);
        let encoded = result.and_then(|result| Ok(self.encode(result, giver, count, name)?));
        // What it returns may print as it is pickled.
        end_printed(py, !is_actor);
        let Unreadable { error, is_lost } = match encoded {
            Ok(values) => return call.succeed(name, &values),
            Err(raised) => raised,
        };
        if is_actor && let Some(reason) = self.exit_reason(py, &error) {
            return call.end_process(reason.into());
        }
        if cancel::stopped(py, &error) && call.is_cancelled() {
            return call.end_cancelled(name);
        }
        let outcome = match () {
            // Its owner has the argument made again, or says why not.
            () if is_lost => Outcome::Unread,
            () if is_retryable(py, retry, &error) => Outcome::Retryable,
            () => Outcome::Raised,
        };
        let raised = self.describe(py, &error, name);
        call.fail(name, Raised { outcome, ..raised });
    }

    /// Serialises the `count` values that a call returned: whoever submitted it owns them.
    fn encode(
        &self,
        result: Bound<'_, PyAny>,
        owner: oxiray_ids::ProcessId,
        count: u32,
        name: &str,
    ) -> PyResult<Vec<(Content, Vec<ObjectKey>)>> {
        let hooks = self.hooks.bind(result.py());
        if count == 1 {
            let encoded = values::encode(&self.session, &result, owner);
            if encoded.is_err() {
                hooks.call_method1("refuse_coroutine", (&result, name))?;
            }
            return Ok(vec![encoded?]);
        }
        let parts = hooks.call_method1("unpack_returns", (result, count, name))?;
        let mut values = Vec::with_capacity(count as usize);
        for part in parts.try_iter()? {
            match part.and_then(|part| values::encode(&self.session, &part, owner)) {
                Ok(value) => values.push(value),
                Err(error) => {
                    values::discard(&self.session, values);
                    return Err(error);
                }
            }
        }
        Ok(values)
    }

    /// An exception as others need it.
    pub(crate) fn describe(&self, py: Python<'_>, error: &PyErr, name: &str) -> Raised {
        let value = error.value(py);
        if let Some(traceback) = error.traceback(py) {
            let _ = value.setattr("__traceback__", traceback);
        }
        let described = self.errors.bind(py).call_method1("describe", (value, name));
        let (data, exception, text) =
            described.and_then(|described| described.extract()).unwrap_or_default();
        Raised { data, exception, text, outcome: Outcome::Raised }
    }

    /// A constructor's exception: of a large one, the beginning of the text.
    pub(crate) fn describe_creation(&self, py: Python<'_>, error: &PyErr, name: &str) -> Raised {
        let mut described = self.describe(py, error, name);
        if described.data.is_empty() || described.data.len() > LARGE_ERROR {
            let text: String = error.to_string().chars().take(4000).collect();
            let cut = PyRuntimeError::new_err(format!("{text} … (the error is too large to send)"));
            described.data = self.describe(py, &cut, name).data;
        }
        described
    }

    /// Why the actor ends, if that is what the exception means.
    pub(crate) fn exit_reason(&self, py: Python<'_>, error: &PyErr) -> Option<&'static str> {
        let exit = self.errors.bind(py).getattr("ActorExit");
        if exit.is_ok_and(|exit| error.is_instance(py, &exit)) {
            return Some("exit_actor() was called");
        }
        error.is_instance_of::<PySystemExit>(py).then_some("sys.exit() was called")
    }
}

/// Whether `retry`, which is a truth or exception types, says to try again after `error`.
fn is_retryable(py: Python<'_>, retry: &Py<PyAny>, error: &PyErr) -> bool {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return false;
    }
    let retry = retry.bind(py);
    retry.extract::<bool>().unwrap_or_else(|_| error.is_instance(py, retry))
}
