//! `oxirayd`: from the driver's first packet, or the word to join a cluster, to the
//! end of the session.

use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use oxiray_channel::{Bells, LeaseEnd};
use oxiray_control::{Alone, Now};
use oxiray_ids::{JobId, NodeId};
use oxiray_net::{Identity, Keyring, Listener, Security};
use oxiray_node::{Event, Node, Setup};
use oxiray_store::{MAX_ROWS, TABLE_BYTES, Table};
use oxiray_sys::clock::{monotonic_ns, wall_ns};
use oxiray_sys::memory::{Mapping, memory_file};
use oxiray_sys::{packet, process, termination};
use oxiray_wire::cluster::{Join, NodeInfo, Welcome, from_control};
use oxiray_wire::control::{
    ClusterConfig, FromNode, NodeConfig, ProcessKind, Register, Registered, Text, ToNode,
    from_node, to_node::Body,
};
use prost::Message;

use crate::activation::DashboardPort;
use crate::connection::Connection;
use crate::disk::Disk;
use crate::enforcement::Enforcement;
use crate::files::Files;
use crate::io::Io;
use crate::labels::with_own;
use crate::limits;
use crate::net::Net;
use crate::net::bridge::Bridge;
use crate::net::transfer::Transfers;
use crate::net::uplink::Uplink;
use crate::poller::{Poller, Token};
use crate::reach::Reach;
use crate::registration::version_refusal;
use crate::rejoining;
use crate::shell::{Shared, Shell};
use crate::warmer::Warmer;
use oxiray_session::{Session, private_file};
use oxiray_sys::control_group::USUAL_ROOT;
use oxiray_sys::machine::{MemoryReader, host, random_bytes};
use oxiray_words::show_bytes;

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
            _ = shell.run();
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
    let job = register.job.unwrap_or_default();
    let (ProcessKind::Driver, Some(config)) = (kind, register.config) else {
        return Err(io::Error::other("only a driver with its configuration starts a session"));
    };
    let session = Session::take(&config.session_dir)?;
    let directory = config.session_dir.clone();
    let shell = alone(&config).and_then(|member| assemble(config, session.clone(), member));
    let shell = shell.map_err(|error| match error.raw_os_error() {
        Some(_) => limits::named(&format!("a session in {directory}"), &error),
        None => error,
    });
    let shell = shell.and_then(|mut shell| {
        let connection = Connection::new(socket.try_clone()?)?;
        // Answers the driver, before anything that takes longer.
        shell.add_driver(connection, job)?;
        Ok(shell)
    });
    if shell.is_err() {
        session.discard();
    }
    shell
}

/// Is a node of a cluster, as the file at `path` says. Says how it went in one line on
/// standard output: `ready ADDRESS`, or `error WHY`.
/// `again`: descriptors that are left of the node that this one was before, if it was one.
pub fn run_node(path: &Path, again: &[i32]) -> io::Result<()> {
    let left = rejoining::left(again)?;
    let config = rejoining::read_config(path);
    let started = config.and_then(|config| start_member(config, !again.is_empty()));
    drop(left);
    tell_starter(match &started {
        Ok((_, address)) => Ok(address.clone()),
        Err(error) => Err(error.to_string()),
    })?;
    let (shell, _) = started?;
    match shell.run() {
        Some((config, session)) => {
            let error = rejoining::begin_again(&config, &session);
            session.end();
            Err(error)
        }
        None => Ok(()),
    }
}

/// Says in one line to whoever started this how that went: where it is, or why it is not.
pub(crate) fn tell_starter(how: Result<String, String>) -> io::Result<()> {
    let answer = match how {
        Ok(address) => format!("ready {address}\n"),
        Err(why) => format!("error {}\n", why.replace('\n', " ")),
    };
    let _ = rustix::io::write(rustix::stdio::stdout(), answer.as_bytes());
    // Whoever waits for the line may also wait for the end.
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

fn start_member(config: NodeConfig, is_again: bool) -> io::Result<(Shell, String)> {
    let cluster = config.cluster.clone();
    let cluster = cluster.ok_or_else(|| io::Error::other("the configuration names no cluster"))?;
    let session = match is_again {
        true => Session::take_again(&config.session_dir)?,
        false => Session::take(&config.session_dir)?,
    };
    let member = rejoining::join(is_again, || Joined::join(&config, &cluster));
    let member = member.map_err(io::Error::other);
    let shell = member.and_then(|(info, joined)| {
        let address = info.address.clone();
        if is_again {
            let id = NodeId::from_slice(&info.id).unwrap_or(NodeId::NIL).to_string();
            // People see it there; nothing depends on it.
            _ = session.began_again(&id, &address);
        }
        let member = Membership { info, standing: Standing::Joined(Box::new(joined)) };
        assemble(config, session.clone(), member).map(|shell| (shell, address))
    });
    if shell.is_err() {
        session.discard();
    }
    shell
}

/// What a node is in its cluster.
struct Membership {
    info: NodeInfo,
    standing: Standing,
}

enum Standing {
    /// The only one.
    Alone(Box<Alone>),
    /// One of several.
    Joined(Box<Joined>),
}

/// What a node has in hand that has just joined a cluster.
struct Joined {
    security: Security,
    listener: Listener,
    uplink: Uplink,
    welcome: Welcome,
    /// When that was asked for.
    asked_at: u64,
}

/// A cluster of one, for the driver that starts it.
fn alone(config: &NodeConfig) -> io::Result<Membership> {
    let info = NodeInfo {
        is_head: true,
        labels: with_own(&config.labels, &config.resources),
        ..describe(config)?
    };
    let now = Now { ns: monotonic_ns(), wall_ms: wall_ns() / 1_000_000 };
    let control = Alone::new(random_bytes()?, info.clone(), now);
    let info = NodeInfo { number: Alone::NUMBER, ..info };
    Ok(Membership { info, standing: Standing::Alone(Box::new(control)) })
}

/// About this node, wherever it is to be a member.
fn describe(config: &NodeConfig) -> io::Result<NodeInfo> {
    Ok(NodeInfo {
        id: NodeId(random_bytes()?).0.to_vec(),
        host: host(),
        pid: std::process::id(),
        total: config.resources.clone(),
        available: config.resources.clone(),
        store_size: store_size(config),
        started_ms: wall_ns() / 1_000_000,
        ..NodeInfo::default()
    })
}

impl Joined {
    fn join(config: &NodeConfig, cluster: &ClusterConfig) -> Result<(NodeInfo, Self), String> {
        let security = match cluster.keyring.as_str() {
            "" => Security::Insecure,
            path => {
                let keyring = Keyring::load(Path::new(path)).map_err(|error| error.to_string())?;
                Security::Tls(Identity::new(&keyring).map_err(|error| error.to_string())?)
            }
        };
        let ip = match cluster.node_ip.as_str() {
            "" => Uplink::local_ip(&cluster.control, &security)?,
            text => text
                .parse()
                .map_err(|_| format!("--node-ip-address must be an address, not {text}"))?,
        };
        let port = u16::try_from(cluster.port)
            .map_err(|_| format!("{} is not the number of a port", cluster.port))?;
        let listener =
            Listener::bind(SocketAddr::new(ip, port)).map_err(|error| error.to_string())?;
        let info = NodeInfo {
            address: listener.local_addr().to_string(),
            labels: with_own(&cluster.labels, &config.resources),
            is_head: cluster.is_head,
            python: cluster.python_version.clone(),
            ..describe(config).map_err(|error| error.to_string())?
        };
        let join = Join { node: Some(info.clone()), ..Join::default() };
        let asked_at = monotonic_ns();
        let (uplink, welcome) = Uplink::join(&cluster.control, &security, &join)?;
        let info = NodeInfo { number: welcome.number, ..info };
        Ok((info, Self { security, listener, uplink, welcome, asked_at }))
    }
}

fn assemble(config: NodeConfig, session: Session, member: Membership) -> io::Result<Shell> {
    limits::raise();
    log_to(&session.logs().join("oxirayd.log"))?;
    let Membership { info, standing } = member;
    let store_size = info.store_size;
    let mut shared = shared(&config, &info)?;
    if let Some(cluster) = &config.cluster {
        shared.registered.address = info.address.clone();
        shared.registered.control = cluster.control.split(',').next().unwrap_or_default().into();
    }
    // Before the driver hears of the session: workers come here.
    let listener = session.listen()?;
    packet::set_nonblocking(&listener)?;
    let termination = termination::termination_pipe()?;
    let poller = Poller::new()?;
    poller.add(&listener, Token::Listener)?;
    poller.add(&termination, Token::Termination)?;
    // Polled until this process ends.
    std::mem::forget(termination);
    if oxiray_settings::END_WITH_STDIN.is_on() {
        poller.add(rustix::stdio::stdin(), Token::Starter)?;
    }
    let arena = Mapping::new(&shared.arena, store_size as usize).map_err(|error| {
        limits::named(&format!("an object store of {}", show_bytes(store_size)), &error)
    })?;
    let arena = Arc::new(arena);
    let disk = Disk::new(&config, session.path(), arena.clone())?;
    poller.add(disk.bell(), Token::Disk)?;
    let files = Files::new(session.path())?;
    poller.add(files.bell(), Token::Files)?;
    let enforcement = config.enforce.then(|| enforcement(&session)).transpose()?;
    tracing::info!(session = %session.path().display(), "session started");
    let node = Node::new(setup(&config, info, &standing)?, Table::map(&shared.table)?);
    let (reach, welcome) = reach(standing, &node, &shared, &arena, &poller)?;
    let dashboard = DashboardPort::open(&config, &session)?;
    let mut io = Io::new(poller, session, config, disk, files, reach);
    if let Some(port) = &dashboard {
        port.watch(&io.poller)?;
    }
    io.dashboard = dashboard;
    io.enforcement = enforcement;
    let lease_end = LeaseEnd::beside(&Bells::map(&shared.bells)?);
    let mut shell = Shell::new(node, io, shared, listener, Warmer::new(arena), lease_end);
    match welcome {
        Some(welcome) => shell.event(Event::FromControl(from_control::Body::Welcome(welcome))),
        None => shell.hear_own_control(),
    }
    Ok(shell)
}

/// What sees that workers take no more than they asked for.
fn enforcement(session: &Session) -> io::Result<Enforcement> {
    let root = oxiray_settings::CGROUP_ROOT.path().unwrap_or_else(|| USUAL_ROOT.into());
    let name = session.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    Enforcement::begin(Path::new(&root), &name)
}

/// The way to the rest of the cluster, and the control service's welcome if that has come.
fn reach(
    standing: Standing,
    node: &Node,
    shared: &Shared,
    arena: &Arc<Mapping>,
    poller: &Poller,
) -> io::Result<(Reach, Option<Welcome>)> {
    let joined = match standing {
        Standing::Alone(control) => return Ok((Reach::Alone(control), None)),
        Standing::Joined(joined) => joined,
    };
    let Joined { security, listener, uplink, welcome, .. } = *joined;
    let bridge = Bridge::new(&shared.bells, node.gateway_bell())?;
    let transfers = Transfers::new(welcome.number, security.clone(), arena.clone())?;
    let net = Net::new(welcome.number, security, listener, uplink, bridge, transfers, poller)?;
    Ok((Reach::Others(Box::new(net)), Some(welcome)))
}

fn setup(config: &NodeConfig, info: NodeInfo, standing: &Standing) -> io::Result<Setup> {
    let asked_at = match standing {
        Standing::Alone(_) => 0,
        Standing::Joined(joined) => joined.asked_at,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (max_processes, limited_by) = limits::processes(oxiray_channel::MAX_PROCESSES)?;
    Ok(Setup {
        resources: config.resources.clone(),
        store_size: info.store_size,
        store_patience: config.store_patience_ms * 1_000_000,
        prestart_workers: config.prestart_workers as usize,
        // Enough to keep every core busy while each worker also waits now and then.
        max_starting: (2 * cores).max(4),
        max_processes,
        limited_by,
        clock_began_ns: wall_ns() - monotonic_ns(),
        // A node of a cluster serves drivers that come and go.
        job: config.cluster.is_none().then_some(JobId([1, 0, 0, 0])),
        member: info,
        alone: config.cluster.is_none(),
        asked_at,
    })
}

fn shared(config: &NodeConfig, info: &NodeInfo) -> io::Result<Shared> {
    let store_size = info.store_size;
    Ok(Shared {
        bells: memory_file("oxiray-bells", oxiray_channel::BELLS_BYTES)?,
        // Sparse: it costs nothing until it is written to.
        arena: memory_file("oxiray-arena", store_size as usize).map_err(|error| {
            limits::named(&format!("an object store of {}", show_bytes(store_size)), &error)
        })?,
        table: memory_file("oxiray-table", TABLE_BYTES)?,
        registered: Registered {
            node: info.id.clone(),
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

/// The service's own log, at the level that is set.
pub(crate) fn log_to(path: &Path) -> io::Result<()> {
    let file = private_file(OpenOptions::new().create(true).append(true), path)?;
    let level = oxiray_settings::LOG.text().unwrap_or_default();
    let level = level.parse().unwrap_or(tracing::Level::INFO);
    let log = tracing_subscriber::fmt().with_writer(file).with_ansi(false).with_max_level(level);
    // A full disk costs lines; complaining about that by a macro could cost the service.
    let log = log.log_internal_errors(false);
    // Only tests set one before.
    let _ = log.try_init();
    Ok(())
}
