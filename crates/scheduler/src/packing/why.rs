//! Why a group waits: one true sentence for the user.

use oxiray_wire::control::{Amount, GroupStrategy, Shape};

use super::{BundleWanted, GroupWanted, Packing, pack};
use crate::cluster::{Cluster, NodeNumber};
use crate::policy::{Request, Strategy};
use crate::text::show_amounts;
use crate::why::explain;

/// Why the bundles cannot be placed now, or that they can.
pub fn explain_group(cluster: &Cluster, group: &GroupWanted) -> String {
    let packing = pack(cluster, group);
    if let Packing::Now(_) = packing {
        return "there is room for it now".into();
    }
    // One bundle that fits nowhere is reason enough.
    if let Some((index, why)) = group
        .bundles
        .iter()
        .enumerate()
        .find_map(|(index, wanted)| Some((index, alone(cluster, wanted)?)))
    {
        let which = match group.bundles.len() {
            1 if group.placed.is_empty() => "its bundle".to_owned(),
            _ => format!("its bundle {index}"),
        };
        let needs = show_amounts(&group.bundles[index].bundle.resources);
        return format!("{which}, {needs}, fits nowhere: {why}");
    }
    let count = group.bundles.len();
    let now = if packing == Packing::Never { "" } else { " now" };
    match group.strategy {
        GroupStrategy::StrictPack => {
            let needs = show_amounts(&sum(group));
            format!("no node has room for all its {count} bundles at once{now}: {needs}")
        }
        GroupStrategy::StrictSpread => format!(
            "its {count} bundles need a node each, and of the cluster's {} there are not so many \
             with room for them{now}",
            cluster.len()
        ),
        GroupStrategy::Pack | GroupStrategy::Spread => {
            let free: Vec<Amount> = named(group, |node| cluster.available(node), cluster);
            let (needs, free) = (show_amounts(&sum(group)), show_amounts(&free));
            format!(
                "the nodes have no room for all its {count} bundles{now}: they need {needs}, and \
                 {free} is free in all"
            )
        }
    }
}

/// Why a bundle has no place though it were the only one; `None`: it has.
fn alone(cluster: &Cluster, wanted: &BundleWanted) -> Option<String> {
    let shape = Shape { resources: wanted.bundle.resources.clone(), ..Shape::default() };
    let strategy = Strategy::Default;
    let request = Request {
        shape: &shape,
        strategy: &strategy,
        selectors: &wanted.selectors,
        fallbacks: &[],
        local: NodeNumber(0),
        prefer: None,
        turn: 0,
    };
    let only = GroupWanted {
        bundles: vec![wanted.clone()],
        strategy: GroupStrategy::Pack,
        placed: Vec::new(),
        prefer: None,
    };
    (!matches!(pack(cluster, &only), Packing::Now(_))).then(|| explain(cluster, &request))
}

/// What all bundles need together, sorted by name.
fn sum(group: &GroupWanted) -> Vec<Amount> {
    let all = group.bundles.iter().flat_map(|wanted| &wanted.bundle.resources);
    added(all.cloned())
}

/// What the nodes have together of what the bundles name.
fn named(
    group: &GroupWanted,
    of: impl Fn(NodeNumber) -> Vec<Amount>,
    cluster: &Cluster,
) -> Vec<Amount> {
    let needs = sum(group);
    let is_named = |amount: &Amount| needs.iter().any(|need| need.name == amount.name);
    added(cluster.nodes().flat_map(of).filter(is_named))
}

fn added(amounts: impl Iterator<Item = Amount>) -> Vec<Amount> {
    let mut sums = std::collections::BTreeMap::<String, u64>::new();
    for Amount { name, amount } in amounts {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(amount);
    }
    sums.into_iter().map(|(name, amount)| Amount { name, amount }).collect()
}
