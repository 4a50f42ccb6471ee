//! Which processes of a node have ended. Numbers are given in order, so that
//! the ended ones are a few ranges, however many there were.

use std::collections::BTreeMap;

/// A set of process numbers of one node, as ranges.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// First number to last number. Ranges neither overlap nor touch.
    ranges: BTreeMap<u32, u32>,
}

impl Gone {
    /// All but `living`, up to the highest of them.
    pub(crate) fn all_but(living: impl IntoIterator<Item = u32>) -> Self {
        let mut living: Vec<u32> = living.into_iter().collect();
        living.sort_unstable();
        let mut ranges = BTreeMap::new();
        let mut next = 0;
        for number in living {
            if number > next {
                ranges.insert(next, number - 1);
            }
            next = number.saturating_add(1);
        }
        Self { ranges }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, &last)| number <= last)
    }

    /// False when it was there.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        if self.contains(number) {
            return false;
        }
        let (mut first, mut last) = (number, number);
        if let Some((&before, &end)) = self.ranges.range(..number).next_back()
            && end.checked_add(1) == Some(number)
        {
            first = before;
        }
        if let Some(after) = number.checked_add(1)
            && let Some(end) = self.ranges.remove(&after)
        {
            last = end;
        }
        self.ranges.insert(first, last);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_set(living in prop::collection::vec(0..40u32, 0..10), ended in prop::collection::vec(0..40u32, 0..60)) {
            let mut gone = Gone::all_but(living.iter().copied());
            let highest = living.iter().copied().max();
            let mut model: BTreeSet<u32> =
                (0..highest.unwrap_or(0)).filter(|number| !living.contains(number)).collect();
            for number in ended {
                prop_assert_eq!(gone.insert(number), model.insert(number));
                for number in 0..45 {
                    prop_assert_eq!(gone.contains(number), model.contains(&number));
                }
                let ends: Vec<(u32, u32)> = gone.ranges.iter().map(|(a, b)| (*a, *b)).collect();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            }
        }
    }

    #[test]
    fn the_highest_number_is_a_number() {
        let mut gone = Gone::default();
        assert!(gone.insert(u32::MAX) && gone.contains(u32::MAX) && !gone.insert(u32::MAX));
        assert!(gone.insert(u32::MAX - 1) && gone.contains(u32::MAX - 1));
    }
}
