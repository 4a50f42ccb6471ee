//! What runs here, as those who ask in it see it: the call, and the actor it is of.
//!
//! Where calls run one after the other, the call is the process's: threads that it starts are in
//! it, too. Where several run, each is in the contextvar `oxiray._running.call` of its thread or
//! coroutine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxiray_ids::{ActorId, GroupId, TaskId};
use parking_lot::RwLock;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A call, as its runtime context shows it.
#[pyclass(frozen, module = "oxiray")]
#[derive(Clone)]
pub(crate) struct RunningCall {
    pub(crate) task: TaskId,
    /// Of the function or method.
    pub(crate) function: Arc<str>,
    /// As people gave it, or the function's.
    pub(crate) name: Arc<str>,
}

/// What a process is, and what it runs if that is one at a time.
#[derive(Default, Clone)]
pub(crate) struct Here {
    /// The call that runs, or ran last.
    pub(crate) call: Option<RunningCall>,
    /// What the actor's output is shown with: its class, or what that says of it.
    pub(crate) printer: Option<Arc<str>>,
    pub(crate) actor: Option<ActorId>,
    pub(crate) devices: Vec<u32>,
    /// The placement group that it works in, and whether what it submits is to be in that, too.
    pub(crate) group: Option<(GroupId, bool)>,
    /// How often the actor was started again.
    pub(crate) restarts: u64,
    /// Process number of the actor's creator.
    pub(crate) creator: u64,
}

pub(crate) static HERE: RwLock<Here> = RwLock::new(Here {
    call: None,
    printer: None,
    actor: None,
    devices: Vec::new(),
    group: None,
    restarts: 0,
    creator: 0,
});

/// Several calls run here.
static IS_CONCURRENT: AtomicBool = AtomicBool::new(false);

/// From now on calls run several at a time.
pub(crate) fn run_several() {
    IS_CONCURRENT.store(true, Ordering::Relaxed);
    HERE.write().call = None;
}

fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CALL.import(py, "oxiray._running", "call")
}

/// The placement group that what is submitted here is to be in, if nothing else is said of it.
pub(crate) fn capturing() -> Option<GroupId> {
    HERE.read().group.and_then(|(group, captures)| captures.then_some(group))
}

/// Notes that the calling thread runs `call` now.
pub(crate) fn enter(py: Python<'_>, call: RunningCall) -> PyResult<()> {
    if IS_CONCURRENT.load(Ordering::Relaxed) {
        variable(py)?.call_method1("set", (call,))?;
    } else {
        HERE.write().call = Some(call);
    }
    Ok(())
}

/// The call that the caller is in.
pub(crate) fn call(py: Python<'_>) -> Option<RunningCall> {
    if !IS_CONCURRENT.load(Ordering::Relaxed) {
        return HERE.read().call.clone();
    }
    let found = variable(py).and_then(|variable| variable.call_method0("get")).ok()?;
    found.cast::<RunningCall>().ok().map(|call| call.get().clone())
}

/// The task that the caller is in, where several run.
pub(crate) fn one_of_several(py: Python<'_>) -> Option<TaskId> {
    if !IS_CONCURRENT.load(Ordering::Relaxed) {
        return None;
    }
    call(py).map(|call| call.task)
}

/// Who prints: the name of the running task or actor, and the id of the task or call; and whether
/// others may print meanwhile.
#[pyfunction]
pub(crate) fn current_printer(py: Python<'_>) -> (String, String, bool) {
    let call = call(py);
    let printer = HERE.read().printer.clone();
    let name = printer.or_else(|| call.as_ref().map(|call| call.name.clone()));
    let task = call.map_or_else(String::new, |call| call.task.to_string());
    let are_several = IS_CONCURRENT.load(Ordering::Relaxed);
    (name.as_deref().unwrap_or("").to_owned(), task, are_several)
}
