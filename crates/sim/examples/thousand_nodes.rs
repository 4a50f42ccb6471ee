//! A thousand nodes, a million tasks, and deaths.
//!
//! `SIM_SEED=1 cargo run --profile programs -p oxiray-sim --example thousand_nodes`
//!
//! What must hold of the whole world is looked at with every event; what must hold within a node
//! with every event of it (`SIM_VALIDATE_ONCE_IN=1000` looks less often, and takes less time).

use std::time::Instant;

use oxiray_sim::{Plan, World};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

fn main() {
    let mut plan = Plan::large(number("SIM_SEED").unwrap_or(1));
    if let Some(nodes) = number("SIM_NODES") {
        plan.nodes = nodes as usize;
    }
    if let Some(tasks) = number("SIM_TASKS") {
        plan.tasks = tasks as usize;
    }
    if let Some(once_in) = number("SIM_VALIDATE_ONCE_IN") {
        plan.validate_once_in = once_in;
    }
    println!("{plan:?}");
    let begin = Instant::now();
    let report = World::new(plan).run();
    let took = begin.elapsed();
    println!("{report:#?}");
    println!("took {took:?}, {:.0} happenings/s", report.happenings as f64 / took.as_secs_f64());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory =
        status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmPeak"));
    memory.for_each(|line| println!("{line}"));
}
