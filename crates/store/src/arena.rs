//! Which bytes of the arena are given out, and to whom.
//!
//! Free extents are kept by offset, to merge neighbours, and by size, to find
//! the smallest that is large enough. The smallest and then lowest extent is
//! also the one most likely to have been used before, and pages that were
//! used before are many times faster than fresh ones.
//!
//! Invariants, checked by [`Arena::validate`]:
//!
//! - **A-1** Extents, given out and free, do not overlap and together cover the arena.
//! - **A-2** Every offset and length is a multiple of [`ALIGNMENT`].
//! - **A-3** No two free extents touch: when all is given back, one is left.
//! - **A-4** `used` is the sum of the lengths given out.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use oxiray_ids::ProcessId;

/// Every extent starts at, and is as long as, a multiple of this.
pub const ALIGNMENT: u64 = 64;

/// Why there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArenaError {
    /// Never fits; trying again is of no use.
    #[error("an object of {size} bytes is larger than the whole object store ({capacity} bytes)")]
    LargerThanStore {
        /// Bytes asked for.
        size: u64,
        /// Bytes of the arena.
        capacity: u64,
    },
    /// Fits once enough has been given back.
    #[error(
        "the object store is full: {size} bytes were asked for, {used} of {capacity} bytes are \
         in use and the largest free piece has {largest}"
    )]
    FullNow {
        /// Bytes asked for.
        size: u64,
        /// Bytes given out.
        used: u64,
        /// Bytes of the arena.
        capacity: u64,
        /// Bytes of the largest free extent.
        largest: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    len: u64,
    owner: ProcessId,
}

/// The arena's bookkeeping; see the module documentation.
#[derive(Debug)]
pub struct Arena {
    size: u64,
    used: u64,
    given: HashMap<u64, Extent>,
    /// Offset to length.
    free: BTreeMap<u64, u64>,
    /// Length and offset of the same extents.
    free_by_len: BTreeSet<(u64, u64)>,
}

impl Arena {
    /// An arena of `size` bytes, rounded down to [`ALIGNMENT`], all free.
    pub fn new(size: u64) -> Self {
        let size = size / ALIGNMENT * ALIGNMENT;
        let mut arena = Self {
            size,
            used: 0,
            given: HashMap::new(),
            free: BTreeMap::new(),
            free_by_len: BTreeSet::new(),
        };
        if size > 0 {
            arena.insert_free(0, size);
        }
        arena
    }

    /// Bytes of the arena.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes given out, rounding included.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Bytes that `owner` asked for and nobody has given back.
    pub fn used_by(&self, owner: ProcessId) -> u64 {
        self.given.values().filter(|extent| extent.owner == owner).map(|extent| extent.len).sum()
    }

    /// Gives out `size` bytes; the offset is [`ALIGNMENT`]-aligned.
    pub fn allocate(&mut self, size: u64, owner: ProcessId) -> Result<u64, ArenaError> {
        if size > self.size {
            return Err(ArenaError::LargerThanStore { size, capacity: self.size });
        }
        let len = size.max(1).next_multiple_of(ALIGNMENT);
        let Some(&(free_len, offset)) = self.free_by_len.range((len, 0)..).next() else {
            let largest = self.free_by_len.last().map_or(0, |&(len, _)| len);
            let (used, capacity) = (self.used, self.size);
            return Err(ArenaError::FullNow { size, used, capacity, largest });
        };
        self.remove_free(offset, free_len);
        if free_len > len {
            self.insert_free(offset + len, free_len - len);
        }
        self.used += len;
        self.given.insert(offset, Extent { len, owner });
        Ok(offset)
    }

    /// Takes back the extent at `offset`. False when none was given out there,
    /// which a process that gives back twice can bring about: nothing changes then.
    pub fn free(&mut self, offset: u64) -> bool {
        let Some(extent) = self.given.remove(&offset) else {
            return false;
        };
        self.used -= extent.len;
        let (mut start, mut len) = (offset, extent.len);
        if let Some((&before, &before_len)) = self.free.range(..offset).next_back()
            && before + before_len == offset
        {
            self.remove_free(before, before_len);
            start = before;
            len += before_len;
        }
        if let Some(&after_len) = self.free.get(&(offset + extent.len)) {
            self.remove_free(offset + extent.len, after_len);
            len += after_len;
        }
        self.insert_free(start, len);
        true
    }

    /// Takes back everything that `owner` asked for.
    pub fn release_process(&mut self, owner: ProcessId) {
        let theirs = self.given.iter().filter(|(_, extent)| extent.owner == owner);
        let offsets: Vec<u64> = theirs.map(|(&offset, _)| offset).collect();
        for offset in offsets {
            self.free(offset);
        }
    }

    fn insert_free(&mut self, offset: u64, len: u64) {
        self.free.insert(offset, len);
        self.free_by_len.insert((len, offset));
    }

    fn remove_free(&mut self, offset: u64, len: u64) {
        self.free.remove(&offset);
        self.free_by_len.remove(&(len, offset));
    }

    /// Panics when an invariant of the module documentation does not hold.
    pub fn validate(&self) {
        let given = self.given.iter().map(|(&offset, extent)| (offset, extent.len, false));
        let free = self.free.iter().map(|(&offset, &len)| (offset, len, true));
        let mut extents: Vec<_> = given.chain(free).collect();
        extents.sort_unstable();
        let (mut end, mut after_free) = (0, false);
        for (offset, len, is_free) in extents {
            assert_eq!(offset, end, "A-1: a gap or an overlap");
            assert!(len > 0 && len % ALIGNMENT == 0, "A-2: length {len}");
            assert!(!(is_free && after_free), "A-3: free neighbours at {offset}");
            (end, after_free) = (offset + len, is_free);
        }
        assert_eq!(end, self.size, "A-1: the arena is not covered");
        let by_len: BTreeSet<_> = self.free.iter().map(|(&offset, &len)| (len, offset)).collect();
        assert_eq!(by_len, self.free_by_len, "both indexes name the same extents");
        assert_eq!(self.used, self.given.values().map(|extent| extent.len).sum(), "A-4");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: ProcessId = ProcessId(1);

    #[test]
    fn what_never_fits_is_told_from_what_does_not_fit_now() {
        let mut arena = Arena::new(1024);
        let error = arena.allocate(1025, OWNER).unwrap_err();
        assert_eq!(error, ArenaError::LargerThanStore { size: 1025, capacity: 1024 });
        let whole = arena.allocate(1024, OWNER).unwrap();
        let error = arena.allocate(0, OWNER).unwrap_err();
        assert!(matches!(error, ArenaError::FullNow { used: 1024, largest: 0, .. }));
        assert!(arena.free(whole));
        assert!(!arena.free(whole), "giving back twice changes nothing");
        assert_eq!(arena.allocate(1000, OWNER), Ok(0), "the warm extent is used again");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Allocate { size: u64, owner: u32 },
        Free { pick: usize },
        Wrong { offset: u64 },
        ReleaseProcess { owner: u32 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..5000u64, 0..4u32).prop_map(|(size, owner)| Step::Allocate { size, owner }),
            4 => any::<usize>().prop_map(|pick| Step::Free { pick }),
            1 => any::<u64>().prop_map(|offset| Step::Wrong { offset }),
            1 => (0..4u32).prop_map(|owner| Step::ReleaseProcess { owner }),
        ]
    }

    proptest! {
        /// Exercises against a plain list of extents.
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..200)) {
            let mut arena = Arena::new(64 * 1024);
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            for step in steps {
                match step {
                    Step::Allocate { size, owner } => {
                        if let Ok(offset) = arena.allocate(size, ProcessId(owner)) {
                            prop_assert_eq!(offset % ALIGNMENT, 0);
                            prop_assert!(offset + size <= arena.size());
                            for &(other, len, _) in &model {
                                prop_assert!(offset + size.max(1) <= other || other + len <= offset);
                            }
                            model.push((offset, size.max(1), owner));
                        }
                    }
                    Step::Free { pick } => {
                        if !model.is_empty() {
                            let (offset, ..) = model.swap_remove(pick % model.len());
                            prop_assert!(arena.free(offset));
                        }
                    }
                    Step::Wrong { offset } => {
                        if model.iter().all(|&(other, ..)| other != offset) {
                            prop_assert!(!arena.free(offset));
                        }
                    }
                    Step::ReleaseProcess { owner } => {
                        model.retain(|&(.., other)| other != owner);
                        arena.release_process(ProcessId(owner));
                        prop_assert_eq!(arena.used_by(ProcessId(owner)), 0);
                    }
                }
                arena.validate();
            }
            for (offset, ..) in model {
                arena.free(offset);
            }
            arena.validate();
            prop_assert_eq!(arena.used(), 0);
            prop_assert_eq!(arena.allocate(arena.size(), OWNER), Ok(0));
        }
    }
}
