//! A set of processes, as of those that are gone: a bit each, since their numbers follow each other.

use std::collections::BTreeMap;

use crate::ProcessId;

const BITS: u64 = u64::BITS as u64;

/// Processes, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct ProcessSet(BTreeMap<u64, u64>);

impl ProcessSet {
    /// Adds one.
    pub fn insert(&mut self, process: ProcessId) {
        *self.0.entry(process.0 / BITS).or_default() |= 1 << (process.0 % BITS);
    }

    /// Takes one out.
    pub fn remove(&mut self, process: &ProcessId) {
        if let Some(bits) = self.0.get_mut(&(process.0 / BITS)) {
            *bits &= !(1 << (process.0 % BITS));
        }
    }

    /// Whether it has one.
    pub fn contains(&self, process: &ProcessId) -> bool {
        self.0.get(&(process.0 / BITS)).is_some_and(|bits| bits >> (process.0 % BITS) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_added_and_takes_a_bit_each() {
        let mut set = ProcessSet::default();
        let added = |number: u32| number.is_multiple_of(3);
        for number in (0..6400).filter(|number| added(*number)) {
            set.insert(ProcessId::new(7, number));
        }
        for number in 0..6400 {
            assert_eq!(set.contains(&ProcessId::new(7, number)), added(number), "{number}");
            assert!(!set.contains(&ProcessId::new(8, number)));
        }
        assert_eq!(set.0.len(), 100);
        set.insert(ProcessId(u64::MAX));
        assert!(set.contains(&ProcessId(u64::MAX)));
        set.remove(&ProcessId(u64::MAX));
        set.remove(&ProcessId(u64::MAX / 2));
        assert!(!set.contains(&ProcessId(u64::MAX)) && set.contains(&ProcessId::new(7, 3)));
    }
}
