//! Bringing objects back from disk.

use oxiray_ids::{ProcessId, StoreKey};

use super::{Keeper, Orders, Place, Purpose, Refusal, Waiting, freed};
use crate::table::Extent;
use crate::word::{State, Word};

/// What was just brought back stays for as long as it may take whoever asked to
/// begin looking at it.
pub(super) const GRACE: u64 = 500_000_000;

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
            false => return out.fetched(from, request, Err(freed())),
        };
        if !word.is(key) || word.is_doomed() {
            return out.fetched(from, request, Err(freed()));
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
        entry.stays_until = now + GRACE;
        self.table.set_extent(slot, Extent { offset, len: entry.len });
        self.table.touch(slot, now / 1_000_000);
        self.table.update(slot, |word: Word| Some(word.with(State::Sealed)));
        self.progress = now;
        self.spilled.restored(entry.len);
        for (to, request) in self.fetching.remove(&slot).unwrap_or_default() {
            out.fetched(to, request, Ok(()));
        }
        self.reclaim(slot, now, out);
        self.serve(now, out);
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
        let refusal = Refusal { text: why.to_owned(), store_full: false, out_of_disk: false };
        for (to, request) in self.fetching.remove(&slot).unwrap_or_default() {
            out.fetched(to, request, Err(refusal.clone()));
        }
        self.reclaim(slot, now, out);
        self.serve(now, out);
    }
}
