//! How a driver starts a node service, how a worker finds it.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use oxiray_channel::Bells;
use oxiray_events::{EventLog, Role};
use oxiray_ids::{JobId, NodeId, ProcessId};
use oxiray_owner::MemoryRetries;
use oxiray_session::{Session, private_file};
use oxiray_settings::Malformed;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::control_group::{USUAL_ROOT, limits_of_processes};
use oxiray_sys::{packet, process};
use oxiray_wire::VERSION;
use oxiray_wire::control::{
    JobConfig, NodeConfig, ProcessKind, Register, Registered, Text, ToNode, from_node, to_node,
};
use prost::Message;

use crate::control;
use crate::executor::Executor;
use crate::io::Io;
use crate::line::Line;
use crate::logs::LogItem;
use crate::pump;
use crate::runtime::{Identity, Runtime};
use crate::store::Store;

/// Descriptor at which the node service finds its driver.
const DRIVER_FD: i32 = 3;

/// How long a driver waits for its first workers. Longer starts go on behind its back.
const WARM_WITHIN: Duration = Duration::from_millis(300);

/// How long a driver waits for the answer of a node service, and how often it looks at signals.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
    /// It is there, and does not answer.
    #[error(
        "the node service has not answered for {} s: it is stopped, or its machine is overloaded",
        ANSWER_WITHIN.as_secs()
    )]
    Silent,
    /// The caller's check said so.
    #[error("interrupted")]
    Interrupted,
    /// There is no room for its threads.
    #[error("the kernel refuses another thread ({error}): {limits}")]
    Thread {
        /// What the system said.
        error: io::Error,
        /// What it may be about.
        limits: String,
    },
    /// Sockets or shared memory failed.
    #[error("cannot connect to the node service: {0}")]
    Io(#[from] io::Error),
}

impl StartError {
    /// Nobody is there, or these were the node service's last moments.
    fn is_away(&self) -> bool {
        use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
        match self {
            Self::Io(error) => {
                matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe)
            }
            Self::Died(_) => true,
            _ => false,
        }
    }
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

/// Starts a node service that lives as long as this process. `interrupted` is asked now and then;
/// what it says ends the wait.
pub fn start_driver(
    config: DriverConfig,
    interrupted: impl FnMut() -> bool,
) -> Result<DriverSession, StartError> {
    let threads = Threads::prepare()?;
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
        environment: 0,
    };
    let registered = await_answer_to(&ours, register, interrupted);
    let registered = registered.and_then(|()| enter(ours, threads, true));
    match registered {
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

/// Connects a driver to the node service of a session that others of our user started. One that was
/// given up, and begins again, is waited for: its programs were told to come back. `interrupted` is
/// asked now and then; what it says ends the wait.
pub fn connect_driver(
    session: &Path,
    job: JobConfig,
    mut interrupted: impl FnMut() -> bool,
) -> Result<DriverSession, StartError> {
    let session = Session::at(session)?;
    let register = Register {
        version: VERSION,
        kind: ProcessKind::Driver as i32,
        config: None,
        job: Some(job),
        environment: 0,
    };
    let until = Instant::now() + ANSWER_WITHIN;
    loop {
        let attempt = connect_once(&session, register.clone(), &mut interrupted);
        let is_away = attempt.as_ref().is_err_and(StartError::is_away);
        if !is_away || session.has_ended() || Instant::now() > until {
            return attempt;
        }
        if interrupted() {
            return Err(StartError::Interrupted);
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn connect_once(
    session: &Session,
    register: Register,
    interrupted: impl FnMut() -> bool,
) -> Result<DriverSession, StartError> {
    let socket = session.connect()?;
    let threads = Threads::prepare()?;
    await_answer_to(&socket, register, interrupted)?;
    let (runtime, threads) = enter(socket, threads, true)?;
    Ok(DriverSession { runtime, child: None, threads })
}

/// Connects a forked worker; `output` are the read ends of its two streams, `environment` is the
/// node's number for what it was forked from.
pub fn start_worker(
    session: &Path,
    output: [OwnedFd; 2],
    environment: u32,
) -> Result<Arc<Runtime>, StartError> {
    let socket = Session::at(session).and_then(|session| session.connect())?;
    let kind = ProcessKind::Worker as i32;
    let register = Register { version: VERSION, kind, config: None, job: None, environment };
    let threads = Threads::prepare()?;
    register_at(&socket, register, &output)?;
    let (runtime, _threads) = enter(socket, threads, false)?;
    Ok(runtime)
}

fn register_at(socket: &OwnedFd, register: Register, output: &[OwnedFd]) -> Result<(), StartError> {
    let message = ToNode::from(to_node::Body::Register(register)).encode_to_vec();
    let fds: Vec<_> = output.iter().map(|fd| fd.as_fd()).collect();
    packet::send(socket, &message, &fds).map_err(|_| StartError::Died(String::new()))
}

/// Registers a driver, and sleeps until there is an answer.
fn await_answer_to(
    socket: &OwnedFd,
    register: Register,
    mut interrupted: impl FnMut() -> bool,
) -> Result<(), StartError> {
    register_at(socket, register, &[])?;
    let end = Instant::now() + ANSWER_WITHIN;
    while !packet::await_packet(socket, LOOK_EVERY)? {
        if interrupted() {
            return Err(StartError::Interrupted);
        }
        if Instant::now() >= end {
            return Err(StartError::Silent);
        }
    }
    Ok(())
}

/// Takes up what the node service answers.
fn enter(
    socket: OwnedFd,
    threads: Threads,
    is_driver: bool,
) -> Result<(Arc<Runtime>, Vec<JoinHandle<()>>), StartError> {
    let mut buffer = vec![0; packet::MAX_PACKET];
    let (registered, fds) = match control::receive(&socket, &mut buffer) {
        Some((from_node::Body::Registered(registered), fds)) => (registered, fds),
        Some((from_node::Body::Stopped(reason), _)) => {
            return Err(StartError::Refused(reason.text));
        }
        _ => return Err(StartError::Died(String::new())),
    };
    let runtime = Arc::new(build(registered, fds, socket.try_clone()?, is_driver)?);
    // They are there, and wait for nothing else.
    let _ = threads.listen.send((runtime.clone(), socket));
    let _ = threads.begin.send(runtime.clone());
    Ok((runtime, threads.all))
}

/// The threads of a process, before it registers: one that cannot have them is none that anybody
/// should know.
struct Threads {
    all: Vec<JoinHandle<()>>,
    listen: SyncSender<(Arc<Runtime>, OwnedFd)>,
    begin: SyncSender<Arc<Runtime>>,
}

impl Threads {
    fn prepare() -> Result<Self, StartError> {
        let (listener, listen) =
            prepare("oxiray-control", |(runtime, socket): (Arc<Runtime>, _)| {
                runtime.run_thread(|| control::run(&runtime, &socket));
            })?;
        let (pump, begin) = prepare("oxiray-pump", |runtime: Arc<Runtime>| {
            runtime.run_thread(|| pump::run(&runtime));
        })?;
        Ok(Self { all: vec![listener, pump], listen, begin })
    }
}

/// A thread that begins with what it is sent, and ends if that never comes.
fn prepare<T: Send + 'static>(
    name: &str,
    body: impl FnOnce(T) + Send + 'static,
) -> Result<(JoinHandle<()>, SyncSender<T>), StartError> {
    let (give, given) = sync_channel(1);
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(256 * 1024);
    let thread = thread.spawn(move || {
        if let Ok(given) = given.recv() {
            body(given);
        }
    });
    let root = || oxiray_settings::CGROUP_ROOT.path().unwrap_or_else(|| USUAL_ROOT.into());
    match thread {
        Ok(thread) => Ok((thread, give)),
        Err(error) => {
            let limits = limits_of_processes(Path::new(&root()));
            Err(StartError::Thread { error, limits })
        }
    }
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
        settings: registered.settings,
        ..JobConfig::default()
    };
    let has_job = JobId::from_slice(&job.job).is_some_and(|job| !job.is_nil());
    let line = Line::new(socket);
    let store = Store::map(
        arena,
        table,
        registered.store_size,
        identity.process,
        registered.bell,
        line.clone(),
    )?;
    let role = if is_driver { Role::Driver } else { Role::Worker };
    let events = EventLog::new(Path::new(&identity.session_dir), identity.process, role);
    let events = match registered.event_log {
        0 => events,
        log => events.continuing(log, registered.event_chunk),
    };
    let runtime = Runtime::new(
        Io::new(line, gateway, identity.process, bells, bell.clone(), store.clone(), events),
        bell,
        store,
        identity,
        job,
        Executor::new(has_job),
    );
    match memory_retries() {
        Ok(retries) => runtime.lock().owner.set_memory_retries(retries),
        Err(malformed) => runtime.logs.push(LogItem::Warning(malformed.to_string())),
    }
    match oxiray_settings::MAX_LINEAGE_BYTES.count() {
        Ok(bytes) => runtime.lock().owner.set_max_lineage_bytes(bytes as usize),
        Err(malformed) => runtime.logs.push(LogItem::Warning(malformed.to_string())),
    }
    Ok(runtime)
}

/// How tasks are tried again that fall for want of memory, as the environment has it.
fn memory_retries() -> Result<MemoryRetries, Malformed> {
    let most = oxiray_settings::TASK_OOM_RETRIES.number(-1.0..=1e9)?;
    let pause = oxiray_settings::TASK_OOM_RETRY_DELAY_BASE_MS.count()?;
    Ok(MemoryRetries {
        most: (most >= 0.0).then_some(most as u64),
        first_pause_ns: pause.saturating_mul(1_000_000),
    })
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
        // One that is stopped says nothing, not even that it is gone.
        self.runtime.lock().io.node().cut();
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
