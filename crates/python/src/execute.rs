//! The main loop of a worker: take a task, call it, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_ids::{ActorId, FunctionId, ProcessId};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::control::StartActor;
use oxiray_wire::frame::{Body, FailureCode, Outcome, Task};
use oxiray_worker::{Content, Execution, Failure, ObjectKey, Work};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PySystemExit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::inspect::RUNNING;
use crate::printed::{end_output, end_printed, unhandled_text};
use crate::session::{self, Session};
use crate::values::{self, PLACE, Source, Unread};

/// Idle time after which a fresh worker imports what the driver has imported.
const PRELOAD_AFTER: Duration = Duration::from_millis(30);

/// Name of the method that ends an actor.
const TERMINATE: &str = "__ray_terminate__";

/// A function as this worker has it.
struct Loaded {
    function: Py<PyAny>,
    name: Arc<str>,
    /// The worker exits after so many calls; 0: never.
    max_calls: u64,
    calls: u64,
    retry_exceptions: Py<PyAny>,
}

/// The actor that this worker has become.
struct Actor {
    instance: Py<PyAny>,
    class_name: Arc<str>,
    /// By name: the bound method, and what the timeline calls it.
    methods: HashMap<String, (Py<PyAny>, Arc<str>), RandomState>,
}

struct Worker {
    session: Arc<Session>,
    functions: HashMap<FunctionId, Loaded, RandomState>,
    actor: Option<Actor>,
    devices: Vec<u32>,
    hooks: Py<PyModule>,
    errors: Py<PyModule>,
    /// An argument of the running task was lost with its node.
    argument_lost: AtomicBool,
}

/// An exception as others need it.
struct Described {
    /// For whoever gets the value.
    data: Vec<u8>,
    /// For the record: its name, and its traceback.
    exception: String,
    text: String,
}

fn failed(data: Vec<u8>) -> Content {
    Content::Failed(Arc::new(Failure::new(FailureCode::TaskError, String::new(), data)))
}

/// What to do after a task.
enum Next {
    Go,
    Exit(String),
    /// Take no more tasks, and exit when nobody needs what this worker owns.
    Retire(String),
}

/// Runs tasks until told to exit; the exit code.
#[pyfunction]
pub(crate) fn run_worker(py: Python<'_>) -> i32 {
    let Some(session) = session::existing() else {
        return 1;
    };
    match Worker::new(py, session).and_then(|mut worker| worker.run(py)) {
        Ok(()) => 0,
        Err(error) => {
            error.print(py);
            1
        }
    }
}

impl Worker {
    fn new(py: Python<'_>, session: Arc<Session>) -> PyResult<Self> {
        session.runtime.run_tasks_here();
        Ok(Self {
            session,
            functions: HashMap::default(),
            actor: None,
            devices: Vec::new(),
            hooks: py.import("oxiray._worker")?.unbind(),
            errors: py.import("oxiray._errors")?.unbind(),
            argument_lost: AtomicBool::new(false),
        })
    }

    fn run(&mut self, py: Python<'_>) -> PyResult<()> {
        let runtime = self.session.runtime.clone();
        let mut preload = runtime.identity.preload.clone();
        loop {
            let work = runtime.take_work().map_or_else(
                || {
                    let deadline = (!preload.is_empty())
                        .then(|| monotonic_ns() + PRELOAD_AFTER.as_nanos() as u64);
                    py.detach(|| runtime.next_work(deadline, || false))
                },
                Ok,
            );
            let next = match work {
                Ok(Work::Task(execution)) => self.execute(py, execution),
                Ok(Work::StartActor(start)) => self.construct(py, &start),
                Ok(Work::JoinJob(config)) => {
                    let hooks = self.hooks.bind(py);
                    if let Err(error) = hooks.call_method1("join_job", (config.sys_path,)) {
                        error.print(py);
                    }
                    Next::Go
                }
                Ok(Work::Collect) => {
                    let _ = py.import("gc").and_then(|gc| gc.call_method0("collect"));
                    Next::Go
                }
                Ok(Work::Tell(failure)) => {
                    if let Some(text) = unhandled_text(py, &failure) {
                        let _ = self.hooks.bind(py).call_method1("tell", (text,));
                    }
                    Next::Go
                }
                Ok(Work::Exit(reason)) => Next::Exit(reason),
                Err(_) => {
                    for module in std::mem::take(&mut preload) {
                        // Only to save time later: whoever needs it sees the error.
                        let _ = py.import(module.as_str());
                    }
                    Next::Go
                }
            };
            match next {
                Next::Go => {}
                Next::Retire(reason) => runtime.retire(reason),
                Next::Exit(reason) => {
                    end_output(py, true);
                    runtime.announce_exit(&reason);
                    return Ok(());
                }
            }
        }
    }

    /// Runs one task or call and answers it.
    fn execute(&mut self, py: Python<'_>, execution: Execution) -> Next {
        let task = execution.task();
        let mut after = Next::Go;
        // An actor keeps the devices that it was created with.
        if self.actor.is_none() {
            self.set_devices(py, &task.devices);
        }
        let (name, result) = if task.function.is_nil() {
            if task.name == TERMINATE {
                return Next::Exit("it was asked to end by __ray_terminate__".into());
            }
            self.call_method(py, &execution, &task)
        } else {
            self.call_function(py, &execution, &task, &mut after)
        };
        let encoded = result
            .and_then(|result| self.encode(py, execution.giver, task.num_returns, &name, result));
        // What it returns may print as it is pickled.
        end_printed(py, self.actor.is_none());
        let mut raised = None;
        let (outcome, values) = match encoded {
            Ok(values) => (Outcome::Done, values),
            Err(error) => {
                if self.actor.is_some()
                    && let Some(reason) = self.exit_reason(py, &error)
                {
                    return Next::Exit(reason.into());
                }
                let outcome = match () {
                    // Its owner has the argument made again, or says why not.
                    () if self.argument_lost.swap(false, Ordering::Relaxed) => Outcome::Unread,
                    () if self.is_retryable(py, &task, &error) => Outcome::Retryable,
                    () => Outcome::Raised,
                };
                let Described { data, exception, text } = self.describe(py, &error, &name);
                raised = Some((exception, text));
                (outcome, vec![(failed(data), Vec::new())])
            }
        };
        drop(task);
        let raised = raised.as_ref().map(|(exception, text)| (&**exception, &**text));
        self.session.runtime.answer(execution, &name, outcome, &values, raised);
        after
    }

    fn call_function<'py>(
        &mut self,
        py: Python<'py>,
        execution: &Execution,
        task: &Task<'_>,
        after: &mut Next,
    ) -> (Arc<str>, PyResult<Bound<'py, PyAny>>) {
        if let Err(error) = self.load(py, execution, task.function) {
            return (task.name.into(), Err(error));
        }
        let Some(loaded) = self.functions.get_mut(&task.function) else {
            unreachable!("just loaded")
        };
        loaded.calls += 1;
        if loaded.max_calls > 0 && loaded.calls >= loaded.max_calls {
            *after =
                Next::Retire(format!("it ran {} {} times (max_calls)", loaded.name, loaded.calls));
        }
        let name: Arc<str> = if task.name.is_empty() || *task.name == *loaded.name {
            loaded.name.clone()
        } else {
            task.name.into()
        };
        {
            let mut running = RUNNING.write();
            running.task = Some(execution.id);
            running.function = Some(loaded.name.clone());
            running.name = Some(name.clone());
        }
        let function = loaded.function.bind(py).clone();
        let result = self.call(py, execution, task, &function);
        (name, result)
    }

    fn call_method<'py>(
        &mut self,
        py: Python<'py>,
        execution: &Execution,
        task: &Task<'_>,
    ) -> (Arc<str>, PyResult<Bound<'py, PyAny>>) {
        let Some(actor) = &mut self.actor else {
            let error = pyo3::exceptions::PyRuntimeError::new_err("this worker is no actor");
            return (task.name.into(), Err(error));
        };
        if !actor.methods.contains_key(task.name) {
            let found =
                self.hooks.bind(py).call_method1("find_method", (&actor.instance, task.name));
            match found {
                Ok(method) => {
                    let full = format!("{}.{}", actor.class_name, task.name).into();
                    actor.methods.insert(task.name.to_owned(), (method.unbind(), full));
                }
                Err(error) => return (task.name.into(), Err(error)),
            }
        }
        let (method, name) = &actor.methods[task.name];
        let (method, name) = (method.bind(py).clone(), name.clone());
        {
            let mut running = RUNNING.write();
            running.task = Some(execution.id);
            running.function = Some(name.clone());
            running.name = Some(name.clone());
        }
        let result = self.call(py, execution, task, &method);
        (name, result)
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        execution: &Execution,
        task: &Task<'_>,
        callable: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (args, kwargs) = self.arguments(py, task)?;
        // Reading the clock is dear beside a small task: arguments that came along take no time.
        if !task.values.is_empty() {
            execution.note_call();
        }
        let result = callable.call(args, kwargs.as_ref());
        execution.note_return();
        if !self.session.is_ours() {
            // A child that the task forked has come back: the task's answer is its parent's.
            oxiray_sys::process::exit_now(0);
        }
        result
    }

    fn arguments<'py>(
        &self,
        py: Python<'py>,
        task: &Task<'_>,
    ) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let mut reader = ArgumentReader { rest: task.args };
        let (positional, keywords) = (reader.count()?, reader.count()?);
        if positional == 0 && keywords == 0 {
            return Ok((PyTuple::empty(py), None));
        }
        let value = |bytes: &[u8]| -> PyResult<Bound<'py, PyAny>> {
            let source = match bytes.split_first() {
                Some((&PLACE, index)) => {
                    let index = u32::from_le_bytes(index.try_into().map_err(|_| malformed())?);
                    let index = index as usize;
                    match task.values.get(index).map(|value| value.body) {
                        Some(Body::Inline(bytes)) => Source::Inline(bytes),
                        Some(Body::Stored { origin, len }) => {
                            let look = values::look_at(py, &self.session, origin, len);
                            if let Err(Unread::NodeLeft(_)) = look {
                                self.argument_lost.store(true, Ordering::Relaxed);
                            }
                            Source::Looked(look?)
                        }
                        _ => return Err(malformed()),
                    }
                }
                _ => Source::Inline(bytes),
            };
            values::decode(py, source)
        };
        let mut args = Vec::with_capacity(positional.min(1024));
        for _ in 0..positional {
            args.push(value(reader.bytes()?)?);
        }
        let args = PyTuple::new(py, args)?;
        if keywords == 0 {
            return Ok((args, None));
        }
        let kwargs = PyDict::new(py);
        for _ in 0..keywords {
            let name = std::str::from_utf8(reader.bytes()?).map_err(|_| malformed())?;
            kwargs.set_item(name, value(reader.bytes()?)?)?;
        }
        Ok((args, Some(kwargs)))
    }

    fn load(&mut self, py: Python<'_>, execution: &Execution, id: FunctionId) -> PyResult<()> {
        if self.functions.contains_key(&id) {
            return Ok(());
        }
        let payload = self.payload(py, execution.giver, id)?;
        let loaded = self.hooks.bind(py).call_method1("load_function", (&*payload,))?;
        let (function, name, max_calls, retry_exceptions): (Py<PyAny>, String, u64, Py<PyAny>) =
            loaded.extract()?;
        let name = name.into();
        let loaded = Loaded { function, name, max_calls, calls: 0, retry_exceptions };
        self.functions.insert(id, loaded);
        execution.note_call();
        Ok(())
    }

    fn payload(&self, py: Python<'_>, giver: ProcessId, id: FunctionId) -> PyResult<Arc<[u8]>> {
        py.detach(|| self.session.runtime.fetch_function(giver, id))
            .map_err(pyo3::exceptions::PyRuntimeError::new_err)
    }

    /// Serialises the `count` values that a task returned: whoever submitted it owns them.
    fn encode(
        &self,
        py: Python<'_>,
        owner: ProcessId,
        count: u32,
        name: &str,
        result: Bound<'_, PyAny>,
    ) -> PyResult<Vec<(Content, Vec<ObjectKey>)>> {
        if count == 1 {
            return Ok(vec![values::encode(&self.session, &result, owner)?]);
        }
        let hooks = self.hooks.bind(py);
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

    fn describe(&self, py: Python<'_>, error: &PyErr, name: &str) -> Described {
        let value = error.value(py);
        if let Some(traceback) = error.traceback(py) {
            let _ = value.setattr("__traceback__", traceback);
        }
        let described = self.errors.bind(py).call_method1("describe", (value, name));
        let (data, exception, text) =
            described.and_then(|described| described.extract()).unwrap_or_default();
        Described { data, exception, text }
    }

    /// A constructor's error goes by way of the node service, which carries no
    /// large ones: of those, the beginning of the text.
    fn creation_error(&self, py: Python<'_>, error: &PyErr, name: &str) -> Described {
        const LARGE: usize = 48 * 1024;
        let mut described = self.describe(py, error, name);
        if described.data.is_empty() || described.data.len() > LARGE {
            let text: String = error.to_string().chars().take(4000).collect();
            let cut = PyRuntimeError::new_err(format!("{text} … (the error is too large to send)"));
            described.data = self.describe(py, &cut, name).data;
        }
        described
    }

    /// Why the actor ends, if that is what the exception means.
    fn exit_reason(&self, py: Python<'_>, error: &PyErr) -> Option<&'static str> {
        let exit = self.errors.bind(py).getattr("ActorExit");
        if exit.is_ok_and(|exit| error.is_instance(py, &exit)) {
            return Some("exit_actor() was called");
        }
        error.is_instance_of::<PySystemExit>(py).then_some("sys.exit() was called")
    }

    fn is_retryable(&self, py: Python<'_>, task: &Task<'_>, error: &PyErr) -> bool {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            return false;
        }
        let Some(loaded) = self.functions.get(&task.function) else {
            return false;
        };
        let retry = loaded.retry_exceptions.bind(py);
        match retry.extract::<bool>() {
            Ok(every) => every,
            Err(_) => error.is_instance(py, retry),
        }
    }

    fn set_devices(&mut self, py: Python<'_>, devices: &[u32]) {
        if self.devices == devices {
            return;
        }
        self.devices = devices.to_vec();
        RUNNING.write().devices = devices.to_vec();
        let set = self.hooks.bind(py).call_method1("set_devices", (devices.to_vec(),));
        if let Err(error) = set {
            error.print(py);
        }
    }

    /// Becomes an actor.
    fn construct(&mut self, py: Python<'_>, start: &StartActor) -> Next {
        let runtime = self.session.runtime.clone();
        let Some(actor) = ActorId::from_slice(&start.actor) else {
            return Next::Exit("it was told to become an actor without an id".into());
        };
        let Some(execution) = py.detach(|| runtime.begin_constructor(actor, start)) else {
            if start.kept {
                // Else it would be tried for ever.
                let text = "the process that made this actor is gone, and its class and \
                            arguments were too large to be kept (100 KB)";
                let error = pyo3::exceptions::PyRuntimeError::new_err(text);
                let described = self.creation_error(py, &error, &start.class_name);
                runtime.actor_created(actor, described.data);
                return Next::Exit(text.into());
            }
            return Next::Exit("the constructor's arguments are damaged".into());
        };
        let devices: Vec<u32> =
            start.devices.iter().flat_map(|devices| devices.ids.iter().copied()).collect();
        self.set_devices(py, &devices);
        let class_name: Arc<str> = start.class_name.as_str().into();
        let name: Arc<str> = format!("{class_name}.__init__").into();
        {
            let mut running = RUNNING.write();
            running.task = Some(execution.id);
            running.actor = Some(actor);
            running.printer = Some(class_name.clone());
            running.restarts = start.restarts;
            running.name = Some(name.clone());
            running.function = Some(name.clone());
        }
        let task = execution.task();
        let built = self.payload(py, execution.giver, task.function).and_then(|payload| {
            if start.keep {
                runtime.keep_constructor(actor, &execution, &payload);
            }
            let class = self.hooks.bind(py).call_method1("load_class", (&*payload,))?;
            execution.note_call();
            self.call(py, &execution, &task, &class)
        });
        if let Ok(instance) = &built {
            // Once: it may change with every call, and a name should not.
            let shown = self.hooks.bind(py).call_method1("shown_name", (instance,));
            let shown = shown.and_then(|name| name.extract::<Option<String>>());
            if let Ok(Some(name)) = shown {
                RUNNING.write().printer = Some(name.into());
            }
        }
        end_printed(py, false);
        drop(task);
        match built {
            Ok(instance) => {
                let methods = HashMap::default();
                self.actor = Some(Actor { instance: instance.unbind(), class_name, methods });
                // The creator hears first that its arguments are free.
                runtime.answer(execution, &name, Outcome::Done, &[], None);
                runtime.actor_created(actor, Vec::new());
                Next::Go
            }
            Err(error) => {
                if let Some(reason) = self.exit_reason(py, &error) {
                    let raised = Some(("SystemExit", reason));
                    runtime.answer(execution, &name, Outcome::Raised, &[], raised);
                    return Next::Exit(format!("{reason} in its constructor"));
                }
                let Described { data, exception, text } = self.creation_error(py, &error, &name);
                let raised = Some((&*exception, &*text));
                runtime.answer(execution, &name, Outcome::Raised, &[], raised);
                runtime.actor_created(actor, data);
                Next::Exit("its constructor raised an exception".into())
            }
        }
    }
}

fn malformed() -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err("the arguments of the task are damaged")
}

struct ArgumentReader<'a> {
    rest: &'a [u8],
}

impl<'a> ArgumentReader<'a> {
    fn count(&mut self) -> PyResult<usize> {
        let (count, rest) = self.rest.split_first_chunk().ok_or_else(malformed)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*count) as usize)
    }

    fn bytes(&mut self) -> PyResult<&'a [u8]> {
        let len = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(malformed)?;
        self.rest = rest;
        Ok(bytes)
    }
}
