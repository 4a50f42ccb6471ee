//! The shared-memory store, as this process sees it: looking at objects, making
//! them, letting them go. Most of it needs no message to the node service.
//!
//! - [`Look`]: an object that this process looks at. Its bytes stay while it lives.
//! - [`Room`]: memory for a new object, to be filled and sealed.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hashbrown::HashMap;
use oxiray_ids::{Origin, ProcessId, StoreKey};
use oxiray_store::{Carver, Extent, MAX_SLOTS, Miss, SlabGrant, State, Table};
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::memory::{Mapping, PrivateMapping};
use oxiray_wire::control::{Slab, Stored, to_node};
use parking_lot::Mutex;

use crate::copy;
use crate::line::Line;

/// Objects larger than this never come from a slab.
const LARGEST_IN_SLAB: u64 = 2 << 20;

/// After a refusal, slabs are asked for again when this has passed.
const ASK_AGAIN: u64 = 1_000_000_000;

/// Garbage is collected for the sake of memory at most this often.
const COLLECT_EVERY: u64 = 1_000_000_000;

/// Names of copies that are remembered.
const MOST_COPIES: usize = 10_000;

/// A process's part of the store. Outlives the session while anyone looks at an object.
pub struct Store {
    arena: Mapping,
    file: OwnedFd,
    table: Table,
    process: ProcessId,
    /// Ours in the table.
    row: u32,
    /// How often we look at each slot.
    looks: Mutex<HashMap<u32, u32>>,
    carver: Mutex<Carver>,
    /// When to ask for a slab again.
    slabs_from: AtomicU64,
    /// When garbage was last collected because memory was short.
    collected: AtomicU64,
    /// Which parts of the arena this process has mapped pages for.
    mapped: copy::Mapped,
    node: Arc<Line>,
    /// Names of copies of other nodes' objects, as far as we have asked.
    copies: Mutex<HashMap<Origin, StoreKey>>,
    /// A forked child inherits this, and must not touch it.
    pid: u32,
    /// This process has left the node.
    left: AtomicBool,
}

impl Store {
    pub(crate) fn map(
        arena: impl AsFd,
        table: impl AsFd,
        size: u64,
        process: ProcessId,
        row: u32,
        node: Arc<Line>,
    ) -> std::io::Result<Arc<Self>> {
        let table = Table::map(table)?;
        Ok(Arc::new(Self {
            arena: Mapping::new(&arena, size as usize)?,
            file: arena.as_fd().try_clone_to_owned()?,
            carver: Mutex::new(Carver::new(table.clone(), process)),
            table,
            process,
            row,
            looks: Mutex::default(),
            slabs_from: AtomicU64::new(0),
            collected: AtomicU64::new(0),
            mapped: copy::Mapped::new(size),
            node,
            copies: Mutex::default(),
            pid: std::process::id(),
            left: AtomicBool::new(false),
        }))
    }

    /// Number of the node whose store this is.
    pub fn node(&self) -> u32 {
        self.process.node()
    }

    /// Notes under which name this store has a copy of another node's object.
    pub(crate) fn copied(&self, origin: Origin, key: StoreKey) {
        let mut copies = self.copies.lock();
        // Names of objects that are gone: to ask again costs little.
        if copies.len() >= MOST_COPIES {
            copies.clear();
        }
        copies.insert(origin, key);
    }

    pub(crate) fn copy_of(&self, origin: Origin) -> Option<StoreKey> {
        self.copies.lock().get(&origin).copied()
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id() && !self.left.load(Ordering::SeqCst)
    }

    fn tell_node(&self, body: to_node::Body) {
        // Each is small.
        let _ = self.node.say(body);
    }

    /// Looks at an object that is in memory.
    pub(crate) fn look(self: &Arc<Self>, key: StoreKey) -> Result<Look, Miss> {
        let mut looks = self.looks.lock();
        // While we look at its slot, a slot keeps its object: only the name is to be checked.
        let count = looks.get(&key.slot()).copied().unwrap_or(0);
        let found = match count {
            0 => self.table.pin(self.row, key),
            _ if self.table.word(key.slot()).is(key) => Ok(self.table.extent(key.slot())),
            _ => Err(Miss::Gone),
        };
        match found {
            Ok(extent) if self.is_within(extent) => {
                looks.insert(key.slot(), count + 1);
                drop(looks);
                self.table.touch(key.slot(), monotonic_ns() / 1_000_000);
                Ok(Look { store: self.clone(), slot: key.slot(), extent })
            }
            missed => {
                if count == 0 {
                    self.unpin(key.slot());
                }
                Err(missed.err().unwrap_or(Miss::Gone))
            }
        }
    }

    fn is_within(&self, extent: Extent) -> bool {
        let end = extent.offset.checked_add(extent.len);
        end.is_some_and(|end| end <= self.arena.len() as u64)
    }

    /// Objects that this process looks at: their slots and lengths.
    pub(crate) fn looked_at(&self) -> Vec<(u32, u64)> {
        let looks = self.looks.lock();
        looks.keys().map(|slot| (*slot, self.table.extent(*slot).len)).collect()
    }

    /// The object that a slot holds now.
    pub(crate) fn key_at(&self, slot: u32) -> StoreKey {
        StoreKey::new(slot, self.table.word(slot).generation())
    }

    pub(crate) fn is_looked_at(&self, slot: u32) -> bool {
        self.looks.lock().contains_key(&slot)
    }

    /// Whether an object is on disk; `None`: it is nowhere.
    pub fn is_on_disk(&self, key: StoreKey) -> Option<bool> {
        self.state(key).map(|state| matches!(state, State::Away | State::Leaving))
    }

    /// Where an object is; `None`: nowhere.
    pub(crate) fn state(&self, key: StoreKey) -> Option<State> {
        let word = (key.slot() < MAX_SLOTS).then(|| self.table.word(key.slot()))?;
        (word.is(key) && !word.is_doomed()).then(|| word.state())
    }

    fn unpin(&self, slot: u32) {
        if self.table.unpin(self.row, slot) {
            self.tell_node(to_node::Body::Unpinned(Stored { keys: vec![u64::from(slot)] }));
        }
    }

    /// Room for a small object, from a slab of ours.
    pub(crate) fn carve(self: &Arc<Self>, size: u64, owner: ProcessId) -> Option<Room> {
        if size > LARGEST_IN_SLAB {
            return None;
        }
        let mut carver = self.carver.lock();
        if carver.largest().is_none_or(|largest| size > largest) {
            return None;
        }
        let (key, offset) = carver.carve(size, owner)?;
        Some(self.room(key, Extent { offset, len: size }, owner))
    }

    /// Whether to ask for one slab more, for an object of this size.
    pub(crate) fn wants_slab(&self, size: u64) -> bool {
        let fits = match self.carver.lock().largest() {
            Some(largest) => size <= largest,
            None => size <= LARGEST_IN_SLAB,
        };
        fits && monotonic_ns() >= self.slabs_from.load(Ordering::Relaxed)
    }

    /// The answer to a question for a slab.
    pub(crate) fn on_slab(&self, slab: Slab) {
        if slab.len == 0 {
            return self.slabs_from.store(monotonic_ns() + ASK_AGAIN, Ordering::Relaxed);
        }
        let keys = slab.keys.into_iter().map(StoreKey).collect();
        self.carver.lock().add(SlabGrant { offset: slab.offset, len: slab.len, keys });
    }

    /// Memory is short. Whether garbage should be collected, too: that takes longer.
    pub(crate) fn trim(&self) -> bool {
        let given_up = self.carver.lock().trim();
        if !given_up.is_empty() {
            self.slabs_from.store(monotonic_ns() + ASK_AGAIN, Ordering::Relaxed);
        }
        for offset in given_up {
            self.tell_node(to_node::Body::ReturnSlab(Slab { offset, ..Slab::default() }));
        }
        let now = monotonic_ns();
        let before = self.collected.load(Ordering::Relaxed);
        let due = now >= before + COLLECT_EVERY;
        due && self
            .collected
            .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// This process leaves a node that lives on: what it still looks at it keeps for
    /// itself, because its place in the table will be another's.
    pub(crate) fn leave(&self) {
        let looks = self.looks.lock();
        self.left.store(true, Ordering::SeqCst);
        for extent in looks.keys().map(|slot| self.table.extent(*slot)) {
            let (offset, len) = (extent.offset as usize, extent.len as usize);
            // Without memory for that, what it sees may change: there is nobody to tell.
            let _ = self.arena.keep_own(&self.file, offset, len);
        }
    }

    /// The session is over, and no other process has the arena: gives back all
    /// memory but that of objects which are still looked at.
    pub(crate) fn shrink(&self) {
        let looks = self.looks.lock();
        let mut kept: Vec<Extent> = looks.keys().map(|slot| self.table.extent(*slot)).collect();
        kept.sort_unstable_by_key(|extent| extent.offset);
        let mut end = 0;
        for extent in kept {
            self.arena.discard(end as usize, extent.offset.saturating_sub(end) as usize);
            end = end.max(extent.offset + extent.len);
        }
        self.arena.discard(end as usize, (self.arena.len() as u64).saturating_sub(end) as usize);
    }

    /// Room that the node service has granted.
    pub(crate) fn granted(self: &Arc<Self>, key: StoreKey) -> Option<Room> {
        if key.slot() >= MAX_SLOTS {
            return None;
        }
        let extent = self.table.extent(key.slot());
        let owner = self.table.parties(key.slot()).0;
        self.is_within(extent).then(|| self.room(key, extent, owner))
    }

    fn room(self: &Arc<Self>, key: StoreKey, extent: Extent, owner: ProcessId) -> Room {
        Room { store: self.clone(), key, extent, owned: owner == self.process, sealed: false }
    }

    /// The object is ours from now on.
    pub(crate) fn take_up(&self, key: StoreKey) {
        self.table.own(key);
    }

    /// An object of ours is not needed any more; whether the node must hear of it.
    pub(crate) fn free(&self, key: StoreKey) -> bool {
        match self.table.doom(key) {
            Some(word) if word.is_in_slab() => {
                self.carver.lock().look_after(key.slot());
                false
            }
            word => word.is_some(),
        }
    }

    /// A process is gone; what we made for it has no owner.
    pub(crate) fn on_process_died(&self, peer: ProcessId) {
        self.carver.lock().on_process_died(peer);
    }
}

/// An object that this process looks at.
pub struct Look {
    store: Arc<Store>,
    slot: u32,
    extent: Extent,
}

impl Look {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.store.arena.bytes(self.extent.offset as usize, self.extent.len as usize)
    }
}

impl Look {
    /// Part of its bytes, to write to in private. Pages that are not written to
    /// show the object: keep looking at it.
    pub fn private(&self, at: usize, len: usize) -> std::io::Result<PrivateMapping> {
        let within = at.checked_add(len).is_some_and(|end| end <= self.extent.len as usize);
        if !within {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        PrivateMapping::new(&self.store.file, self.extent.offset as usize + at, len)
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        if !self.store.is_ours() {
            return;
        }
        let mut looks = self.store.looks.lock();
        let count = looks.get_mut(&self.slot).expect("counted when it was made");
        *count -= 1;
        if *count == 0 {
            looks.remove(&self.slot);
            // It may have left just now.
            if self.store.is_ours() {
                self.store.unpin(self.slot);
            }
        }
    }
}

/// Memory for a new object. Dropped before it is sealed, it is given back.
pub struct Room {
    store: Arc<Store>,
    key: StoreKey,
    extent: Extent,
    owned: bool,
    sealed: bool,
}

impl Room {
    pub(crate) fn len(&self) -> u64 {
        self.extent.len
    }

    /// Fills it: each part at its place.
    pub fn fill(&self, parts: &[(usize, &[u8])]) {
        let Extent { offset, len } = self.extent;
        self.store.mapped.prepare(&self.store.arena, offset, len);
        for (at, bytes) in parts {
            // Room is as large as was asked for: see `Runtime::allocate`.
            assert!(at + bytes.len() <= len as usize, "a part outside of its object");
            copy::copy(&self.store.arena, offset as usize + at, bytes);
        }
    }

    /// All bytes are there: the object's name and length.
    pub fn seal(mut self) -> (Origin, u64) {
        self.finish();
        (Origin { node: self.store.node(), key: self.key }, self.extent.len)
    }

    fn finish(&mut self) {
        self.sealed = true;
        let slot = self.key.slot();
        self.store.table.touch(slot, monotonic_ns() / 1_000_000);
        if self.store.table.seal(self.key, self.owned) {
            return;
        }
        // Its owner died meanwhile.
        if self.store.table.word(slot).is_in_slab() {
            self.store.carver.lock().look_after(slot);
        } else {
            self.store.tell_node(to_node::Body::Unpinned(Stored { keys: vec![u64::from(slot)] }));
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.sealed || !self.store.is_ours() {
            return;
        }
        self.finish();
        if self.store.free(self.key) {
            self.store.tell_node(to_node::Body::Free(Stored { keys: vec![self.key.0] }));
        }
    }
}
