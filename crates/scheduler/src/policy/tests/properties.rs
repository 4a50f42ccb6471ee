//! Properties of all choices, against a search that looks at every node.

use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::*;
use crate::policy::Strategy;

#[derive(Clone, Debug)]
struct ANode {
    cpus: u64,
    gpus: u64,
    used: u64,
    zone: Option<bool>,
    draining: bool,
    waiting: u32,
    absent: bool,
}

fn a_node() -> impl proptest::strategy::Strategy<Value = ANode> {
    let rare = || prop::bool::weighted(0.15);
    let fields = (0u64..5, 0u64..2, 0u64..5, any::<Option<bool>>(), rare(), 0u32..3, rare());
    fields.prop_map(|(cpus, gpus, used, zone, draining, waiting, absent)| ANode {
        cpus,
        gpus,
        used,
        zone,
        draining,
        waiting,
        absent,
    })
}

fn a_strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    let affinity = (0u32..80, any::<[bool; 3]>()).prop_map(|(number, [soft, spill, fail])| {
        Strategy::Node(Affinity {
            node: id(number),
            soft,
            spill_on_unavailable: spill,
            fail_on_unavailable: fail,
        })
    });
    let labels =
        (prop::collection::vec(a_selector(), 0..2), prop::collection::vec(a_selector(), 0..2))
            .prop_map(|(hard, soft)| Strategy::Labels { hard, soft });
    prop_oneof![Just(Strategy::Default), Just(Strategy::Spread), affinity, labels]
}

fn a_selector() -> impl proptest::strategy::Strategy<Value = Selector> {
    let zone = |on: bool| vec![format!("z{}", u8::from(on))];
    let operator = prop_oneof![
        any::<bool>().prop_map(move |on| Operator::In(zone(on))),
        any::<bool>().prop_map(move |on| Operator::NotIn(zone(on))),
        Just(Operator::Exists),
        Just(Operator::DoesNotExist),
    ];
    operator.prop_map(|operator| Selector { key: "zone".into(), operator })
}

fn build(nodes: &[ANode]) -> Cluster {
    let mut cluster = Cluster::new();
    for (number, a) in nodes.iter().enumerate().filter(|(_, a)| !a.absent) {
        let number = number as u32;
        let labels = a.zone.map_or(String::new(), |on| format!("zone=z{}", u8::from(on)));
        join(&mut cluster, number, &[("CPU", a.cpus), ("GPU", a.gpus)], &labels);
        let available = shape(&[("CPU", a.cpus.saturating_sub(a.used)), ("GPU", a.gpus)]);
        cluster.report(node(number), &available.resources, a.waiting);
        cluster.set_draining(node(number), a.draining);
    }
    cluster.validate();
    cluster
}

/// Whether hard constraints admit the node.
fn admits(cluster: &Cluster, request: &Request, number: NodeNumber) -> bool {
    let Some(labels) = cluster.labels(number) else { return false };
    let hard = match request.strategy {
        Strategy::Labels { hard, .. } => &hard[..],
        _ => &[],
    };
    if !request.selectors.iter().chain(hard).all(|selector| selector.matches(labels)) {
        return false;
    }
    match request.strategy {
        Strategy::Node(Affinity { node, soft: false, .. }) => cluster.id_of(number) == Some(*node),
        _ => !cluster.is_draining(number),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// P-1 to P-4, for every strategy; and a sentence for every outcome.
    #[test]
    fn choices_are_sound_and_complete(
        nodes in prop::collection::vec(a_node(), 0..80),
        strategy in a_strategy(),
        selectors in prop::collection::vec(a_selector(), 0..2),
        (cpus, gpus, odd) in (0u64..5, 0u64..2, prop::bool::weighted(0.05)),
        (local, prefer, turn) in (0u32..90, prop::option::of(0u32..90), any::<u64>()),
    ) {
        let cluster = build(&nodes);
        let shape = shape(&[("CPU", cpus), ("GPU", gpus), ("unheard-of", u64::from(odd))]);
        let prefer = prefer.map(node);
        let request = Request {
            shape: &shape, strategy: &strategy, selectors: &selectors, fallbacks: &[], local: node(local), prefer, turn,
        };
        let admitted: Vec<_> = cluster.nodes().filter(|&n| admits(&cluster, &request, n)).collect();
        let anyone_now = admitted.iter().any(|&n| cluster.fits_now(n, &shape));
        let anyone_ever = admitted.iter().any(|&n| cluster.can_ever_fit(n, &shape));
        let choice = choose(&cluster, &request);
        prop_assert_eq!(&choice, &choose(&cluster, &request));
        prop_assert!(!crate::explain(&cluster, &request).is_empty());
        match choice {
            Choice::Now(n) => {
                prop_assert!(admitted.contains(&n), "P-3");
                prop_assert!(cluster.fits_now(n, &shape), "P-1");
            }
            Choice::Queue(n) => {
                prop_assert!(admitted.contains(&n), "P-3");
                prop_assert!(cluster.can_ever_fit(n, &shape) && !cluster.fits_now(n, &shape), "P-4");
                let held = matches!(&strategy, Strategy::Node(affinity)
                    if cluster.number_of(&affinity.node) == Some(n)
                        && !(affinity.soft && affinity.spill_on_unavailable));
                prop_assert!(held || !anyone_now, "P-2");
            }
            Choice::Infeasible => prop_assert!(!anyone_ever, "P-4"),
            Choice::Unschedulable(reason) => {
                let Strategy::Node(affinity) = &strategy else { panic!("P-4: {reason}") };
                prop_assert!(!reason.is_empty());
                prop_assert!(!anyone_ever || affinity.fail_on_unavailable, "P-2: {}", reason);
            }
        }
    }

    /// Turn 0 of the default policy is the best node by its own definition.
    #[test]
    fn default_is_the_least_by_rank(
        nodes in prop::collection::vec(a_node(), 1..80),
        (cpus, gpus, local) in (0u64..5, 0u64..2, 0u32..90),
    ) {
        let cluster = build(&nodes);
        let shape = shape(&[("CPU", cpus), ("GPU", gpus)]);
        let rank = |&n: &NodeNumber| {
            let has_gpu = cluster.total(n).iter().any(|amount| amount.name == "GPU");
            let load = cluster.load(cluster.slot(n).unwrap());
            (gpus == 0 && has_gpu, if load < 500_000 { 0 } else { load }, n != node(local), n)
        };
        let fitting = cluster.nodes().filter(|&n| cluster.fits_now(n, &shape) && !cluster.is_draining(n));
        if let Some(best) = fitting.min_by_key(rank) {
            let request = request(&shape, &Strategy::Default, local);
            prop_assert_eq!(choose(&cluster, &request), Choice::Now(best));
        }
    }

    /// P-5, whether or not what is dealt uses anything, and with gaps in the numbers.
    #[test]
    fn spread_deals_evenly(
        numbers in prop::collection::btree_set(0u32..300, 1..100),
        deals in 0u64..300,
        cpus in 0u64..2,
        first_turn in 0u64..1000,
    ) {
        let mut cluster = Cluster::new();
        for &number in &numbers {
            join(&mut cluster, number, &[("CPU", 1000), ("memory", 10)], "");
        }
        let shape = shape(&[("CPU", cpus)]);
        let mut dealt = vec![0u64; 300];
        for turn in first_turn..first_turn + deals {
            let request = Request { turn, ..request(&shape, &Strategy::Spread, 0) };
            let Choice::Now(chosen) = choose(&cluster, &request) else { panic!("P-2") };
            prop_assert!(cluster.take(chosen, &shape));
            dealt[chosen.0 as usize] += 1;
        }
        let dealt = || numbers.iter().map(|&number| dealt[number as usize]);
        prop_assert!(dealt().max().unwrap() - dealt().min().unwrap() <= 1, "P-5");
    }
}
