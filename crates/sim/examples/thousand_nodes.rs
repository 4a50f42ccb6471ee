//! A thousand nodes, a million tasks, and deaths.
//!
//! `SIM_SEED=1 cargo run --release -p oxiray-sim --example thousand_nodes`

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
