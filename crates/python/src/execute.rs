//! A worker: its main loop, and what its threads share.

use std::io::Write as _;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use oxiray_wire::frame::Outcome;
use oxiray_wire::given::Given;
use oxiray_worker::{Call, Raised, serve, serve_lane};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cancel;
use crate::language::Here;
use crate::loops::LaneOfCalls;
use crate::printed::end_printed;
use crate::returns::{Made, Unreturned};
use crate::running::HERE;
use crate::session::{self, Session};
use crate::values;
use crate::yields;

/// An error that goes by way of the node service, which carries no larger ones.
const LARGE_ERROR: usize = 48 * 1024;
/// Characters of what `sys.exit()` was given that are said.
const LONGEST_CODE: usize = 200;

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
    /// `types.GeneratorType`.
    pub(crate) generator: Py<PyAny>,
    /// `sys.modules`, and how many there were when they were last looked at.
    pub(crate) modules: Py<PyDict>,
    pub(crate) modules_seen: AtomicUsize,
    /// What it has with its lease, as frames carry it.
    given: Mutex<Vec<u32>>,
}

/// Why an actor ends that asked for it.
const EXIT_ACTOR: &str = "exit_actor() was called (INTENDED_USER_EXIT)";

/// The actor that this process is has called `exit_actor()` where no call of it may hear of it.
#[pyfunction]
pub(crate) fn exit_actor(py: Python<'_>) -> PyResult<()> {
    session::current(py)?.runtime.leave(EXIT_ACTOR.into());
    Ok(())
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
            generator: py.import("types")?.getattr("GeneratorType")?.unbind(),
            modules: py.import("sys")?.getattr("modules")?.cast_into()?.unbind(),
            modules_seen: AtomicUsize::new(0),
            given: Mutex::new(Vec::new()),
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
            let runtime = worker.session.runtime.clone();
            // Attached for as long as it lives: what is local to the thread stays.
            let serve = |py: Python<'_>| match on_loop {
                true => {
                    let ran = worker.new_event_loop(py).and_then(|event_loop| {
                        LaneOfCalls::run(py, &worker, &event_loop, lane).map(drop)
                    });
                    ran.unwrap_or_else(|error| error.print(py));
                }
                false => {
                    serve_lane(&runtime, lane, &mut Here { py, worker, event_loop: None });
                }
            };
            // A call of a thread that is gone would be waited for in vain.
            runtime.run_thread(|| Python::attach(serve));
        };
        let builder = std::thread::Builder::new().name(format!("lane-{lane}"));
        if let Err(error) = builder.stack_size(STACK_BYTES).spawn(body) {
            let mut err = std::io::stderr();
            // Who closed it does not hear of it; the calls of the lane wait all the same.
            let _ = writeln!(err, "A thread of the actor could not be started: {error}");
        }
    }

    /// Devices, threads and the placement group of what runs here from now on.
    pub(crate) fn set_given(&self, py: Python<'_>, words: &[u32]) {
        let mut known = self.given.lock();
        if *known == words {
            return;
        }
        let had = Given::from_words(&known);
        *known = words.to_vec();
        let Given { devices, threads, group, captures } = Given::from_words(words);
        {
            let mut here = HERE.write();
            here.devices.clone_from(&devices);
            here.group = group.map(|group| (group, captures));
        }
        self.session.call_anew();
        let hooks = self.hooks.bind(py);
        let set_devices = || hooks.call_method1("set_devices", (devices.clone(),)).map(drop);
        let set_threads = || hooks.call_method1("set_threads", (threads,)).map(drop);
        let devices_set = if had.devices == devices { Ok(()) } else { set_devices() };
        let threads_set = if had.threads == threads { Ok(()) } else { set_threads() };
        for error in [devices_set, threads_set].into_iter().filter_map(Result::err) {
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
        result: Result<Made<'_>, Unreturned>,
    ) {
        let is_actor = self.actor.get().is_some();
        let (giver, count) = (call.giver, call.returns.in_answer());
        let encoded = result.and_then(|made| match made {
            Made::Values(values) => Ok(values),
            Made::Value(_) if call.is_stream() => Ok(vec![yields::completion(py, self, &call)?]),
            Made::Value(value) => self.encode(value, giver, count, name),
        });
        // What it returns may print as it is pickled.
        end_printed(py, !is_actor);
        let Unreturned { error, is_lost, made } = match encoded {
            Ok(values) => return call.succeed(name, &values),
            Err(raised) => raised,
        };
        // As in Ray: the process ends, and a task with it, as one whose worker has died.
        if let Some((reason, is_failing)) = self.exit_reason(py, &error) {
            values::discard(&self.session, made);
            return call.end_process(reason, is_failing);
        }
        if cancel::stopped(py, &call, &error) {
            values::discard(&self.session, made);
            return call.end_cancelled(name);
        }
        let has_all = !made.is_empty() && made.len() == count as usize;
        if has_all {
            self.tell_unheard(py, &error, name, count);
        }
        let outcome = match () {
            // Nobody hears of it: there is nothing that another attempt could give.
            () if has_all => Outcome::Raised,
            // Its owner has the argument made again, or says why not.
            () if is_lost => Outcome::Unread,
            () if is_retryable(py, retry, &error) => Outcome::Retryable,
            () => Outcome::Raised,
        };
        let raised = Raised { outcome, ..self.describe(py, &error, name) };
        match call.has_yielded() && outcome == Outcome::Raised {
            true => yields::fail(py, self, call, name, raised),
            false => call.fail_after(name, raised, &made),
        }
    }

    /// Says where the worker prints what no reference of the call is left for.
    fn tell_unheard(&self, py: Python<'_>, error: &PyErr, name: &str, count: u32) {
        let told = self.hooks.bind(py).call_method1("tell_unheard", (error.value(py), name, count));
        told.map_or_else(|error| error.print(py), drop);
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

    /// Why the process ends, if that is what the exception means, and whether that is an error: as
    /// in Ray, only `sys.exit(0)` says that all is well.
    pub(crate) fn exit_reason(&self, py: Python<'_>, error: &PyErr) -> Option<(String, bool)> {
        let exit = self.errors.bind(py).getattr("ActorExit");
        if exit.is_ok_and(|exit| error.is_instance(py, &exit)) {
            return Some((EXIT_ACTOR.into(), false));
        }
        if !error.is_instance_of::<PySystemExit>(py) {
            return None;
        }
        let code = error.value(py).getattr("code").ok();
        let is_well = code.as_ref().is_some_and(|code| code.eq(0).unwrap_or(false));
        let code = code.and_then(|code| code.repr().ok()).map(|code| code.to_string());
        let code: String = code.unwrap_or_default().chars().take(LONGEST_CODE).collect();
        let meant = if is_well { " (INTENDED_USER_EXIT)" } else { "" };
        Some((format!("sys.exit() was called, with the exit code {code}{meant}"), !is_well))
    }
}

/// Whether `retry`, which is a truth or exception types, says to try again after `error`.
fn is_retryable(py: Python<'_>, retry: &Py<PyAny>, error: &PyErr) -> bool {
    let retry = retry.bind(py);
    retry.extract::<bool>().unwrap_or_else(|_| error.is_instance(py, retry))
}
