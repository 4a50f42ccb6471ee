//! Small clusters in trouble, by many seeds. `SIM_SEED=7` runs that one alone; a million are run by
//! the example `seeds`.

use oxiray_sim::{Plan, Report, run_seeds};

fn mixed(seeds: std::ops::RangeInclusive<u64>) {
    let Report { gets, faults, .. } = run_seeds(seeds, Plan::mixed);
    assert!(faults < gets / 2, "most of {gets} values are had, in spite of everything");
}

/// In four parts, which run side by side.
#[test]
fn every_value_is_right_or_a_fault_explains_it() {
    mixed(1..=500);
}

#[test]
fn every_value_is_right_or_a_fault_explains_it_second_part() {
    mixed(501..=1000);
}

#[test]
fn every_value_is_right_or_a_fault_explains_it_third_part() {
    mixed(1001..=1500);
}

#[test]
fn every_value_is_right_or_a_fault_explains_it_fourth_part() {
    mixed(1501..=2000);
}

/// An actor's node starts it again while the control service is away, tells its callers alone, and
/// is lost before the control service is back: what follows is news to them.
#[test]
fn what_only_a_lost_node_had_said_of_an_actor_is_old() {
    mixed(7003..=7003);
}

#[test]
fn all_tasks_end_in_spite_of_everything() {
    run_seeds(1..=5, Plan::small);
}

#[test]
fn groups_are_created_and_leave_nothing_behind() {
    let Report { groups, deaths, .. } = run_seeds(1..=10, Plan::gangs);
    assert!(groups > 200 && deaths > 50, "{groups} groups, {deaths} deaths");
}

#[test]
fn no_actor_lives_twice_when_nodes_are_cut_off() {
    let Report { gets, faults, .. } = run_seeds(1..=40, Plan::cut_off);
    assert!(faults < gets, "some of {gets} values are had");
}

#[test]
fn every_value_is_had_though_nodes_do_not_reach_each_other() {
    let Report { gets, faults, .. } = run_seeds(1..=25, Plan::apart);
    assert!(gets > 300 && faults == 0, "{gets} values, {faults} of them lost");
}
