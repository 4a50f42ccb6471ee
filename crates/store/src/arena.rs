//! Which bytes of an arena are given out: the node's, or a slab that a process carves.
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
use oxiray_words::show_bytes;

/// Every extent starts at, and is as long as, a multiple of this.
pub const ALIGNMENT: u64 = 64;

/// Why there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArenaError {
    /// Never fits; trying again is of no use.
    #[error(
        "an object of {} is larger than the whole object store ({})",
        show_bytes(*size),
        show_bytes(*capacity)
    )]
    LargerThanStore {
        /// Bytes asked for.
        size: u64,
        /// Bytes of the arena.
        capacity: u64,
    },
    /// Fits once enough has been given back.
    #[error(
        "the object store is full: {} were asked for, {} of {} are in use and the largest free \
         piece has {}",
        show_bytes(*size),
        show_bytes(*used),
        show_bytes(*capacity),
        show_bytes(*largest)
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

/// The arena's bookkeeping; see the module documentation.
#[derive(Debug)]
pub struct Arena {
    size: u64,
    used: u64,
    reached: u64,
    /// Offset to length.
    given: HashMap<u64, u64>,
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
            reached: 0,
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

    /// Nothing above this was ever given out.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// Whether `size` bytes could be given out now.
    pub fn fits(&self, size: u64) -> bool {
        self.free_by_len.last().is_some_and(|&(len, _)| len >= rounded(size))
    }

    /// Whether the extent at `offset` is given out.
    pub fn is_given(&self, offset: u64) -> bool {
        self.given.contains_key(&offset)
    }

    /// How many extents are given out.
    pub fn given_count(&self) -> usize {
        self.given.len()
    }

    /// Gives out `size` bytes; the offset is [`ALIGNMENT`]-aligned.
    pub fn allocate(&mut self, size: u64) -> Result<u64, ArenaError> {
        if size > self.size {
            return Err(ArenaError::LargerThanStore { size, capacity: self.size });
        }
        let len = rounded(size);
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
        self.reached = self.reached.max(offset + len);
        self.given.insert(offset, len);
        Ok(offset)
    }

    /// Takes back the extent at `offset`. False when none was given out there,
    /// which a process that gives back twice can bring about: nothing changes then.
    pub fn free(&mut self, offset: u64) -> bool {
        let Some(given) = self.given.remove(&offset) else {
            return false;
        };
        self.used -= given;
        let (mut start, mut len) = (offset, given);
        if let Some((&before, &before_len)) = self.free.range(..offset).next_back()
            && before + before_len == offset
        {
            self.remove_free(before, before_len);
            start = before;
            len += before_len;
        }
        if let Some(&after_len) = self.free.get(&(offset + given)) {
            self.remove_free(offset + given, after_len);
            len += after_len;
        }
        self.insert_free(start, len);
        true
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
        let given = self.given.iter().map(|(&offset, &len)| (offset, len, false));
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
        assert_eq!(self.used, self.given.values().sum(), "A-4");
    }
}

fn rounded(size: u64) -> u64 {
    size.max(1).next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_never_fits_is_told_from_what_does_not_fit_now() {
        let mut arena = Arena::new(1024);
        let error = arena.allocate(1025).unwrap_err();
        assert_eq!(error, ArenaError::LargerThanStore { size: 1025, capacity: 1024 });
        assert!(error.to_string().contains("an object of 1.0 KiB is larger"), "{error}");
        let whole = arena.allocate(1024).unwrap();
        let error = arena.allocate(0).unwrap_err();
        assert!(matches!(error, ArenaError::FullNow { used: 1024, largest: 0, .. }));
        assert!(arena.free(whole));
        assert!(!arena.free(whole), "giving back twice changes nothing");
        assert_eq!(arena.allocate(1000), Ok(0), "the warm extent is used again");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Allocate { size: u64 },
        Free { pick: usize },
        Wrong { offset: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..5000u64).prop_map(|size| Step::Allocate { size }),
            4 => any::<usize>().prop_map(|pick| Step::Free { pick }),
            1 => any::<u64>().prop_map(|offset| Step::Wrong { offset }),
        ]
    }

    proptest! {
        /// Exercises against a plain list of extents.
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..200)) {
            let mut arena = Arena::new(64 * 1024);
            let mut model: Vec<(u64, u64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Allocate { size } => {
                        let fits = arena.fits(size);
                        let allocated = arena.allocate(size);
                        prop_assert_eq!(fits, allocated.is_ok());
                        if let Ok(offset) = allocated {
                            prop_assert_eq!(offset % ALIGNMENT, 0);
                            prop_assert!(offset + size <= arena.size());
                            for &(other, len) in &model {
                                prop_assert!(offset + size.max(1) <= other || other + len <= offset);
                            }
                            model.push((offset, size.max(1)));
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
                }
                arena.validate();
            }
            for (offset, ..) in model {
                arena.free(offset);
            }
            arena.validate();
            prop_assert_eq!(arena.used(), 0);
            prop_assert_eq!(arena.allocate(arena.size()), Ok(0));
        }
    }
}
