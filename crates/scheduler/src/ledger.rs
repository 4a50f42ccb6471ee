//! What a node has and what of it is free: of the node itself, and of every bundle that was
//! reserved of it. A *bundle* is a place of its own with its own balance. What it has was taken
//! from the node's; what runs in it takes from the bundle's, and gives back to that.
//!
//! A worker that sleeps in `get` lends its CPUs, within its place. When it wakes it takes them
//! back without asking or waiting; where they were given out meanwhile the
//! shortage is kept as *debt*, which later releases pay first.
//!
//! Invariants, for each resource of each place, checked by [`Ledger::validate`] and the tests:
//!
//! - **L-1 (nothing is lost)** available + held = total + debt, where *held* is
//!   what allocations, and of the node bundles, have and do not lend.
//! - **L-2 (never below zero)** available is never negative, and debt is above
//!   zero only while available is zero.
//! - **L-3 (devices agree)** what is free on the devices sums to available.
//! - **L-4 (exclusive)** no device is given out beyond its size.
//! - **L-5 (all or nothing)** an [`Ledger::acquire`] or [`Ledger::reserve`] that fails changes
//!   nothing.
//! - **L-6 (commit first)** nothing is in a bundle before it is committed, nor after it is
//!   released.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::GroupId;
use oxiray_wire::control::{Amount, Devices, Shape};

use crate::balance::{Balance, Taken};

/// Names a bundle: its group, and its place in that.
pub type BundleKey = (GroupId, u32);

/// What one worker was given. It must go back through [`Ledger::release`].
#[derive(Debug, Default)]
#[must_use = "an allocation that is dropped is lost to its ledger"]
pub struct Allocation {
    bundle: Option<BundleKey>,
    taken: Taken,
}

#[derive(Debug)]
struct Bundle {
    /// Of the node.
    taken: Taken,
    balance: Balance,
    committed: bool,
}

/// A node's resources; see the module documentation.
#[derive(Debug)]
pub struct Ledger {
    node: Balance,
    bundles: BTreeMap<BundleKey, Bundle>,
    /// Groups in whose bundles something came free.
    freed: BTreeSet<GroupId>,
}

impl Ledger {
    /// A ledger of everything that the node has. Names that repeat are summed.
    pub fn new(amounts: &[Amount]) -> Self {
        Self { node: Balance::new(amounts), bundles: BTreeMap::new(), freed: BTreeSet::new() }
    }

    /// Everything, sorted by name.
    pub fn total(&self) -> Vec<Amount> {
        self.node.total()
    }

    /// What is free now outside of bundles, sorted by name, zeros included.
    pub fn available(&self) -> Vec<Amount> {
        self.node.available()
    }

    /// What an allocation holds, lent CPUs included.
    pub fn amounts_of(&self, allocation: &Allocation) -> Vec<Amount> {
        self.place(allocation).amounts_of(&allocation.taken)
    }

    fn place(&self, allocation: &Allocation) -> &Balance {
        match &allocation.bundle {
            Some(key) => &self.bundles[key].balance,
            None => &self.node,
        }
    }

    fn place_mut(&mut self, allocation: &Allocation) -> &mut Balance {
        match &allocation.bundle {
            Some(key) => {
                self.freed.insert(key.0);
                &mut self.bundles.get_mut(key).expect("L-6").balance
            }
            None => &mut self.node,
        }
    }

    /// The places that will do for a shape: the node, or committed bundles.
    fn places(&self, shape: &Shape) -> impl Iterator<Item = &Balance> {
        let wanted = shape.place();
        let node = wanted.is_none().then_some(&self.node);
        let bundles = wanted.map(|(group, index)| self.range(group, index));
        let bundles = bundles.into_iter().flatten().filter(|(_, bundle)| bundle.committed);
        node.into_iter().chain(bundles.map(|(_, bundle)| &bundle.balance))
    }

    fn range(
        &self,
        group: GroupId,
        index: Option<u32>,
    ) -> impl Iterator<Item = (&BundleKey, &Bundle)> {
        let (first, last) = index.map_or((0, u32::MAX), |index| (index, index));
        self.bundles.range((group, first)..=(group, last))
    }

    /// Takes what `shape` names from the place that it names, all of it or nothing (L-5).
    pub fn acquire(&mut self, shape: &Shape) -> Option<Allocation> {
        let Some((group, index)) = shape.place() else {
            let taken = self.node.acquire(&shape.resources)?;
            return Some(Allocation { bundle: None, taken });
        };
        let key = self.best_bundle(group, index, shape)?;
        let bundle = self.bundles.get_mut(&key).expect("just found");
        let taken = bundle.balance.acquire(&shape.resources)?;
        Some(Allocation { bundle: Some(key), taken })
    }

    /// Of the bundles with room for a shape the first that has least beside what it needs: another
    /// may need that, and all of it in one bundle.
    fn best_bundle(&self, group: GroupId, index: Option<u32>, shape: &Shape) -> Option<BundleKey> {
        let mut best = None;
        for (key, bundle) in self.range(group, index) {
            if !bundle.committed || !bundle.balance.fits(shape) {
                continue;
            }
            let beside = bundle.balance.kinds_beside(shape);
            if best.is_none_or(|(least, _)| beside < least) {
                best = Some((beside, *key));
            }
            if beside == 0 {
                break;
            }
        }
        best.map(|(_, key)| key)
    }

    /// Whether `shape` fits now.
    pub fn fits(&self, shape: &Shape) -> bool {
        self.places(shape).any(|place| place.fits(shape))
    }

    /// Takes everything back.
    pub fn release(&mut self, allocation: Allocation) {
        let Allocation { bundle, taken } = allocation;
        match bundle {
            Some(key) => {
                self.freed.insert(key.0);
                self.bundles.get_mut(&key).expect("L-6").balance.release(taken);
            }
            None => self.node.release(taken),
        }
    }

    /// Takes back what `allocation` has beyond `kept`.
    pub fn shrink(&mut self, allocation: &mut Allocation, kept: &Shape) {
        let mut taken = std::mem::take(&mut allocation.taken);
        self.place_mut(allocation).shrink(&mut taken, kept);
        allocation.taken = taken;
    }

    /// Lends the CPUs of a worker that sleeps. Twice is once.
    pub fn lend_cpus(&mut self, allocation: &mut Allocation) {
        let mut taken = std::mem::take(&mut allocation.taken);
        self.place_mut(allocation).lend_cpus(&mut taken);
        allocation.taken = taken;
    }

    /// Takes lent CPUs back, now: what is missing becomes debt. Twice is once.
    pub fn take_back_cpus(&mut self, allocation: &mut Allocation) {
        let mut taken = std::mem::take(&mut allocation.taken);
        self.place_mut(allocation).take_back_cpus(&mut taken);
        allocation.taken = taken;
    }

    /// Whether `shape` fits when nothing else runs in the places that will do for it.
    pub fn can_ever_fit(&self, shape: &Shape) -> bool {
        self.places(shape).any(|place| place.can_ever_fit(shape))
    }

    /// Whether `allocation` holds something of what `shape` needs and is not free.
    pub fn stands_in_the_way(&self, allocation: &Allocation, shape: &Shape) -> bool {
        let same_place = match (shape.place(), allocation.bundle) {
            (None, None) => true,
            (Some((group, index)), Some((of, at))) => {
                group == of && index.is_none_or(|index| index == at)
            }
            _ => false,
        };
        same_place && self.place(allocation).stands_in_the_way(&allocation.taken, shape)
    }

    /// Whether giving out `shape` now would leave too little for `other`.
    pub fn would_starve(&self, shape: &Shape, other: &Shape) -> bool {
        match (shape.place(), other.place()) {
            (None, None) => self.node.would_starve(shape, other),
            (Some((group, one)), Some((of, another))) => {
                let (index, places) = (one.or(another), one.is_none() || another.is_none());
                let meet = group == of && (places || one == another);
                let mut bundles = self.range(group, index).map(|(_, bundle)| &bundle.balance);
                meet && bundles.any(|bundle| bundle.would_starve(shape, other))
            }
            _ => false,
        }
    }

    /// Reserves a bundle, if there is room for all of it (L-5). It may be used once it is
    /// committed. One that is reserved already stays as it is.
    pub fn reserve(&mut self, key: BundleKey, amounts: &[Amount]) -> bool {
        if self.bundles.contains_key(&key) {
            return true;
        }
        let Some(taken) = self.node.acquire(amounts) else {
            return false;
        };
        let balance = self.node.split(&taken);
        self.bundles.insert(key, Bundle { taken, balance, committed: false });
        true
    }

    /// What is reserved of a group may be used.
    pub fn commit(&mut self, group: GroupId) {
        for (_, bundle) in self.bundles.range_mut((group, 0)..=(group, u32::MAX)) {
            bundle.committed = true;
            self.freed.insert(group);
        }
    }

    /// Gives a bundle back to the node. Nothing may be in it (L-6). False: it was not reserved.
    pub fn release_bundle(&mut self, key: BundleKey) -> bool {
        let Some(bundle) = self.bundles.remove(&key) else {
            return false;
        };
        assert!(bundle.balance.is_whole(), "L-6: something is in a bundle of {}", key.0);
        self.node.release(bundle.taken);
        true
    }

    /// Groups in whose bundles something may have come free since this was last asked.
    pub fn take_freed(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.freed)
    }

    /// The bundles that are reserved of a group.
    pub fn bundles_of(&self, group: GroupId) -> impl Iterator<Item = u32> {
        self.range(group, None).map(|(&(_, index), _)| index)
    }

    /// All bundles that are reserved.
    pub fn bundles(&self) -> impl Iterator<Item = BundleKey> {
        self.bundles.keys().copied()
    }

    /// Panics when an invariant does not hold, `live` being all allocations there are.
    pub fn validate<'a>(&self, live: impl IntoIterator<Item = &'a Allocation>) {
        let mut of_node: Vec<&Taken> = self.bundles.values().map(|bundle| &bundle.taken).collect();
        let mut of_bundles: BTreeMap<BundleKey, Vec<&Taken>> = BTreeMap::new();
        for allocation in live {
            match allocation.bundle {
                Some(key) => of_bundles.entry(key).or_default().push(&allocation.taken),
                None => of_node.push(&allocation.taken),
            }
        }
        self.node.validate(of_node);
        for (key, bundle) in &self.bundles {
            let within = of_bundles.remove(key).unwrap_or_default();
            assert!(bundle.committed || within.is_empty(), "L-6: {key:?}");
            bundle.balance.validate(within);
        }
        assert!(of_bundles.is_empty(), "L-6: {:?}", of_bundles.keys());
    }
}

impl Allocation {
    /// The devices in it, for the worker.
    pub fn devices(&self) -> Vec<Devices> {
        self.taken.devices()
    }

    /// The bundle that it is of; `None`: of the node itself.
    pub fn bundle(&self) -> Option<BundleKey> {
        self.bundle
    }
}

#[cfg(test)]
mod tests;
