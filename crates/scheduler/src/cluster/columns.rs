//! One resource over all nodes, in blocks of 64.
//!
//! A block knows the most that any of its nodes has, so that a search passes
//! over sixty-four nodes without looking at them when none can be enough. A
//! block in which nobody has the resource costs three words: names that only
//! one node has (`node:10.0.0.1`) stay cheap.
//!
//! - **C-2 (bounds are exact)** a block's bounds are the largest of its cells.

/// Nodes in a block: the bits of a word, so that sets of nodes are words.
pub(crate) const BLOCK: usize = 64;

/// Block of a slot, and its bit there.
pub(crate) fn place(slot: u32) -> (usize, usize) {
    (slot as usize / BLOCK, slot as usize % BLOCK)
}

#[derive(Debug)]
struct Cells {
    free: [u64; BLOCK],
    total: [u64; BLOCK],
}

#[derive(Debug, Default)]
struct ColumnBlock {
    most_free: u64,
    most_total: u64,
    cells: Option<Box<Cells>>,
}

/// What every node has of one resource.
#[derive(Debug, Default)]
pub(crate) struct Column {
    blocks: Vec<ColumnBlock>,
    /// Nodes that have any.
    pub(crate) holders: usize,
}

impl Column {
    pub(crate) fn total(&self, slot: u32) -> u64 {
        self.cell(slot, |cells| &cells.total)
    }

    pub(crate) fn free(&self, slot: u32) -> u64 {
        self.cell(slot, |cells| &cells.free)
    }

    fn cell(&self, slot: u32, side: impl Fn(&Cells) -> &[u64; BLOCK]) -> u64 {
        let (block, bit) = place(slot);
        let cells = self.blocks.get(block).and_then(|block| block.cells.as_deref());
        cells.map_or(0, |cells| side(cells)[bit])
    }

    /// Of the nodes `mask` of a block, those with at least `need` free.
    pub(crate) fn with_free(&self, block: usize, mask: u64, need: u64) -> u64 {
        match self.blocks.get(block) {
            Some(ColumnBlock { most_free, cells: Some(cells), .. }) if *most_free >= need => {
                mask & at_least(&cells.free, need)
            }
            _ => 0,
        }
    }

    /// Of the nodes `mask` of a block, those with at least `need` in all.
    pub(crate) fn with_total(&self, block: usize, mask: u64, need: u64) -> u64 {
        match self.blocks.get(block) {
            Some(ColumnBlock { most_total, cells: Some(cells), .. }) if *most_total >= need => {
                mask & at_least(&cells.total, need)
            }
            _ => 0,
        }
    }

    /// Says what the node has, all of it free. Zero: it has none any more.
    pub(crate) fn set_total(&mut self, slot: u32, total: u64) {
        let (block, bit) = place(slot);
        if self.total(slot) == total {
            return self.set_free(slot, total);
        }
        if self.blocks.len() <= block {
            self.blocks.resize_with(block + 1, ColumnBlock::default);
        }
        let block = &mut self.blocks[block];
        let empty = || Box::new(Cells { free: [0; BLOCK], total: [0; BLOCK] });
        let cells = block.cells.get_or_insert_with(empty);
        let before = std::mem::replace(&mut cells.total[bit], total);
        cells.free[bit] = total;
        self.holders = self.holders + usize::from(total > 0) - usize::from(before > 0);
        block.most_total = largest(&cells.total);
        block.most_free = largest(&cells.free);
        if block.most_total == 0 {
            block.cells = None;
        }
    }

    /// Says what is free at a node that has the resource; others stay at zero.
    pub(crate) fn set_free(&mut self, slot: u32, free: u64) {
        let (block, bit) = place(slot);
        let Some(block) = self.blocks.get_mut(block) else { return };
        let Some(cells) = &mut block.cells else { return };
        let free = free.min(cells.total[bit]);
        let before = std::mem::replace(&mut cells.free[bit], free);
        if free >= block.most_free {
            block.most_free = free;
        } else if before == block.most_free {
            block.most_free = largest(&cells.free);
        }
    }

    /// The largest total of any node.
    pub(crate) fn largest_total(&self) -> u64 {
        self.blocks.iter().map(|block| block.most_total).max().unwrap_or(0)
    }

    /// Panics when C-2 does not hold, or a node has more free than in all (C-1).
    pub(crate) fn validate(&self) {
        let mut holders = 0;
        for block in &self.blocks {
            let Some(cells) = &block.cells else {
                assert_eq!((block.most_free, block.most_total), (0, 0), "C-2: nobody has any");
                continue;
            };
            assert_eq!(block.most_free, largest(&cells.free), "C-2: free");
            assert_eq!(block.most_total, largest(&cells.total), "C-2: total");
            assert!(cells.free.iter().zip(&cells.total).all(|(free, total)| free <= total), "C-1");
            holders += cells.total.iter().filter(|&&total| total > 0).count();
        }
        assert_eq!(holders, self.holders, "C-2: holders");
    }
}

fn largest(cells: &[u64; BLOCK]) -> u64 {
    cells.iter().copied().fold(0, u64::max)
}

fn at_least(cells: &[u64; BLOCK], need: u64) -> u64 {
    marks(|bit| cells[bit] >= need)
}

/// The bits for which `test` holds. Eight at a time, by way of bytes: faster
/// than one after the other.
pub(crate) fn marks(test: impl Fn(usize) -> bool) -> u64 {
    /// Moves the lowest bits of eight bytes into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut mask = 0;
    for first in (0..BLOCK).step_by(8) {
        let bytes: [u8; 8] = std::array::from_fn(|bit| u8::from(test(first + bit)));
        mask |= (u64::from_le_bytes(bytes).wrapping_mul(GATHER) >> 56) << first;
    }
    mask
}
