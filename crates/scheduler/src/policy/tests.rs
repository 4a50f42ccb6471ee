//! Tests of the policies; each names the invariants it exercises.

use oxiray_ids::NodeId;

use super::*;
use crate::labels::Operator;
use crate::testing::{cluster_of, id, join, request, shape};

fn node(number: u32) -> NodeNumber {
    NodeNumber(number)
}

fn now(number: u32) -> Choice {
    Choice::Now(node(number))
}

fn queue(number: u32) -> Choice {
    Choice::Queue(node(number))
}

fn take(cluster: &mut Cluster, number: u32, amounts: &[(&str, u64)]) {
    assert!(cluster.take(node(number), &shape(amounts)));
}

/// The choice for one CPU, asked at `local`.
fn one_cpu(cluster: &Cluster, strategy: &Strategy, local: u32, turn: u64) -> Choice {
    choose(cluster, &Request { turn, ..request(&shape(&[("CPU", 1)]), strategy, local) })
}

#[test]
fn default_packs_here_up_to_half_then_goes_elsewhere() {
    let mut cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 4)], &[("CPU", 4)]]);
    let mut choices = Vec::new();
    while let Choice::Now(chosen) = one_cpu(&cluster, &Strategy::Default, 1, 0) {
        take(&mut cluster, chosen.0, &[("CPU", 1)]);
        choices.push(chosen.0);
    }
    // Half of each in turn, here first; then the least utilised, here among equals.
    assert_eq!(choices, [1, 1, 0, 0, 2, 2, 1, 0, 2, 1, 0, 2]);
    assert_eq!(one_cpu(&cluster, &Strategy::Default, 1, 0), queue(1), "P-4: here");
}

#[test]
fn default_goes_to_the_arguments_while_there_is_room() {
    let mut cluster = cluster_of(&[&[("CPU", 2)], &[("CPU", 2)]]);
    take(&mut cluster, 1, &[("CPU", 1)]);
    let one = shape(&[("CPU", 1)]);
    let wants = Request { prefer: Some(node(1)), ..request(&one, &Strategy::Default, 0) };
    assert_eq!(choose(&cluster, &wants), now(1));
    cluster.set_draining(node(1), true);
    assert_eq!(choose(&cluster, &wants), now(0), "P-1");
    cluster.set_draining(node(1), false);
    take(&mut cluster, 1, &[("CPU", 1)]);
    assert_eq!(choose(&cluster, &wants), now(0), "P-2");
}

#[test]
fn default_keeps_gpu_nodes_for_gpus() {
    let mut cluster = cluster_of(&[&[("CPU", 4), ("GPU", 1)], &[("CPU", 1)]]);
    assert_eq!(one_cpu(&cluster, &Strategy::Default, 0, 0), now(1));
    let gpu = shape(&[("CPU", 1), ("GPU", 1)]);
    assert_eq!(choose(&cluster, &request(&gpu, &Strategy::Default, 1)), now(0));
    take(&mut cluster, 1, &[("CPU", 1)]);
    assert_eq!(one_cpu(&cluster, &Strategy::Default, 1, 0), now(0), "P-2: rather than wait");
}

#[test]
fn default_takes_turns_among_the_best_fifth() {
    let totals: Vec<&[(&str, u64)]> = vec![&[("CPU", 4)]; 15];
    let mut cluster = cluster_of(&totals);
    let chosen = |cluster: &Cluster| -> Vec<Choice> {
        (0..4).map(|turn| one_cpu(cluster, &Strategy::Default, 99, turn)).collect()
    };
    assert_eq!(chosen(&cluster), [now(0), now(1), now(2), now(0)]);
    // Above half: the three least utilised, by utilisation and number.
    for number in 0..15 {
        take(&mut cluster, number, &[("CPU", if number == 7 { 2 } else { 3 })]);
    }
    assert_eq!(chosen(&cluster), [now(7), now(0), now(1), now(7)]);
    // A single calm node is taken whatever the turn.
    cluster.give_back(node(9), &shape(&[("CPU", 3)]));
    assert_eq!(chosen(&cluster), [now(9), now(9), now(9), now(9)]);
    cluster.give_back(node(4), &shape(&[("CPU", 3)]));
    assert_eq!(chosen(&cluster), [now(4), now(9), now(4), now(4)]);
}

#[test]
fn who_cannot_wait_here_waits_where_the_fewest_do() {
    // P-4.
    let mut cluster = cluster_of(&[&[], &[("CPU", 1)], &[("CPU", 1)]]);
    take(&mut cluster, 1, &[("CPU", 1)]);
    take(&mut cluster, 2, &[("CPU", 1)]);
    cluster.add_waiting(node(1));
    assert_eq!(one_cpu(&cluster, &Strategy::Default, 0, 0), queue(2));
    assert_eq!(one_cpu(&cluster, &Strategy::Spread, 1, 0), queue(2));
    let two = shape(&[("CPU", 2)]);
    assert_eq!(choose(&cluster, &request(&two, &Strategy::Default, 0)), Choice::Infeasible);
    assert_eq!(choose(&cluster, &request(&two, &Strategy::Spread, 0)), Choice::Infeasible);
}

#[test]
fn spread_goes_to_the_least_loaded_first() {
    let mut cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 4)], &[("CPU", 4)]]);
    take(&mut cluster, 0, &[("CPU", 2)]);
    take(&mut cluster, 1, &[("CPU", 1)]);
    let chosen: Vec<Choice> = (0..4)
        .map(|turn| {
            let choice = one_cpu(&cluster, &Strategy::Spread, 0, turn);
            if let Choice::Now(chosen) = choice {
                take(&mut cluster, chosen.0, &[("CPU", 1)]);
            }
            choice
        })
        .collect();
    assert_eq!(chosen, [now(2), now(2), now(1), now(0)]);
}

fn affinity(node: NodeId, soft: bool) -> Affinity {
    Affinity { node, soft, spill_on_unavailable: false, fail_on_unavailable: false }
}

#[test]
fn hard_affinity_is_that_node_or_failure() {
    // P-3.
    let mut cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 1)]]);
    let hard = Strategy::Node(affinity(id(1), false));
    cluster.set_draining(node(1), true);
    assert_eq!(one_cpu(&cluster, &hard, 0, 0), now(1), "draining, but asked for");
    take(&mut cluster, 1, &[("CPU", 1)]);
    assert_eq!(one_cpu(&cluster, &hard, 0, 0), queue(1));
    let fail = Affinity { fail_on_unavailable: true, ..affinity(id(1), false) };
    assert_eq!(
        one_cpu(&cluster, &Strategy::Node(fail), 0, 0),
        Choice::Unschedulable(
            "the node 00000001… that it must run on is busy: needs CPU: 1, it has 0 of 1 free"
                .into()
        )
    );
    let two = shape(&[("CPU", 2)]);
    let reason = "the node 00000001… that it must run on is too small: needs CPU: 2, it has 1";
    assert_eq!(choose(&cluster, &request(&two, &hard, 0)), Choice::Unschedulable(reason.into()));
    let zone = [Selector { key: "zone".into(), operator: Operator::Exists }];
    let one = shape(&[("CPU", 1)]);
    let labelled = Request { selectors: &zone, ..request(&one, &hard, 0) };
    assert_eq!(
        choose(&cluster, &labelled),
        Choice::Unschedulable(
            "the node 00000001… that it must run on does not match the label selector zone".into()
        )
    );
    cluster.leave(node(1));
    assert!(matches!(one_cpu(&cluster, &hard, 0, 0), Choice::Unschedulable(_)));
}

#[test]
fn soft_affinity_falls_back() {
    let mut cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 1)]]);
    let soft = Strategy::Node(affinity(id(1), true));
    let spill = Affinity { spill_on_unavailable: true, ..affinity(id(1), true) };
    assert_eq!(one_cpu(&cluster, &soft, 0, 0), now(1));
    assert_eq!(choose(&cluster, &request(&shape(&[("CPU", 2)]), &soft, 0)), now(0), "too small");
    take(&mut cluster, 1, &[("CPU", 1)]);
    assert_eq!(one_cpu(&cluster, &soft, 0, 0), queue(1), "waits for it");
    assert_eq!(one_cpu(&cluster, &Strategy::Node(spill), 0, 0), now(0));
    cluster.set_draining(node(1), true);
    assert_eq!(one_cpu(&cluster, &soft, 0, 0), now(0), "drains");
    cluster.leave(node(1));
    assert_eq!(one_cpu(&cluster, &soft, 0, 0), now(0), "gone");
}

#[test]
fn labels_hard_then_soft() {
    let mut cluster = cluster_of(&[]);
    join(&mut cluster, 0, &[("CPU", 1)], "zone=b");
    join(&mut cluster, 1, &[("CPU", 1)], "zone=a");
    join(&mut cluster, 2, &[("CPU", 1)], "zone=a,disk=fast");
    let selector = |key, text| Selector::parse(key, text).unwrap();
    let (hard, soft) = (vec![selector("zone", "a")], vec![selector("disk", "fast")]);
    let strategy = Strategy::Labels { hard, soft };
    let choice = |cluster: &Cluster| one_cpu(cluster, &strategy, 0, 0);
    assert_eq!(choice(&cluster), now(2));
    take(&mut cluster, 2, &[("CPU", 1)]);
    assert_eq!(choice(&cluster), now(1), "soft gives way to room");
    take(&mut cluster, 1, &[("CPU", 1)]);
    assert_eq!(choice(&cluster), queue(2), "P-3: not at 0, which has room");
    cluster.leave(node(2));
    assert_eq!(choice(&cluster), queue(1));
    cluster.leave(node(1));
    assert_eq!(choice(&cluster), Choice::Infeasible);
    // The option `label_selector` goes with every strategy.
    let not_b = [selector("zone", "!b")];
    let one = shape(&[("CPU", 1)]);
    let wants = Request { selectors: &not_b, ..request(&one, &Strategy::Spread, 0) };
    assert_eq!(choose(&cluster, &wants), Choice::Infeasible);
}

#[test]
fn fallbacks_in_turn() {
    let mut cluster = cluster_of(&[]);
    join(&mut cluster, 0, &[("CPU", 1)], "zone=a");
    join(&mut cluster, 1, &[("CPU", 1)], "zone=b");
    join(&mut cluster, 2, &[("CPU", 1)], "zone=c");
    let zone = |text: &str| vec![Selector::parse("zone", text).unwrap()];
    let one = shape(&[("CPU", 1)]);
    let choice = |cluster: &Cluster, first: &str, others: &[&str]| {
        let fallbacks: Vec<_> = others.iter().map(|other| zone(other)).collect();
        let selectors = zone(first);
        let fallbacks = Request { fallbacks: &fallbacks, ..request(&one, &Strategy::Default, 0) };
        choose(cluster, &Request { selectors: &selectors, ..fallbacks })
    };
    assert_eq!(choice(&cluster, "b", &["c"]), now(1), "P-6: the first has room");
    assert_eq!(choice(&cluster, "x", &["y", "c", "a"]), now(2), "P-6: in their order");
    assert_eq!(choice(&cluster, "x", &["y"]), Choice::Infeasible);
    take(&mut cluster, 1, &[("CPU", 1)]);
    assert_eq!(choice(&cluster, "b", &["c"]), now(2), "P-6: the fallback has room");
    take(&mut cluster, 2, &[("CPU", 1)]);
    assert_eq!(choice(&cluster, "b", &["c"]), queue(1), "P-6: waits for the first");
    assert_eq!(choice(&cluster, "x", &["c"]), queue(2));
}

mod properties;
