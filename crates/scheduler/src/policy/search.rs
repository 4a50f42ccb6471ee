//! Finding nodes in a [`Cluster`], block by block.

use smallvec::SmallVec;

use crate::cluster::{BLOCK, Block, Cluster, Needs, NodeNumber, Room, marks, place};

/// Nodes that may be chosen: open, allowed, with room.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) needs: &'a Needs,
    /// Nodes by labels; `None` allows all.
    pub(crate) allowed: Option<&'a [u64]>,
    pub(crate) room: Room,
    /// Leaves out the nodes that have GPUs.
    pub(crate) without_gpus: bool,
}

/// A word for each block. A thousand nodes need no allocation.
type Masks = SmallVec<[u64; 16]>;

impl Search<'_> {
    fn mask(&self, block: usize) -> u64 {
        let state = &self.cluster.blocks[block];
        let mut mask = state.open;
        if let Some(allowed) = self.allowed {
            mask &= allowed[block];
        }
        if self.without_gpus {
            mask &= !state.gpu;
        }
        self.cluster.with_room(block, mask, self.needs, self.room)
    }

    /// The slot of the node, if it is among them.
    pub(crate) fn find(&self, node: NodeNumber) -> Option<u32> {
        let slot = self.cluster.slot(node)?;
        let (block, bit) = place(slot);
        let state = &self.cluster.blocks[block];
        let allowed = self.allowed.map_or(u64::MAX, |allowed| allowed[block]);
        let excluded = if self.without_gpus { state.gpu } else { 0 };
        let may = (state.open & allowed & !excluded) >> bit & 1 == 1;
        (may && self.cluster.has_room(slot, self.needs, self.room)).then_some(slot)
    }

    /// The node for which `rank` is least; of several, turn about.
    pub(crate) fn least(
        &self,
        rank: impl Fn(&Block) -> &[u32; BLOCK],
        turn: u64,
    ) -> Option<NodeNumber> {
        let mut ties = Masks::new();
        let mut least = u32::MAX;
        for (block, state) in self.cluster.blocks.iter().enumerate() {
            let mask = self.mask(block);
            let ranks = rank(state);
            let here = if mask == 0 { u32::MAX } else { least_of(ranks, mask) };
            if mask != 0 && here < least {
                least = here;
                ties.fill(0);
            }
            ties.push(if here == least { mask & marks(|bit| ranks[bit] == least) } else { 0 });
        }
        let count = count(&ties);
        self.cluster.number_at(nth(&ties, turn.checked_rem(count)?))
    }

    /// One of the `k` best for the hybrid policy, taking turns: calm nodes by
    /// slot; when there are none, the others from the least utilised. `local`
    /// goes before all that are no better than it.
    pub(crate) fn hybrid(&self, local: NodeNumber, k: u64, turn: u64) -> Option<NodeNumber> {
        let local = self.find(local);
        let is_calm =
            |(block, bit): (usize, usize)| self.cluster.blocks[block].calm >> bit & 1 == 1;
        if let Some(local) = local.filter(|&local| is_calm(place(local))) {
            return self.cluster.number_at(local);
        }
        let (mut masks, mut calm) = (Masks::new(), Masks::new());
        let mut calm_seen = 0;
        for (block, state) in self.cluster.blocks.iter().enumerate() {
            let mask = self.mask(block);
            masks.push(mask);
            calm.push(mask & state.calm);
            calm_seen += u64::from((mask & state.calm).count_ones());
            if calm_seen > turn % k {
                return self.cluster.number_at(nth(&calm, turn % k));
            }
        }
        if calm_seen > 0 {
            return self.cluster.number_at(nth(&calm, turn % k % calm_seen));
        }
        self.cluster.number_at(self.least_utilised(&masks, local, k, turn)?)
    }

    /// The slot of one of the `k` least utilised, or of `local` if none is less.
    fn least_utilised(&self, masks: &[u64], local: Option<u32>, k: u64, turn: u64) -> Option<u32> {
        let count = count(masks);
        // Utilisation and slot in one number: they sort faster.
        let mut ranked: Vec<u64> = Vec::with_capacity(count as usize);
        for (block, &mask) in masks.iter().enumerate() {
            let loads = &self.cluster.blocks[block].load;
            let rank = |bit: usize| u64::from(loads[bit]) << 32 | (block * BLOCK + bit) as u64;
            ranked.extend(bits(mask).map(rank));
        }
        let least = ranked.iter().copied().min()?;
        if let Some(local) =
            local.filter(|&local| u64::from(self.cluster.load(local)) <= least >> 32)
        {
            return Some(local);
        }
        let index = (turn % k.min(count)) as usize;
        Some(*ranked.select_nth_unstable(index).1 as u32)
    }
}

fn count(masks: &[u64]) -> u64 {
    masks.iter().map(|mask| u64::from(mask.count_ones())).sum()
}

/// The slot of the `index`th node of a set that has more.
fn nth(masks: &[u64], mut index: u64) -> u32 {
    for (block, &mask) in masks.iter().enumerate() {
        let here = u64::from(mask.count_ones());
        if index < here {
            let bit = bits(mask).nth(index as usize).expect("index is below the count");
            return (block * BLOCK + bit) as u32;
        }
        index -= here;
    }
    unreachable!("an index at or above the count")
}

fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < BLOCK).then_some(bit)
    })
}

fn least_of(ranks: &[u32; BLOCK], mask: u64) -> u32 {
    let masked = |(bit, &rank): (usize, &u32)| if mask >> bit & 1 == 1 { rank } else { u32::MAX };
    ranks.iter().enumerate().map(masked).fold(u32::MAX, u32::min)
}
