//! Python, as the engine speaks it: see [`oxiray_worker::Language`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxiray_ids::{ActorId, GroupId, TaskId};
use oxiray_wire::control::StartActor;
use oxiray_wire::given::Given;
use oxiray_worker::breakdown;
use oxiray_worker::{Call, Failure, Language, Loaded, Raised, Serving};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::arguments;
use crate::cancel::Stoppable;
use crate::errors::unhandled_text;
use crate::execute::{Actor, Worker};
use crate::loops::{LaneOfCalls, Reply};
use crate::printed::{end_output, end_printed};
use crate::returns::{Made, Unreturned};
use crate::running::{self, HERE, RunningCall};
use crate::yields;

/// Name of the method that ends an actor.
const TERMINATE: &str = "__ray_terminate__";

/// One thread of a worker.
pub(crate) struct Here<'py> {
    pub(crate) py: Python<'py>,
    pub(crate) worker: Arc<Worker>,
    /// The `oxiray._event_loop.ActorLoop` that runs calls in this thread, if there is one.
    pub(crate) event_loop: Option<Py<PyAny>>,
}

/// What can be called.
pub(crate) enum Callable {
    /// A function, or a method of the actor.
    Python {
        function: Py<PyAny>,
        /// Of the function itself.
        name: Arc<str>,
        /// After which exceptions it is tried again.
        retry: Py<PyAny>,
    },
    /// Ends the actor.
    Terminate,
}

impl<'py> Here<'py> {
    /// Calls a function with the arguments of a call. `then`: what else the call is to run.
    fn invoke<T>(
        &self,
        call: &Call,
        function: &Py<PyAny>,
        then: impl FnOnce(Bound<'py, PyAny>) -> Result<T, Unreturned>,
    ) -> Result<T, Unreturned> {
        let py = self.py;
        let (args, kwargs) = arguments::read(py, &self.worker.session, call)?;
        // Reading the clock is dear beside a small task: arguments that came along take no time.
        if call.has_values() {
            call.note_call();
        }
        let called = {
            let _stoppable = Stoppable::begin(call)?;
            // What a library of the user's throws, ours does not: it is an error of the task.
            breakdown::caught(|| then(function.bind(py).call(args, kwargs.as_ref())?))
        };
        let result = called.unwrap_or_else(|said| {
            let said = format!("a native library of the task panicked: {said}");
            Err(PyRuntimeError::new_err(said).into())
        });
        call.note_return();
        if !self.worker.session.is_ours() {
            // A child that the task forked has come back: the task's answer is its parent's.
            oxiray_sys::process::exit_now(0);
        }
        result
    }

    /// Runs what a function has made, if that is a generator.
    fn run(
        &self,
        call: &Call,
        name: &str,
        made: Bound<'py, PyAny>,
    ) -> Result<Made<'py>, Unreturned> {
        let count = call.returns.in_answer();
        match () {
            () if call.is_stream() => {
                Ok(Made::Value(yields::iterate(self.py, &self.worker, call, made)?))
            }
            () if self.worker.is_generator(&made, count) => {
                self.worker.encode(made, call.giver, count, name).map(Made::Values)
            }
            () => Ok(Made::Value(made)),
        }
    }

    /// Begins a call on the event loop of this thread.
    fn begin(
        &self,
        event_loop: &Py<PyAny>,
        function: &Py<PyAny>,
        retry: &Py<PyAny>,
        running: RunningCall,
        call: Call,
    ) {
        let (py, name) = (self.py, running.name.clone());
        let read = arguments::read(py, &self.worker.session, &call);
        if read.is_ok() && call.has_values() {
            call.note_call();
        }
        let (args, kwargs) = match read {
            Ok(arguments) => arguments,
            Err(error) => return self.worker.finish(py, call, &name, retry, Err(error)),
        };
        let begin =
            if call.is_stream() { intern!(py, "begin_stream") } else { intern!(py, "begin") };
        let reply = Reply::new(self.worker.clone(), name, retry.clone_ref(py), call);
        let begun = event_loop.call_method1(py, begin, (reply, running, function, args, kwargs));
        if let Err(error) = begun {
            // The reply that was dropped says to the caller that nothing came of it.
            error.print(py);
        }
    }
}

impl Here<'_> {
    /// A function's name with its module's, as the runtime context tells it.
    fn with_module(&self, function: &Py<PyAny>, name: &Arc<str>) -> Arc<str> {
        let module = function.bind(self.py).getattr("__module__");
        match module.and_then(|module| module.extract::<String>()) {
            Ok(module) => format!("{module}.{name}").into(),
            Err(_) => name.clone(),
        }
    }
}

impl Language for Here<'_> {
    type Function = Callable;

    fn asleep<T: Send>(&mut self, sleep: impl FnOnce() -> T + Send) -> T {
        self.py.detach(sleep)
    }

    fn load(&mut self, payload: &[u8], name: &str) -> Result<Loaded<Callable>, Raised> {
        let actor = self.worker.actor.get().map(|actor| &actor.instance);
        let hooks = self.worker.hooks.bind(self.py);
        let loaded = hooks.call_method1("load_function", (payload, actor));
        let (function, name, max_calls, retry): (Py<PyAny>, String, u64, Py<PyAny>) = loaded
            .and_then(|loaded| loaded.extract())
            .map_err(|error| self.worker.describe(self.py, &error, name))?;
        let name: Arc<str> = name.into();
        let own = self.with_module(&function, &name);
        let function = Callable::Python { function, name: own, retry };
        Ok(Loaded { function, name, max_calls })
    }

    fn method(&mut self, name: &str) -> Result<Loaded<Callable>, Raised> {
        if name == TERMINATE {
            return Ok(Loaded { function: Callable::Terminate, name: name.into(), max_calls: 0 });
        }
        let found = match self.worker.actor.get() {
            None => Err(PyRuntimeError::new_err("this worker is no actor")),
            Some(Actor { instance, class_name }) => {
                let hooks = self.worker.hooks.bind(self.py);
                let found = hooks.call_method1("find_method", (instance, name));
                found
                    .and_then(|found| found.extract::<(Py<PyAny>, Py<PyAny>)>())
                    .map(|found| (found, class_name))
            }
        };
        let ((function, retry), class_name) =
            found.map_err(|error| self.worker.describe(self.py, &error, name))?;
        let name: Arc<str> = format!("{class_name}.{name}").into();
        let own = self.with_module(&function, &name);
        let function = Callable::Python { function, name: own, retry };
        Ok(Loaded { function, name, max_calls: 0 })
    }

    fn call(&mut self, callable: &Callable, name: &Arc<str>, call: Call) {
        let Callable::Python { function, name: own, retry } = callable else {
            return call.end_process("it was asked to end by __ray_terminate__".into(), false);
        };
        let (py, worker) = (self.py, self.worker.clone());
        let running = RunningCall { task: call.id, function: own.clone(), name: name.clone() };
        if let Some(event_loop) = &self.event_loop {
            return self.begin(event_loop, function, retry, running, call);
        }
        let result = running::enter(py, running).map_err(Unreturned::from).and_then(|()| {
            // An actor keeps what it was created with.
            if worker.actor.get().is_none() {
                worker.set_given(py, &call.devices);
            }
            self.invoke(&call, function, |made| self.run(&call, name, made))
        });
        worker.finish(py, call, name, retry, result);
    }

    fn cancel(&mut self, task: TaskId) {
        if let Some(event_loop) = &self.event_loop
            && let Err(error) = event_loop.bind(self.py).call_method1("cancel", (&task.0[..],))
        {
            error.print(self.py);
        }
    }

    fn read_on(&mut self, task: TaskId) {
        if let Some(event_loop) = &self.event_loop
            && let Err(error) = event_loop.bind(self.py).call_method1("read_on", (&task.0[..],))
        {
            error.print(self.py);
        }
    }

    fn construct(
        &mut self,
        actor: ActorId,
        start: &StartActor,
        payload: &[u8],
        call: Call,
    ) -> Result<Serving, (String, Option<Vec<u8>>)> {
        let (py, worker) = (self.py, self.worker.clone());
        let devices = start.devices.iter().flat_map(|devices| devices.ids.iter().copied());
        let group = GroupId::from_slice(&start.group);
        let threads = start.threads.max(1);
        let given = Given { devices: devices.collect(), threads, group, captures: start.capture };
        worker.set_given(py, &given.into_words());
        let class_name: Arc<str> = start.class_name.as_str().into();
        let name: Arc<str> = format!("{class_name}.__init__").into();
        {
            let mut here = HERE.write();
            here.call =
                Some(RunningCall { task: call.id, function: name.clone(), name: name.clone() });
            here.actor = Some(actor);
            here.printer = Some(class_name.clone());
            here.restarts = start.restarts;
            here.creator = start.creator;
        }
        let hooks = worker.hooks.bind(py);
        let built = hooks
            .call_method1("load_class", (payload,))
            .and_then(|loaded| loaded.extract::<(Py<PyAny>, Vec<u32>, bool)>())
            .and_then(|(class, limits, is_async)| {
                if is_async {
                    self.event_loop = Some(worker.new_event_loop(py)?);
                }
                Ok((class, limits))
            })
            .map_err(Unreturned::from)
            .and_then(|(class, limits)| {
                call.note_call();
                Ok((self.invoke(&call, &class, Ok)?, limits))
            });
        if let Ok((instance, _)) = &built {
            // Once: it may change with every call, and a name should not.
            let shown = hooks.call_method1("shown_name", (instance,));
            let shown = shown.and_then(|name| name.extract::<Option<String>>());
            if let Ok(Some(name)) = shown {
                HERE.write().printer = Some(name.into());
            }
        }
        end_printed(py, false);
        match built {
            Ok((instance, limits)) => {
                let _ = worker.actor.set(Actor { instance: instance.unbind(), class_name });
                call.succeed(&name, &[]);
                if self.event_loop.is_none() && limits == [1] {
                    return Ok(Serving::InTurn);
                }
                running::run_several();
                match self.event_loop {
                    Some(_) => Ok(Serving::Loops(limits)),
                    None => Ok(Serving::Threads(limits)),
                }
            }
            Err(Unreturned { error, .. }) => {
                if let Some((reason, _)) = worker.exit_reason(py, &error) {
                    call.fail_quietly(&name, "SystemExit", &reason);
                    return Err((format!("{reason} in its constructor"), None));
                }
                let Raised { data, exception, text, .. } =
                    worker.describe_creation(py, &error, &name);
                call.fail_quietly(&name, &exception, &text);
                Err(("its constructor raised an exception".into(), Some(data)))
            }
        }
    }

    fn creation_error(&mut self, class_name: &str, reason: &str) -> Vec<u8> {
        let error = PyRuntimeError::new_err(reason.to_owned());
        self.worker.describe_creation(self.py, &error, class_name).data
    }

    fn start_thread(&mut self, lane: usize) {
        self.worker.start_thread(lane, self.event_loop.is_some());
    }

    fn run_loop(&mut self) -> String {
        let Some(event_loop) = &self.event_loop else {
            return "it has no event loop".into();
        };
        LaneOfCalls::run(self.py, &self.worker, event_loop, 0).unwrap_or_else(|error| {
            error.print(self.py);
            format!("its event loop failed: {error}")
        })
    }

    fn join_job(&mut self, places: Vec<String>, settings: &str) {
        let hooks = self.worker.hooks.bind(self.py);
        if let Err(error) = hooks.call_method1("join_job", (places, settings)) {
            error.print(self.py);
        }
    }

    fn preload(&mut self, module: &str) {
        let _ = self.py.import(module);
    }

    fn rest(&mut self) {
        let count = self.worker.modules.bind(self.py).len();
        if count != self.worker.modules_seen.swap(count, Ordering::Relaxed) {
            let _ = self.worker.hooks.bind(self.py).call_method0("tell_imports");
        }
    }

    fn warn(&mut self, text: &str) {
        let _ = self.worker.hooks.bind(self.py).call_method1("tell", (text,));
    }

    fn tell(&mut self, failure: &Failure) {
        if let Some(text) = unhandled_text(self.py, failure) {
            let _ = self.worker.hooks.bind(self.py).call_method1("tell", (text,));
        }
    }

    fn collect(&mut self) {
        let _ = self.py.import("gc").and_then(|gc| gc.call_method0("collect"));
    }

    fn end(&mut self) {
        if let Some(Actor { instance, .. }) = self.worker.actor.get() {
            let hooks = self.worker.hooks.bind(self.py);
            let ended = hooks.call_method1("end_actor", (instance,));
            ended.map_or_else(|error| error.print(self.py), drop);
        }
        end_output(self.py, true);
    }
}
