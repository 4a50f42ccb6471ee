//! What the engine says, as rows.

pub(crate) mod actors;
pub(crate) mod jobs;
pub(crate) mod nodes;
pub(crate) mod objects;
pub(crate) mod tasks;
pub(crate) mod workers;

use std::collections::BTreeMap;

use oxiray_ids::{NodeId, ProcessId};
use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::{Amount, UNIT};
use serde_json::{Map, Value, json};

/// The nodes of a cluster by their numbers: other rows say only those.
#[derive(Default, Debug)]
pub(crate) struct Nodes(BTreeMap<u32, NodeInfo>);

impl Nodes {
    pub(crate) fn new(nodes: Vec<NodeInfo>) -> Self {
        Self(nodes.into_iter().map(|node| (node.number, node)).collect())
    }

    /// Those that are members.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &NodeInfo> {
        self.0.values().filter(|node| node.left.is_empty())
    }

    /// Those that were.
    pub(crate) fn left(&self) -> impl Iterator<Item = &NodeInfo> {
        self.0.values().filter(|node| !node.left.is_empty())
    }

    /// The node whose id begins with `id`, or which has that address.
    pub(crate) fn find(&self, id: &str) -> Option<&NodeInfo> {
        let id = id.to_ascii_lowercase();
        let mut nodes = self.0.values();
        nodes.find(|node| !id.is_empty() && (hex(&node.id).starts_with(&id) || ip(node) == id))
    }

    /// A node by its number.
    pub(crate) fn get(&self, number: u32) -> Option<&NodeInfo> {
        self.0.get(&number)
    }

    /// The id of a node; nothing if it is not known.
    pub(crate) fn id(&self, number: u32) -> Value {
        self.0.get(&number).map_or(Value::Null, |node| hex(&node.id).into())
    }

    pub(crate) fn ip(&self, number: u32) -> Value {
        self.0.get(&number).map_or(Value::Null, |node| ip(node).into())
    }

    /// The id of a process, as users see it.
    pub(crate) fn worker_id(&self, process: ProcessId) -> Value {
        let node = self.0.get(&process.node()).and_then(|node| NodeId::from_slice(&node.id));
        node.map_or(Value::Null, |node| {
            let mut id = [0; 28];
            id[..8].copy_from_slice(&process.0.to_le_bytes());
            id[8..].copy_from_slice(&node.0[..20]);
            hex(&id).into()
        })
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// An id, or nothing where there is none.
pub(crate) fn optional_id(bytes: &[u8]) -> Value {
    if bytes.is_empty() { Value::Null } else { hex(bytes).into() }
}

/// A text, or nothing if it is empty.
pub(crate) fn optional_text(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

/// A number, or nothing if it is 0.
pub(crate) fn optional_number(number: u64) -> Value {
    if number == 0 { Value::Null } else { number.into() }
}

/// Where a node is reached, without the port.
pub(crate) fn ip(node: &NodeInfo) -> String {
    let address = node.address.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    address.trim_matches(['[', ']']).to_owned()
}

pub(crate) fn amounts(amounts: &[Amount]) -> Value {
    let number = |amount: u64| match amount % UNIT {
        0 => json!(amount / UNIT),
        _ => json!(amount as f64 / UNIT as f64),
    };
    let pairs = amounts.iter().map(|amount| (amount.name.clone(), number(amount.amount)));
    Value::Object(pairs.collect::<Map<_, _>>())
}
