//! What must hold is looked at: in a world where it is broken on purpose, some seed says so.

use oxiray_sim::{Broken, Plan, World};

/// Whether one of some seeds fails by this invariant; what breaks it may break others before.
fn is_seen(broken: Broken, invariant: &str) {
    is_seen_in(Plan::mixed, broken, invariant);
}

fn is_seen_in(plan: fn(u64) -> Plan, broken: Broken, invariant: &str) {
    std::panic::set_hook(Box::new(|_| {}));
    let said = (1..=200).find_map(|seed| {
        // Nothing else goes wrong.
        let calm =
            Plan { node_deaths: 0, broken_links: 0, control_restarts: 0, drains: 0, ..plan(seed) };
        let plan = Plan { broken: Some(broken), crash_once_in: 0, ..calm };
        let panic = std::panic::catch_unwind(|| World::new(plan).run()).err()?;
        panic.downcast_ref::<String>().cloned().filter(|said| said.contains(invariant))
    });
    let _ = std::panic::take_hook();
    assert!(said.is_some(), "some seed fails by it");
}

#[test]
fn h1_a_task_that_runs_too_often_is_seen() {
    is_seen(Broken::Tasks, "H-1: ");
}

#[test]
fn h2_a_call_that_runs_twice_in_one_incarnation_is_seen() {
    is_seen(Broken::Calls, "H-2: ");
}

#[test]
fn h3_calls_out_of_order_are_seen() {
    is_seen(Broken::Order, "H-3: ");
}

#[test]
fn h4_a_call_for_another_incarnation_is_seen() {
    is_seen(Broken::Incarnations, "H-4: ");
}

#[test]
fn s4_an_actor_that_lives_on_where_it_was_given_up_is_seen() {
    is_seen_in(Plan::cut_off, Broken::Leases, "S-4: ");
}
