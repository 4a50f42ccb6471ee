//! A thousand placement groups among a hundred nodes that die and come, by a few seeds.
//!
//! `cargo run --release -p oxiray-sim --example thousand_groups [SEEDS [EVENTS]]`: what must hold is
//! checked once in so many events, 100 unless given, and at the end.

use oxiray_sim::{Plan, Report, run_seeds};

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let (seeds, validate_once_in) = (given.next().unwrap_or(5), given.next().unwrap_or(100));
    let plan = |seed| Plan { validate_once_in, ..Plan::thousand_gangs(seed) };
    let Report { groups, deaths, control_events, node_events, .. } = run_seeds(1..=seeds, plan);
    println!(
        "{groups} groups were created while {deaths} nodes died; {control_events} events of the \
         control service, {node_events} of nodes"
    );
}
