//! What the engine says, as rows.

pub mod actors;
pub mod jobs;
pub mod nodes;
pub mod objects;
pub mod placement_groups;
pub mod tasks;
pub mod workers;

use std::collections::BTreeMap;

use oxiray_ids::{NodeId, ProcessId};
use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::{Amount, ProcessKind, UNIT};

use crate::row::{self, Amounts, words};

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
    pub(crate) fn id(&self, number: u32) -> Option<String> {
        self.0.get(&number).map(|node| hex(&node.id))
    }

    pub(crate) fn ip(&self, number: u32) -> Option<String> {
        self.0.get(&number).map(ip)
    }

    /// The id of a process, as users see it.
    pub(crate) fn worker_id(&self, process: ProcessId) -> Option<String> {
        let node = self.0.get(&process.node()).and_then(|node| NodeId::from_slice(&node.id))?;
        let mut id = [0; 28];
        id[..8].copy_from_slice(&process.0.to_le_bytes());
        id[8..].copy_from_slice(&node.0[..20]);
        Some(hex(&id))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// An id, or nothing where there is none.
pub(crate) fn optional_id(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| hex(bytes))
}

/// A text, or nothing if it is empty.
pub(crate) fn if_said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number, or nothing if it is 0.
pub(crate) fn if_set(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// Where a node is reached, without the port.
pub(crate) fn ip(node: &NodeInfo) -> String {
    let address = node.address.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    address.trim_matches(['[', ']']).to_owned()
}

pub(crate) fn amounts(amounts: &[Amount]) -> Amounts {
    let number = |amount: u64| row::Amount(amount as f64 / UNIT as f64);
    amounts.iter().map(|amount| (amount.name.clone(), number(amount.amount))).collect()
}

words! {
    /// Whose a process is.
    ProcessType {
        /// The user started it.
        Driver = "DRIVER",
        /// The node service did.
        Worker = "WORKER",
    }
}

impl From<ProcessKind> for ProcessType {
    fn from(kind: ProcessKind) -> Self {
        match kind {
            ProcessKind::Driver => Self::Driver,
            _ => Self::Worker,
        }
    }
}
