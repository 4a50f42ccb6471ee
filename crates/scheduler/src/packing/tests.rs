//! Tests of packing; each names the invariants it exercises.

use std::collections::BTreeMap;

use oxiray_ids::NodeId;
use oxiray_wire::control::{Amount, UNIT};
use proptest::prelude::*;

use super::*;

fn amounts(listed: &[(&str, u64)]) -> Vec<Amount> {
    listed.iter().map(|&(name, amount)| Amount { name: name.into(), amount }).collect()
}

fn bundle(listed: &[(&str, u64)]) -> Bundle {
    Bundle { resources: amounts(listed), labels: Vec::new() }
}

fn cluster(nodes: &[&[(&str, u64)]]) -> Cluster {
    let mut cluster = Cluster::new();
    for (number, total) in (1..).zip(nodes) {
        let id = NodeId([number as u8; 28]);
        cluster.join(NodeNumber(number), id, &amounts(total), BTreeMap::new());
    }
    cluster
}

fn group(bundles: &[Bundle], strategy: GroupStrategy) -> GroupWanted<'_> {
    let bundles = bundles.iter().map(BundleWanted::of).collect();
    GroupWanted { bundles, strategy, placed: Vec::new(), prefer: None }
}

fn nodes(packing: Packing) -> Vec<u32> {
    match packing {
        Packing::Now(nodes) => nodes.into_iter().map(|node| node.0).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn packs_where_all_fit_and_spreads_over_all() {
    let cluster = cluster(&[&[("CPU", 2 * UNIT)], &[("CPU", 4 * UNIT)], &[("CPU", 2 * UNIT)]]);
    let two = vec![bundle(&[("CPU", UNIT)]); 3];
    assert_eq!(nodes(pack(&cluster, &group(&two, GroupStrategy::Pack))), [2, 2, 2]);
    assert_eq!(nodes(pack(&cluster, &group(&two, GroupStrategy::StrictPack))), [2, 2, 2]);
    for strategy in [GroupStrategy::Spread, GroupStrategy::StrictSpread] {
        let mut spread = nodes(pack(&cluster, &group(&two, strategy)));
        spread.sort_unstable();
        assert_eq!(spread, [1, 2, 3]);
    }
    let five = vec![bundle(&[("CPU", UNIT)]); 5];
    assert_eq!(pack(&cluster, &group(&five, GroupStrategy::StrictPack)), Packing::Never);
    assert_eq!(pack(&cluster, &group(&five, GroupStrategy::StrictSpread)), Packing::Never);
    let mut few = nodes(pack(&cluster, &group(&five, GroupStrategy::Pack)));
    few.dedup();
    assert_eq!(few.len(), 2, "as few nodes as possible");
}

#[test]
fn what_is_taken_is_not_there_and_what_never_fits_is_told_apart() {
    let mut cluster = cluster(&[&[("CPU", 4 * UNIT)]]);
    let whole = [bundle(&[("CPU", 4 * UNIT)])];
    let one =
        oxiray_wire::control::Shape { resources: amounts(&[("CPU", UNIT)]), ..Default::default() };
    assert!(cluster.take(NodeNumber(1), &one));
    assert_eq!(pack(&cluster, &group(&whole, GroupStrategy::Pack)), Packing::NotNow);
    let why = explain_group(&cluster, &group(&whole, GroupStrategy::Pack));
    assert!(why.contains("busy") && why.contains("CPU: 4"), "{why}");
    let gpu = [bundle(&[("GPU", UNIT)])];
    assert_eq!(pack(&cluster, &group(&gpu, GroupStrategy::Pack)), Packing::Never);
    let why = explain_group(&cluster, &group(&gpu, GroupStrategy::Pack));
    assert!(why.contains("no node has a GPU"), "{why}");
    let two = vec![bundle(&[("CPU", UNIT)]); 2];
    let why = explain_group(&cluster, &group(&two, GroupStrategy::StrictSpread));
    assert!(why.contains("need a node each"), "{why}");
}

#[test]
fn lost_bundles_go_where_the_strategy_lets_them() {
    // G-2.
    let cluster = cluster(&[&[("CPU", 4 * UNIT)], &[("CPU", 4 * UNIT)], &[("CPU", 4 * UNIT)]]);
    let one = [bundle(&[("CPU", UNIT)])];
    let of = |strategy| GroupWanted {
        placed: vec![NodeNumber(1), NodeNumber(2)],
        ..group(&one, strategy)
    };
    assert_eq!(nodes(pack(&cluster, &of(GroupStrategy::StrictSpread))), [3]);
    assert_eq!(nodes(pack(&cluster, &of(GroupStrategy::Spread))), [3]);
    assert_ne!(nodes(pack(&cluster, &of(GroupStrategy::Pack))), [3]);
}

#[test]
fn nodes_with_gpus_are_kept_for_those_who_need_them() {
    let cluster = cluster(&[&[("CPU", 4 * UNIT), ("GPU", UNIT)], &[("CPU", 4 * UNIT)]]);
    let one = [bundle(&[("CPU", UNIT)])];
    for strategy in GroupStrategy::ALL {
        assert_eq!(nodes(pack(&cluster, &group(&one, strategy))), [2], "{strategy:?}");
    }
    let gpu = [bundle(&[("GPU", UNIT)])];
    assert_eq!(nodes(pack(&cluster, &group(&gpu, GroupStrategy::Spread))), [1]);
}

#[test]
fn a_matching_moves_others_out_of_the_way() {
    // G-3: the second bundle fits node 1 alone, which the first would have taken.
    let cluster = cluster(&[&[("CPU", 4 * UNIT), ("mine", UNIT)], &[("CPU", 2 * UNIT)]]);
    let two = [bundle(&[("CPU", 2 * UNIT)]), bundle(&[("mine", UNIT / 10)])];
    assert_eq!(nodes(pack(&cluster, &group(&two, GroupStrategy::StrictSpread))), [2, 1]);
}

fn strategies() -> impl Strategy<Value = GroupStrategy> {
    prop::sample::select(GroupStrategy::ALL.to_vec())
}

proptest! {
    /// Exercises G-1, G-2 and, by trying all ways, G-3.
    #[test]
    fn every_packing_is_sound(
        rooms in prop::collection::vec((0..5u64, 0..3u64), 1..4),
        needs in prop::collection::vec((0..4u64, 0..3u64), 1..4),
        strategy in strategies(),
    ) {
        let totals: Vec<[(&str, u64); 2]> =
            rooms.iter().map(|&(a, b)| [("CPU", a * UNIT), ("mine", b * UNIT)]).collect();
        let totals: Vec<&[(&str, u64)]> = totals.iter().map(|total| &total[..]).collect();
        let cluster = cluster(&totals);
        let bundles: Vec<Bundle> =
            needs.iter().map(|&(a, b)| bundle(&[("CPU", a * UNIT), ("mine", b * UNIT)])).collect();
        let found = pack(&cluster, &group(&bundles, strategy));
        let is_sound = |chosen: &[usize]| {
            let mut left = rooms.clone();
            chosen.iter().zip(&needs).all(|(&node, need)| {
                let room = &mut left[node];
                let fits = need.0 <= room.0 && need.1 <= room.1;
                if fits {
                    *room = (room.0 - need.0, room.1 - need.1);
                }
                fits
            })
        };
        let is_strict = |chosen: &[usize]| {
            let mut distinct = chosen.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            match strategy {
                GroupStrategy::StrictPack => distinct.len() == 1,
                GroupStrategy::StrictSpread => distinct.len() == chosen.len(),
                _ => true,
            }
        };
        match found {
            Packing::Now(nodes) => {
                let chosen: Vec<usize> = nodes.iter().map(|node| node.0 as usize - 1).collect();
                prop_assert!(is_sound(&chosen), "G-1: {chosen:?}");
                prop_assert!(is_strict(&chosen), "G-2: {chosen:?}");
            }
            Packing::NotNow => prop_assert!(false, "all of it is free"),
            Packing::Never => {
                if matches!(strategy, GroupStrategy::StrictPack | GroupStrategy::StrictSpread) {
                    let ways = rooms.len().pow(needs.len() as u32);
                    for way in 0..ways {
                        let chosen: Vec<usize> = (0..needs.len())
                            .map(|at| way / rooms.len().pow(at as u32) % rooms.len())
                            .collect();
                        prop_assert!(!(is_sound(&chosen) && is_strict(&chosen)), "G-3: {chosen:?}");
                    }
                }
            }
        }
    }
}
