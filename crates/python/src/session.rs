//! The session of this process: start, stop, who am I.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use oxiray_sys::process::inherited_fd;
use oxiray_wire::control::{
    Amount, DashboardConfig, JobConfig, LabelSelector, LabelSelectors, LabelTest, NodeConfig,
    Shape, Strategy, UNIT,
};
use oxiray_worker::breakdown;
use oxiray_worker::{
    DriverConfig, DriverSession, ObjectKey, Runtime, connect_driver, start_driver, start_worker,
};
use parking_lot::{Mutex, RwLock};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::system_error;
use crate::guard::guarded;
use crate::pending::PendingLimit;
use crate::values::raises_signal;

/// A session, kept alive by every reference that belongs to it.
pub(crate) struct Session {
    pub(crate) runtime: Arc<Runtime>,
    /// The process that it belongs to: a forked child only inherits it.
    pid: u32,
    /// By what calls are made: no other session has had or will have it, and it changes when what
    /// is submitted is to be in another placement group.
    calling: AtomicU64,
    /// The runtime environment of what this process submits, unless that has its own; as JSON,
    /// empty: the nodes'.
    environment: Mutex<String>,
    driver: Mutex<Option<DriverSession>>,
    pub(crate) pending: PendingLimit,
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// This process, as [`after_fork_in_child`] keeps it.
static PID: AtomicU32 = AtomicU32::new(0);

impl Session {
    fn new(runtime: Arc<Runtime>, driver: Option<DriverSession>) -> Arc<Self> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let pid = PID.load(Ordering::Relaxed);
        let (calling, environment) = (number.into(), Mutex::default());
        let (driver, pending) = (Mutex::new(driver), PendingLimit::default());
        Arc::new(Self { runtime, pid, calling, environment, driver, pending })
    }

    /// Whoever knows this number knows all that a call needs, until it changes.
    pub(crate) fn calling(&self) -> u64 {
        self.calling.load(Ordering::Relaxed)
    }

    /// What calls need has changed.
    pub(crate) fn call_anew(&self) {
        self.calling.store(NUMBERS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The runtime environment of a task or actor; `own` makes it of this process's, if it has
    /// one of its own.
    pub(crate) fn environment_of(
        &self,
        py: Python<'_>,
        own: Option<&Py<PyAny>>,
    ) -> PyResult<String> {
        let inherited = self.environment.lock().clone();
        match own {
            Some(own) => own.call1(py, (inherited,))?.extract(py),
            None => Ok(inherited),
        }
    }

    /// Whether this process may speak in it. A forked child must not: the rings
    /// have one writer, and locks may be held by threads that it does not have.
    pub(crate) fn is_ours(&self) -> bool {
        self.pid == PID.load(Ordering::Relaxed)
    }

    /// Drops counts, unless we only inherited them.
    pub(crate) fn release(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        if !self.is_ours() || self.runtime.broken().is_some() || std::thread::panicking() {
            return;
        }
        // Nobody is there to raise an error to: what is asked next raises it.
        if let Err(said) = breakdown::caught(|| self.runtime.release(keys)) {
            self.runtime.break_down(&said);
        }
    }

    /// Whether this is the session that runs now.
    pub(crate) fn is_current(self: &Arc<Self>) -> bool {
        CURRENT.read().as_ref().is_some_and(|current| Arc::ptr_eq(current, self))
    }
}

static CURRENT: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// The session whose output is still being printed; it may have ended already.
static PRINTING: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// See [`PRINTING`].
pub(crate) fn printing() -> Option<Arc<Session>> {
    PRINTING.read().clone()
}

/// All output of `session` has been printed.
pub(crate) fn printed(session: &Arc<Session>) {
    let mut printing = PRINTING.write();
    if printing.as_ref().is_some_and(|printing| Arc::ptr_eq(printing, session)) {
        *printing = None;
    }
}

/// The current session; starts one if there is none.
pub(crate) fn current(py: Python<'_>) -> PyResult<Arc<Session>> {
    if let Some(session) = existing() {
        return Ok(session);
    }
    py.import("oxiray._session")?.call_method0("auto_init")?;
    existing().ok_or_else(|| PyRuntimeError::new_err("the session ended while it was starting"))
}

/// The current session, if there is one.
pub(crate) fn existing() -> Option<Arc<Session>> {
    CURRENT.read().clone()
}

/// The error of using something of a session that is over, or is another process's.
pub(crate) fn not_current(py: Python<'_>, session: &Session, what: &str) -> PyErr {
    let message = match session.is_ours() {
        true => format!(
            "{what} belongs to a session that has been shut down; its values are gone. \
             Call init() and submit the work again."
        ),
        false => format!(
            "{what} belongs to the process that this one was forked from, and only that one can \
             use it: get the value there before the fork, or let a task do what the child does."
        ),
    };
    system_error(py, &message)
}

/// Bounds of what goes into a control message.
const MOST_RESOURCES: usize = 200;
const LONGEST_NAME: usize = 256;

/// Bytes that all that a task or actor needs may have in messages, which have other parts as well.
const LARGEST_SHAPE: usize = 32 << 10;

/// Resources in the wire's form: fixed-point, sorted, zeros left out.
pub(crate) fn amounts(resources: BTreeMap<String, f64>) -> PyResult<Vec<Amount>> {
    if resources.len() > MOST_RESOURCES {
        return Err(PyValueError::new_err(format!(
            "at most {MOST_RESOURCES} resources can be named at once, not {}",
            resources.len()
        )));
    }
    let mut amounts = Vec::with_capacity(resources.len());
    for (name, amount) in resources {
        if name.len() > LONGEST_NAME {
            return Err(PyValueError::new_err(format!(
                "the name of a resource can have {LONGEST_NAME} bytes, not {}: {}…",
                name.len(),
                name.chars().take(40).collect::<String>()
            )));
        }
        if !(0.0..=1e15).contains(&amount) {
            return Err(PyValueError::new_err(format!(
                "the amount of resource {name:?} must be between 0 and 1e15, not {amount}"
            )));
        }
        let amount = (amount * UNIT as f64).round() as u64;
        if amount > 0 {
            amounts.push(Amount { name, amount });
        }
    }
    Ok(amounts)
}

/// A label's key, the test, its values.
pub(crate) type Selector = (String, String, Vec<String>);

/// Conditions on nodes' labels, as `oxiray._strategy` encodes them.
pub(crate) fn label_selectors(listed: Vec<Selector>) -> PyResult<Vec<LabelSelector>> {
    let selector = |(key, test, values): Selector| {
        let test = match test.as_str() {
            "in" => LabelTest::In,
            "not_in" => LabelTest::NotIn,
            "exists" => LabelTest::Exists,
            "does_not_exist" => LabelTest::DoesNotExist,
            other => return Err(PyValueError::new_err(format!("no test of labels: {other}"))),
        };
        Ok(LabelSelector { key, test: test as i32, values })
    };
    listed.into_iter().map(selector).collect()
}

/// What a task or actor needs; `strategy` as `oxiray._strategy` encodes it.
pub(crate) fn shape(
    resources: BTreeMap<String, f64>,
    strategy: Option<&Bound<'_, PyDict>>,
    priority: i32,
) -> PyResult<Shape> {
    let resources = amounts(resources)?;
    let mut shape = Shape { resources, priority, ..Shape::default() };
    let Some(dict) = strategy else {
        return Ok(shape);
    };
    let flag = |name: &str| -> PyResult<bool> {
        dict.get_item(name)?.map_or(Ok(false), |value| value.extract())
    };
    let selectors = |name: &str| -> PyResult<Vec<LabelSelector>> {
        dict.get_item(name)?.map_or(Ok(Vec::new()), |listed| label_selectors(listed.extract()?))
    };
    let strategy = Strategy {
        spread: flag("spread")?,
        node: match dict.get_item("node")? {
            Some(node) if !node.is_none() => node.extract()?,
            _ => Vec::new(),
        },
        soft: flag("soft")?,
        spill_on_unavailable: flag("spill_on_unavailable")?,
        fail_on_unavailable: flag("fail_on_unavailable")?,
        labels: selectors("labels")?,
        soft_labels: selectors("soft_labels")?,
        group: match dict.get_item("group")? {
            Some(group) if !group.is_none() => group.extract()?,
            _ => Vec::new(),
        },
        bundle: match dict.get_item("bundle")? {
            Some(bundle) => bundle.extract()?,
            None => None,
        },
        capture: flag("capture")?,
        fallbacks: match dict.get_item("fallbacks")? {
            Some(listed) => {
                let listed = listed.extract::<Vec<Vec<Selector>>>()?.into_iter();
                let read = |one| Ok(LabelSelectors { all: label_selectors(one)? });
                listed.map(read).collect::<PyResult<_>>()?
            }
            None => Vec::new(),
        },
    };
    shape.strategy = (strategy != Strategy::default()).then_some(strategy);
    let bytes = shape.bytes();
    if bytes > LARGEST_SHAPE {
        return Err(PyValueError::new_err(format!(
            "the resources and labels that a task or actor asks for can have {LARGEST_SHAPE} \
             bytes together, not {bytes}: name fewer values in label_selector or in the labels \
             of its scheduling_strategy"
        )));
    }
    Ok(shape)
}

/// Starts a node service and makes its session the current one.
#[pyfunction]
#[pyo3(signature = (*, program, resources, object_store_memory, python, sys_path, preload, session_dir, log_to_driver, prestart_workers, memory_usage_threshold, namespace, spill_to, store_patience_ms, tell_spilling, entrypoint, settings, dashboard, enforce, labels))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python caller")]
pub(crate) fn start(
    py: Python<'_>,
    program: String,
    resources: BTreeMap<String, f64>,
    object_store_memory: u64,
    python: String,
    sys_path: Vec<String>,
    preload: Vec<String>,
    session_dir: String,
    log_to_driver: bool,
    prestart_workers: u32,
    memory_usage_threshold: f64,
    namespace: String,
    spill_to: Vec<String>,
    store_patience_ms: u64,
    tell_spilling: bool,
    entrypoint: String,
    settings: String,
    dashboard: Option<(String, Option<u32>, bool, String)>,
    enforce: bool,
    labels: BTreeMap<String, String>,
) -> PyResult<()> {
    guarded(py, || {
        let job = JobConfig {
            entrypoint,
            submission: oxiray_settings::JOB_SUBMISSION_ID.text().unwrap_or_default(),
            settings,
            sys_path: sys_path.clone(),
            namespace: namespace.clone(),
            log_to_driver,
            ..JobConfig::default()
        };
        let node =
            NodeConfig {
                resources: amounts(resources)?,
                object_store_memory,
                python,
                sys_path,
                preload,
                session_dir,
                log_to_driver,
                prestart_workers,
                memory_usage_threshold,
                namespace,
                spill_to,
                store_patience_ms,
                tell_spilling,
                cluster: None,
                enforce,
                labels,
                dashboard: dashboard.map(|(host, port, is_required, python_version)| {
                    DashboardConfig { host, port, is_required, python_version }
                }),
            };
        if existing().is_some() {
            return Err(PyRuntimeError::new_err("a session is running already"));
        }
        let mut raised = None;
        let started = py.detach(|| {
            let interrupted = || raises_signal(&mut raised);
            start_driver(DriverConfig { program, node, job }, interrupted)
        });
        let driver = started.map_err(|error| {
            raised.unwrap_or_else(|| PyRuntimeError::new_err(error.to_string()))
        })?;
        begin(driver);
        Ok(())
    })
}

/// Makes a driver's session the current one.
fn begin(driver: DriverSession) {
    let runtime = driver.runtime.clone();
    let session = Session::new(runtime, Some(driver));
    *PRINTING.write() = Some(session.clone());
    *CURRENT.write() = Some(session);
}

/// Connects this driver to the node service of a cluster on this machine.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python caller")]
#[pyo3(signature = (*, session_dir, sys_path, namespace, log_to_driver, entrypoint, python, settings))]
pub(crate) fn connect(
    py: Python<'_>,
    session_dir: &str,
    sys_path: Vec<String>,
    namespace: String,
    log_to_driver: bool,
    entrypoint: String,
    python: String,
    settings: String,
) -> PyResult<()> {
    guarded(py, || {
        if existing().is_some() {
            return Err(PyRuntimeError::new_err("a session is running already"));
        }
        let job = JobConfig {
            sys_path,
            namespace,
            log_to_driver,
            entrypoint,
            submission: oxiray_settings::JOB_SUBMISSION_ID.text().unwrap_or_default(),
            python,
            settings,
            ..JobConfig::default()
        };
        let mut raised = None;
        let connected = py.detach(|| {
            let interrupted = || raises_signal(&mut raised);
            connect_driver(Path::new(session_dir), job, interrupted)
        });
        let driver = connected.map_err(|error| {
            raised.unwrap_or_else(|| {
                PyConnectionError::new_err(format!("{error} (the node service of {session_dir})"))
            })
        })?;
        begin(driver);
        Ok(())
    })
}

/// Ends the current session, if there is one. `failure` says what ends the program, if that is an error.
#[pyfunction]
pub(crate) fn stop(py: Python<'_>, failure: &str) {
    let Some(session) = CURRENT.write().take() else {
        return;
    };
    if let Some(driver) = session.driver.lock().take() {
        py.detach(|| driver.stop(failure));
    }
}

/// In a forked child: the session was the parent's. Whether there was one.
#[pyfunction]
pub(crate) fn after_fork_in_child() -> bool {
    PID.store(std::process::id(), Ordering::Relaxed);
    let inherited = CURRENT.write().take();
    let there_was_one = inherited.is_some();
    // Forgotten, not dropped: its threads and its node service are the parent's.
    std::mem::forget(inherited);
    std::mem::forget(PRINTING.write().take());
    crate::folder::forget();
    there_was_one
}

/// Sets the runtime environment of what this process submits, as JSON; empty: the nodes'.
#[pyfunction]
pub(crate) fn set_environment(py: Python<'_>, text: String) -> PyResult<()> {
    guarded(py, || {
        *current(py)?.environment.lock() = text;
        Ok(())
    })
}

/// The runtime environment of what this process submits.
#[pyfunction]
pub(crate) fn environment() -> String {
    existing().map(|session| session.environment.lock().clone()).unwrap_or_default()
}

/// Whether there is a session.
#[pyfunction]
pub(crate) fn is_running() -> bool {
    existing().is_some()
}

/// Connects a forked worker of an environment to its node service. `text` describes that: what it
/// submits has the same unless said otherwise.
#[pyfunction]
pub(crate) fn connect_worker(
    session_dir: &str,
    stdout: i32,
    stderr: i32,
    environment: u32,
    text: String,
) -> PyResult<()> {
    let output: [OwnedFd; 2] = [inherited_fd(stdout)?, inherited_fd(stderr)?];
    let runtime = start_worker(Path::new(session_dir), output, environment)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let session = Session::new(runtime, None);
    *session.environment.lock() = text;
    *CURRENT.write() = Some(session);
    Ok(())
}
