//! What a search asks of a [`Cluster`]: of whole blocks, and of single slots.

use oxiray_wire::control::Shape;
use smallvec::SmallVec;

use super::{BLOCK, Cluster, GPU, NodeNumber, place};
use crate::labels::Selector;

/// What a search asks of every node, of sixty-four nodes.
#[derive(Debug)]
pub(crate) struct Block {
    /// Live and not draining.
    pub(crate) open: u64,
    pub(super) live: u64,
    /// Have GPUs.
    pub(crate) gpu: u64,
    /// Utilised below one half.
    pub(crate) calm: u64,
    /// Utilisation in millionths.
    pub(crate) load: [u32; BLOCK],
    /// Requests that wait there.
    pub(crate) waiting: [u32; BLOCK],
}

/// A shape in terms of a cluster's columns.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(super) parts: SmallVec<[(usize, u64); 4]>,
    /// It names something that no node has.
    unknown: bool,
    pub(crate) gpu: bool,
}

/// Whether the resources must be free, or only exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    Now,
    Ever,
}

impl Block {
    pub(super) fn empty() -> Self {
        Self { open: 0, live: 0, gpu: 0, calm: 0, load: [0; BLOCK], waiting: [0; BLOCK] }
    }

    pub(super) fn forget(&mut self, bit: usize) {
        for mask in [&mut self.open, &mut self.live, &mut self.gpu, &mut self.calm] {
            *mask &= !(1 << bit);
        }
        (self.load[bit], self.waiting[bit]) = (0, 0);
    }
}

impl Cluster {
    /// The slot of a live node.
    pub(crate) fn slot(&self, number: NodeNumber) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    /// The live node at a slot.
    pub(crate) fn number_at(&self, slot: u32) -> Option<NodeNumber> {
        self.nodes.get(slot as usize)?.as_ref().map(|node| node.number)
    }

    /// The most that any node has in all of a resource.
    pub(crate) fn largest_total(&self, name: &str) -> u64 {
        self.by_name.get(name).map_or(0, |&column| self.columns[column].largest_total())
    }

    /// Whether any node has GPUs.
    pub(crate) fn has_gpus(&self) -> bool {
        self.columns[GPU].holders > 0
    }

    pub(crate) fn needs(&self, shape: &Shape) -> Needs {
        let mut needs = Needs::default();
        for need in shape.resources.iter().filter(|need| need.amount > 0) {
            let Some(&column) = self.by_name.get(&need.name) else {
                needs.unknown = true;
                continue;
            };
            needs.gpu |= column == GPU;
            match needs.parts.iter_mut().find(|part| part.0 == column) {
                Some(part) => part.1 = part.1.saturating_add(need.amount),
                None => needs.parts.push((column, need.amount)),
            }
        }
        needs
    }

    /// Of the nodes `mask` of a block, those that have room.
    pub(crate) fn with_room(&self, block: usize, mask: u64, needs: &Needs, room: Room) -> u64 {
        let mut mask = if needs.unknown { 0 } else { mask };
        for &(column, amount) in &needs.parts {
            if mask == 0 {
                break;
            }
            mask = match room {
                Room::Now => self.columns[column].with_free(block, mask, amount),
                Room::Ever => self.columns[column].with_total(block, mask, amount),
            };
        }
        mask
    }

    /// Whether the node at a slot has room.
    pub(crate) fn has_room(&self, slot: u32, needs: &Needs, room: Room) -> bool {
        !needs.unknown
            && needs.parts.iter().all(|&(column, amount)| match room {
                Room::Now => self.columns[column].free(slot) >= amount,
                Room::Ever => self.columns[column].total(slot) >= amount,
            })
    }

    /// The live nodes, draining ones included, that all selectors match.
    pub(crate) fn matching(&self, selectors: &[Selector]) -> Vec<u64> {
        let mut nodes: Vec<u64> = self.blocks.iter().map(|block| block.live).collect();
        self.narrow(&mut nodes, selectors);
        nodes
    }

    pub(crate) fn narrow(&self, nodes: &mut [u64], selectors: &[Selector]) {
        selectors.iter().for_each(|selector| self.labels.narrow(nodes, selector));
    }

    /// Utilisation of the node at a slot, in millionths.
    pub(crate) fn load(&self, slot: u32) -> u32 {
        let (block, bit) = place(slot);
        self.blocks[block].load[bit]
    }
}
