//! Bringing objects back from disk.

use oxiray_ids::{ProcessId, StoreKey};

use super::{Entry, Keeper, Orders, Place, Purpose, Refusal, Waiting};
use crate::table::Extent;
use crate::word::{State, Word};

/// What was just brought back stays until somebody looked at it, or for as long
/// as it may take whoever asked to begin.
const GRACE: u64 = 500_000_000;

impl Keeper {
    /// A process wants to look at an object that it did not find in memory.
    pub fn on_fetch(
        &mut self,
        from: ProcessId,
        request: u64,
        key: StoreKey,
        now: u64,
        out: &mut impl Orders,
    ) {
        let slot = key.slot();
        let word = match slot < crate::table::MAX_SLOTS {
            true => self.table.word(slot),
            false => return out.fetched(from, request, Err(Refusal::freed())),
        };
        if !word.is(key) || word.is_doomed() {
            return out.fetched(from, request, Err(Refusal::freed()));
        }
        let Some(entry) = self.entries.get_mut(&slot) else {
            // In a slab, where it stays.
            return out.fetched(from, request, Ok(()));
        };
        match &mut entry.place {
            Place::Memory(_) => return out.fetched(from, request, Ok(())),
            Place::Leaving { wanted, .. } => *wanted = true,
            Place::Returning(_) => {}
            Place::Disk => {
                let size = entry.len;
                let queued = self.fetching.contains_key(&slot);
                if !queued {
                    let purpose = Purpose::Restore(key);
                    self.waiting.push_back(Waiting { from, request, size, purpose, since: now });
                }
            }
        }
        self.fetching.entry(slot).or_default().push((from, request));
        self.serve(now, out);
    }

    /// Some no longer want what they asked for: what nobody wants is not brought
    /// back (K-6), at the cost of what would have to leave for it.
    pub(super) fn stop_fetching_for(&mut self, is_theirs: impl Fn(&(ProcessId, u64)) -> bool) {
        self.fetching.retain(|_, waiters| {
            waiters.retain(|waiter| !is_theirs(waiter));
            !waiters.is_empty()
        });
        self.waiting.retain(|waiting| match waiting.purpose {
            Purpose::Restore(key) => self.fetching.contains_key(&key.slot()),
            Purpose::Allocate { .. } => true,
        });
    }

    /// There is memory for an object on disk.
    pub(super) fn bring_back(
        &mut self,
        key: StoreKey,
        offset: u64,
        now: u64,
        out: &mut impl Orders,
    ) {
        let entry = self.entries.get_mut(&key.slot()).filter(|entry| entry.key == key);
        match entry {
            Some(entry) if entry.place == Place::Disk => {
                entry.place = Place::Returning(offset);
                out.restore(key, Extent { offset, len: entry.len });
            }
            _ => {
                self.arena.free(offset);
                self.progress = now;
            }
        }
    }

    /// An object was read from disk.
    pub fn on_restored(&mut self, key: StoreKey, now: u64, out: &mut impl Orders) {
        let slot = key.slot();
        let Some(entry) = self.entries.get_mut(&slot).filter(|entry| entry.key == key) else {
            return;
        };
        let Place::Returning(offset) = entry.place else {
            return;
        };
        entry.place = Place::Memory(offset);
        self.table.set_extent(slot, Extent { offset, len: entry.len });
        self.spilled.restored(entry.len);
        self.let_stay(slot, now);
        self.table.update(slot, |word: Word| Some(word.with(State::Sealed)));
        self.progress = now;
        for (to, request) in self.fetching.remove(&slot).unwrap_or_default() {
            out.fetched(to, request, Ok(()));
        }
        self.reclaim(slot, now, out);
        self.serve(now, out);
    }

    /// Gives those who asked for an object the time to look at it. Before they can.
    pub(super) fn let_stay(&mut self, slot: u32, now: u64) {
        let entry = self.entries.get_mut(&slot).expect("it was just brought back");
        entry.stays_until = now + GRACE;
        // Earlier than any look that follows.
        self.table.touch(slot, (now / 1_000_000).saturating_sub(1));
    }

    /// Whether those who asked for an object have yet to look at it.
    pub(super) fn is_to_stay(&self, slot: u32, entry: &Entry, now: u64) -> bool {
        let since = entry.stays_until.saturating_sub(GRACE) / 1_000_000;
        now < entry.stays_until && self.table.touched(slot) < since
    }

    /// An object could not be read from disk: it is lost.
    pub fn on_not_restored(&mut self, key: StoreKey, why: &str, now: u64, out: &mut impl Orders) {
        let slot = key.slot();
        let Some(entry) = self.entries.get_mut(&slot).filter(|entry| entry.key == key) else {
            return;
        };
        let Place::Returning(offset) = entry.place else {
            return;
        };
        entry.place = Place::Disk;
        self.arena.free(offset);
        let refusal = Refusal::lost(why);
        for (to, request) in self.fetching.remove(&slot).unwrap_or_default() {
            out.fetched(to, request, Err(refusal.clone()));
        }
        self.reclaim(slot, now, out);
        self.serve(now, out);
    }
}
