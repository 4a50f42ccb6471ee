//! Small clusters in trouble, by many seeds. `SIM_SEED=7` runs that one alone.

use oxiray_sim::{Plan, World};

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("SIM_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

#[test]
fn all_tasks_end_in_spite_of_everything() {
    for seed in seeds(20) {
        println!("seed {seed}");
        let plan = Plan::small(seed);
        let tasks = plan.tasks as u64;
        let report = World::new(plan).run();
        assert!(report.tasks >= tasks, "S-1");
        println!("{report:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || World::new(Plan { tasks: 500, ..Plan::small(3) }).run();
    assert_eq!(run(), run());
}
