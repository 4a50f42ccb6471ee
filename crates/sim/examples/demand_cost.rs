//! What one more unit of demand costs a node, by the number of nodes it knows:
//! nanoseconds per event, from the message of a process to what the node asks for.
//!
//! `cargo run --release -p oxiray-sim --example demand_cost`

use std::time::Instant;

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_node::{Endpoint, Event, Node, Outbox, Setup, Transfer};
use oxiray_store::{Extent, TABLE_BYTES, Table};
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{
    BetweenNodes, Join, Load, Loads, NodeInfo, Tokens, Welcome, from_control, to_control,
};
use oxiray_wire::control::{
    Amount, JobConfig, ProcessKind, ReadFile, SetDemand, Shape, Strategy, UNIT, from_node, to_node,
};

/// Counts what other nodes are asked for.
#[derive(Default)]
struct Counting(u64);

impl Outbox for Counting {
    fn tell_peer(&mut self, _node: u32, _message: BetweenNodes) {
        self.0 += 1;
    }
    fn send(&mut self, _to: ProcessId, _body: from_node::Body) {}
    fn open_channel(&mut self, _ends: [Endpoint; 2]) {}
    fn start_worker(&mut self, _environment: u32) {}
    fn make_template(&mut self, _environment: u32, _text: &str) {}
    fn end_template(&mut self, _environment: u32) {}
    fn kill(&mut self, _process: ProcessId) {}
    fn spill(&mut self, _batch: Vec<(StoreKey, Extent)>) {}
    fn restore(&mut self, _key: StoreKey, _extent: Extent) {}
    fn forget_copy(&mut self, _key: StoreKey) {}
    fn tell_user(&mut self, _text: String) {}
    fn tell_control(&mut self, _body: to_control::Body) {}
    fn dial_control(&mut self, _join: Join) {}
    fn add_node(&mut self, _info: &NodeInfo) {}
    fn remove_node(&mut self, _number: u32) {}
    fn change_tokens(&mut self, _tokens: Tokens) {}
    fn leave(&mut self, why: String) {
        unreachable!("nobody drains this node: {why}");
    }
    fn rejoin(&mut self, why: String) {
        panic!("{why}");
    }
    fn exclude(&mut self, why: String) {
        unreachable!("{why}");
    }
    fn close_channel(&mut self, _local: ProcessId, _foreign: ProcessId) {}
    fn transfer(&mut self, _transfer: Transfer) {}
    fn lend(&mut self, _grant: u64, _extent: Extent) {}
    fn read_file(&mut self, _asker: ProcessId, _wanted: ReadFile) {}
    fn end_lending(&mut self, _grant: u64) {}
    fn shut_down(&mut self, _asked: bool) {}
}

fn cpus(count: u64) -> Vec<Amount> {
    vec![Amount { name: "CPU".into(), amount: count * UNIT }]
}

fn info(number: u32, count: u64) -> NodeInfo {
    let mut id = vec![0; 28];
    id[..4].copy_from_slice(&number.to_le_bytes());
    NodeInfo { number, id, total: cpus(64), available: cpus(count), ..NodeInfo::default() }
}

/// A node among others; each of these has so many of its 64 CPUs free.
fn node(nodes: u32, free: u64) -> (Node, ProcessId) {
    let own = NodeInfo { total: cpus(1), ..info(1, 1) };
    let setup = Setup {
        resources: cpus(1),
        store_size: 1 << 20,
        store_patience: 1_000_000_000,
        prestart_workers: 0,
        max_starting: 4,
        max_processes: 64,
        limited_by: String::new(),
        clock_began_ns: 0,
        job: None,
        member: own.clone(),
        alone: false,
        asked_at: 0,
    };
    let table = memory_file("table", TABLE_BYTES).and_then(Table::map).expect("memory");
    let mut node = Node::new(setup, table);
    let others = (2..=nodes).map(|number| info(number, free));
    let nodes_there = std::iter::once(own).chain(others).collect();
    let welcome = Welcome { nodes: nodes_there, ..Welcome::default() };
    let loads = (2..=nodes).map(|node| Load { node, available: cpus(free), ..Load::default() });
    let loads = Loads { loads: loads.collect() };
    for body in [from_control::Body::Welcome(welcome), from_control::Body::Loads(loads)] {
        node.on_event(Event::FromControl(body), 1, &mut Counting::default());
    }
    let driver =
        node.admit(ProcessKind::Driver, 1, JobConfig::default(), 0).expect("a bell").process;
    node.on_event(Event::Ready(driver), 1, &mut Counting::default());
    (node, driver)
}

/// Nanoseconds per unit of demand, and how many of them went to other nodes.
fn cost(nodes: u32, free: u64, spread: bool) -> (f64, u64) {
    let rounds = 2_000.min(32 * u64::from(nodes));
    let mut best = f64::INFINITY;
    let mut asked = 0;
    for _ in 0..5 {
        let (mut node, driver) = node(nodes, free);
        let strategy = spread.then(|| Strategy { spread: true, ..Strategy::default() });
        let shape = Shape { resources: cpus(1), strategy, ..Shape::default() };
        let mut counting = Counting::default();
        let begin = Instant::now();
        for total in 1..=rounds {
            let shape = Some(shape.clone());
            let demand =
                SetDemand { shape_key: 1, shape, requested_total: total, ..Default::default() };
            let message = Event::Message(driver, to_node::Body::SetDemand(demand));
            node.on_event(message, total, &mut counting);
        }
        best = best.min(begin.elapsed().as_nanos() as f64 / rounds as f64);
        asked = counting.0;
    }
    (best, asked)
}

fn main() {
    let sizes = [1, 10, 100, 1_000];
    print!("{:<26}", "ns per unit, nodes:");
    sizes.iter().for_each(|nodes| print!("{nodes:>9}"));
    println!();
    for (name, free, spread) in [
        ("default, others idle", 64, false),
        ("default, all full", 0, false),
        ("spread, others idle", 64, true),
        ("spread, all full", 0, true),
    ] {
        print!("{name:<26}");
        sizes.iter().for_each(|&nodes| print!("{:>9.0}", cost(nodes, free, spread).0));
        println!();
    }
}
