//! A driver made of nothing but its socket, beside a real `oxirayd`.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxiray_sys::{packet, process};
use oxiray_wire::control::{
    Amount, FromNode, JobConfig, NodeConfig, ProcessKind, Register, SetDemand, Shape, ToNode, UNIT,
    from_node::Body, to_node,
};
use prost::Message;

const PATIENCE: Duration = Duration::from_secs(20);

/// A session and everything received from it.
pub(crate) struct Driver {
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) child: Child,
    pub(crate) base: PathBuf,
    pub(crate) session: PathBuf,
    pub(crate) received: Vec<Body>,
    /// Descriptors that came with the first answer.
    pub(crate) descriptors: usize,
}

pub(crate) fn fake_python() -> String {
    format!("{}/tests/common/fake_zygote.py", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn shape(cpus: u64) -> Option<Shape> {
    let resources = match cpus {
        0 => Vec::new(),
        cpus => vec![Amount { name: "CPU".into(), amount: cpus * UNIT }],
    };
    Some(Shape { resources, ..Shape::default() })
}

impl Driver {
    /// Starts a session with two CPUs and registers.
    pub(crate) fn start(change: impl FnOnce(&mut NodeConfig)) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base =
            std::env::temp_dir().join(format!("oxiray-test-{}-{number}", std::process::id()));
        let session = base.join("session_test");
        std::fs::create_dir_all(&session).unwrap();
        std::fs::set_permissions(&session, std::fs::Permissions::from_mode(0o700)).unwrap();
        let (ours, theirs) = packet::pair().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_oxirayd"));
        command.args(["driver", "--fd", "3"]).env(oxiray_settings::KEEP_SESSIONS.name, "1");
        let child = process::spawn_detached(&mut command, theirs, 3).unwrap();
        let mut config = NodeConfig {
            resources: shape(2).unwrap().resources,
            object_store_memory: 1 << 20,
            python: fake_python(),
            session_dir: session.to_str().unwrap().into(),
            log_to_driver: true,
            prestart_workers: 2,
            ..NodeConfig::default()
        };
        change(&mut config);
        let log_to_driver = config.log_to_driver;
        let mut register = Register {
            version: oxiray_wire::VERSION,
            config: Some(config),
            job: Some(JobConfig { log_to_driver, ..JobConfig::default() }),
            ..Register::default()
        };
        register.set_kind(ProcessKind::Driver);
        let driver =
            Self { socket: Some(ours), child, base, session, received: Vec::new(), descriptors: 0 };
        driver.send(to_node::Body::Register(register));
        driver
    }

    /// What is left of the session.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.session).unwrap().map(Result::unwrap);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn send(&self, body: to_node::Body) {
        let bytes = ToNode::from(body).encode_to_vec();
        packet::send(self.socket.as_ref().unwrap(), &bytes, &[]).unwrap();
    }

    pub(crate) fn demand(&self, key: u64, cpus: u64, total: u64) {
        let demand = SetDemand {
            shape_key: key,
            shape: shape(cpus),
            requested_total: total,
            ..Default::default()
        };
        self.send(to_node::Body::SetDemand(demand));
    }

    /// Receives until a message is what is wanted; it is taken out.
    pub(crate) fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(&Body) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            for (at, body) in self.received.iter().enumerate() {
                if let Some(found) = wanted(body) {
                    self.received.remove(at);
                    return found;
                }
            }
            assert!(Instant::now() < until, "no {what}; received {:?}", self.received);
            self.receive(what);
        }
    }

    fn receive(&mut self, what: &str) {
        let socket = self.socket.as_ref().unwrap();
        let limit = Some(PATIENCE);
        let receive = rustix::net::sockopt::Timeout::Recv;
        rustix::net::sockopt::set_socket_timeout(socket, receive, limit).unwrap();
        let mut buffer = vec![0; 256 * 1024];
        match packet::receive(socket, &mut buffer) {
            Ok(Some((len, fds))) => {
                let body = FromNode::decode(&buffer[..len]).unwrap().body.unwrap();
                if matches!(body, Body::Registered(_)) {
                    self.descriptors = fds.len();
                }
                self.received.push(body);
            }
            other => panic!("no {what}: {other:?}; received {:?}", self.received),
        }
    }

    /// Waits for `oxirayd` to end.
    pub(crate) fn ended(&mut self) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, begin.elapsed());
            }
            assert!(begin.elapsed() < PATIENCE, "oxirayd lives on");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.socket = None;
        if !std::thread::panicking() {
            self.ended();
        }
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// Whether a process is there and no zombie.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Waits until a process is gone.
pub(crate) fn is_gone_soon(pid: u32) -> bool {
    let until = Instant::now() + Duration::from_secs(2);
    while lives(pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    !lives(pid)
}
