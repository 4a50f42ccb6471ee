//! Which slots of the table are in use: the lowest free one is used next, so
//! that few pages of the table are ever touched.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::table::MAX_SLOTS;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    free: BinaryHeap<Reverse<u32>>,
    /// The first that was never used.
    fresh: u32,
}

impl Slots {
    pub(crate) fn take(&mut self) -> Option<u32> {
        if let Some(Reverse(slot)) = self.free.pop() {
            return Some(slot);
        }
        (self.fresh < MAX_SLOTS).then(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    pub(crate) fn give_back(&mut self, slot: u32) {
        self.free.push(Reverse(slot));
    }

    /// All slots ever used are below this.
    pub(crate) fn bound(&self) -> u32 {
        self.fresh
    }

    pub(crate) fn in_use(&self) -> usize {
        self.fresh as usize - self.free.len()
    }
}
