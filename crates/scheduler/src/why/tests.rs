//! Tests of the sentences.

use super::*;
use crate::labels::Selector;
use crate::testing::{cluster_of, id, join, request, shape};

const DEFAULT: Strategy = Strategy::Default;

fn needing(cluster: &Cluster, needs: &[(&str, u64)]) -> String {
    explain(cluster, &request(&shape(needs), &DEFAULT, 0))
}

#[test]
fn resources_that_nobody_has() {
    let cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 2), ("x", 1)]]);
    assert_eq!(
        needing(&cluster, &[("GPU", 1)]),
        "no node has a GPU (needs GPU: 1; the cluster has CPU: 6, x: 1)"
    );
    assert_eq!(
        needing(&cluster, &[("slots", 2)]),
        "no node has any slots (needs slots: 2; the cluster has CPU: 6, x: 1)"
    );
    assert_eq!(
        needing(&cluster, &[("CPU", 5)]),
        "no node is large enough: needs CPU: 5, the largest has 4"
    );
    assert_eq!(
        needing(&cluster, &[("CPU", 4), ("x", 1)]),
        "no node has all that it needs at once: CPU: 4, x: 1"
    );
    assert_eq!(needing(&Cluster::new(), &[("CPU", 1)]), "the cluster has no nodes");
}

#[test]
fn busy_and_draining_nodes() {
    let mut cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 1)]]);
    assert_eq!(needing(&cluster, &[("CPU", 1)]), "node 00000000… has room for it now");
    assert!(cluster.take(NodeNumber(0), &shape(&[("CPU", 3)])));
    assert_eq!(
        needing(&cluster, &[("CPU", 2)]),
        "every node that could run it is busy: needs CPU: 2, node 00000000… has 1 of 4 free"
    );
    cluster.set_draining(NodeNumber(0), true);
    assert_eq!(needing(&cluster, &[("CPU", 2)]), "every node that could run it is draining");
}

#[test]
fn affinity() {
    let mut cluster = cluster_of(&[&[("CPU", 4)], &[("CPU", 1)]]);
    let on = |node, soft| {
        let (spill_on_unavailable, fail_on_unavailable) = (false, false);
        Strategy::Node(Affinity { node: id(node), soft, spill_on_unavailable, fail_on_unavailable })
    };
    let why = |cluster: &Cluster, needs: &[(&str, u64)], strategy: Strategy| {
        explain(cluster, &request(&shape(needs), &strategy, 0))
    };
    assert_eq!(
        why(&cluster, &[("CPU", 2)], on(1, false)),
        "the node 00000001… that it must run on is too small: needs CPU: 2, it has 1"
    );
    assert!(cluster.take(NodeNumber(1), &shape(&[("CPU", 1)])));
    assert_eq!(
        why(&cluster, &[("CPU", 1)], on(1, true)),
        "the node 00000001… that it prefers is busy: needs CPU: 1, it has 0 of 1 free"
    );
    cluster.leave(NodeNumber(1));
    assert_eq!(
        why(&cluster, &[("CPU", 1)], on(1, false)),
        "the node 00000001… that it must run on has left the cluster, or was never in it"
    );
}

#[test]
fn labels() {
    let mut cluster = cluster_of(&[]);
    join(&mut cluster, 0, &[("CPU", 1)], "region=us,disk=fast");
    join(&mut cluster, 1, &[("CPU", 4)], "region=asia");
    let why = |needs: &[(&str, u64)], pairs: &[(&str, &str)]| {
        let parse = |(key, text): &(&str, &str)| Selector::parse(key, text).unwrap();
        let selectors: Vec<_> = pairs.iter().map(parse).collect();
        let shape = shape(needs);
        explain(&cluster, &Request { selectors: &selectors, ..request(&shape, &DEFAULT, 0) })
    };
    assert_eq!(why(&[], &[("region", "eu")]), "no node has the label region=eu");
    let eu = [Selector::parse("region", "eu").unwrap()];
    let fallbacks = [eu.to_vec()];
    let none = shape(&[]);
    let request = Request { selectors: &eu, fallbacks: &fallbacks, ..request(&none, &DEFAULT, 0) };
    assert_eq!(
        explain(&cluster, &request),
        "no node has the label region=eu, nor is there one for its fallback"
    );
    assert_eq!(
        why(&[], &[("region", "in(eu,africa)")]),
        "no node has the label region in (eu, africa)"
    );
    assert_eq!(
        why(&[], &[("region", "!in(us,asia)")]),
        "no node matches the label selector region not in (us, asia)"
    );
    assert_eq!(
        why(&[], &[("region", "asia"), ("disk", "fast")]),
        "no node matches all of region=asia and disk=fast"
    );
    assert_eq!(
        why(&[("CPU", 2)], &[("region", "us")]),
        "no node that matches region=us is large enough: needs CPU: 2"
    );
}
