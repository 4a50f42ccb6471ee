//! A process's side of small objects: it carves them from slabs that it leases,
//! without asking anybody. Its owner, wherever that is, frees one by dooming its
//! word; the memory is had back here, when room is wanted.
//!
//! - **C-1** Every object in a slab has a part of it, and no two share a byte.
//! - **C-2** A part is used again only when its object is doomed and nobody
//!   looks at it.
//! - **C-3** An object of an owner that is known to be dead is doomed.
//!
//! Memory that was written a moment ago is in the caches, and other memory is not: to copy there
//! takes two and a half times as long. So each carving looks first whether the oldest objects are
//! over, and what passes through, as the items of a stream, uses few parts again and again.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use oxiray_ids::{ProcessId, StoreKey};

use crate::arena::Arena;
use crate::table::{Extent, Table};
use crate::word::{State, Word};

/// So many of the oldest objects are looked at for each that is carved: more than one, so that those
/// that stay do not keep it from the others.
const LOOKS: usize = 2;

/// A slab, as the node service grants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlabGrant {
    /// First byte in the arena.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Names for objects in it, each until the object is freed.
    pub keys: Vec<StoreKey>,
}

#[derive(Debug)]
struct Slab {
    arena: Arena,
    /// Names not in use.
    keys: Vec<StoreKey>,
}

/// The memory of an object.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Offset of its slab,
    slab: u64,
    /// and its own within that.
    at: u64,
    /// A slot is used for many.
    serial: u64,
}

/// Slabs and what is in them.
#[derive(Debug)]
pub struct Carver {
    table: Table,
    process: ProcessId,
    /// By their offset.
    slabs: Vec<(u64, Slab)>,
    /// By their slot.
    parts: HashMap<u32, Part, FixedState>,
    /// Slots and serials of parts, the oldest first, but for those that were found in use; and of
    /// parts that are no more.
    oldest: VecDeque<(u32, u64)>,
    serial: u64,
    dead: HashSet<ProcessId>,
}

impl Carver {
    /// Without a slab yet.
    pub fn new(table: Table, process: ProcessId) -> Self {
        Self {
            table,
            process,
            slabs: Vec::new(),
            parts: HashMap::default(),
            oldest: VecDeque::new(),
            serial: 0,
            dead: HashSet::new(),
        }
    }

    /// One slab more.
    pub fn add(&mut self, grant: SlabGrant) {
        let slab = Slab { arena: Arena::new(grant.len), keys: grant.keys };
        self.slabs.push((grant.offset, slab));
    }

    /// The largest object that had best come from a slab of ours.
    pub fn largest(&self) -> Option<u64> {
        self.slabs.iter().map(|(_, slab)| slab.arena.size() / 4).max()
    }

    /// Room for an object of `owner`, to be filled and sealed.
    pub fn carve(&mut self, len: u64, owner: ProcessId) -> Option<(StoreKey, u64)> {
        self.look_after_oldest();
        self.carve_from_free(len, owner).or_else(|| {
            self.sweep();
            self.carve_from_free(len, owner)
        })
    }

    fn carve_from_free(&mut self, len: u64, owner: ProcessId) -> Option<(StoreKey, u64)> {
        let mut slabs = self.slabs.iter_mut().filter(|(_, slab)| !slab.keys.is_empty());
        let (start, slab, at) = slabs.find_map(|(start, slab)| {
            let at = slab.arena.allocate(len).ok()?;
            Some((*start, slab, at))
        })?;
        let key = slab.keys.pop().expect("it has one");
        let slot = key.slot();
        self.serial += 1;
        self.parts.insert(slot, Part { slab: start, at, serial: self.serial });
        self.oldest.push_back((slot, self.serial));
        self.table.set_extent(slot, Extent { offset: start + at, len });
        self.table.set_parties(slot, owner, self.process);
        let word = Word::new(key.generation(), State::Writing).in_slab();
        let word = if self.dead.contains(&owner) { word.doomed() } else { word };
        self.table.update(slot, |_| Some(word));
        Some((key, start + at))
    }

    /// Has the memory of the oldest objects back, if it can be had.
    fn look_after_oldest(&mut self) {
        let is_there = |parts: &HashMap<u32, Part, FixedState>, (slot, serial): (u32, u64)| {
            parts.get(&slot).is_some_and(|part| part.serial == serial)
        };
        for _ in 0..LOOKS {
            let Some(oldest) = self.oldest.pop_front() else { return };
            if is_there(&self.parts, oldest) {
                self.look_after(oldest.0);
            }
            if is_there(&self.parts, oldest) {
                self.oldest.push_back(oldest);
            }
        }
    }

    /// An object in a slab of ours may have been doomed: has its memory back if so.
    pub fn look_after(&mut self, slot: u32) {
        let Some(&Part { slab: start, at, .. }) = self.parts.get(&slot) else {
            return;
        };
        if !self.table.is_over(slot, self.table.all_rows()) {
            return; // C-2
        }
        let generation = self.table.end_use(slot);
        self.parts.remove(&slot);
        if let Some((_, slab)) = self.slabs.iter_mut().find(|(offset, _)| *offset == start) {
            slab.arena.free(at);
            slab.keys.push(StoreKey::new(slot, generation));
        }
    }

    /// Has back all memory that can be had.
    pub fn sweep(&mut self) {
        let slots: Vec<u32> = self.parts.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.look_after(slot));
    }

    /// Gives up all slabs but those in which something is being written: their
    /// offsets. What is left in them is for whoever granted them to look after.
    pub fn trim(&mut self) -> Vec<u64> {
        self.sweep();
        let is_written = |slot: &u32| self.table.word(*slot).state() == State::Writing;
        let written = self.parts.iter().filter(|(slot, _)| is_written(slot));
        let kept: HashSet<u64> = written.map(|(_, part)| part.slab).collect();
        self.parts.retain(|_, part| kept.contains(&part.slab));
        let (kept, given_up): (Vec<_>, Vec<_>) =
            self.slabs.drain(..).partition(|(start, _)| kept.contains(start));
        self.slabs = kept;
        given_up.into_iter().map(|(start, _)| start).collect()
    }

    /// An owner is gone, and what is its own (C-3).
    pub fn on_process_died(&mut self, owner: ProcessId) {
        self.dead.insert(owner);
        for slot in self.parts.keys() {
            if self.table.parties(*slot).0 == owner {
                self.table.update(*slot, |word| Some(word.doomed()));
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        self.oldest.len()
    }

    /// Panics when an invariant of the module documentation does not hold.
    pub fn validate(&self) {
        for (start, slab) in &self.slabs {
            slab.arena.validate();
            let parts = self.parts.values().filter(|part| part.slab == *start);
            assert_eq!(parts.clone().count(), slab.arena.given_count(), "C-1");
            assert!(parts.clone().all(|part| slab.arena.is_given(part.at)), "C-1");
        }
        for (slot, part) in &self.parts {
            assert_eq!(self.table.extent(*slot).offset, part.slab + part.at, "C-1");
            assert!(self.oldest.contains(&(*slot, part.serial)), "it is looked after");
            let orphaned = self.dead.contains(&self.table.parties(*slot).0);
            assert!(!orphaned || self.table.word(*slot).is_doomed(), "C-3");
        }
    }
}
