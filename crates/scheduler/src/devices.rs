//! Which device of a resource goes to whom.
//!
//! Whole devices are exclusive; fractions share one, the fullest that has room,
//! so that whole devices stay whole for as long as possible.

use oxiray_wire::control::UNIT;

/// A share of one device: its number and the amount.
pub(crate) type Share = (u32, u64);

#[derive(Clone, Copy, Debug)]
struct Device {
    id: u32,
    size: u64,
    free: u64,
}

/// What is free of each device of one resource.
#[derive(Clone, Debug)]
pub(crate) struct DeviceTable {
    devices: Vec<Device>,
}

impl DeviceTable {
    /// `total` split into devices of one unit; a rest makes a smaller last one.
    pub(crate) fn new(total: u64) -> Self {
        let count = total.div_ceil(UNIT);
        let size = |index: u64| (total - index * UNIT).min(UNIT);
        Self::of(&(0..count).map(|index| (index as u32, size(index))).collect::<Vec<_>>())
    }

    /// The devices of a bundle: these shares of the node's.
    pub(crate) fn of(shares: &[Share]) -> Self {
        let device = |&(id, size): &Share| Device { id, size, free: size };
        Self { devices: shares.iter().map(device).collect() }
    }

    /// The same devices when nobody has any.
    pub(crate) fn emptied(&self) -> Self {
        let emptied = |device: &Device| Device { free: device.size, ..*device };
        Self { devices: self.devices.iter().map(emptied).collect() }
    }

    /// Shares that make up `amount`, without taking them.
    pub(crate) fn find(&self, amount: u64) -> Option<Vec<Share>> {
        let (whole, part) = ((amount / UNIT) as usize, amount % UNIT);
        let is_whole = |device: &&Device| device.free == UNIT;
        let mut shares: Vec<Share> = self
            .devices
            .iter()
            .filter(is_whole)
            .take(whole)
            .map(|device| (device.id, UNIT))
            .collect();
        if shares.len() < whole {
            return None;
        }
        if part > 0 {
            let taken = |device: &Device| shares.iter().any(|&(id, _)| id == device.id);
            let roomy = |device: &&Device| device.free >= part && !taken(device);
            let device = self.devices.iter().filter(roomy).min_by_key(|device| device.free)?;
            shares.push((device.id, part));
        }
        Some(shares)
    }

    pub(crate) fn take(&mut self, shares: &[Share]) {
        for &(id, amount) in shares {
            self.device(id).free -= amount;
        }
    }

    pub(crate) fn give_back(&mut self, shares: &[Share]) {
        for &(id, amount) in shares {
            self.device(id).free += amount;
        }
    }

    fn device(&mut self, id: u32) -> &mut Device {
        self.devices.iter_mut().find(|device| device.id == id).expect("a share is of a device")
    }

    /// The sum over all devices.
    pub(crate) fn free(&self) -> u64 {
        self.devices.iter().map(|device| device.free).sum()
    }
}
