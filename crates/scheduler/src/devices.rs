//! Which device of a resource goes to whom.
//!
//! Whole devices are exclusive; fractions share one, the fullest that has room,
//! so that whole devices stay whole for as long as possible.

use oxiray_wire::control::UNIT;

/// A share of one device: its number and the amount.
pub(crate) type Share = (u32, u64);

/// What is free of each device of one resource.
#[derive(Clone, Debug)]
pub(crate) struct DeviceTable {
    free: Vec<u64>,
}

impl DeviceTable {
    /// `total` split into devices of one unit; a rest makes a smaller last one.
    pub(crate) fn new(total: u64) -> Self {
        let count = total.div_ceil(UNIT);
        let free = (0..count).map(|index| (total - index * UNIT).min(UNIT)).collect();
        Self { free }
    }

    /// Shares that make up `amount`, without taking them.
    pub(crate) fn find(&self, amount: u64) -> Option<Vec<Share>> {
        let (whole, part) = ((amount / UNIT) as usize, amount % UNIT);
        let mut shares: Vec<Share> = (0..self.free.len())
            .filter(|&index| self.free[index] == UNIT)
            .take(whole)
            .map(|index| (index as u32, UNIT))
            .collect();
        if shares.len() < whole {
            return None;
        }
        if part > 0 {
            let taken = |index: usize| shares.iter().any(|&(id, _)| id as usize == index);
            let index = (0..self.free.len())
                .filter(|&index| self.free[index] >= part && !taken(index))
                .min_by_key(|&index| self.free[index])?;
            shares.push((index as u32, part));
        }
        Some(shares)
    }

    pub(crate) fn take(&mut self, shares: &[Share]) {
        for &(id, amount) in shares {
            self.free[id as usize] -= amount;
        }
    }

    pub(crate) fn give_back(&mut self, shares: &[Share]) {
        for &(id, amount) in shares {
            self.free[id as usize] += amount;
        }
    }

    /// The sum over all devices.
    pub(crate) fn free(&self) -> u64 {
        self.free.iter().sum()
    }
}
