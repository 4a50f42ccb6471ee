//! A node among others: what it knows of them, and what it does for their processes.
//!
//! A node serves the processes of other nodes as it serves its own: they are in
//! its books as *foreign* processes, with demands, leases, actors and channels.
//! What differs is how they are reached: messages to them go to their own node,
//! and their channels end at the *gateway*, which is this node service itself.
//!
//! - `foreign`: processes of other nodes, and others' knowledge of ours
//! - `broker`: which nodes the demands of our processes go to
//! - `routing`: actors and their names, by way of the control service
//! - `copies`: objects that are brought here from other nodes
//! - `lending`: objects that other nodes read
//! - `draining`: leaving in an orderly way, and what others leave to us
//! - `returning`: actors that cannot be started here any more
//! - `members`: nodes that come and go
//! - `apart`: members that this node does not reach
//! - `uplink`: the control service, there or away
//! - `lease`: for how long it is enough that it was there

mod apart;
mod broker;
mod copies;
mod draining;
mod foreign;
mod lease;
mod lending;
mod members;
mod returning;
mod routing;
mod uplink;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_scheduler::Cluster;
use oxiray_wire::cluster::{BetweenNodes, NodeInfo, between_nodes};
use oxiray_wire::control::to_node;

use crate::event::Outbox;
use crate::schedule::ShapeId;
use crate::slots::Slots;
pub(crate) use copies::Copies;
pub(crate) use draining::{Adoption, Draining};
pub(crate) use lending::Lending;
pub(crate) use uplink::Uplink;

/// What a node knows beyond itself.
#[derive(Debug)]
pub(crate) struct Member {
    /// About this node, as others know it.
    pub(crate) own: NodeInfo,
    /// Bell and row of the gateway.
    pub(crate) gateway: u32,
    /// Channels that end at the gateway.
    pub(crate) indexes: Slots,
    /// All members.
    pub(crate) infos: BTreeMap<u32, NodeInfo>,
    /// The last that left, with why.
    pub(crate) left: VecDeque<NodeInfo>,
    /// What is free where; this node is in it.
    pub(crate) view: Cluster,
    /// Members to which no way leads at the moment.
    pub(crate) unreachable: BTreeSet<u32>,
    /// Those of which the control service hears nothing.
    pub(crate) suspects: BTreeSet<u32>,
    /// Changes whenever something may have become free elsewhere.
    pub(crate) view_changes: u64,
    /// Leases of our processes at other nodes, until they are returned: their shapes.
    pub(crate) leased: BTreeMap<u64, ShapeId>,
    /// What was known when units that wait elsewhere were last looked at.
    pub(crate) waits_reviewed_at: u64,
    /// Counts choices.
    pub(crate) turn: u64,
    /// Demands with units that have no place yet.
    pub(crate) unplaced: BTreeSet<(ProcessId, u64)>,
    /// Shapes of units that were placed at this node within one pass.
    pub(crate) placed_here: Vec<ShapeId>,
    /// What nodes say that have not been heard of yet: the news of them is late.
    pub(crate) early: BTreeMap<u32, Vec<between_nodes::Body>>,
    /// The last node that joined: numbers are given in order.
    pub(crate) last_joined: u32,
    /// Questions to the control service that it has not answered.
    pub(crate) asked: BTreeMap<(ProcessId, u64), to_node::Body>,
    /// What the control service has not said that it knows: actors to make, or to kill.
    pub(crate) creating: BTreeMap<ActorId, (ProcessId, to_node::Body)>,
    pub(crate) killing: BTreeMap<ActorId, (ProcessId, to_node::Body)>,
    /// What others left to us, until its owners know.
    pub(crate) adopting: Vec<Adoption>,
    pub(crate) adoptions_seen_at: u64,
    pub(crate) copies: Copies,
    pub(crate) lending: Lending,
}

impl Member {
    pub(crate) fn new(own: NodeInfo, gateway: u32) -> Self {
        Self {
            own,
            gateway,
            indexes: Slots::default(),
            infos: BTreeMap::new(),
            left: VecDeque::new(),
            view: Cluster::new(),
            unreachable: BTreeSet::new(),
            suspects: BTreeSet::new(),
            view_changes: 0,
            leased: BTreeMap::new(),
            waits_reviewed_at: 0,
            turn: 0,
            unplaced: BTreeSet::new(),
            placed_here: Vec::new(),
            early: BTreeMap::new(),
            last_joined: 0,
            asked: BTreeMap::new(),
            creating: BTreeMap::new(),
            killing: BTreeMap::new(),
            adopting: Vec::new(),
            adoptions_seen_at: 0,
            copies: Copies::default(),
            lending: Lending::default(),
        }
    }
}

/// Says something to another node.
pub(crate) fn tell(node: u32, body: between_nodes::Body, out: &mut impl Outbox) {
    out.tell_peer(node, BetweenNodes::from(body));
}
