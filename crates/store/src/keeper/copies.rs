//! Copies of other nodes' objects, and objects that other nodes read.

use oxiray_ids::{ProcessId, StoreKey};

use super::{Keeper, Orders};
use crate::table::{Extent, MAX_SLOTS};
use crate::word::State;

impl Keeper {
    /// The node service itself makes copies here and holds objects, by this row.
    pub fn on_own_row(&mut self, process: ProcessId, row: u32) {
        self.on_process(process, row);
        self.own_row = Some(row);
    }

    /// Where the bytes of an object are that was given out and not yet sealed.
    pub fn extent(&self, key: StoreKey) -> Extent {
        self.table.extent(key.slot())
    }

    /// All bytes of a copy are there: it may be looked at, and may go again.
    pub fn on_copied(&mut self, key: StoreKey, now: u64) {
        if let Some(entry) = self.entries.get_mut(&key.slot()).filter(|entry| entry.key == key) {
            entry.is_copy = true;
            self.let_stay(key.slot(), now);
            self.table.seal(key, true);
        }
    }

    /// Whether an object is in this store, and is not about to go.
    pub fn has(&self, key: StoreKey) -> bool {
        let slot = key.slot();
        let word = (slot < MAX_SLOTS).then(|| self.table.word(slot));
        word.is_some_and(|word| word.is(key) && word.state() != State::Free && !word.is_doomed())
    }

    /// Keeps an object where it is while another node reads it; `None`: it is not in memory.
    pub fn hold(&mut self, key: StoreKey) -> Option<Extent> {
        let (row, slot) = (self.own_row?, key.slot());
        let readers = self.held.get(&slot).copied().unwrap_or(0);
        let extent = match readers {
            0 => self.table.pin(row, key).ok(),
            // While it is held, its slot is its own.
            _ => self.table.word(slot).is(key).then(|| self.table.extent(slot)),
        };
        if extent.is_some() {
            self.held.insert(slot, readers + 1);
        } else if readers == 0 {
            self.table.unpin(row, slot);
        }
        extent
    }

    /// A reader is done with an object.
    pub fn let_go(&mut self, key: StoreKey, now: u64, out: &mut impl Orders) {
        let slot = key.slot();
        let (Some(row), Some(readers)) = (self.own_row, self.held.get_mut(&slot)) else {
            return;
        };
        *readers -= 1;
        if *readers == 0 {
            self.held.remove(&slot);
            self.table.unpin(row, slot);
            self.reclaim(slot, now, out);
            self.serve(now, out);
        }
    }

    /// An object of the table belongs to a process of another node from now on.
    pub fn on_owned(&mut self, keys: &[StoreKey]) {
        for key in keys {
            self.table.own(*key);
        }
    }

    /// A copy that nobody may look at any more gives its memory back.
    pub(super) fn drop_copy(&mut self, slot: u32, out: &mut impl Orders) {
        let entry = self.entries.remove(&slot).expect("a candidate");
        self.release_memory(&entry);
        self.give_back_slot(slot);
        out.copy_gone(entry.key);
    }
}
