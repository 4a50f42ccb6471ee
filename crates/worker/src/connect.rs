//! How a driver starts a node service, how a worker finds it.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use oxiray_channel::Bells;
use oxiray_events::{EventLog, Role};
use oxiray_ids::{JobId, NodeId, ProcessId};
use oxiray_session::{Session, private_file};
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::{packet, process};
use oxiray_wire::VERSION;
use oxiray_wire::control::{
    JobConfig, NodeConfig, ProcessKind, Register, Registered, Text, ToNode, from_node, to_node,
};
use prost::Message;

use crate::control;
use crate::executor::Executor;
use crate::io::Io;
use crate::logs::LogItem;
use crate::pump;
use crate::runtime::{Identity, Runtime};
use crate::store::Store;

/// Descriptor at which the node service finds its driver.
const DRIVER_FD: i32 = 3;

/// How long a driver waits for its first workers. Longer starts go on behind its back.
const WARM_WITHIN: Duration = Duration::from_millis(300);

/// Why a session could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program could not be run.
    #[error("cannot run the node service {program}: {error}")]
    Spawn {
        /// Its path.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// It ended before it answered.
    #[error("the node service ended while starting: {0}")]
    Died(String),
    /// It said no.
    #[error("the node service refused: {0}")]
    Refused(String),
    /// Sockets or shared memory failed.
    #[error("cannot connect to the node service: {0}")]
    Io(#[from] io::Error),
}

/// How to start a node service for a driver.
pub struct DriverConfig {
    /// Path of `oxirayd`.
    pub program: String,
    /// How it is to be.
    pub node: NodeConfig,
    /// What its workers must know of the driver.
    pub job: JobConfig,
}

/// A driver's session: the threads that listen, and the node service if it started one.
pub struct DriverSession {
    /// The driver's side of the engine.
    pub runtime: Arc<Runtime>,
    child: Option<Child>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts a node service that lives as long as this process.
pub fn start_driver(config: DriverConfig) -> Result<DriverSession, StartError> {
    let (ours, theirs) = packet::pair()?;
    let errors = Path::new(&config.node.session_dir).join("logs/oxirayd.err");
    let mut command = Command::new(&config.program);
    command
        .args(["driver", "--fd", &DRIVER_FD.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(
            private_file(OpenOptions::new().create(true).append(true), &errors)
                .map_or_else(|_| Stdio::null(), Stdio::from),
        );
    let mut child = process::spawn_detached(&mut command, theirs, DRIVER_FD)
        .map_err(|error| StartError::Spawn { program: config.program.clone(), error })?;
    let register = Register {
        version: VERSION,
        kind: ProcessKind::Driver as i32,
        config: Some(config.node),
        job: Some(config.job),
    };
    match register_at(ours, register, &[], true) {
        Ok((runtime, threads)) => {
            let deadline = monotonic_ns() + WARM_WITHIN.as_nanos() as u64;
            runtime.wait_until(Some(deadline), || false, |state| state.warm);
            Ok(DriverSession { runtime, child: Some(child), threads })
        }
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            match error {
                StartError::Died(_) => {
                    let said = std::fs::read_to_string(&errors).unwrap_or_default();
                    Err(StartError::Died(said.trim().to_owned()))
                }
                error => Err(error),
            }
        }
    }
}

/// Connects a driver to the node service of a session that others of our user started.
pub fn connect_driver(session: &Path, job: JobConfig) -> Result<DriverSession, StartError> {
    let socket = Session::at(session).and_then(|session| session.connect())?;
    let register = Register {
        version: VERSION,
        kind: ProcessKind::Driver as i32,
        config: None,
        job: Some(job),
    };
    let (runtime, threads) = register_at(socket, register, &[], true)?;
    Ok(DriverSession { runtime, child: None, threads })
}

/// Connects a forked worker; `output` are the read ends of its two streams.
pub fn start_worker(session: &Path, output: [OwnedFd; 2]) -> Result<Arc<Runtime>, StartError> {
    let socket = Session::at(session).and_then(|session| session.connect())?;
    let kind = ProcessKind::Worker as i32;
    let register = Register { version: VERSION, kind, config: None, job: None };
    let (runtime, _threads) = register_at(socket, register, &output, false)?;
    Ok(runtime)
}

fn register_at(
    socket: OwnedFd,
    register: Register,
    output: &[OwnedFd],
    is_driver: bool,
) -> Result<(Arc<Runtime>, Vec<JoinHandle<()>>), StartError> {
    let message = ToNode::from(to_node::Body::Register(register)).encode_to_vec();
    let fds: Vec<_> = output.iter().map(|fd| fd.as_fd()).collect();
    if packet::send(&socket, &message, &fds).is_err() {
        return Err(StartError::Died(String::new()));
    }
    let mut buffer = vec![0; packet::MAX_PACKET];
    let (registered, fds) = match control::receive(&socket, &mut buffer) {
        Some((from_node::Body::Registered(registered), fds)) => (registered, fds),
        Some((from_node::Body::Stopped(reason), _)) => {
            return Err(StartError::Refused(reason.text));
        }
        _ => return Err(StartError::Died(String::new())),
    };
    let runtime = Arc::new(build(registered, fds, socket.try_clone()?, is_driver)?);
    let listener = {
        let runtime = runtime.clone();
        spawn("oxiray-control", move || runtime.run_thread(|| control::run(&runtime, &socket)))?
    };
    let pump = {
        let runtime = runtime.clone();
        spawn("oxiray-pump", move || runtime.run_thread(|| pump::run(&runtime)))?
    };
    Ok((runtime, vec![listener, pump]))
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(256 * 1024).spawn(body)
}

fn build(
    registered: Registered,
    fds: Vec<OwnedFd>,
    socket: OwnedFd,
    is_driver: bool,
) -> Result<Runtime, StartError> {
    let bad = || StartError::Refused("it answered something else than expected".to_owned());
    let mut fds = fds.into_iter();
    let [Some(bells), Some(arena), Some(table)] = [fds.next(), fds.next(), fds.next()] else {
        return Err(bad());
    };
    let gateway = fds.next().map(Arc::new);
    let bells = Bells::map(bells)?;
    let bell = bells.bell(registered.bell)?;
    bell.reset();
    let identity = Identity {
        process: ProcessId(registered.process),
        node: NodeId::from_slice(&registered.node).ok_or_else(bad)?,
        is_driver,
        preload: registered.preload,
        session_dir: registered.session_dir,
        address: registered.address,
        control: registered.control,
    };
    let job = JobConfig {
        job: registered.job,
        namespace: registered.namespace,
        driver: registered.driver,
        ..JobConfig::default()
    };
    let has_job = JobId::from_slice(&job.job).is_some_and(|job| !job.is_nil());
    let store = Store::map(
        arena,
        table,
        registered.store_size,
        identity.process,
        registered.bell,
        socket.try_clone()?,
    )?;
    let role = if is_driver { Role::Driver } else { Role::Worker };
    let events = EventLog::new(Path::new(&identity.session_dir), identity.process, role);
    let events = match registered.event_log {
        0 => events,
        log => events.continuing(log, registered.event_chunk),
    };
    let runtime = Runtime::new(
        Io::new(socket, gateway, identity.process, bells, bell.clone(), store.clone(), events),
        bell,
        store,
        identity,
        job,
        Executor::new(has_job),
    );
    match oxiray_settings::MAX_LINEAGE_BYTES.count() {
        Ok(bytes) => runtime.lock().owner.set_max_lineage_bytes(bytes as usize),
        Err(malformed) => runtime.logs.push(LogItem::Warning(malformed.to_string())),
    }
    Ok(runtime)
}

impl DriverSession {
    /// Ends the session: returns when everything that workers printed is in the
    /// logs and the node service has gone. `failure`: the error that ends the program; empty: none.
    pub fn stop(mut self, failure: &str) {
        self.runtime.leaving.store(true, Ordering::SeqCst);
        if self.child.is_none() {
            self.runtime.store.leave();
        }
        self.runtime.lock().io.tell_node(to_node::Body::Stop(Text { text: failure.to_owned() }));
        let end = Instant::now() + control::STOP_WITHIN;
        while !self.threads[0].is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        while let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) if Instant::now() < end => {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                _ => break,
            }
        }
        self.runtime.bell().ring();
        self.runtime.pump.kick_if_deep();
        for thread in self.threads {
            let _ = thread.join();
        }
        if self.child.is_some() {
            self.runtime.store.shrink();
        }
    }
}
