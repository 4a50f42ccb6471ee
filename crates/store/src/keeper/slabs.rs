//! Slabs: memory that a process carves small objects from without asking.

use oxiray_ids::{ProcessId, StoreKey};

use super::{Entry, Keeper, Orders, Place};
use crate::carver::SlabGrant;
use crate::table::Extent;
use crate::word::{State, Word};

/// Slabs together take at most this part of the arena: what is in them is not
/// spilled before they are given back.
const SLAB_SHARE: u64 = 8;
/// One slab is this part of the arena, within limits.
const SLAB_PART: u64 = 64;
const SMALLEST_SLAB: u64 = 1 << 20;
const LARGEST_SLAB: u64 = 8 << 20;

/// One slab.
#[derive(Debug)]
pub(super) struct Slab {
    len: u64,
    /// `None`: its process is gone or gave it back, and its objects are the keeper's.
    holder: Option<ProcessId>,
    /// Slots that its process gives to objects.
    pub(super) slots: Vec<u32>,
    /// Objects that are left in it then.
    live: usize,
}

impl Keeper {
    /// A process wants a slab for objects of at least `smallest` bytes.
    pub fn on_slab(&mut self, from: ProcessId, request: u64, smallest: u64, out: &mut impl Orders) {
        let grant = self.grant_slab(from, smallest);
        out.slab(from, request, grant);
    }

    fn grant_slab(&mut self, from: ProcessId, smallest: u64) -> Option<SlabGrant> {
        let size = self.arena.size();
        let len = (size / SLAB_PART).clamp(SMALLEST_SLAB, LARGEST_SLAB).next_multiple_of(4096);
        let leased: u64 = self.slabs.values().map(|slab| slab.len).sum();
        if leased + len > size / SLAB_SHARE || !self.rows.contains_key(&from) {
            return None;
        }
        // Nothing is spilled for a slab, and nobody who waits is passed over.
        if !self.waiting.is_empty() {
            return None;
        }
        let offset = self.arena.allocate(len).ok()?;
        let count = len / smallest.max(4096) + 1;
        let slots: Vec<u32> = (0..count).map_while(|_| self.slots.take()).collect();
        if slots.is_empty() {
            self.arena.free(offset);
            return None;
        }
        let keys =
            slots.iter().map(|&slot| StoreKey::new(slot, self.table.word(slot).generation()));
        let grant = SlabGrant { offset, len, keys: keys.collect() };
        self.slabs.insert(offset, Slab { len, holder: Some(from), slots, live: 0 });
        Some(grant)
    }

    /// A process gives back a slab; what is left in it is the keeper's, and can be spilled.
    pub fn on_slab_returned(
        &mut self,
        from: ProcessId,
        offset: u64,
        now: u64,
        out: &mut impl Orders,
    ) {
        let theirs = self.slabs.get(&offset).is_some_and(|slab| slab.holder == Some(from));
        if !theirs {
            return;
        }
        for slot in self.take_over_slab(offset) {
            // Its owner may have died, or freed it, while nobody looked after it.
            if !self.lives(&self.table.parties(slot).0) {
                self.table.update(slot, |word: Word| Some(word.doomed()));
            }
            self.reclaim(slot, now, out);
        }
        self.progress = now;
        self.serve(now, out);
    }

    /// Asks those who hold slabs, or `everyone`, for what they can spare.
    pub(super) fn ask_for_memory(&self, everyone: bool, out: &mut impl Orders) {
        if everyone {
            return self.rows.keys().for_each(|process| out.trim(*process));
        }
        let mut holders: Vec<ProcessId> =
            self.slabs.values().filter_map(|slab| slab.holder).collect();
        holders.sort_unstable();
        holders.dedup();
        holders.into_iter().for_each(|holder| out.trim(holder));
    }

    /// The holder of slabs is gone: what is in them becomes the keeper's.
    pub(super) fn take_over_slabs(&mut self, holder: ProcessId) {
        let theirs = self.slabs.iter().filter(|(_, slab)| slab.holder == Some(holder));
        let offsets: Vec<u64> = theirs.map(|(&offset, _)| offset).collect();
        for offset in offsets {
            self.take_over_slab(offset);
        }
    }

    /// What is in a slab becomes the keeper's: the slots of it.
    fn take_over_slab(&mut self, offset: u64) -> Vec<u32> {
        let mut slab = self.slabs.remove(&offset).expect("just seen");
        slab.holder = None;
        let mut adopted = Vec::new();
        for slot in std::mem::take(&mut slab.slots) {
            match self.adopt_part(slot, offset, slab.len) {
                true => adopted.push(slot),
                false => self.give_back_slot(slot),
            }
        }
        slab.live = adopted.len();
        if slab.live == 0 {
            self.arena.free(offset);
        } else {
            self.slabs.insert(offset, slab);
        }
        adopted
    }

    /// Whether a slot of a slab holds an object, which is then the keeper's.
    fn adopt_part(&mut self, slot: u32, offset: u64, len: u64) -> bool {
        let Some(word) = self.table.update(slot, |word: Word| Some(word.without_slab())) else {
            return false;
        };
        let extent: Extent = self.table.extent(slot);
        // Another process wrote this: believe only what can be.
        let within = extent.offset >= offset
            && extent.offset.checked_add(extent.len).is_some_and(|end| end <= offset + len);
        if word.state() != State::Sealed || !within {
            return false;
        }
        let key = StoreKey::new(slot, word.generation());
        let place = Place::Memory(extent.offset);
        let entry = Entry {
            key,
            len: extent.len,
            place,
            on_disk: false,
            is_copy: false,
            stays_until: 0,
            slab: Some(offset),
        };
        self.entries.insert(slot, entry);
        true
    }

    /// One object less in a slab that is the keeper's.
    pub(super) fn release_part(&mut self, offset: u64) {
        let slab = self.slabs.get_mut(&offset).expect("a slab with an object in it");
        slab.live -= 1;
        if slab.live == 0 {
            self.slabs.remove(&offset);
            self.arena.free(offset);
        }
    }

    /// Offsets and objects of all slabs, for `validate`.
    pub(super) fn slab_extents(&self) -> impl Iterator<Item = (u64, usize, bool)> {
        self.slabs.iter().map(|(&offset, slab)| (offset, slab.live, slab.holder.is_none()))
    }
}
