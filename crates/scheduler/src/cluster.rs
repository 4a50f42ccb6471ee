//! What one node believes of all nodes of its cluster.
//!
//! What is free elsewhere is a *belief*: the node's last report, less what was
//! placed there since. It may be wrong: whoever is sent somewhere in vain waits
//! there or is sent on. Of devices only the sum is known: a node with two halves
//! of a GPU free is believed to have room for a whole one.
//!
//! A node has a *slot*, the lowest that is vacant when it joins. Amounts lie in
//! a column for each resource and labels in sets of bits, both in blocks of 64
//! slots, so that [`crate::choose`] looks at a block with a few instructions.
//!
//! Invariants, checked by [`Cluster::validate`] and the tests:
//!
//! - **C-1 (no more than all)** no node is believed to have more free than in all.
//! - **C-2 (bounds are exact)** what the blocks say sums up their nodes.
//! - **C-3 (all or nothing)** a [`Cluster::take`] that fails changes nothing;
//!   after one that succeeds, [`Cluster::give_back`] restores what was.
//! - **C-4 (the dead are nobody)** a number that is not live has nothing, fits
//!   nothing, and nothing that is said of it is kept.

mod columns;
mod label_index;
mod lookup;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hashbrown::HashMap;
use oxiray_ids::NodeId;
use oxiray_wire::control::{Amount, Shape};

use crate::labels::NODE_ID_LABEL;
use columns::Column;
pub(crate) use columns::{BLOCK, marks, place};
use label_index::LabelIndex;
pub(crate) use lookup::{Block, Needs, Room};

/// The resources whose use counts as utilisation. Others (custom markers, group
/// reservations) say little about how busy a machine is; Ray leaves them out too.
const CRITICAL: [&str; 4] = ["CPU", "GPU", "memory", "object_store_memory"];
/// Place of `GPU` in [`CRITICAL`] and so among the columns.
const GPU: usize = 1;
/// Utilisation is kept in millionths.
const FULL: u32 = 1_000_000;
/// Below this a node counts as not used at all: work is packed there.
const CALM_BELOW: u32 = FULL / 2;

/// A node's short name within its cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeNumber(pub u32);

impl fmt::Display for NodeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What changes seldom, of one node.
#[derive(Debug)]
struct Node {
    number: NodeNumber,
    id: NodeId,
    labels: BTreeMap<String, String>,
    /// Columns in which it has a total, sorted by the name of the resource.
    columns: Vec<usize>,
}

/// All live nodes; see the module documentation.
#[derive(Debug)]
pub struct Cluster {
    /// By slot, as blocks and columns are.
    nodes: Vec<Option<Node>>,
    pub(crate) blocks: Vec<Block>,
    by_number: HashMap<NodeNumber, u32>,
    by_id: HashMap<NodeId, NodeNumber>,
    /// Slots below the highest that nobody has.
    vacant: BTreeSet<u32>,
    columns: Vec<Column>,
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    /// Columns that nobody uses.
    spare: Vec<usize>,
    labels: LabelIndex,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl Cluster {
    /// A cluster without nodes.
    pub fn new() -> Self {
        let mut cluster = Self {
            nodes: Vec::new(),
            blocks: Vec::new(),
            by_number: HashMap::new(),
            by_id: HashMap::new(),
            vacant: BTreeSet::new(),
            columns: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::new(),
            spare: Vec::new(),
            labels: LabelIndex::default(),
        };
        for name in CRITICAL {
            cluster.column(name);
        }
        cluster
    }

    /// The column of a resource, made if need be.
    fn column(&mut self, name: &str) -> usize {
        if let Some(&column) = self.by_name.get(name) {
            return column;
        }
        let column = self.spare.pop().unwrap_or(self.columns.len());
        if column == self.columns.len() {
            self.columns.push(Column::default());
            self.names.push(name.into());
        } else {
            self.names[column] = name.into();
        }
        self.by_name.insert(name.into(), column);
        column
    }

    /// A node is there, all of it free. Amounts that repeat are summed. Whoever
    /// had the number or the id before is gone. The label `ray.io/node-id` is added.
    pub fn join(
        &mut self,
        number: NodeNumber,
        id: NodeId,
        total: &[Amount],
        mut labels: BTreeMap<String, String>,
    ) {
        self.leave(number);
        if let Some(&before) = self.by_id.get(&id) {
            self.leave(before);
        }
        let slot = self.vacant.pop_first().unwrap_or(self.nodes.len() as u32);
        let (block, bit) = place(slot);
        if slot as usize == self.nodes.len() {
            self.nodes.push(None);
        }
        if block == self.blocks.len() {
            self.blocks.push(Block::empty());
        }
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for Amount { name, amount } in total.iter().filter(|amount| amount.amount > 0) {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(*amount);
        }
        let mut columns = Vec::with_capacity(sums.len());
        for (name, sum) in sums {
            let column = self.column(name);
            self.columns[column].set_total(slot, sum);
            columns.push(column);
        }
        labels.insert(NODE_ID_LABEL.into(), id.to_string());
        self.labels.insert(slot, &labels);
        self.by_id.insert(id, number);
        self.by_number.insert(number, slot);
        let state = &mut self.blocks[block];
        state.live |= 1 << bit;
        state.open |= 1 << bit;
        state.gpu |= u64::from(columns.contains(&GPU)) << bit;
        self.nodes[slot as usize] = Some(Node { number, id, labels, columns });
        self.weigh(slot);
    }

    /// A node is gone. False when it was not there.
    pub fn leave(&mut self, number: NodeNumber) -> bool {
        let Some(slot) = self.by_number.remove(&number) else { return false };
        let node = self.nodes[slot as usize].take().expect("a live node has a slot");
        for column in node.columns {
            self.columns[column].set_total(slot, 0);
            if self.columns[column].holders == 0 && column >= CRITICAL.len() {
                self.columns[column] = Column::default();
                self.by_name.remove(&self.names[column]);
                self.spare.push(column);
            }
        }
        self.labels.remove(slot, &node.labels);
        self.by_id.remove(&node.id);
        self.vacant.insert(slot);
        let (block, bit) = place(slot);
        self.blocks[block].forget(bit);
        true
    }

    /// What a node says of itself replaces what was believed. What it does not
    /// name has nothing free.
    pub fn report(&mut self, number: NodeNumber, available: &[Amount], waiting: u32) {
        let Some(slot) = self.slot(number) else { return };
        let Some(node) = &self.nodes[slot as usize] else { return };
        for &column in &node.columns {
            let named = available.iter().filter(|amount| amount.name == self.names[column]);
            let free = named.fold(0, |sum: u64, amount| sum.saturating_add(amount.amount));
            self.columns[column].set_free(slot, free);
        }
        let (block, bit) = place(slot);
        self.blocks[block].waiting[bit] = waiting;
        self.weigh(slot);
    }

    /// One request more was sent there to wait.
    pub fn add_waiting(&mut self, number: NodeNumber) {
        if let Some((block, bit)) = self.slot(number).map(place) {
            let waiting = &mut self.blocks[block].waiting[bit];
            *waiting = waiting.saturating_add(1);
        }
    }

    /// A draining node gets no new work unless somebody insists on it.
    pub fn set_draining(&mut self, number: NodeNumber, draining: bool) {
        if let Some((block, bit)) = self.slot(number).map(place) {
            self.blocks[block].open &= !(1 << bit);
            self.blocks[block].open |= u64::from(!draining) << bit;
        }
    }

    /// Takes what `shape` names from the belief, if it fits (C-3).
    pub fn take(&mut self, number: NodeNumber, shape: &Shape) -> bool {
        let needs = self.needs(shape);
        let Some(slot) = self.slot(number) else { return false };
        if !self.has_room(slot, &needs, Room::Now) {
            return false;
        }
        for &(column, amount) in &needs.parts {
            let free = self.columns[column].free(slot);
            self.columns[column].set_free(slot, free - amount);
        }
        self.weigh(slot);
        true
    }

    /// Adds what `shape` names to the belief, up to what the node has in all.
    pub fn give_back(&mut self, number: NodeNumber, shape: &Shape) {
        let Some(slot) = self.slot(number) else { return };
        for (column, amount) in self.needs(shape).parts {
            let free = self.columns[column].free(slot);
            self.columns[column].set_free(slot, free.saturating_add(amount));
        }
        self.weigh(slot);
    }

    /// Whether the node is believed to have room for `shape` now.
    pub fn fits_now(&self, number: NodeNumber, shape: &Shape) -> bool {
        self.slot(number).is_some_and(|slot| self.has_room(slot, &self.needs(shape), Room::Now))
    }

    /// Whether the node has room for `shape` when nothing else runs there.
    pub fn can_ever_fit(&self, number: NodeNumber, shape: &Shape) -> bool {
        self.slot(number).is_some_and(|slot| self.has_room(slot, &self.needs(shape), Room::Ever))
    }

    /// The part in use, from 0 to 1, of the node's most used critical resource.
    pub fn utilization(&self, number: NodeNumber) -> f64 {
        self.slot(number).map_or(0.0, |slot| f64::from(self.load(slot)) / f64::from(FULL))
    }

    /// How many requests wait at the node.
    pub fn waiting(&self, number: NodeNumber) -> u32 {
        self.slot(number).map(place).map_or(0, |(block, bit)| self.blocks[block].waiting[bit])
    }

    /// Whether the node is in the cluster.
    pub fn is_live(&self, number: NodeNumber) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Whether the node is about to go.
    pub fn is_draining(&self, number: NodeNumber) -> bool {
        let open = |(block, bit): (usize, usize)| self.blocks[block].open >> bit & 1 == 1;
        self.slot(number).map(place).is_some_and(|place| !open(place))
    }

    /// Live nodes, in the order in which they are looked at.
    pub fn nodes(&self) -> impl Iterator<Item = NodeNumber> {
        self.nodes.iter().flatten().map(|node| node.number)
    }

    /// How many nodes are live.
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Whether no node is live.
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// The live node that has this id.
    pub fn number_of(&self, id: &NodeId) -> Option<NodeNumber> {
        self.by_id.get(id).copied()
    }

    /// The id of a live node.
    pub fn id_of(&self, number: NodeNumber) -> Option<NodeId> {
        self.node(number).map(|node| node.id)
    }

    /// The labels of a live node.
    pub fn labels(&self, number: NodeNumber) -> Option<&BTreeMap<String, String>> {
        self.node(number).map(|node| &node.labels)
    }

    /// Everything a node has, sorted by name.
    pub fn total(&self, number: NodeNumber) -> Vec<Amount> {
        self.amounts(number, Column::total)
    }

    /// What a node is believed to have free, sorted by name, zeros included.
    pub fn available(&self, number: NodeNumber) -> Vec<Amount> {
        self.amounts(number, Column::free)
    }

    fn amounts(&self, number: NodeNumber, of: impl Fn(&Column, u32) -> u64) -> Vec<Amount> {
        let Some(slot) = self.slot(number) else { return Vec::new() };
        let columns = self.node(number).map_or(&[][..], |node| &node.columns);
        let amount = |&column: &usize| Amount {
            name: self.names[column].clone(),
            amount: of(&self.columns[column], slot),
        };
        columns.iter().map(amount).collect()
    }

    fn node(&self, number: NodeNumber) -> Option<&Node> {
        self.nodes[self.slot(number)? as usize].as_ref()
    }

    /// Computes anew what follows from the amounts of a node.
    fn weigh(&mut self, slot: u32) {
        let load = self.compute_load(slot);
        let (block, bit) = place(slot);
        let state = &mut self.blocks[block];
        state.load[bit] = load;
        state.calm &= !(1 << bit);
        state.calm |= u64::from(load < CALM_BELOW) << bit;
    }

    fn compute_load(&self, slot: u32) -> u32 {
        let critical = &self.columns[..CRITICAL.len()];
        let loads = critical.iter().map(|column| {
            let total = column.total(slot);
            let used = total - column.free(slot);
            let load = (u128::from(used) * u128::from(FULL)).checked_div(u128::from(total));
            load.unwrap_or(0) as u32
        });
        loads.max().unwrap_or(0)
    }

    /// Panics when an invariant does not hold.
    pub fn validate(&self) {
        self.columns.iter().for_each(Column::validate);
        assert_eq!(self.by_number.len(), self.by_id.len(), "C-2: one id, one number");
        for (slot, node) in (0..).zip(&self.nodes) {
            let (block, bit) = place(slot);
            let state = &self.blocks[block];
            let is = |mask: u64| mask >> bit & 1 == 1;
            assert_eq!(is(state.live), node.is_some(), "C-2: live {slot}");
            assert_eq!(self.vacant.contains(&slot), node.is_none(), "C-2: vacant {slot}");
            assert!(is(state.live) || !is(state.open), "C-4: {slot} is open");
            let load = self.compute_load(slot);
            assert_eq!(state.load[bit], load, "C-2: load of {slot}");
            assert_eq!(is(state.calm), node.is_some() && load < CALM_BELOW, "C-2: calm {slot}");
            assert_eq!(is(state.gpu), self.columns[GPU].total(slot) > 0, "C-2: GPU {slot}");
            if let Some(node) = node {
                assert_eq!(self.by_id.get(&node.id), Some(&node.number), "C-2: id of {slot}");
                assert_eq!(self.slot(node.number), Some(slot), "C-2: number of {slot}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
