//! What a choice costs, by the number of nodes: nanoseconds per decision.
//!
//! `cargo run --release -p oxiray-scheduler --example decision_cost`

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use oxiray_ids::NodeId;
use oxiray_scheduler::{Choice, Cluster, NodeNumber, Request, Selector, Strategy, choose};
use oxiray_wire::control::{Amount, Shape, UNIT};

/// How much of each node's 64 CPUs is in use.
#[derive(Clone, Copy)]
enum Usage {
    /// Nothing.
    Idle,
    /// Between half and nearly all, each node differently.
    Busy,
    /// Everything.
    Full,
}

fn cpus(amount: u64) -> Shape {
    Shape { resources: vec![Amount { name: "CPU".into(), amount }], ..Shape::default() }
}

fn cluster(nodes: u32, usage: Usage) -> Cluster {
    let mut cluster = Cluster::new();
    for number in 0..nodes {
        let mut id = [0; 28];
        id[..4].copy_from_slice(&number.to_le_bytes());
        let mut total = cpus(64 * UNIT).resources;
        total.push(Amount { name: "memory".into(), amount: (256 << 30) * UNIT });
        let zone = format!("zone-{}", number % 8);
        let labels = BTreeMap::from([("zone".to_owned(), zone)]);
        let number = NodeNumber(number);
        cluster.join(number, NodeId(id), &total, labels);
        let used = match usage {
            Usage::Idle => 0,
            Usage::Busy => 32 + ((u64::from(number.0) * 2_654_435_761) >> 7) % 31,
            Usage::Full => 64,
        };
        assert!(cluster.take(number, &cpus(used * UNIT)));
    }
    cluster
}

/// The best of several: other programs only ever make it slower.
fn cost(cluster: &mut Cluster, strategy: &Strategy, local: u32, take: bool) -> f64 {
    let runs = (0..7).map(|_| cost_once(cluster, strategy, local, take));
    runs.fold(f64::INFINITY, f64::min)
}

/// Nanoseconds for a choice and, when it is taken, for taking and giving back.
fn cost_once(cluster: &mut Cluster, strategy: &Strategy, local: u32, take: bool) -> f64 {
    let shape = cpus(UNIT);
    let rounds = 1_000_000 / (cluster.len() as u64 + 100);
    let start = Instant::now();
    for turn in 0..rounds {
        let local = NodeNumber(local);
        let request = Request {
            shape: &shape,
            strategy,
            selectors: &[],
            fallbacks: &[],
            local,
            prefer: None,
            turn,
        };
        let choice = choose(cluster, black_box(&request));
        if take && let Choice::Now(node) = choice {
            cluster.take(node, &shape);
            cluster.give_back(node, &shape);
        }
        black_box(&choice);
    }
    start.elapsed().as_nanos() as f64 / rounds as f64
}

fn main() {
    let zone = vec![Selector::parse("zone", "zone-7").expect("a valid selector")];
    let labels = Strategy::Labels { hard: zone, soft: vec![] };
    let nobody = u32::MAX;
    let (default, spread) = (&Strategy::Default, &Strategy::Spread);
    let cases = [
        ("default, local is calm", default, Usage::Idle, 0, false),
        ("default, others are calm", default, Usage::Idle, nobody, false),
        ("default, all above half", default, Usage::Busy, nobody, false),
        ("default, all full", default, Usage::Full, 0, false),
        ("spread, all idle", spread, Usage::Idle, 0, false),
        ("spread, all above half", spread, Usage::Busy, 0, false),
        ("spread, all full", spread, Usage::Full, 0, false),
        ("labels, all above half", &labels, Usage::Busy, nobody, false),
        ("spread, take, give back", spread, Usage::Idle, 0, true),
    ];
    print!("{:<26}", "ns per decision, nodes:");
    let sizes = [1, 10, 100, 1_000, 10_000];
    sizes.iter().for_each(|nodes| print!("{nodes:>9}"));
    println!();
    for (name, strategy, usage, local, take) in cases {
        print!("{name:<26}");
        for nodes in sizes {
            let mut cluster = cluster(nodes, usage);
            print!("{:>9.0}", cost(&mut cluster, strategy, local, take));
        }
        println!();
    }
}
