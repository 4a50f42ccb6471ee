//! Nodes of one cluster, joined by queues: what one says the other hears when a
//! test lets it. There is no control service; tests say what it would.
//!
//! - `apart`: members that do not reach each other
//! - `draining`: actors that wait at a node that is to leave
//! - `in_groups`: demands within placement groups
//! - `fencing`: a lease that ends, and actors that end with it
//! - `leases`: demands that go elsewhere, and what becomes of them
//! - `objects`: copies and lending
//! - `stays`: what is heard of an actor that goes from node to node
//! - `uplink`: the control service, away and there again

mod apart;
mod draining;
mod fencing;
mod in_groups;
mod leases;
mod objects;
mod questions;
mod stays;
mod uplink;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{NodeId, ProcessId, StoreKey};
use oxiray_store::{Extent, TABLE_BYTES, Table};
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{
    BetweenNodes, Join, Load, Loads, NodeInfo, Tokens, Welcome, between_nodes, from_control,
    to_control,
};
use oxiray_wire::control::from_node::Body;
use oxiray_wire::control::{
    JobConfig, Lease, ProcessKind, PullObject, ReadFile, SetDemand, Shape, Strategy, to_node,
};

use super::bed::{Grant, SECOND, cpus};
use crate::event::{Endpoint, Event, Outbox, Setup, Transfer};
use crate::node::Node;

/// The nodes.
const A: u32 = 1;
const B: u32 = 2;
const C: u32 = 3;
const D: u32 = 4;
/// The driver of node A.
const DRIVER: ProcessId = ProcessId::new(A, 1);

/// What a node asked for and nobody took yet.
#[derive(Default)]
struct Asked {
    sent: Vec<(ProcessId, Body)>,
    peers: Vec<(u32, between_nodes::Body)>,
    starting: usize,
    templates: Vec<u32>,
    killed: Vec<ProcessId>,
    transfers: Vec<Transfer>,
    files: Vec<(ProcessId, ReadFile)>,
    lent: BTreeSet<u64>,
    to_control: Vec<to_control::Body>,
    dialled: Vec<Join>,
    excluded: Option<String>,
    rejoins: Option<String>,
}

impl Outbox for Asked {
    fn send(&mut self, to: ProcessId, body: Body) {
        self.sent.push((to, body));
    }
    fn open_channel(&mut self, ends: [Endpoint; 2]) {
        assert_ne!(ends[0].process, ends[1].process);
    }
    fn start_worker(&mut self, _environment: u32) {
        self.starting += 1;
    }
    fn make_template(&mut self, environment: u32, _text: &str) {
        self.templates.push(environment);
    }
    fn end_template(&mut self, _environment: u32) {}
    fn kill(&mut self, process: ProcessId) {
        self.killed.push(process);
    }
    fn spill(&mut self, _batch: Vec<(StoreKey, Extent)>) {}
    fn restore(&mut self, _key: StoreKey, _extent: Extent) {}
    fn forget_copy(&mut self, _key: StoreKey) {}
    fn tell_user(&mut self, _text: String) {}
    fn tell_peer(&mut self, node: u32, message: BetweenNodes) {
        self.peers.push((node, message.body.expect("says something")));
    }
    fn tell_control(&mut self, body: to_control::Body) {
        self.to_control.push(body);
    }
    fn dial_control(&mut self, join: Join) {
        self.dialled.push(join);
    }
    fn add_node(&mut self, _info: &NodeInfo) {}
    fn remove_node(&mut self, _number: u32) {}
    fn change_tokens(&mut self, _tokens: Tokens) {}
    fn leave(&mut self, why: String) {
        unreachable!("nobody drains this node: {why}");
    }
    fn rejoin(&mut self, why: String) {
        self.rejoins = Some(why);
    }
    fn exclude(&mut self, why: String) {
        self.excluded = Some(why);
    }
    fn close_channel(&mut self, _local: ProcessId, _foreign: ProcessId) {}
    fn transfer(&mut self, transfer: Transfer) {
        self.transfers.push(transfer);
    }
    fn lend(&mut self, grant: u64, _extent: Extent) {
        assert!(self.lent.insert(grant));
    }
    fn read_file(&mut self, asker: ProcessId, wanted: ReadFile) {
        self.files.push((asker, wanted));
    }
    fn end_lending(&mut self, grant: u64) {
        assert!(self.lent.remove(&grant));
    }
    fn shut_down(&mut self, _asked: bool) {
        unreachable!("it ends with nobody");
    }
}

struct Part {
    node: Node,
    table: Table,
    asked: Asked,
}

struct Nodes {
    parts: BTreeMap<u32, Part>,
    /// From, to, what: in order.
    wires: VecDeque<(u32, u32, between_nodes::Body)>,
    now: u64,
}

fn id_of(number: u32) -> NodeId {
    NodeId([number as u8; 28])
}

fn info(number: u32, cpu_count: u64) -> NodeInfo {
    let total = cpus(cpu_count).resources;
    NodeInfo {
        number,
        id: id_of(number).0.to_vec(),
        available: total.clone(),
        total,
        ..NodeInfo::default()
    }
}

/// A node that died.
fn left(number: u32) -> NodeInfo {
    NodeInfo { number, left: "it died".into(), ..NodeInfo::default() }
}

impl Nodes {
    /// Nodes 1, 2 and so on with so many CPUs each; node A has a driver.
    fn new(cpu_counts: &[u64]) -> Self {
        let mut nodes = Self::unjoined(cpu_counts);
        for number in 1..=cpu_counts.len() as u32 {
            for (other, &count) in (1..).zip(cpu_counts) {
                nodes.hear(number, from_control::Body::NodeJoined(info(other, count)));
            }
        }
        assert_eq!(nodes.admit(A, ProcessKind::Driver), DRIVER);
        nodes
    }

    /// Nodes that have not heard of each other, nor of themselves.
    fn unjoined(cpu_counts: &[u64]) -> Self {
        let mut nodes = Self { parts: BTreeMap::new(), wires: VecDeque::new(), now: SECOND };
        for (number, &count) in (1..).zip(cpu_counts) {
            let setup = Setup {
                resources: cpus(count).resources,
                store_size: 1 << 20,
                store_patience: SECOND,
                prestart_workers: 0,
                max_starting: 4,
                max_processes: 32,
                limited_by: String::new(),
                clock_began_ns: 0,
                job: None,
                member: info(number, count),
                alone: false,
                asked_at: 0,
            };
            let table = memory_file("table", TABLE_BYTES).and_then(Table::map).expect("memory");
            let node = Node::new(setup, table.clone());
            nodes.parts.insert(number, Part { node, table, asked: Asked::default() });
            nodes.hear(number, from_control::Body::Welcome(Welcome::default()));
        }
        nodes
    }

    /// The control service says something to a node.
    fn hear(&mut self, number: u32, body: from_control::Body) {
        self.event(number, Event::FromControl(body));
    }

    fn admit(&mut self, node: u32, kind: ProcessKind) -> ProcessId {
        let part = self.parts.get_mut(&node).expect("is there");
        let admitted = part.node.admit(kind, 1000, JobConfig::default(), 0).expect("has room");
        self.event(node, Event::Ready(admitted.process));
        admitted.process
    }

    fn event(&mut self, number: u32, event: Event) {
        let part = self.parts.get_mut(&number).expect("is there");
        part.node.on_event(event, self.now, &mut part.asked);
        part.node.validate();
        let peers = std::mem::take(&mut part.asked.peers);
        self.wires.extend(peers.into_iter().map(|(to, body)| (number, to, body)));
        // What is for processes of others goes by way of their nodes.
        let here = |(to, _): &(ProcessId, Body)| to.node() == number;
        let (ours, theirs) = std::mem::take(&mut part.asked.sent).into_iter().partition(here);
        part.asked.sent = ours;
        let theirs: Vec<(ProcessId, Body)> = theirs;
        for (to, body) in theirs {
            let message = Some(body.into());
            let said = oxiray_wire::cluster::ForProcess { process: to.0, message };
            self.wires.push_back((number, to.node(), between_nodes::Body::ForProcess(said)));
        }
    }

    fn say(&mut self, from: ProcessId, body: to_node::Body) {
        self.event(from.node(), Event::Message(from, body));
    }

    /// The next message comes; false when there is none. One for a node that is gone is lost.
    fn deliver(&mut self) -> bool {
        let Some((from, to, body)) = self.wires.pop_front() else {
            return false;
        };
        if self.parts.contains_key(&to) {
            self.event(to, Event::FromPeer(from, body));
        }
        true
    }

    /// Everything that was said comes, and workers that were asked for arrive.
    fn settle(&mut self) {
        loop {
            while self.deliver() {}
            let starting = self.parts.iter().find(|(_, part)| part.asked.starting > 0);
            let Some(number) = starting.map(|(number, _)| *number) else {
                return;
            };
            self.parts.get_mut(&number).expect("is there").asked.starting -= 1;
            self.admit(number, ProcessKind::Worker);
        }
    }

    fn demand(&mut self, key: u64, shape: Shape, total: u64) {
        let demand = SetDemand {
            shape_key: key,
            shape: Some(shape),
            requested_total: total,
            ..Default::default()
        };
        self.say(DRIVER, to_node::Body::SetDemand(demand));
    }

    fn give_back(&mut self, lease: u64) {
        self.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    }

    /// Takes those of the messages to processes of a node that are wanted.
    fn take<T>(&mut self, node: u32, wanted: impl Fn(ProcessId, &Body) -> Option<T>) -> Vec<T> {
        let sent = &mut self.parts.get_mut(&node).expect("is there").asked.sent;
        let mut taken = Vec::new();
        sent.retain(|(to, body)| match wanted(*to, body) {
            Some(found) => {
                taken.push(found);
                false
            }
            None => true,
        });
        taken
    }

    /// Leases that the driver was granted.
    fn grants(&mut self) -> Vec<Grant> {
        self.take(A, |to, body| match body {
            Body::Granted(granted) => {
                Some(Grant { to, lease: granted.lease, worker: ProcessId(granted.worker) })
            }
            _ => None,
        })
    }

    /// What the control service passes on of a node's load.
    fn tell_load(&mut self, of: u32, to: u32) {
        let load: Load = self.parts[&of].node.load();
        self.hear(to, from_control::Body::Loads(Loads { loads: vec![load] }));
    }

    /// A node is gone, and the control service says so to the others.
    fn lose(&mut self, number: u32) {
        self.parts.remove(&number);
        self.wires.retain(|(from, _, _)| *from != number);
        let others: Vec<u32> = self.parts.keys().copied().collect();
        for other in others {
            self.hear(other, from_control::Body::NodeLeft(left(number)));
        }
    }

    fn is_all_free(&self, number: u32) -> bool {
        let node = &self.parts[&number].node;
        node.leases.is_empty() && node.ledger.available() == node.ledger.total()
    }
}
