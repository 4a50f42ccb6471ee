//! What every process of a node knows of the objects in its store, in shared memory.
//!
//! ```text
//! head   64 bytes               how many rows are in use
//! slots  MAX_SLOTS x 64 bytes   word | offset | len | owner | touched | creator
//! rows   MAX_ROWS x MAX_SLOTS bits: which slots a process looks at
//! ```
//!
//! A slot's word is its generation and its state. Looking at an object takes no
//! message: a process sets its bit, then reads the word; whoever wants the
//! memory for something else changes the word, then reads the bits. One of the
//! two sees the other, so that
//!
//! - **T-1** An object that a process looks at keeps its memory: bytes go to
//!   another use only after a word that forbids looking, when no bit is set.
//! - **T-2** A bit is set and cleared by its own process alone, and by the node
//!   service once that process is gone. A process that dies while it looks
//!   leaves nothing to clean up but its row.
//! - **T-3** Whoever clears the last bit of a doomed object learns that it is
//!   doomed, and tells whoever gives memory out.
//! - **T-4** A key names one object for ever: the generation grows with each use
//!   of a slot.
//!
//! The file is large and sparse: what is not used costs nothing.

use std::sync::Arc;

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_sys::memory::Mapping;

use crate::sync::{AtomicU64, Ordering};
use crate::word::{State, Word};

/// Objects of a store at one time, in memory or on disk.
pub const MAX_SLOTS: u32 = 1 << 22;

/// Processes that can look.
pub const MAX_ROWS: u32 = 4096;

const SLOT_BYTES: usize = 64;
const ROW_BYTES: usize = MAX_SLOTS as usize / 8;
const SLOTS_AT: usize = 64;
const ROWS_AT: usize = SLOTS_AT + MAX_SLOTS as usize * SLOT_BYTES;

/// Bytes of the memory file of a table.
pub const TABLE_BYTES: usize = ROWS_AT + MAX_ROWS as usize * ROW_BYTES;

/// The words and bits that the protocol is made of: a mapping, or plain memory in tests.
pub(crate) trait TableMemory {
    fn word(&self, slot: u32) -> &AtomicU64;
    /// The 64 bits of a row that the slot's is one of.
    fn bits(&self, row: u32, slot: u32) -> &AtomicU64;
}

/// Where an object's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First byte in the arena.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Why an object cannot be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// It is on disk or on its way: the node service knows.
    Away,
    /// It was freed.
    Gone,
}

/// The table as this process maps it.
#[derive(Clone)]
pub struct Table(Arc<Mapping>);

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Table")
    }
}

#[cfg(not(feature = "shuttle"))]
impl TableMemory for Table {
    fn word(&self, slot: u32) -> &AtomicU64 {
        self.0.atomic_u64(SLOTS_AT + slot as usize * SLOT_BYTES)
    }

    fn bits(&self, row: u32, slot: u32) -> &AtomicU64 {
        self.0.atomic_u64(ROWS_AT + row as usize * ROW_BYTES + slot as usize / 64 * 8)
    }
}

/// Sets a bit, then asks the word. The bit stays set if the object is there.
pub(crate) fn pin(table: &impl TableMemory, row: u32, key: StoreKey) -> Result<(), Miss> {
    let bits = table.bits(row, key.slot());
    bits.fetch_or(bit(key.slot()), Ordering::SeqCst);
    let word = Word(table.word(key.slot()).load(Ordering::SeqCst));
    if word.generation() != key.generation() || word.is_doomed() {
        return Err(Miss::Gone);
    }
    match word.state() {
        State::Sealed => Ok(()),
        State::Free => Err(Miss::Gone),
        State::Writing | State::Leaving | State::Away => Err(Miss::Away),
    }
}

/// Clears a bit; whether the slot is doomed, so that its memory may be had
/// (T-3). Whoever holds a slab sees to its objects by itself.
pub(crate) fn unpin(table: &impl TableMemory, row: u32, slot: u32) -> bool {
    table.bits(row, slot).fetch_and(!bit(slot), Ordering::SeqCst);
    let word = Word(table.word(slot).load(Ordering::SeqCst));
    word.is_doomed() && !word.is_in_slab()
}

/// Whether any of these processes looks at the slot. Only after a word that
/// forbids looking does "no" mean anything (T-1).
pub(crate) fn is_pinned(
    table: &impl TableMemory,
    slot: u32,
    mut rows: impl Iterator<Item = u32>,
) -> bool {
    rows.any(|row| table.bits(row, slot).load(Ordering::SeqCst) & bit(slot) != 0)
}

/// Changes a word by `change` until that succeeds or `change` refuses: the new word.
pub(crate) fn update(
    table: &impl TableMemory,
    slot: u32,
    change: impl Fn(Word) -> Option<Word>,
) -> Option<Word> {
    let word = table.word(slot);
    let mut old = word.load(Ordering::SeqCst);
    loop {
        let new = change(Word(old))?;
        match word.compare_exchange(old, new.0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => return Some(new),
            Err(now) => old = now,
        }
    }
}

/// Forbids looking at an object, so that its memory may go to another use
/// (T-1); `false`: somebody looks at it, or it is not to go now.
pub(crate) fn begin_to_leave(
    table: &impl TableMemory,
    slot: u32,
    rows: impl Iterator<Item = u32> + Clone,
) -> bool {
    if is_pinned(table, slot, rows.clone()) {
        return false; // Proves nothing, but spares others a miss that is none.
    }
    let leave = |word: Word| {
        let may = word.state() == State::Sealed && word.is_owned() && !word.is_doomed();
        may.then_some(word.with(State::Leaving))
    };
    if update(table, slot, leave).is_none() {
        return false;
    }
    if is_pinned(table, slot, rows) {
        update(table, slot, |word| Some(word.with(State::Sealed)));
        return false;
    }
    true
}

/// Whether an object's memory may be had back: it is doomed, complete, and
/// nobody looks at it (T-1). The word is read before the bits.
pub(crate) fn is_over(
    table: &impl TableMemory,
    slot: u32,
    rows: impl Iterator<Item = u32>,
) -> bool {
    let word = Word(table.word(slot).load(Ordering::SeqCst));
    word.is_doomed() && word.state() != State::Writing && !is_pinned(table, slot, rows)
}

/// Ends a use of a slot (T-4): the generation of the next.
pub(crate) fn end_use(table: &impl TableMemory, slot: u32) -> u64 {
    let next = |word: Word| Some(Word::new(word.generation() + 1, State::Free));
    update(table, slot, next).expect("it never refuses").generation()
}

/// See [`Table::doom`].
pub(crate) fn doom(table: &impl TableMemory, key: StoreKey) -> Option<Word> {
    update(table, key.slot(), |word| word.is(key).then_some(word.doomed()))
}

/// See [`Table::own`].
pub(crate) fn own(table: &impl TableMemory, key: StoreKey) -> bool {
    let own = |word: Word| (word.is(key) && !word.is_doomed()).then_some(word.owned());
    update(table, key.slot(), own).is_some()
}

/// Dooms an object unless its owner has taken it up: one of the two wins.
pub(crate) fn doom_untaken(table: &impl TableMemory, key: StoreKey) -> Option<Word> {
    let doom = |word: Word| (word.is(key) && !word.is_owned()).then_some(word.doomed());
    update(table, key.slot(), doom)
}

/// See [`Table::seal`].
pub(crate) fn seal(table: &impl TableMemory, key: StoreKey, owned: bool) -> bool {
    let seal = |word: Word| {
        let sealed = word.with(State::Sealed);
        (word.is(key) && word.state() == State::Writing).then_some(if owned {
            sealed.owned()
        } else {
            sealed
        })
    };
    update(table, key.slot(), seal).is_some_and(|word| !word.is_doomed())
}

fn bit(slot: u32) -> u64 {
    1 << (slot % 64)
}

#[cfg(not(feature = "shuttle"))]
impl Table {
    /// Maps the memory file of a table.
    pub fn map(file: impl std::os::fd::AsFd) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Mapping::new(file, TABLE_BYTES)?)))
    }

    /// The word of a slot.
    pub fn word(&self, slot: u32) -> Word {
        Word(TableMemory::word(self, slot).load(Ordering::SeqCst))
    }

    /// See [`update`].
    pub(crate) fn update(&self, slot: u32, change: impl Fn(Word) -> Option<Word>) -> Option<Word> {
        update(self, slot, change)
    }

    fn field(&self, slot: u32, index: usize) -> &AtomicU64 {
        self.0.atomic_u64(SLOTS_AT + slot as usize * SLOT_BYTES + 8 * index)
    }

    /// Where the object's bytes are. True only while it is looked at, or for
    /// whoever gives the memory out.
    pub fn extent(&self, slot: u32) -> Extent {
        Extent {
            offset: self.field(slot, 1).load(Ordering::Relaxed),
            len: self.field(slot, 2).load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_extent(&self, slot: u32, extent: Extent) {
        self.field(slot, 1).store(extent.offset, Ordering::Relaxed);
        self.field(slot, 2).store(extent.len, Ordering::Relaxed);
    }

    /// Who owns the object, and who made it.
    pub fn parties(&self, slot: u32) -> (ProcessId, ProcessId) {
        let party = |index| ProcessId(self.field(slot, index).load(Ordering::Relaxed));
        (party(3), party(5))
    }

    pub(crate) fn set_parties(&self, slot: u32, owner: ProcessId, creator: ProcessId) {
        self.field(slot, 3).store(owner.0, Ordering::Relaxed);
        self.field(slot, 5).store(creator.0, Ordering::Relaxed);
    }

    /// When the object was last looked at, in milliseconds of the machine's clock.
    pub fn touched(&self, slot: u32) -> u64 {
        self.field(slot, 4).load(Ordering::Relaxed)
    }

    /// Notes that the object was looked at.
    pub fn touch(&self, slot: u32, milliseconds: u64) {
        self.field(slot, 4).store(milliseconds, Ordering::Relaxed);
    }

    /// Begins to look at an object: where it is. On a miss the bit stays set:
    /// [`Self::unpin`] follows either way. Bits are the slot's, so that a process
    /// that looks at it by one name must not try another.
    pub fn pin(&self, row: u32, key: StoreKey) -> Result<Extent, Miss> {
        if key.slot() >= MAX_SLOTS {
            return Err(Miss::Gone);
        }
        pin(self, row, key).map(|()| self.extent(key.slot()))
    }

    /// Ends looking; whether the node service must hear of it.
    pub fn unpin(&self, row: u32, slot: u32) -> bool {
        // A name that was never given out: its bit would be one of another row.
        slot < MAX_SLOTS && unpin(self, row, slot)
    }

    pub(crate) fn is_pinned(&self, slot: u32, rows: impl Iterator<Item = u32>) -> bool {
        is_pinned(self, slot, rows)
    }

    /// See [`begin_to_leave`].
    pub(crate) fn begin_to_leave(
        &self,
        slot: u32,
        rows: impl Iterator<Item = u32> + Clone,
    ) -> bool {
        begin_to_leave(self, slot, rows)
    }

    /// See [`is_over`].
    pub(crate) fn is_over(&self, slot: u32, rows: impl Iterator<Item = u32>) -> bool {
        is_over(self, slot, rows)
    }

    /// See [`end_use`].
    pub(crate) fn end_use(&self, slot: u32) -> u64 {
        end_use(self, slot)
    }

    /// All rows that were ever in use: read after the word, as the bits are, so
    /// that whoever is missing cannot have begun to look.
    pub(crate) fn all_rows(&self) -> impl Iterator<Item = u32> {
        std::iter::once_with(|| self.0.atomic_u64(0).load(Ordering::SeqCst) as u32)
            .flat_map(|rows| 0..rows.min(MAX_ROWS))
    }

    /// Row `row` is in use from now on.
    pub(crate) fn use_row(&self, row: u32) {
        assert!(row < MAX_ROWS, "no such row");
        self.0.atomic_u64(0).fetch_max(u64::from(row) + 1, Ordering::SeqCst);
    }

    /// The owner has taken the object up; `false`: it is doomed, or gone.
    pub fn own(&self, key: StoreKey) -> bool {
        key.slot() < MAX_SLOTS && own(self, key)
    }

    /// Nobody may begin to look at the object any more: its word, if it was there.
    pub fn doom(&self, key: StoreKey) -> Option<Word> {
        (key.slot() < MAX_SLOTS).then(|| doom(self, key))?
    }

    /// See [`doom_untaken`].
    pub(crate) fn doom_untaken(&self, key: StoreKey) -> Option<Word> {
        doom_untaken(self, key)
    }

    /// All bytes have been written; `false`: it was doomed meanwhile.
    pub fn seal(&self, key: StoreKey, owned: bool) -> bool {
        seal(self, key, owned)
    }

    /// A process is gone, and looks at nothing.
    pub(crate) fn clear_row(&self, row: u32, slots: u32) {
        for first in (0..slots).step_by(64) {
            let bits = self.bits(row, first);
            // Only what is set: a write would give the file a page.
            if bits.load(Ordering::SeqCst) != 0 {
                bits.store(0, Ordering::SeqCst);
            }
        }
    }
}
