//! What one place has and what of it is free, in fixed-point amounts. A place is a node, or a
//! bundle that was reserved of one; the `ledger` has them all, and says what holds of each.

use oxiray_wire::control::{Amount, Devices, Shape, UNIT};

use crate::devices::{DeviceTable, Share};

const CPU: &str = "CPU";
/// The resource whose units are numbered devices.
const GPU: &str = "GPU";
/// Devices are counted one by one: a wild number must not fill memory.
const MOST_DEVICES: u64 = 4096;

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

/// What was taken from one balance.
#[derive(Debug, Default)]
#[must_use = "what is dropped is lost to its balance"]
pub(crate) struct Taken {
    parts: Vec<Part>,
    cpus_lent: bool,
}

/// The resources of one place.
#[derive(Debug)]
pub(crate) struct Balance {
    resources: Vec<Resource>,
}

impl Balance {
    /// Of everything that a node has. Names that repeat are summed.
    pub(crate) fn new(amounts: &[Amount]) -> Self {
        let mut balance = Self { resources: Vec::new() };
        for Amount { name, amount } in amounts {
            let total = match balance.index(name) {
                Some(index) => balance.resources.remove(index).total.saturating_add(*amount),
                None => *amount,
            };
            let is_devices = name == GPU;
            let total = if is_devices { total.min(MOST_DEVICES * UNIT) } else { total };
            let devices = is_devices.then(|| DeviceTable::new(total));
            balance.resources.push(Resource::full(name, total, devices));
        }
        balance.resources.sort_by(|a, b| a.name.cmp(&b.name));
        balance
    }

    /// Of a bundle: what was taken for it from `self`, all of it free.
    pub(crate) fn split(&self, taken: &Taken) -> Self {
        let resource = |part: &Part| {
            let of = &self.resources[part.resource];
            let devices = of.devices.as_ref().map(|_| DeviceTable::of(&part.shares));
            Resource::full(&of.name, part.amount, devices)
        };
        let mut resources: Vec<Resource> = taken.parts.iter().map(resource).collect();
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        Self { resources }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.resources.iter().position(|resource| resource.name == name)
    }

    pub(crate) fn total(&self) -> Vec<Amount> {
        self.amounts(|resource| resource.total)
    }

    pub(crate) fn available(&self) -> Vec<Amount> {
        self.amounts(|resource| resource.available)
    }

    fn amounts(&self, of: impl Fn(&Resource) -> u64) -> Vec<Amount> {
        let amount = |r: &Resource| Amount { name: r.name.clone(), amount: of(r) };
        self.resources.iter().map(amount).collect()
    }

    pub(crate) fn amounts_of(&self, taken: &Taken) -> Vec<Amount> {
        let amount = |part: &Part| Amount {
            name: self.resources[part.resource].name.clone(),
            amount: part.amount,
        };
        taken.parts.iter().map(amount).collect()
    }

    /// Takes what `needs` names, all of it or nothing.
    pub(crate) fn acquire(&mut self, needs: &[Amount]) -> Option<Taken> {
        let mut parts: Vec<Part> = Vec::with_capacity(needs.len());
        for need in needs.iter().filter(|need| need.amount > 0) {
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
        Some(Taken { parts, cpus_lent: false })
    }

    pub(crate) fn fits(&self, shape: &Shape) -> bool {
        shape.resources.iter().all(|need| need.amount == 0 || !self.lacks(need))
    }

    /// How many resources there are that a shape does not need.
    pub(crate) fn kinds_beside(&self, shape: &Shape) -> usize {
        let needs = |name: &str| shape.resources.iter().any(|n| n.amount > 0 && n.name == name);
        self.resources.iter().filter(|resource| !needs(&resource.name)).count()
    }

    pub(crate) fn release(&mut self, taken: Taken) {
        for part in taken.parts {
            let resource = &mut self.resources[part.resource];
            if !(taken.cpus_lent && resource.name == CPU) {
                resource.credit(part.amount, &part.shares);
            }
        }
    }

    /// Takes back what `taken` has beyond `kept`.
    pub(crate) fn shrink(&mut self, taken: &mut Taken, kept: &Shape) {
        for part in &mut taken.parts {
            let resource = &mut self.resources[part.resource];
            let named = kept.resources.iter().filter(|amount| amount.name == resource.name);
            let keep = named.fold(0u64, |sum, amount| sum.saturating_add(amount.amount));
            let surplus = part.amount.saturating_sub(keep);
            part.amount -= surplus;
            if !(taken.cpus_lent && resource.name == CPU) {
                let shares = split_off(&mut part.shares, surplus);
                resource.credit(surplus, &shares);
            }
        }
        taken.parts.retain(|part| part.amount > 0);
    }

    pub(crate) fn lend_cpus(&mut self, taken: &mut Taken) {
        if std::mem::replace(&mut taken.cpus_lent, true) {
            return;
        }
        for part in &taken.parts {
            let resource = &mut self.resources[part.resource];
            if resource.name == CPU {
                resource.credit(part.amount, &[]);
            }
        }
    }

    pub(crate) fn take_back_cpus(&mut self, taken: &mut Taken) {
        if !std::mem::replace(&mut taken.cpus_lent, false) {
            return;
        }
        for part in &taken.parts {
            let resource = &mut self.resources[part.resource];
            if resource.name == CPU {
                let now = part.amount.min(resource.available);
                resource.available -= now;
                resource.debt += part.amount - now;
            }
        }
    }

    pub(crate) fn can_ever_fit(&self, shape: &Shape) -> bool {
        shape.resources.iter().all(|need| need.amount == 0 || self.could_give(need))
    }

    fn could_give(&self, need: &Amount) -> bool {
        self.index(&need.name).is_some_and(|index| {
            let resource = &self.resources[index];
            let devices = resource.devices.as_ref();
            need.amount <= resource.total
                && devices.is_none_or(|devices| devices.emptied().find(need.amount).is_some())
        })
    }

    pub(crate) fn stands_in_the_way(&self, taken: &Taken, shape: &Shape) -> bool {
        shape.resources.iter().any(|need| {
            self.lacks(need)
                && taken.parts.iter().any(|part| {
                    let name = &self.resources[part.resource].name;
                    *name == need.name && !(taken.cpus_lent && name == CPU)
                })
        })
    }

    pub(crate) fn would_starve(&self, shape: &Shape, other: &Shape) -> bool {
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

    /// Whether nobody holds anything of it, nor has lent anything.
    pub(crate) fn is_whole(&self) -> bool {
        self.resources.iter().all(|resource| resource.available == resource.total)
    }

    /// Panics when an invariant of the ledger does not hold here, `live` being all that was taken.
    pub(crate) fn validate<'a>(&self, live: impl IntoIterator<Item = &'a Taken>) {
        let mut held = vec![0; self.resources.len()];
        for taken in live {
            for part in &taken.parts {
                let lent = taken.cpus_lent && self.resources[part.resource].name == CPU;
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
    fn full(name: &str, total: u64, devices: Option<DeviceTable>) -> Self {
        Self { name: name.into(), total, available: total, debt: 0, devices }
    }

    fn credit(&mut self, amount: u64, shares: &[Share]) {
        let payment = amount.min(self.debt);
        self.debt -= payment;
        self.available += amount - payment;
        if let Some(devices) = &mut self.devices {
            devices.give_back(shares);
        }
    }
}

impl Taken {
    /// The devices in it.
    pub(crate) fn devices(&self) -> Vec<Devices> {
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
