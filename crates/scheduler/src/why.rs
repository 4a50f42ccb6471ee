//! Why a request does not run: one true sentence for the user.

use std::collections::BTreeMap;

use oxiray_ids::NodeId;
use oxiray_wire::control::{Amount, Shape};

use crate::cluster::{Cluster, NodeNumber};
use crate::labels::{Operator, Selector};
use crate::policy::{Affinity, Choice, Request, Strategy, choose, hard_of};
use crate::text::show;

/// Amounts by name, those that repeat summed.
type Amounts<'a> = BTreeMap<&'a str, u64>;

/// Why the request cannot run now, or that it can.
pub fn explain(cluster: &Cluster, request: &Request) -> String {
    match choose(cluster, request) {
        Choice::Now(node) => format!("node {} has room for it now", name(cluster, node)),
        Choice::Unschedulable(reason) => reason,
        Choice::Queue(node) => match request.strategy {
            Strategy::Node(affinity) if cluster.number_of(&affinity.node) == Some(node) => {
                of_affinity(cluster, request, affinity)
            }
            _ => {
                let whose = format!("node {}", name(cluster, node));
                let lacking = not_free(cluster, node, request.shape, &whose);
                format!("every node that could run it is busy: {lacking}")
            }
        },
        Choice::Infeasible => infeasible(cluster, request),
    }
}

/// Why the one node that a request is bound to cannot run it now.
pub(crate) fn of_affinity(cluster: &Cluster, request: &Request, affinity: &Affinity) -> String {
    let bond = if affinity.soft { "it prefers" } else { "it must run on" };
    let the_node = format!("the node {} that {bond}", short(&affinity.node));
    let Some(node) = cluster.number_of(&affinity.node) else {
        return format!("{the_node} has left the cluster, or was never in it");
    };
    if let Some(selector) = request.selectors.iter().find(|&one| !matches(cluster, node, &[one])) {
        return format!("{the_node} does not match the label selector {selector}");
    }
    if cluster.can_ever_fit(node, request.shape) {
        return format!("{the_node} is busy: {}", not_free(cluster, node, request.shape, "it"));
    }
    let total = cluster.total(node);
    let total = summed(&total);
    let lacking = lacking(&request.shape.resources, &total, |has, name| {
        format!("it has {}", show(name, has))
    });
    format!("{the_node} is too small: {lacking}")
}

/// What a node that can ever run `shape` has not free now.
fn not_free(cluster: &Cluster, node: NodeNumber, shape: &Shape, whose: &str) -> String {
    let (available, total) = (cluster.available(node), cluster.total(node));
    let (available, total) = (summed(&available), summed(&total));
    lacking(&shape.resources, &available, |free, name| {
        format!("{whose} has {} of {} free", show(name, free), show(name, total[name]))
    })
}

/// `needs CPU: 2, …; needs GPU: 1, …`: what exceeds `there`, with the words of `say`.
fn lacking(needs: &[Amount], there: &Amounts, say: impl Fn(u64, &str) -> String) -> String {
    let mut parts = Vec::new();
    for (name, amount) in summed(needs) {
        let has = there.get(name).copied().unwrap_or(0);
        if amount > has {
            parts.push(format!("needs {name}: {}, {}", show(name, amount), say(has, name)));
        }
    }
    parts.join("; ")
}

/// No node can ever run it, unless it drains.
fn infeasible(cluster: &Cluster, request: &Request) -> String {
    if cluster.is_empty() {
        return "the cluster has no nodes".into();
    }
    let selectors: Vec<&Selector> =
        request.selectors.iter().chain(hard_of(request.strategy)).collect();
    if !cluster.nodes().any(|node| matches(cluster, node, &selectors)) {
        let fallbacks = match request.fallbacks.len() {
            0 => "",
            1 => ", nor is there one for its fallback",
            _ => ", nor is there one for its fallbacks",
        };
        return unmatched(cluster, &selectors) + fallbacks;
    }
    let mut large_enough =
        cluster.nodes().filter(|&node| cluster.can_ever_fit(node, request.shape)).peekable();
    if large_enough.peek().is_none() {
        return too_little(cluster, request.shape);
    }
    if large_enough.any(|node| matches(cluster, node, &selectors)) {
        return "every node that could run it is draining".into();
    }
    let needs = list(&summed(&request.shape.resources));
    format!("no node that matches {} is large enough: needs {needs}", join(&selectors))
}

/// No node has enough of everything, labels aside.
fn too_little(cluster: &Cluster, shape: &Shape) -> String {
    let needs = summed(&shape.resources);
    if let Some((name, amount)) = needs.iter().find(|need| cluster.largest_total(need.0) == 0) {
        let what = if *name == "GPU" { "a GPU".into() } else { format!("any {name}") };
        let (amount, has) = (show(name, *amount), everything(cluster));
        return format!("no node has {what} (needs {name}: {amount}; the cluster has {has})");
    }
    let too_large = |need: &(&&str, &u64)| *need.1 > cluster.largest_total(need.0);
    if let Some((name, amount)) = needs.iter().find(too_large) {
        let (amount, largest) = (show(name, *amount), show(name, cluster.largest_total(name)));
        return format!(
            "no node is large enough: needs {name}: {amount}, the largest has {largest}"
        );
    }
    format!("no node has all that it needs at once: {}", list(&needs))
}

/// No node matches all selectors.
fn unmatched(cluster: &Cluster, selectors: &[&Selector]) -> String {
    let nobody = |one: &&&Selector| !cluster.nodes().any(|node| matches(cluster, node, &[one]));
    match selectors.iter().find(nobody) {
        Some(selector) => match selector.operator {
            Operator::In(_) | Operator::Exists => format!("no node has the label {selector}"),
            Operator::NotIn(_) | Operator::DoesNotExist => {
                format!("no node matches the label selector {selector}")
            }
        },
        None => format!("no node matches all of {}", join(selectors)),
    }
}

fn matches(cluster: &Cluster, node: NodeNumber, selectors: &[&Selector]) -> bool {
    let labels = cluster.labels(node);
    labels.is_some_and(|labels| selectors.iter().all(|selector| selector.matches(labels)))
}

fn summed(amounts: &[Amount]) -> Amounts<'_> {
    let mut sums = Amounts::new();
    for Amount { name, amount } in amounts {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*amount);
    }
    sums.retain(|_, &mut sum| sum > 0);
    sums
}

fn everything(cluster: &Cluster) -> String {
    let mut all: Vec<Amount> = cluster.nodes().flat_map(|node| cluster.total(node)).collect();
    // What every node has, or is called by, says nothing.
    let telling = |name: &str| !name.starts_with("node:") && !name.ends_with("memory");
    all.retain(|amount| telling(&amount.name));
    let all = summed(&all);
    if all.is_empty() { "no resources".into() } else { list(&all) }
}

/// `CPU: 2, GPU: 1`.
fn list(amounts: &Amounts) -> String {
    let parts: Vec<_> =
        amounts.iter().map(|(name, sum)| format!("{name}: {}", show(name, *sum))).collect();
    parts.join(", ")
}

fn join(selectors: &[&Selector]) -> String {
    let parts: Vec<_> = selectors.iter().map(|selector| selector.to_string()).collect();
    parts.join(" and ")
}

fn name(cluster: &Cluster, node: NodeNumber) -> String {
    cluster.id_of(node).map_or_else(|| node.to_string(), |id| short(&id))
}

/// The first eight digits, enough for people.
fn short(id: &NodeId) -> String {
    format!("{}…", &id.to_string()[..8])
}

#[cfg(test)]
mod tests;
