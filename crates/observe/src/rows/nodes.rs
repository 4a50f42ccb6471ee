//! Nodes.

use std::collections::BTreeMap;

use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::ClusterView;

use super::{amounts, hex, if_set, ip};
use crate::machine::Figures;
use crate::row::{Amounts, row, words};

words! {
    /// Whether a node is a member.
    NodeState {
        /// It is.
        Alive = "ALIVE",
        /// It takes no new work, and leaves once what it has is elsewhere.
        Draining = "DRAINING",
        /// It was.
        Dead = "DEAD",
    }
}

/// A node, and what it says itself, if it was asked.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) info: &'a NodeInfo,
    pub(crate) view: Option<&'a ClusterView>,
    pub(crate) figures: Option<&'a Figures>,
}

impl Seen<'_> {
    fn is_alive(&self) -> bool {
        self.info.left.is_empty()
    }
}

row! {
    /// A node, alive or gone.
    NodeRow of node: Seen<'_>;
    /// The node.
    node_id: String [Id, Searched, Table] = hex(&node.info.id);
    /// Its number in the cluster.
    node_number: u32 = node.info.number;
    /// Where it is reached.
    node_ip: String [Searched, Table] = ip(node.info);
    /// What its machine calls itself.
    node_name: String [Searched, Table] = node.info.host.clone();
    /// Whether the control service is on its machine.
    is_head_node: bool [Table] = node.info.is_head;
    /// Whether it is a member.
    state: NodeState [Table, State] =
        match (node.is_alive(), node.info.is_draining()) {
            (true, false) => NodeState::Alive,
            (true, true) => NodeState::Draining,
            (false, _) => NodeState::Dead,
        };
    /// Why it left, or is about to.
    state_message: Option<String> [Table] = match node.is_alive() {
        true => Some(node.info.draining.clone()).filter(|why| !why.is_empty()),
        false => Some(node.info.left.clone()),
    };
    /// What it has.
    resources_total: Amounts [Table] = amounts(&node.info.total);
    /// What of that is free.
    resources_available: Amounts = match node.is_alive() {
        true => amounts(node.view.map_or(&node.info.available, |view| &view.available)),
        false => Amounts::new(),
    };
    /// Its labels.
    labels: BTreeMap<String, String> = node.info.labels.clone();
    /// When it came.
    start_time_ms: Option<u64> = if_set(node.info.started_ms);
    /// When it left.
    end_time_ms: Option<u64> = if_set(node.info.left_ms);
    /// Bytes of its object store.
    store_size: u64 = node.info.store_size;
    /// Those in use.
    store_used: u64 = node.view.map_or(node.info.store_used, |view| view.store_used);
    /// Objects in it.
    store_objects: Option<u64> = node.view.map(|view| view.store_objects);
    /// Bytes of objects that are on disk.
    disk_bytes: Option<u64> = node.view.map(|view| view.on_disk);
    /// Bytes that were written to disk so far.
    spilled_bytes: Option<u64> = node.view.map(|view| view.spilled);
    /// Bytes that were read back so far.
    restored_bytes: Option<u64> = node.view.map(|view| view.restored);
    /// What waits there, in words.
    waiting: Vec<String> = node.view.map_or(&node.info.waiting_for, |view| &view.waiting).clone();
    /// Its workers.
    workers: Option<u32> [Table] = node.view.map(|view| view.workers);
    /// The process of its service.
    pid: u32 = node.info.pid;
    /// How busy its processors are.
    cpu_percent: Option<f64> = node.figures.and_then(|figures| figures.cpu_percent);
    /// Bytes of its machine's memory that are in use.
    memory_used: Option<u64> = node.figures.map(|figures| figures.memory_used);
    /// Bytes of its machine's memory.
    memory_total: Option<u64> = node.figures.map(|figures| figures.memory_total);
}
