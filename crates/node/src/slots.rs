//! Small numbers given out lowest first: bells and channel indexes.

/// The numbers in use, as bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    words: Vec<u64>,
}

impl Slots {
    /// The smallest number not in use, now in use.
    pub(crate) fn take(&mut self) -> u32 {
        let index = match self.words.iter().position(|&word| word != u64::MAX) {
            Some(index) => index,
            None => {
                self.words.push(0);
                self.words.len() - 1
            }
        };
        let bit = self.words[index].trailing_ones();
        self.words[index] |= 1 << bit;
        index as u32 * 64 + bit
    }

    /// Gives a number back.
    pub(crate) fn give_back(&mut self, slot: u32) {
        self.words[slot as usize / 64] &= !(1 << (slot % 64));
    }

    /// How many are in use.
    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_number_comes_first() {
        let mut slots = Slots::default();
        let taken: Vec<u32> = (0..130).map(|_| slots.take()).collect();
        assert_eq!(taken, (0..130).collect::<Vec<_>>());
        slots.give_back(129);
        slots.give_back(3);
        assert_eq!((slots.take(), slots.take(), slots.take()), (3, 129, 130));
        assert_eq!(slots.len(), 131);
    }
}
