//! Small clusters for the tests of this crate.

use oxiray_ids::NodeId;
use oxiray_wire::control::{Amount, Shape, UNIT};

use crate::cluster::{Cluster, NodeNumber};
use crate::labels::parse_labels;
use crate::policy::{Request, Strategy};

/// Whole amounts.
pub(crate) fn shape(amounts: &[(&str, u64)]) -> Shape {
    let amount =
        |&(name, amount): &(&str, u64)| Amount { name: name.into(), amount: amount * UNIT };
    Shape { resources: amounts.iter().map(amount).collect(), ..Shape::default() }
}

pub(crate) fn id(number: u32) -> NodeId {
    let mut bytes = [0xab; 28];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    NodeId(bytes)
}

pub(crate) fn join(cluster: &mut Cluster, number: u32, total: &[(&str, u64)], labels: &str) {
    let labels = parse_labels(labels).unwrap();
    cluster.join(NodeNumber(number), id(number), &shape(total).resources, labels);
}

/// Nodes numbered from 0, each with its whole amounts.
pub(crate) fn cluster_of(totals: &[&[(&str, u64)]]) -> Cluster {
    let mut cluster = Cluster::new();
    for (number, total) in totals.iter().enumerate() {
        join(&mut cluster, number as u32, total, "");
    }
    cluster
}

pub(crate) fn request<'a>(shape: &'a Shape, strategy: &'a Strategy, local: u32) -> Request<'a> {
    Request {
        shape,
        strategy,
        selectors: &[],
        fallbacks: &[],
        local: NodeNumber(local),
        prefer: None,
        turn: 0,
    }
}
