//! What a node has and what of it is free, in fixed-point amounts.
//!
//! A worker that sleeps in `get` lends its CPUs. When it wakes it takes them
//! back without asking or waiting; where they were given out meanwhile the
//! shortage is kept as *debt*, which later releases pay first.
//!
//! Invariants, for each resource, checked by [`Ledger::validate`] and the tests:
//!
//! - **L-1 (nothing is lost)** available + held = total + debt, where *held* is
//!   what allocations have and do not lend.
//! - **L-2 (never below zero)** available is never negative, and debt is above
//!   zero only while available is zero.
//! - **L-3 (devices agree)** what is free on the devices sums to available.
//! - **L-4 (exclusive)** no device is given out beyond its size.
//! - **L-5 (all or nothing)** an [`Ledger::acquire`] that fails changes nothing.

use oxiray_wire::control::{Amount, Devices, Shape};

use crate::devices::{DeviceTable, Share};

const CPU: &str = "CPU";
/// The resource whose units are numbered devices.
const GPU: &str = "GPU";

#[derive(Debug)]
struct Resource {
    name: String,
    total: u64,
    available: u64,
    debt: u64,
    devices: Option<DeviceTable>,
}

#[derive(Debug)]
struct Part {
    resource: usize,
    amount: u64,
    shares: Vec<Share>,
}

/// What one worker was given. It must go back through [`Ledger::release`].
#[derive(Debug, Default)]
#[must_use = "an allocation that is dropped is lost to its ledger"]
pub struct Allocation {
    parts: Vec<Part>,
    cpus_lent: bool,
}

/// A node's resources; see the module documentation.
#[derive(Debug)]
pub struct Ledger {
    resources: Vec<Resource>,
}

impl Ledger {
    /// A ledger of everything that the node has. Names that repeat are summed.
    pub fn new(amounts: &[Amount]) -> Self {
        let mut ledger = Self { resources: Vec::new() };
        for Amount { name, amount } in amounts {
            let total = match ledger.index(name) {
                Some(index) => ledger.resources.remove(index).total.saturating_add(*amount),
                None => *amount,
            };
            // Devices are counted one by one: a wild number must not fill memory.
            let is_devices = name == GPU;
            let total =
                if is_devices { total.min(4096 * oxiray_wire::control::UNIT) } else { total };
            ledger.resources.push(Resource {
                name: name.clone(),
                total,
                available: total,
                debt: 0,
                devices: is_devices.then(|| DeviceTable::new(total)),
            });
        }
        ledger.resources.sort_by(|a, b| a.name.cmp(&b.name));
        ledger
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.resources.iter().position(|resource| resource.name == name)
    }

    /// Everything, sorted by name.
    pub fn total(&self) -> Vec<Amount> {
        self.amounts(|resource| resource.total)
    }

    /// What is free now, sorted by name, zeros included.
    pub fn available(&self) -> Vec<Amount> {
        self.amounts(|resource| resource.available)
    }

    fn amounts(&self, of: impl Fn(&Resource) -> u64) -> Vec<Amount> {
        let amount = |r: &Resource| Amount { name: r.name.clone(), amount: of(r) };
        self.resources.iter().map(amount).collect()
    }

    /// What an allocation holds, lent CPUs included.
    pub fn amounts_of(&self, allocation: &Allocation) -> Vec<Amount> {
        let amount = |part: &Part| Amount {
            name: self.resources[part.resource].name.clone(),
            amount: part.amount,
        };
        allocation.parts.iter().map(amount).collect()
    }

    /// Takes what `shape` names, all of it or nothing (L-5).
    pub fn acquire(&mut self, shape: &Shape) -> Option<Allocation> {
        let mut parts: Vec<Part> = Vec::with_capacity(shape.resources.len());
        for need in shape.resources.iter().filter(|need| need.amount > 0) {
            let index = self.index(&need.name)?;
            match parts.iter_mut().find(|part| part.resource == index) {
                Some(part) => part.amount = part.amount.checked_add(need.amount)?,
                None => parts.push(Part { resource: index, amount: need.amount, shares: vec![] }),
            }
        }
        for part in &mut parts {
            let resource = &self.resources[part.resource];
            if part.amount > resource.available {
                return None;
            }
            if let Some(devices) = &resource.devices {
                part.shares = devices.find(part.amount)?;
            }
        }
        for part in &parts {
            let resource = &mut self.resources[part.resource];
            resource.available -= part.amount;
            if let Some(devices) = &mut resource.devices {
                devices.take(&part.shares);
            }
        }
        Some(Allocation { parts, cpus_lent: false })
    }

    /// Whether `shape` fits now.
    pub fn fits(&self, shape: &Shape) -> bool {
        let free = |need: &Amount| {
            self.index(&need.name).is_some_and(|index| {
                let resource = &self.resources[index];
                need.amount <= resource.available
                    && resource.devices.as_ref().is_none_or(|d| d.find(need.amount).is_some())
            })
        };
        shape.resources.iter().all(|need| need.amount == 0 || free(need))
    }

    /// Takes everything back.
    pub fn release(&mut self, allocation: Allocation) {
        for part in allocation.parts {
            let resource = &mut self.resources[part.resource];
            if !(allocation.cpus_lent && resource.name == CPU) {
                resource.credit(part.amount, &part.shares);
            }
        }
    }

    /// Takes back what `allocation` has beyond `kept`.
    pub fn shrink(&mut self, allocation: &mut Allocation, kept: &Shape) {
        for part in &mut allocation.parts {
            let resource = &mut self.resources[part.resource];
            let named = kept.resources.iter().filter(|amount| amount.name == resource.name);
            let keep = named.fold(0u64, |sum, amount| sum.saturating_add(amount.amount));
            let surplus = part.amount.saturating_sub(keep);
            part.amount -= surplus;
            if !(allocation.cpus_lent && resource.name == CPU) {
                let shares = split_off(&mut part.shares, surplus);
                resource.credit(surplus, &shares);
            }
        }
        allocation.parts.retain(|part| part.amount > 0);
    }

    /// Lends the CPUs of a worker that sleeps. Twice is once.
    pub fn lend_cpus(&mut self, allocation: &mut Allocation) {
        if std::mem::replace(&mut allocation.cpus_lent, true) {
            return;
        }
        for part in &allocation.parts {
            let resource = &mut self.resources[part.resource];
            if resource.name == CPU {
                resource.credit(part.amount, &[]);
            }
        }
    }

    /// Takes lent CPUs back, now: what is missing becomes debt. Twice is once.
    pub fn take_back_cpus(&mut self, allocation: &mut Allocation) {
        if !std::mem::replace(&mut allocation.cpus_lent, false) {
            return;
        }
        for part in &allocation.parts {
            let resource = &mut self.resources[part.resource];
            if resource.name == CPU {
                let now = part.amount.min(resource.available);
                resource.available -= now;
                resource.debt += part.amount - now;
            }
        }
    }

    /// Whether `shape` fits when nothing else runs.
    pub fn can_ever_fit(&self, shape: &Shape) -> bool {
        shape.resources.iter().all(|need| need.amount == 0 || self.could_give(need))
    }

    fn could_give(&self, need: &Amount) -> bool {
        self.index(&need.name).is_some_and(|index| {
            let resource = &self.resources[index];
            need.amount <= resource.total
                && (resource.devices.is_none()
                    || DeviceTable::new(resource.total).find(need.amount).is_some())
        })
    }

    /// Whether `allocation` holds something of what `shape` needs and is not free.
    pub fn stands_in_the_way(&self, allocation: &Allocation, shape: &Shape) -> bool {
        shape.resources.iter().any(|need| {
            self.lacks(need)
                && allocation.parts.iter().any(|part| {
                    let name = &self.resources[part.resource].name;
                    *name == need.name && !(allocation.cpus_lent && name == CPU)
                })
        })
    }

    /// Whether giving out `shape` now would leave too little for `other`.
    pub fn would_starve(&self, shape: &Shape, other: &Shape) -> bool {
        shape.resources.iter().filter(|need| need.amount > 0).any(|need| {
            let of_other = other.resources.iter().find(|amount| amount.name == need.name);
            let available =
                self.index(&need.name).map_or(0, |index| self.resources[index].available);
            of_other.is_some_and(|of_other| available.saturating_sub(need.amount) < of_other.amount)
        })
    }

    fn lacks(&self, need: &Amount) -> bool {
        let Some(index) = self.index(&need.name) else {
            return true;
        };
        let resource = &self.resources[index];
        let devices = resource.devices.as_ref();
        need.amount > resource.available
            || devices.is_some_and(|devices| devices.find(need.amount).is_none())
    }

    /// Panics when an invariant does not hold, `live` being all allocations there are.
    pub fn validate<'a>(&self, live: impl IntoIterator<Item = &'a Allocation>) {
        let mut held = vec![0; self.resources.len()];
        for allocation in live {
            for part in &allocation.parts {
                let lent = allocation.cpus_lent && self.resources[part.resource].name == CPU;
                held[part.resource] += if lent { 0 } else { part.amount };
            }
        }
        for (resource, held) in self.resources.iter().zip(held) {
            let name = &resource.name;
            let (have, want) = (resource.available + held, resource.total + resource.debt);
            assert_eq!(have, want, "L-1: {name}");
            assert!(resource.debt == 0 || resource.available == 0, "L-2: {name}");
            if let Some(devices) = &resource.devices {
                assert_eq!(devices.free(), resource.available, "L-3: {name}");
            }
        }
    }
}

impl Resource {
    fn credit(&mut self, amount: u64, shares: &[Share]) {
        let payment = amount.min(self.debt);
        self.debt -= payment;
        self.available += amount - payment;
        if let Some(devices) = &mut self.devices {
            devices.give_back(shares);
        }
    }
}

impl Allocation {
    /// The devices in it, for the worker.
    pub fn devices(&self) -> Vec<Devices> {
        let with_shares = self.parts.iter().filter(|part| !part.shares.is_empty());
        with_shares
            .map(|part| Devices {
                name: GPU.into(),
                ids: part.shares.iter().map(|&(id, _)| id).collect(),
            })
            .collect()
    }
}

/// Takes `surplus` out of `shares`, from the end.
fn split_off(shares: &mut Vec<Share>, mut surplus: u64) -> Vec<Share> {
    let mut taken = Vec::new();
    while surplus > 0
        && let Some(last) = shares.last_mut()
    {
        let now = last.1.min(surplus);
        taken.push((last.0, now));
        last.1 -= now;
        surplus -= now;
        if last.1 == 0 {
            shares.pop();
        }
    }
    taken
}

#[cfg(test)]
mod tests;
