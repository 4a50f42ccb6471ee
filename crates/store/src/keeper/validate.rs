//! The keeper's invariants, checked.

use super::{Keeper, Place, Purpose};
use crate::word::State;

impl Keeper {
    /// Panics when an invariant of the module documentation does not hold.
    pub fn validate(&self) {
        self.arena.validate();
        let mut extents = 0;
        for (offset, live, orphaned) in self.slab_extents() {
            extents += 1;
            assert!(self.arena.is_given(offset), "K-1: slab {offset}");
            let parts = self.entries.values().filter(|entry| entry.slab == Some(offset));
            assert_eq!(parts.count(), live, "K-1: slab {offset}");
            assert!(live > 0 || !orphaned, "K-3: slab {offset}");
        }
        let mut leaving = 0;
        for (&slot, entry) in &self.entries {
            let word = self.table.word(slot);
            assert_eq!(word.generation(), entry.key.generation(), "K-2: {slot}");
            let offset = match entry.place {
                Place::Memory(offset) => {
                    assert!(matches!(word.state(), State::Writing | State::Sealed), "K-2: {slot}");
                    Some(offset)
                }
                Place::Leaving { offset, .. } => {
                    leaving += 1;
                    assert_eq!(word.state(), State::Leaving, "K-2: {slot}");
                    Some(offset)
                }
                Place::Returning(offset) => {
                    assert_eq!(word.state(), State::Away, "K-2: {slot}");
                    Some(offset)
                }
                Place::Disk => {
                    assert_eq!(word.state(), State::Away, "K-2: {slot}");
                    assert!(entry.on_disk, "K-5: {slot}");
                    None
                }
            };
            if let (Some(offset), None) = (offset, entry.slab) {
                extents += 1;
                assert!(self.arena.is_given(offset), "K-1: {slot}");
            }
        }
        assert_eq!(extents, self.arena.given_count(), "K-1");
        assert_eq!(leaving, self.leaving, "K-2");
        self.validate_waiting();
    }
    fn validate_waiting(&self) {
        for (at, waiting) in self.waiting.iter().enumerate() {
            // For the first, room may be on its way; those behind it wait for that.
            if at == 0 || self.leaving == 0 {
                assert!(!self.arena.fits(waiting.size), "K-4: {waiting:?}");
            }
        }
        let restores = self.waiting.iter().filter_map(|waiting| match waiting.purpose {
            Purpose::Restore(key) => Some(key.slot()),
            Purpose::Allocate { .. } => None,
        });
        let mut restores: Vec<u32> = restores.collect();
        restores.sort_unstable();
        let on_disk = |slot: &&u32| matches!(self.entries[*slot].place, Place::Disk);
        let mut wanted: Vec<u32> = self.fetching.keys().filter(on_disk).copied().collect();
        wanted.sort_unstable();
        assert_eq!(restores, wanted, "K-6");
        for (slot, waiters) in &self.fetching {
            let there = matches!(self.entries[slot].place, Place::Memory(_));
            assert!(!there && !waiters.is_empty(), "K-6: {slot}");
        }
    }
}
