//! Tests of the view; each names the invariants it exercises.

use proptest::prelude::*;

use super::*;
use crate::labels::{Operator, Selector};
use crate::testing::{cluster_of, id, join, shape};

const N0: NodeNumber = NodeNumber(0);
const N1: NodeNumber = NodeNumber(1);

#[test]
fn taking_is_all_or_nothing() {
    // C-3.
    let mut cluster = cluster_of(&[&[("CPU", 4), ("GPU", 1)]]);
    let before = cluster.available(N0);
    assert!(!cluster.take(N0, &shape(&[("CPU", 1), ("GPU", 2)])));
    assert!(!cluster.take(N0, &shape(&[("CPU", 1), ("TPU", 1)])));
    assert!(!cluster.take(N0, &shape(&[("CPU", 3), ("CPU", 3)])), "repeated names are summed");
    assert_eq!(cluster.available(N0), before);
    assert!(cluster.take(N0, &shape(&[("CPU", 4)])));
    assert!(!cluster.fits_now(N0, &shape(&[("CPU", 1)])));
    assert!(cluster.can_ever_fit(N0, &shape(&[("CPU", 4)])));
    cluster.give_back(N0, &shape(&[("CPU", 4)]));
    cluster.give_back(N0, &shape(&[("CPU", 4)]));
    assert_eq!(cluster.available(N0), before, "C-1: never more than all");
    cluster.validate();
}

#[test]
fn a_report_replaces_the_belief() {
    // C-1.
    let mut cluster = cluster_of(&[&[("CPU", 4), ("x", 2)]]);
    assert!(cluster.take(N0, &shape(&[("CPU", 4)])));
    cluster.report(N0, &shape(&[("CPU", 3), ("unheard", 9)]).resources, 7);
    assert_eq!(cluster.available(N0), shape(&[("CPU", 3), ("x", 0)]).resources);
    assert_eq!((cluster.waiting(N0), cluster.utilization(N0)), (7, 0.25));
    cluster.report(N0, &shape(&[("CPU", 30)]).resources, 0);
    assert_eq!(cluster.available(N0), shape(&[("CPU", 4), ("x", 0)]).resources);
    cluster.add_waiting(N0);
    assert_eq!(cluster.waiting(N0), 1);
    cluster.validate();
}

#[test]
fn utilisation_is_that_of_the_scarcest_critical_resource() {
    let mut cluster = cluster_of(&[&[("CPU", 8), ("memory", 4), ("marker", 1)]]);
    assert!(cluster.take(N0, &shape(&[("marker", 1)])));
    assert_eq!(cluster.utilization(N0), 0.0, "custom resources do not count");
    assert!(cluster.take(N0, &shape(&[("CPU", 2), ("memory", 3)])));
    assert_eq!(cluster.utilization(N0), 0.75);
    assert_eq!(cluster.utilization(NodeNumber(70_000)), 0.0);
}

#[test]
fn who_left_is_nobody() {
    // C-4.
    let mut cluster = cluster_of(&[&[("CPU", 4), ("only-here", 1)], &[("CPU", 1)]]);
    assert!(cluster.leave(N0));
    assert!(!cluster.leave(N0));
    let nothing = shape(&[]);
    assert!(!cluster.fits_now(N0, &nothing) && !cluster.can_ever_fit(N0, &nothing));
    cluster.report(N0, &shape(&[("CPU", 4)]).resources, 3);
    cluster.give_back(N0, &shape(&[("CPU", 1)]));
    cluster.add_waiting(N0);
    cluster.set_draining(N0, true);
    assert_eq!((cluster.waiting(N0), cluster.is_draining(N0)), (0, false));
    assert_eq!((cluster.number_of(&id(0)), cluster.len()), (None, 1));
    assert!(!cluster.can_ever_fit(N1, &shape(&[("only-here", 1)])));
    cluster.validate();
    join(&mut cluster, 0, &[("another", 1)], "");
    assert!(cluster.fits_now(N0, &shape(&[("another", 1)])), "the spare column is used again");
    assert!(!cluster.can_ever_fit(N0, &shape(&[("CPU", 1)])));
    cluster.validate();
}

#[test]
fn an_id_has_one_number_and_a_number_one_node() {
    // C-2.
    let mut cluster = cluster_of(&[&[("CPU", 1)], &[("CPU", 2)]]);
    cluster.join(N1, id(0), &shape(&[("CPU", 3)]).resources, BTreeMap::new());
    assert_eq!(cluster.nodes().collect::<Vec<_>>(), [N1]);
    assert_eq!((cluster.number_of(&id(0)), cluster.number_of(&id(1))), (Some(N1), None));
    assert_eq!(cluster.total(N1), shape(&[("CPU", 3)]).resources);
    cluster.validate();
}

#[test]
fn the_node_id_is_a_label() {
    let cluster = cluster_of(&[&[], &[]]);
    let selector = Selector::parse(NODE_ID_LABEL, &id(1).to_string()).unwrap();
    assert_eq!(cluster.matching(&[selector]), [0b10]);
}

/// One thing that happens to a cluster.
#[derive(Clone, Debug)]
enum Event {
    Join(u32, Vec<(usize, u64)>, usize),
    Leave(u32),
    Report(u32, Vec<(usize, u64)>),
    Take(u32, Vec<(usize, u64)>),
    GiveBack(u32, Vec<(usize, u64)>),
    Drain(u32, bool),
}

const NAMES: [&str; 4] = ["CPU", "GPU", "a", "b"];
const LABELS: [&str; 3] = ["", "zone=a", "zone=b,disk=fast"];

fn named(amounts: &[(usize, u64)]) -> Vec<(&'static str, u64)> {
    amounts.iter().map(|&(name, amount)| (NAMES[name], amount)).collect()
}

fn events() -> impl proptest::strategy::Strategy<Value = Vec<Event>> {
    let node = prop_oneof![0u32..4, 62u32..66, 200u32..202];
    let amounts = prop::collection::vec((0..NAMES.len(), 0u64..5), 0..4);
    let event = prop_oneof![
        (node.clone(), amounts.clone(), 0..LABELS.len()).prop_map(|(n, a, l)| Event::Join(n, a, l)),
        node.clone().prop_map(Event::Leave),
        (node.clone(), amounts.clone()).prop_map(|(n, a)| Event::Report(n, a)),
        (node.clone(), amounts.clone()).prop_map(|(n, a)| Event::Take(n, a)),
        (node.clone(), amounts).prop_map(|(n, a)| Event::GiveBack(n, a)),
        (node, any::<bool>()).prop_map(|(n, d)| Event::Drain(n, d)),
    ];
    prop::collection::vec(event, 1..60)
}

fn apply(cluster: &mut Cluster, event: &Event) {
    match event {
        Event::Join(n, amounts, labels) => join(cluster, *n, &named(amounts), LABELS[*labels]),
        Event::Leave(n) => {
            assert_eq!(cluster.is_live(NodeNumber(*n)), cluster.leave(NodeNumber(*n)))
        }
        Event::Report(n, amounts) => {
            cluster.report(NodeNumber(*n), &shape(&named(amounts)).resources, 1);
        }
        Event::Take(n, amounts) => {
            let (node, shape) = (NodeNumber(*n), shape(&named(amounts)));
            let (before, load) = (cluster.available(node), cluster.utilization(node));
            let fits = cluster.fits_now(node, &shape);
            assert_eq!(cluster.take(node, &shape), fits);
            if fits {
                cluster.give_back(node, &shape);
            }
            assert_eq!((cluster.available(node), cluster.utilization(node)), (before, load), "C-3");
            cluster.take(node, &shape);
        }
        Event::GiveBack(n, amounts) => cluster.give_back(NodeNumber(*n), &shape(&named(amounts))),
        Event::Drain(n, draining) => cluster.set_draining(NodeNumber(*n), *draining),
    }
}

proptest! {
    /// C-1 to C-4, whatever happens; and selectors answered from the index
    /// agree with those answered from the labels.
    #[test]
    fn invariants_hold_whatever_happens(events in events()) {
        let mut cluster = Cluster::new();
        for event in &events {
            apply(&mut cluster, event);
            cluster.validate();
        }
        let values = || vec!["a".to_owned(), "c".to_owned()];
        for operator in
            [Operator::In(values()), Operator::NotIn(values()), Operator::Exists, Operator::DoesNotExist]
        {
            let selector = Selector { key: "zone".into(), operator };
            let found = cluster.matching(std::slice::from_ref(&selector));
            for (slot, node) in (0..).zip(&cluster.nodes) {
                let (block, bit) = place(slot);
                let want = node.as_ref().is_some_and(|node| selector.matches(&node.labels));
                prop_assert_eq!(found[block] >> bit & 1 == 1, want);
            }
        }
    }
}
