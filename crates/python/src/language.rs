//! Python, as the engine speaks it: see [`oxiray_worker::Language`].

use std::sync::Arc;

use oxiray_ids::ActorId;
use oxiray_wire::control::StartActor;
use oxiray_wire::frame::{Outcome, Task};
use oxiray_worker::{Call, Failure, Language, Loaded, Raised, Serving};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arguments::{self, Unreadable};
use crate::execute::{Actor, Worker, is_retryable};
use crate::printed::{end_output, end_printed, unhandled_text};
use crate::running::{self, HERE, RunningCall};

/// Name of the method that ends an actor.
const TERMINATE: &str = "__ray_terminate__";

/// One thread of a worker.
pub(crate) struct Here<'py> {
    pub(crate) py: Python<'py>,
    pub(crate) worker: Arc<Worker>,
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
    /// Calls a function with the arguments of a call.
    fn invoke(
        &self,
        call: &Call,
        task: &Task<'_>,
        function: &Py<PyAny>,
    ) -> Result<Bound<'py, PyAny>, Unreadable> {
        let py = self.py;
        let (args, kwargs) = arguments::read(py, &self.worker.session, task)?;
        // Reading the clock is dear beside a small task: arguments that came along take no time.
        if !task.values.is_empty() {
            call.note_call();
        }
        let result = function.bind(py).call(args, kwargs.as_ref());
        call.note_return();
        if !self.worker.session.is_ours() {
            // A child that the task forked has come back: the task's answer is its parent's.
            oxiray_sys::process::exit_now(0);
        }
        Ok(result?)
    }
}

impl Language for Here<'_> {
    type Function = Callable;

    fn asleep<T: Send>(&mut self, sleep: impl FnOnce() -> T + Send) -> T {
        self.py.detach(sleep)
    }

    fn load(&mut self, payload: &[u8], name: &str) -> Result<Loaded<Callable>, Raised> {
        let loaded = self.worker.hooks.bind(self.py).call_method1("load_function", (payload,));
        let (function, name, max_calls, retry): (Py<PyAny>, String, u64, Py<PyAny>) = loaded
            .and_then(|loaded| loaded.extract())
            .map_err(|error| self.worker.describe(self.py, &error, name))?;
        let name: Arc<str> = name.into();
        let function = Callable::Python { function, name: name.clone(), retry };
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
        let function = Callable::Python { function, name: name.clone(), retry };
        Ok(Loaded { function, name, max_calls: 0 })
    }

    fn call(&mut self, callable: &Callable, name: &Arc<str>, call: Call) {
        let Callable::Python { function, name: own, retry } = callable else {
            return call.end_process("it was asked to end by __ray_terminate__".into());
        };
        let (py, worker) = (self.py, self.worker.clone());
        let is_actor = worker.actor.get().is_some();
        let (giver, count) = (call.giver, call.num_returns);
        let running = RunningCall { task: call.id, function: own.clone(), name: name.clone() };
        let result = running::enter(py, running).map_err(Unreadable::from).and_then(|()| {
            let task = call.task();
            // An actor keeps the devices that it was created with.
            if !is_actor {
                worker.set_devices(py, &task.devices);
            }
            let result = self.invoke(&call, &task, function)?;
            Ok(worker.encode(result, giver, count, name)?)
        });
        // What it returns may print as it is pickled.
        end_printed(py, !is_actor);
        match result {
            Ok(values) => call.succeed(name, &values),
            Err(Unreadable { error, is_lost }) => {
                if is_actor && let Some(reason) = worker.exit_reason(py, &error) {
                    return call.end_process(reason.into());
                }
                let outcome = match () {
                    // Its owner has the argument made again, or says why not.
                    () if is_lost => Outcome::Unread,
                    () if is_retryable(py, retry, &error) => Outcome::Retryable,
                    () => Outcome::Raised,
                };
                let raised = worker.describe(py, &error, name);
                call.fail(name, Raised { outcome, ..raised });
            }
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
        let devices: Vec<u32> =
            start.devices.iter().flat_map(|devices| devices.ids.iter().copied()).collect();
        worker.set_devices(py, &devices);
        let class_name: Arc<str> = start.class_name.as_str().into();
        let name: Arc<str> = format!("{class_name}.__init__").into();
        {
            let mut here = HERE.write();
            here.call =
                Some(RunningCall { task: call.id, function: name.clone(), name: name.clone() });
            here.actor = Some(actor);
            here.printer = Some(class_name.clone());
            here.restarts = start.restarts;
        }
        let hooks = worker.hooks.bind(py);
        let built = hooks
            .call_method1("load_class", (payload,))
            .and_then(|loaded| loaded.extract::<(Py<PyAny>, Vec<u32>)>())
            .map_err(Unreadable::from)
            .and_then(|(class, limits)| {
                call.note_call();
                Ok((self.invoke(&call, &call.task(), &class)?, limits))
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
                if limits.len() == 1 && limits[0] == 1 {
                    return Ok(Serving::InTurn);
                }
                running::run_several();
                Ok(Serving::Threads(limits))
            }
            Err(Unreadable { error, .. }) => {
                if let Some(reason) = worker.exit_reason(py, &error) {
                    call.fail_quietly(&name, "SystemExit", reason);
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
        self.worker.start_thread(lane);
    }

    fn join_job(&mut self, places: Vec<String>) {
        if let Err(error) = self.worker.hooks.bind(self.py).call_method1("join_job", (places,)) {
            error.print(self.py);
        }
    }

    fn preload(&mut self, module: &str) {
        let _ = self.py.import(module);
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
        end_output(self.py, true);
    }
}
