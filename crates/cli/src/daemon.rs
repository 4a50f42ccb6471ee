//! `oxirayd`: from the driver's first packet to the end of the session.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use oxiray_ids::{JobId, NodeId};
use oxiray_node::{Node, Setup};
use oxiray_store::{MAX_ROWS, TABLE_BYTES, Table};
use oxiray_sys::memory::{Mapping, memory_file};
use oxiray_sys::{packet, process, termination};
use oxiray_wire::control::{
    FromNode, NodeConfig, ProcessKind, Register, Registered, Text, ToNode, from_node, to_node::Body,
};
use prost::Message;

use crate::connection::Connection;
use crate::disk::Disk;
use crate::io::Io;
use crate::machine::{MemoryReader, host, random_bytes};
use crate::poller::{Poller, Token};
use crate::registration::version_refusal;
use crate::session::Session;
use crate::shell::{Shared, Shell};
use crate::warmer::Warmer;

/// Share of the machine's memory that the object store takes unless told.
const STORE_SHARE: f64 = 0.3;
/// Least that is chosen, so that small machines work, too.
const SMALLEST_STORE: u64 = 64 << 20;

// Every process that has a bell has a row of the table.
const _: () = assert!(oxiray_channel::MAX_PROCESSES == MAX_ROWS as usize);

/// Serves the driver at the other end of the inherited descriptor until one
/// of the two ends.
pub fn run(driver_fd: i32) -> io::Result<()> {
    let socket = process::inherited_fd(driver_fd)?;
    let Some(register) = first_packet(&socket)? else {
        // The driver was gone before it said anything: nothing was made yet.
        return Ok(());
    };
    let started = start(&socket, register);
    match started {
        Ok(shell) => {
            shell.run();
            Ok(())
        }
        Err(error) => {
            let refusal = from_node::Body::Stopped(Text { text: error.to_string() });
            let _ = packet::send(&socket, &FromNode::from(refusal).encode_to_vec(), &[]);
            Err(error)
        }
    }
}

fn first_packet(socket: &OwnedFd) -> io::Result<Option<Register>> {
    let mut buffer = vec![0; packet::MAX_PACKET];
    let Some((len, _)) = packet::receive(socket, &mut buffer)? else {
        return Ok(None);
    };
    match ToNode::decode(&buffer[..len]).map(|message| message.body) {
        Ok(Some(Body::Register(register))) => Ok(Some(register)),
        _ => Err(io::Error::other("the driver must register first")),
    }
}

fn start(socket: &OwnedFd, register: Register) -> io::Result<Shell> {
    if register.version != oxiray_wire::VERSION {
        return Err(io::Error::other(version_refusal(register.version)));
    }
    let kind = register.kind();
    let (ProcessKind::Driver, Some(config)) = (kind, register.config) else {
        return Err(io::Error::other("only a driver with its configuration starts a session"));
    };
    let session = Session::take(&config.session_dir)?;
    let shell = assemble(socket, config, session.clone());
    if shell.is_err() {
        session.remove();
    }
    shell
}

fn assemble(socket: &OwnedFd, config: NodeConfig, session: Session) -> io::Result<Shell> {
    allow_many_descriptors();
    log_to(&session.logs().join("oxirayd.log"))?;
    let node_id = NodeId(random_bytes()?);
    let store_size = store_size(&config);
    let shared = shared(&config, node_id, store_size)?;
    // Before the driver hears of the session: workers come here.
    let listener = packet::listen_at(&session.socket())?;
    packet::set_nonblocking(&listener)?;
    let termination = termination::termination_pipe()?;
    let poller = Poller::new()?;
    poller.add(&listener, Token::Listener)?;
    poller.add(&termination, Token::Termination)?;
    // Polled until this process ends.
    std::mem::forget(termination);
    let (pid, _) = packet::peer(socket)?;
    let connection = Connection::new(socket.try_clone()?, pid)?;
    let arena = Arc::new(Mapping::new(&shared.arena, store_size as usize)?);
    let disk = Disk::new(&config, session.path(), arena.clone())?;
    poller.add(disk.bell(), Token::Disk)?;
    tracing::info!(session = %session.path().display(), "session started");
    let node = Node::new(setup(&config, node_id, store_size), Table::map(&shared.table)?);
    let mut shell = Shell::new(
        node,
        Io::new(poller, session, config, disk),
        shared,
        listener,
        Warmer::new(arena),
    );
    // Answers the driver, before anything that takes longer.
    shell.add_driver(connection)?;
    Ok(shell)
}

fn setup(config: &NodeConfig, node: NodeId, store_size: u64) -> Setup {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Setup {
        resources: config.resources.clone(),
        store_size,
        store_patience: config.store_patience_ms * 1_000_000,
        prestart_workers: config.prestart_workers as usize,
        // Enough to keep every core busy while each worker also waits now and then.
        max_starting: (2 * cores).max(4),
        max_processes: oxiray_channel::MAX_PROCESSES,
        node,
        host: host(),
        pid: std::process::id(),
    }
}

fn shared(config: &NodeConfig, node: NodeId, store_size: u64) -> io::Result<Shared> {
    Ok(Shared {
        bells: memory_file("oxiray-bells", oxiray_channel::BELLS_BYTES)?,
        // Sparse: it costs nothing until it is written to.
        arena: memory_file("oxiray-arena", store_size as usize)?,
        table: memory_file("oxiray-table", TABLE_BYTES)?,
        registered: Registered {
            job: JobId([1, 0, 0, 0]).0.to_vec(),
            node: node.0.to_vec(),
            store_size,
            session_dir: config.session_dir.clone(),
            namespace: config.namespace.clone(),
            preload: config.preload.clone(),
            ..Registered::default()
        },
    })
}

/// Bytes of the store, in whole pages.
fn store_size(config: &NodeConfig) -> u64 {
    let size = match config.object_store_memory {
        0 => ((MemoryReader::new().limit() as f64 * STORE_SHARE) as u64).max(SMALLEST_STORE),
        size => size,
    };
    size.next_multiple_of(4096)
}

/// A worker takes a handful of descriptors; the usual limit of 1024 would end at 200 actors.
fn allow_many_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The service's own log; `OXIRAY_LOG` is its level.
fn log_to(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let level = std::env::var("OXIRAY_LOG").unwrap_or_default();
    let level = level.parse().unwrap_or(tracing::Level::INFO);
    let log = tracing_subscriber::fmt().with_writer(file).with_ansi(false).with_max_level(level);
    // Only tests set one before.
    let _ = log.try_init();
    Ok(())
}
