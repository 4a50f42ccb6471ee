//! Numbers that look random and are the same for the same seed.

/// A stream of numbers: SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `low..high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low).max(1)
    }

    /// True once in `times`, on average; never for 0.
    pub fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.number().is_multiple_of(times)
    }

    /// A place in a list that is not empty.
    pub fn place(&mut self, len: usize) -> usize {
        (self.number() % len as u64) as usize
    }
}
