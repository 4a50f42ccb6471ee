//! The dashboard's port. The node service only holds it: with the first connection it starts
//! `oxirayd dashboard`, which inherits the listening socket and serves until nobody has looked
//! for a while; then the node service holds the port again.
//!
//! So a dashboard costs one descriptor while nobody looks, and whatever happens to the process
//! that speaks HTTP with browsers happens to nobody else.

use std::fs::OpenOptions;
use std::io;
use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use oxiray_net::Plaque;
use oxiray_sys::process::{kill_group, spawn_detached};
use oxiray_wire::control::{DashboardConfig, NodeConfig};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::poller::{Poller, Token};
use oxiray_session::{Session, private_file};
use oxiray_sys::machine::{host, random_bytes};

/// Ray's, which people know.
const USUAL_PORT: u16 = 8265;
/// How many ports are tried from the usual one on: more sessions than that at a time have the
/// dashboard only where it is asked for.
const PORTS_TRIED: u16 = 200;
/// The listening socket, as the dashboard's process has it.
const INHERITED: i32 = 3;
/// Connections that are closed at a time when the dashboard cannot be started.
const MOST_TURNED_AWAY: usize = 128;

/// The port, and who serves it.
pub(crate) struct DashboardPort {
    listener: TcpListener,
    arguments: Vec<String>,
    python: String,
    log: PathBuf,
    serving: Option<Serving>,
}

/// The process that serves.
struct Serving {
    child: Child,
    /// Readable at its end.
    end: OwnedFd,
}

impl DashboardPort {
    /// Binds the port, and leaves in the session's directory what `init` and `oxiray dashboard`
    /// show: its address, and the token without which it answers nobody. None: no dashboard is
    /// wanted, or nobody needs one that cannot be had.
    pub(crate) fn open(config: &NodeConfig, session: &Session) -> io::Result<Option<Self>> {
        let Some(wanted) = &config.dashboard else {
            return Ok(None);
        };
        let listener = match bind(wanted) {
            Ok(listener) => listener,
            Err(error) if wanted.is_required => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "there is no dashboard");
                return Ok(None);
            }
        };
        listener.set_nonblocking(true)?;
        let token: [u8; 32] = random_bytes()?;
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let address = listener.local_addr()?;
        session.write_dashboard(&address.to_string(), &token)?;
        if !address.ip().is_loopback() {
            let plaque = Plaque::generate(&names(config, wanted, address.ip()));
            let plaque = plaque.map_err(io::Error::other)?;
            session.write_dashboard_tls(&plaque.certificate, &plaque.key)?;
        }
        let arguments = [
            ("--session-dir", session.path().display().to_string()),
            ("--host", wanted.host.clone()),
            ("--python-version", wanted.python_version.clone()),
        ];
        let arguments = arguments.map(|(name, value)| format!("{name}={value}")).to_vec();
        let log = session.logs().join("dashboard.log");
        let python = config.python.clone();
        Ok(Some(Self { listener, arguments, python, log, serving: None }))
    }

    /// Begins to wait for the first connection.
    pub(crate) fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.listener, Token::Dashboard)
    }

    /// Somebody looks.
    pub(crate) fn on_connection(&mut self, poller: &Poller) {
        let started = self.start().and_then(|serving| {
            poller.add(&serving.end, Token::DashboardEnded)?;
            Ok(serving)
        });
        match started {
            Ok(serving) => {
                tracing::info!(pid = serving.child.id(), "dashboard started");
                poller.remove(&self.listener);
                self.serving = Some(serving);
            }
            Err(error) => {
                tracing::warn!(%error, "the dashboard cannot be started");
                self.turn_away();
            }
        }
    }

    /// Nobody has looked for a while, or it has crashed.
    pub(crate) fn on_end(&mut self, poller: &Poller) {
        let Some(mut serving) = self.serving.take() else {
            return;
        };
        poller.remove(&serving.end);
        let status = serving.child.wait();
        if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
            tracing::warn!(?status, log = %self.log.display(), "the dashboard ended by mistake");
            // Whoever waits would be answered by the next one, which may end as this one did.
            self.turn_away();
        }
        if let Err(error) = poller.add(&self.listener, Token::Dashboard) {
            tracing::warn!(%error, "there is no dashboard any more");
        }
    }

    /// Ends whoever serves.
    pub(crate) fn close(mut self) {
        if let Some(mut serving) = self.serving.take() {
            kill_group(serving.child.id());
            let _ = serving.child.wait();
        }
    }

    fn start(&self) -> io::Result<Serving> {
        let log = private_file(OpenOptions::new().create(true).append(true), &self.log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("dashboard")
            .arg(format!("--fd={INHERITED}"))
            .args(&self.arguments)
            // Beside which py-spy is.
            .env(oxiray_settings::PYTHON.name, &self.python)
            // It ends when this process has, however that came about.
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log);
        let socket = self.listener.try_clone()?.into();
        let mut child = spawn_detached(&mut command, socket, INHERITED)?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(end) => Ok(Serving { child, end }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// Closes what waits to be accepted: a page that fails is better than one that hangs.
    fn turn_away(&self) {
        for _ in 0..MOST_TURNED_AWAY {
            if self.listener.accept().is_err() {
                return;
            }
        }
    }
}

/// What it may be called by who checks its certificate by name.
fn names(config: &NodeConfig, wanted: &DashboardConfig, bound: IpAddr) -> Vec<String> {
    let node = config.cluster.as_ref().map(|cluster| cluster.node_ip.clone());
    let asked = wanted.host.trim_matches(['[', ']']).to_owned();
    let mut names = vec!["localhost".to_owned(), host(), bound.to_string(), asked];
    names.extend(node);
    let is_any = |name: &str| name.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    names.retain(|name| !name.is_empty() && !is_any(name));
    names.sort_unstable();
    names.dedup();
    names
}

fn bind(wanted: &DashboardConfig) -> io::Result<TcpListener> {
    let host = match wanted.host.as_str() {
        "" => "127.0.0.1",
        host => host.trim_matches(['[', ']']),
    };
    let at = |port: u16| -> io::Result<TcpListener> {
        let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
        TcpListener::bind(&addresses[..])
    };
    let Some(port) = wanted.port else {
        let mut last = None;
        for port in USUAL_PORT..USUAL_PORT + PORTS_TRIED {
            match at(port) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
                Err(error) => return Err(cannot(host, &error)),
                Ok(listener) => return Ok(listener),
            }
        }
        let taken = last.map_or_else(String::new, |error| format!(" ({error})"));
        return Err(io::Error::other(format!(
            "the ports {USUAL_PORT} to {} are all in use{taken}: the dashboard needs one of them, \
             or another by dashboard_port",
            USUAL_PORT + PORTS_TRIED - 1
        )));
    };
    let port = u16::try_from(port)
        .map_err(|_| io::Error::other(format!("dashboard_port: {port} is not a port's number")))?;
    at(port).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => io::Error::other(format!(
            "dashboard_port: {port} is in use at {host}. Choose another, 0 for any, or leave it \
             out: then the first free one from {USUAL_PORT} on is taken."
        )),
        _ => cannot(host, &error),
    })
}

fn cannot(host: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "the dashboard cannot be served at {host} ({error}): dashboard_host must be a name or an \
         address of this machine"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(host: &str, port: Option<u32>) -> DashboardConfig {
        DashboardConfig { host: host.into(), port, ..DashboardConfig::default() }
    }

    #[test]
    fn the_next_free_port_is_taken_unless_one_is_asked_for() {
        let first = bind(&wanted("", None)).unwrap();
        let second = bind(&wanted("", None)).unwrap();
        assert!(first.local_addr().unwrap().ip().is_loopback());
        assert_ne!(first.local_addr().unwrap(), second.local_addr().unwrap());
        let taken = u32::from(first.local_addr().unwrap().port());
        let refusal = bind(&wanted("", Some(taken))).unwrap_err().to_string();
        assert!(refusal.contains("is in use"), "{refusal}");
        assert!(bind(&wanted("localhost", Some(0))).is_ok());
    }

    #[test]
    fn what_cannot_be_bound_is_told() {
        let says = |wanted: &DashboardConfig| bind(wanted).unwrap_err().to_string();
        assert!(says(&wanted("192.0.2.1", None)).contains("dashboard_host"));
        assert!(says(&wanted("", Some(70_000))).contains("dashboard_port"));
    }
}
