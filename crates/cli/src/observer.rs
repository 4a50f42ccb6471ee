//! Looking at sessions from outside: where they are, and how to ask.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oxiray_sys::packet;
use oxiray_wire::control::{
    ClusterView, FromNode, ProcessKind, Query, Register, ToNode, Topic, from_node::Body, to_node,
};
use prost::Message;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// The code of "nothing runs", apart from that of errors.
pub(crate) const NOTHING_RUNS: u8 = 3;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where sessions live; `OXIRAY_TMPDIR` overrides it.
pub(crate) fn base() -> PathBuf {
    match std::env::var_os("OXIRAY_TMPDIR") {
        Some(path) if !path.is_empty() => path.into(),
        _ => format!("/tmp/oxiray-{}", rustix::process::getuid().as_raw()).into(),
    }
}

pub(crate) fn sessions(base: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(base).into_iter().flatten().filter_map(Result::ok);
    let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with("session_"));
    let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A connection to one session that only looks.
pub(crate) struct Observer {
    socket: OwnedFd,
}

impl Observer {
    pub(crate) fn connect(socket: &Path) -> io::Result<Self> {
        let socket = packet::connect_to(socket)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        let this = Self { socket };
        let mut register = Register { version: oxiray_wire::VERSION, ..Register::default() };
        register.set_kind(ProcessKind::Observer);
        this.send(to_node::Body::Register(register))?;
        Ok(this)
    }

    fn send(&self, body: to_node::Body) -> io::Result<()> {
        packet::send(&self.socket, &ToNode::from(body).encode_to_vec(), &[])
    }

    pub(crate) fn ask(&self, topic: Topic) -> io::Result<()> {
        self.ask_about(topic, "")
    }

    pub(crate) fn ask_about(&self, topic: Topic, about: &str) -> io::Result<()> {
        let mut query = Query { request: 1, about: about.to_owned(), ..Query::default() };
        query.set_topic(topic);
        self.send(to_node::Body::Query(query))
    }

    /// The session as a whole.
    pub(crate) fn cluster(&self) -> io::Result<ClusterView> {
        self.ask(Topic::Cluster)?;
        self.receive(|body| match body {
            Body::ClusterView(view) => Some(view),
            _ => None,
        })
    }

    /// Receives until `wanted` has what it wants.
    pub(crate) fn receive<T>(&self, mut wanted: impl FnMut(Body) -> Option<T>) -> io::Result<T> {
        let mut buffer = vec![0; 256 * 1024];
        while let Some((len, _)) = packet::receive(&self.socket, &mut buffer)? {
            match FromNode::decode(&buffer[..len]).map(|message| message.body) {
                Ok(Some(Body::Stopped(text))) => return Err(io::Error::other(text.text)),
                Ok(Some(body)) => {
                    if let Some(found) = wanted(body) {
                        return Ok(found);
                    }
                }
                _ => {}
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
