//! The node's side of the store: who gets memory, what goes to disk, what is freed.
//!
//! An object has one slot of the table from its allocation until it is freed,
//! wherever its bytes are. Its owner frees it, or dies; then it is *doomed*:
//! nobody may begin to look at it, and its memory is had back when nobody does.
//!
//! Memory that is not there is waited for, in the order of asking. Room is made
//! by taking away what is also on disk, then by writing to disk what was not
//! looked at for the longest time. What a process looks at stays, and so does a
//! result that its owner has not taken up yet.
//!
//! Small objects are not known here one by one: a process carves them from a
//! slab that it leases (see [`crate::Carver`]). When it dies, or gives its slabs
//! back because memory is short, they become objects like all others.
//!
//! Invariants, checked by [`Keeper::validate`]:
//!
//! - **K-1** Every extent given out is that of one object, or one slab.
//! - **K-2** An object's word says where it is: in memory, leaving, on disk.
//! - **K-3** A doomed object that nobody looks at, fills, writes to disk or reads
//!   from it is gone at once.
//! - **K-4** Nobody waits for memory that is there, unless somebody waits before it.
//! - **K-5** An object on disk alone has its copy there.
//! - **K-6** Room is waited for on behalf of an object on disk exactly while
//!   somebody wants to look at it, and once.

mod copies;
mod ending;
mod fetch;
mod moving;
mod report;
mod room;
mod slabs;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use oxiray_ids::{ProcessId, StoreKey};

use crate::arena::{Arena, ArenaError};
use crate::carver::SlabGrant;
use crate::slots::Slots;
use crate::table::{Extent, Table};
use crate::word::{State, Word};

pub use moving::ToMove;
use report::Spilled;
pub use report::Usage;
use slabs::Slab;

/// While somebody waits: most looking ends without a message, so see now and
/// then whether memory can be had.
const LOOK_AGAIN: u64 = 20_000_000;

/// What there is none of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The object: it is lost.
    Object,
    /// Memory.
    Memory,
    /// Memory, and room on disk for what is in it.
    Disk,
}

/// Why there is no memory, or no object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is lacking.
    pub lack: Lack,
    /// In words, with the remedy.
    pub text: String,
}

impl Refusal {
    /// An object is not to be had.
    pub fn lost(text: impl Into<String>) -> Self {
        Self { lack: Lack::Object, text: text.into() }
    }

    /// Waiting for memory was of no use.
    pub(crate) fn full(text: impl Into<String>) -> Self {
        Self { lack: Lack::Memory, text: text.into() }
    }

    /// An object was freed while somebody wanted it.
    pub fn freed() -> Self {
        Self::lost("it was freed, or the process that owned it died")
    }
}

/// What the keeper wants done.
pub trait Orders {
    /// Answers a request for memory.
    fn allocated(&mut self, to: ProcessId, request: u64, answer: Result<(StoreKey, u64), Refusal>);
    /// Answers a request for a slab; `None`: not now.
    fn slab(&mut self, to: ProcessId, request: u64, slab: Option<SlabGrant>);
    /// Answers a request for an object: it can be looked at, or why not.
    fn fetched(&mut self, to: ProcessId, request: u64, answer: Result<(), Refusal>);
    /// Asks a process to give back its slabs, with what is in them.
    fn trim(&mut self, process: ProcessId);
    /// Writes objects to disk: `on_spilled` or `on_not_spilled` follows.
    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>);
    /// Reads an object from disk: `on_restored` or `on_not_restored` follows.
    fn restore(&mut self, key: StoreKey, extent: Extent);
    /// Deletes an object's copy on disk.
    fn forget(&mut self, key: StoreKey);
    /// Says a sentence to the user.
    fn tell_user(&mut self, text: String);
    /// A copy of another node's object had to go.
    fn copy_gone(&mut self, key: StoreKey);
    /// An object is gone for good.
    fn gone(&mut self, key: StoreKey);
}

/// Where an object's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// At this offset of the arena.
    Memory(u64),
    /// There, and being written to disk; `wanted`: it is to stay, after all.
    Leaving { offset: u64, wanted: bool },
    /// On disk.
    Disk,
    /// Being read from disk to this offset.
    Returning(u64),
}

#[derive(Debug)]
struct Entry {
    key: StoreKey,
    /// Bytes of the object.
    len: u64,
    place: Place,
    /// There is a copy on disk.
    on_disk: bool,
    /// It is itself a copy, of another node's object, and can be had again.
    is_copy: bool,
    /// It was just brought back for somebody: not taken away before this time, or a look.
    stays_until: u64,
    /// Its memory is part of this slab, which was given back or whose process is gone.
    slab: Option<u64>,
}

#[derive(Debug)]
enum Purpose {
    Allocate { owner: ProcessId },
    Restore(StoreKey),
}

/// Somebody waits for memory.
#[derive(Debug)]
struct Waiting {
    from: ProcessId,
    request: u64,
    size: u64,
    purpose: Purpose,
    since: u64,
}

/// The node's side of the store; see the module documentation.
#[derive(Debug)]
pub struct Keeper {
    arena: Arena,
    table: Table,
    slots: Slots,
    entries: HashMap<u32, Entry, FixedState>,
    /// Live processes and their rows.
    rows: BTreeMap<ProcessId, u32>,
    /// Live processes of other nodes: they own objects here, and look at none.
    foreign: BTreeSet<ProcessId>,
    slabs: BTreeMap<u64, Slab>,
    /// Those who wait for memory, in order.
    waiting: VecDeque<Waiting>,
    /// Those who wait for an object to be in memory.
    fetching: HashMap<u32, Vec<(ProcessId, u64)>>,
    /// Objects being written to disk.
    leaving: usize,
    spilled: Spilled,
    /// Why the last write to disk failed, and when to try again.
    disk_trouble: Option<(Refusal, u64)>,
    /// Most objects of the next batch: fewer after one for which the disk had no room.
    batch_objects: usize,
    /// When memory was last had back, or anything was moved.
    progress: u64,
    /// Until when there is no use in looking for something to take away.
    no_room_before: u64,
    /// When time last passed.
    ticked: u64,
    /// When every process was last asked for memory.
    asked_everyone: u64,
    /// When slabs were last asked back.
    trimmed: u64,
    /// The user was told that everything waits.
    told_stuck: bool,
    /// How long to wait for memory while nothing moves, in nanoseconds.
    patience: u64,
    /// The node service's own row, by which it holds what other nodes read.
    own_row: Option<u32>,
    /// How many read each slot.
    held: HashMap<u32, u32>,
}

impl Keeper {
    /// The keeper of an arena of `size` bytes. `patience`: how long creators
    /// wait while nothing moves, in nanoseconds.
    pub fn new(size: u64, table: Table, patience: u64) -> Self {
        Self {
            arena: Arena::new(size),
            table,
            slots: Slots::default(),
            entries: HashMap::default(),
            rows: BTreeMap::new(),
            foreign: BTreeSet::new(),
            slabs: BTreeMap::new(),
            waiting: VecDeque::new(),
            fetching: HashMap::new(),
            leaving: 0,
            spilled: Spilled::default(),
            disk_trouble: None,
            batch_objects: room::BATCH_OBJECTS,
            progress: 0,
            no_room_before: 0,
            ticked: 0,
            asked_everyone: 0,
            trimmed: 0,
            told_stuck: false,
            patience,
            own_row: None,
            held: HashMap::new(),
        }
    }

    /// A process may use the store from now on; `row` is its own in the table.
    pub fn on_process(&mut self, process: ProcessId, row: u32) {
        // What a former user of the row left behind must not count.
        self.table.clear_row(row, self.slots.bound());
        self.table.use_row(row);
        self.rows.insert(process, row);
    }

    /// A process of another node may own objects here from now on.
    pub fn on_foreign(&mut self, process: ProcessId) {
        self.foreign.insert(process);
    }

    /// Whether a process can own anything.
    fn lives(&self, process: &ProcessId) -> bool {
        self.rows.contains_key(process) || self.foreign.contains(process)
    }

    /// A process wants room for an object of `owner`.
    pub fn on_allocate(
        &mut self,
        from: ProcessId,
        request: u64,
        size: u64,
        owner: ProcessId,
        now: u64,
        out: &mut impl Orders,
    ) {
        if !self.rows.contains_key(&from) {
            // It is dead: nobody would ever seal it, nor free it.
            let why = Refusal::lost("this process has no part in the object store");
            return out.allocated(from, request, Err(why));
        }
        if size > self.arena.size() {
            let error = ArenaError::LargerThanStore { size, capacity: self.arena.size() };
            let text = format!(
                "{error}. Give init(object_store_memory=) a larger number, or split the value."
            );
            return out.allocated(from, request, Err(Refusal::full(text)));
        }
        let purpose = Purpose::Allocate { owner };
        self.waiting.push_back(Waiting { from, request, size, purpose, since: now });
        self.serve(now, out);
    }

    /// A process no longer wants what it asked for.
    pub fn on_withdraw(&mut self, from: ProcessId, request: u64, now: u64, out: &mut impl Orders) {
        self.waiting.retain(|waiting| {
            let theirs = waiting.from == from && waiting.request == request;
            !theirs || matches!(waiting.purpose, Purpose::Restore(_))
        });
        self.stop_fetching_for(|waiter| *waiter == (from, request));
        self.serve(now, out);
    }

    /// Objects are freed by their owner.
    pub fn on_free(&mut self, keys: &[StoreKey], now: u64, out: &mut impl Orders) {
        for key in keys {
            if self.table.doom(*key).is_some() {
                self.reclaim(key.slot(), now, out);
            }
        }
        self.serve(now, out);
    }

    /// A process has ended looking at doomed objects, or filling them.
    pub fn on_unpinned(&mut self, slots: &[u32], now: u64, out: &mut impl Orders) {
        for slot in slots {
            self.reclaim(*slot, now, out);
        }
        self.serve(now, out);
    }

    /// Time has passed.
    pub fn on_tick(&mut self, now: u64, out: &mut impl Orders) {
        self.ticked = now;
        self.serve(now, out);
        self.refuse_the_hopeless(now, out);
    }

    /// Nothing of the arena above this was ever used.
    pub fn reached(&self) -> u64 {
        self.arena.reached()
    }

    /// When [`Self::on_tick`] is due.
    pub fn next_wakeup(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.ticked + LOOK_AGAIN)
    }

    /// Gives an object its slot.
    fn give(
        &mut self,
        from: ProcessId,
        owner: ProcessId,
        len: u64,
        offset: u64,
        now: u64,
    ) -> Option<StoreKey> {
        let slot = self.slots.take()?;
        let generation = self.table.word(slot).generation();
        let key = StoreKey::new(slot, generation);
        self.table.set_extent(slot, Extent { offset, len });
        self.table.set_parties(slot, owner, from);
        // When its slot's former object was looked at is none of its business.
        self.table.touch(slot, now / 1_000_000);
        let mut word = Word::new(generation, State::Writing);
        if !self.lives(&owner) {
            // Its owner died: it goes as soon as it is complete.
            word = word.doomed();
        }
        self.table.update(slot, |_| Some(word));
        let place = Place::Memory(offset);
        let entry =
            Entry { key, len, place, on_disk: false, is_copy: false, stays_until: 0, slab: None };
        self.entries.insert(slot, entry);
        Some(key)
    }

    /// Takes back a doomed object's memory and slot, if nobody needs them (K-3).
    fn reclaim(&mut self, slot: u32, now: u64, out: &mut impl Orders) {
        let Some(entry) = self.entries.get(&slot) else {
            return;
        };
        let over = match entry.place {
            // Somebody reads or writes these bytes; what follows that sees to it.
            Place::Leaving { .. } | Place::Returning(_) => false,
            Place::Memory(_) => self.table.is_over(slot, self.rows.values().copied()),
            Place::Disk => self.table.word(slot).is_doomed(),
        };
        if !over {
            return;
        }
        let entry = self.entries.remove(&slot).expect("just seen");
        self.release_memory(&entry);
        if entry.on_disk {
            self.spilled.forget(entry.len);
            out.forget(entry.key);
        }
        out.gone(entry.key);
        for (to, request) in self.fetching.remove(&slot).unwrap_or_default() {
            out.fetched(to, request, Err(Refusal::freed()));
        }
        self.waiting.retain(
            |waiting| !matches!(waiting.purpose, Purpose::Restore(key) if key == entry.key),
        );
        self.give_back_slot(slot);
        self.progress = now;
    }

    fn give_back_slot(&mut self, slot: u32) {
        self.table.end_use(slot);
        self.slots.give_back(slot);
    }

    /// An object's bytes are no longer needed in memory.
    fn release_memory(&mut self, entry: &Entry) {
        let (Place::Memory(offset) | Place::Leaving { offset, .. } | Place::Returning(offset)) =
            entry.place
        else {
            return;
        };
        match entry.slab {
            Some(slab) => self.release_part(slab),
            None => assert!(self.arena.free(offset), "K-1: {offset}"),
        }
    }

    fn is_pinned(&self, slot: u32) -> bool {
        self.table.is_pinned(slot, self.rows.values().copied())
    }
}
