//! A machine: a node, and around it what the shell of `oxirayd` does.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use oxiray_ids::{NodeId, ProcessId, StoreKey};
use oxiray_node::{Endpoint, Node, Outbox, Setup, Transfer};
use oxiray_store::{Extent, TABLE_BYTES, Table};
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{BetweenNodes, Load, NodeInfo, Welcome, to_control};
use oxiray_wire::control::{Amount, ReadFile, UNIT, from_node};

use crate::happening::Happening;
use crate::plan::SECOND;

/// What a machine is to the control service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uplink {
    /// It has no connection.
    Away,
    /// It asked to be a member.
    Asked(u64),
    /// It is a member.
    There(u64),
}

pub(crate) struct Machine {
    pub(crate) alive: bool,
    /// Drivers run here: it does not die.
    pub(crate) is_safe: bool,
    pub(crate) info: NodeInfo,
    pub(crate) node: Option<Node>,
    pub(crate) cluster: Vec<u8>,
    pub(crate) uplink: Uplink,
    /// Said while the control service was away.
    pub(crate) backlog: Vec<to_control::Body>,
    /// Came before it was a member: others may hear of it first.
    pub(crate) early: Vec<Happening>,
    /// Channels with processes of other nodes: ours first.
    pub(crate) bridges: HashSet<(ProcessId, ProcessId)>,
    pub(crate) processes: BTreeSet<ProcessId>,
    pub(crate) tick_at: Option<u64>,
    pub(crate) told: Option<Load>,
    pub(crate) told_at: u64,
    /// How often the connection with each other machine broke, as far as seen here.
    pub(crate) epochs: BTreeMap<usize, u64>,
    /// Numbers of those that left, as the control service said here.
    pub(crate) left: BTreeSet<u32>,
    /// CPUs of what runs here at this moment.
    pub(crate) used: u64,
    /// Of each kind of task: since when there has been room for it.
    pub(crate) room_since: [Option<u64>; 4],
}

impl Machine {
    pub(crate) fn new(index: usize, cpus: u64, is_safe: bool) -> Self {
        let total = vec![Amount { name: "CPU".into(), amount: cpus * UNIT }];
        let mut id = [0; 28];
        id[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        let info = NodeInfo {
            id: id.to_vec(),
            address: format!("10.0.0.1:{index}"),
            host: format!("machine-{index}"),
            available: total.clone(),
            total,
            labels: [("zone".to_owned(), format!("zone-{}", index % 3))].into(),
            is_head: index == 0,
            python: "3.11".into(),
            ..NodeInfo::default()
        };
        Self {
            alive: true,
            is_safe,
            info,
            node: None,
            cluster: Vec::new(),
            uplink: Uplink::Away,
            backlog: Vec::new(),
            early: Vec::new(),
            bridges: HashSet::new(),
            processes: BTreeSet::new(),
            tick_at: None,
            told: None,
            told_at: 0,
            epochs: BTreeMap::new(),
            left: BTreeSet::new(),
            used: 0,
            room_since: [None; 4],
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.info.number
    }

    pub(crate) fn cpus(&self) -> u64 {
        self.info.total[0].amount / UNIT
    }

    /// It became a member: its node begins.
    pub(crate) fn begin(&mut self, welcome: &Welcome) {
        self.info.number = welcome.number;
        self.cluster.clone_from(&welcome.cluster);
        let setup = Setup {
            resources: self.info.total.clone(),
            store_size: 1 << 20,
            store_patience: SECOND,
            prestart_workers: 0,
            max_starting: 4,
            max_processes: 64,
            node: NodeId::from_slice(&self.info.id).expect("28 bytes"),
            host: self.info.host.clone(),
            pid: 1,
            started_ms: 0,
            clock_began_ns: 0,
            job: None,
            member: Some(self.info.clone()),
        };
        let table = memory_file("sim-table", TABLE_BYTES).and_then(Table::map).expect("memory");
        self.node = Some(Node::new(setup, table));
    }
}

/// Something that a node asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    Send(ProcessId, from_node::Body),
    Open([Endpoint; 2]),
    Close(ProcessId, ProcessId),
    Start,
    Kill(ProcessId),
    Peer(u32, BetweenNodes),
    Control(to_control::Body),
}

/// What a node asks for in one event, in order.
#[derive(Default)]
pub(crate) struct Wishes(pub(crate) Vec<Asked>);

impl Outbox for Wishes {
    fn send(&mut self, to: ProcessId, body: from_node::Body) {
        self.0.push(Asked::Send(to, body));
    }
    fn open_channel(&mut self, ends: [Endpoint; 2]) {
        self.0.push(Asked::Open(ends));
    }
    fn start_worker(&mut self) {
        self.0.push(Asked::Start);
    }
    fn kill(&mut self, process: ProcessId) {
        self.0.push(Asked::Kill(process));
    }
    fn tell_peer(&mut self, node: u32, message: BetweenNodes) {
        self.0.push(Asked::Peer(node, message));
    }
    fn tell_control(&mut self, body: to_control::Body) {
        self.0.push(Asked::Control(body));
    }
    fn close_channel(&mut self, local: ProcessId, foreign: ProcessId) {
        self.0.push(Asked::Close(local, foreign));
    }
    fn shut_down(&mut self, _asked: bool) {
        unreachable!("this node ends with nobody");
    }
    // There are no large objects in this world.
    fn spill(&mut self, _batch: Vec<(StoreKey, Extent)>) {}
    fn restore(&mut self, _key: StoreKey, _extent: Extent) {}
    fn forget_copy(&mut self, _key: StoreKey) {}
    fn tell_user(&mut self, _text: String) {}
    fn transfer(&mut self, _transfer: Transfer) {}
    fn lend(&mut self, _grant: u64, _extent: Extent) {}
    fn read_file(&mut self, _asker: ProcessId, _wanted: ReadFile) {}
    fn end_lending(&mut self, _grant: u64) {}
}
