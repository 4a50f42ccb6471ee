//! What processes do with objects, as a worker does it: make, free, look.

use oxiray_ids::{ProcessId, StoreKey};

use super::{Answer, Filling, Known, Message, Pin, Want, World, pick};
use crate::table::{Extent, Miss};

impl World {
    /// Room for an object, of `owner` or one's own: from a slab, or by asking.
    pub(in crate::keeper::tests) fn make(&mut self, who: u32, size: u64, owner: Option<u32>) {
        let Some(at) = self.living(who) else { return };
        let owner = match owner {
            Some(number) => self.processes[self.living(number).expect("one lives")].id,
            None => self.processes[at].id,
        };
        let process = &mut self.processes[at];
        let carved = process.carver.largest().is_some_and(|largest| size <= largest);
        let carved = carved.then(|| process.carver.carve(size, owner)).flatten();
        if let Some((key, offset)) = carved {
            return self.fill(at, key, Extent { offset, len: size }, owner, true);
        }
        let request = process.want(Want::Allocate { size, owner });
        process.sent.push_back(Message::Allocate { request, size, owner });
    }

    /// An object's creator begins to fill it.
    pub(super) fn fill(
        &mut self,
        at: usize,
        key: StoreKey,
        extent: Extent,
        owner: ProcessId,
        in_slab: bool,
    ) {
        assert!(extent.offset + extent.len <= self.keeper.arena.size());
        self.memory.write(extent, key);
        self.processes[at].filling.push(Filling { key, extent, owner, in_slab });
    }

    /// A creator has filled an object.
    pub(in crate::keeper::tests) fn seal(&mut self, who: u32, which: u32) {
        let Some(at) = self.living(who) else { return };
        let process = &mut self.processes[at];
        let Some(which) = pick(&process.filling, which) else { return };
        let Filling { key, owner, in_slab, extent } = process.filling.swap_remove(which);
        assert!(self.memory.holds(extent, key), "C-1, K-1: {key:?} while it was filled");
        let creator = process.id;
        if !self.table.seal(key, owner == creator) {
            process.over(key.slot(), in_slab);
        } else if owner == creator {
            self.known.push(Known { key, owner, freed: false });
        } else if self.is_alive(owner) {
            self.answers.push(Answer { key, owner, creator });
        }
    }

    /// An owner reads an answer, and takes the object in it up.
    pub(in crate::keeper::tests) fn read_answer(&mut self, which: u32) {
        let Some(which) = pick(&self.answers, which) else { return };
        if !self.is_alive(self.answers[which].owner) {
            return;
        }
        let Answer { key, owner, .. } = self.answers.remove(which);
        assert!(self.table.own(key), "{key:?} is gone before its owner took it up");
        assert!(!self.table.word(key.slot()).is_doomed());
        self.known.push(Known { key, owner, freed: false });
    }

    /// An owner frees an object.
    pub(in crate::keeper::tests) fn free(&mut self, which: u32) {
        let known = self.known.iter().enumerate();
        let held = known.filter(|(_, known)| !known.freed && self.is_alive(known.owner));
        let held: Vec<usize> = held.map(|(at, _)| at).collect();
        let Some(which) = pick(&held, which).map(|at| held[at]) else { return };
        let Known { key, owner, .. } = self.known[which];
        self.known[which].freed = true;
        let word = self.table.doom(key).expect("nobody else frees it");
        let process = self.processes.iter_mut().find(|process| process.id == owner);
        let process = process.expect("it lives");
        if word.is_in_slab() {
            process.carver.look_after(key.slot()); // if it is ours
        } else {
            process.sent.push_back(Message::Free(key));
        }
    }

    /// Whether it is an error not to find the object.
    pub(super) fn must_be_there(&self, key: StoreKey) -> bool {
        let known = self.known.iter().find(|known| known.key == key);
        known.is_some_and(|known| !known.freed && self.is_alive(known.owner))
    }

    /// A process looks at an object; now and then by the name of one that may be gone.
    pub(in crate::keeper::tests) fn look(&mut self, who: u32, which: u32) {
        let Some(at) = self.living(who) else { return };
        let keys = self.known.iter().map(|known| known.key);
        let keys: Vec<StoreKey> =
            keys.filter(|key| which.is_multiple_of(8) || self.must_be_there(*key)).collect();
        if let Some(which) = pick(&keys, which / 8) {
            self.look_at(at, keys[which]);
        }
    }

    pub(super) fn look_at(&mut self, at: usize, key: StoreKey) {
        let must = self.must_be_there(key);
        let process = &mut self.processes[at];
        if let Some(pin) = process.pins.get_mut(&key.slot()) {
            // The slot is held, so that its other names are of the past.
            assert!(pin.key == key || !must, "T-4: {key:?}");
            pin.count += usize::from(pin.key == key);
            return;
        }
        let found = self.table.pin(process.row, key);
        if let Ok(extent) = found {
            assert!(self.memory.holds(extent, key), "T-1: {key:?} at {extent:?}");
            self.table.touch(key.slot(), self.now / 1_000_000);
            process.pins.insert(key.slot(), Pin { key, extent, count: 1 });
            return;
        }
        if self.table.unpin(process.row, key.slot()) {
            process.sent.push_back(Message::Unpinned(key.slot()));
        }
        assert!(found == Err(Miss::Away) || !must, "T-4: {key:?} is gone");
        if found == Err(Miss::Away) {
            let request = process.want(Want::Fetch(key));
            process.sent.push_back(Message::Fetch(request, key));
        }
    }

    pub(in crate::keeper::tests) fn look_away(&mut self, who: u32, which: u32) {
        let Some(at) = self.living(who) else { return };
        let process = &mut self.processes[at];
        let slots: Vec<u32> = process.pins.keys().copied().collect();
        let Some(slot) = pick(&slots, which).map(|at| slots[at]) else { return };
        let pin = process.pins.get_mut(&slot).expect("just seen");
        pin.count -= 1;
        if pin.count > 0 {
            return;
        }
        process.pins.remove(&slot);
        if self.table.unpin(process.row, slot) {
            process.sent.push_back(Message::Unpinned(slot));
        }
    }

    pub(in crate::keeper::tests) fn withdraw(&mut self, who: u32, which: u32) {
        let Some(at) = self.living(who) else { return };
        let process = &mut self.processes[at];
        let requests = process.wants.iter().filter(|(_, want)| !matches!(want, Want::Slab));
        let mut requests: Vec<u64> = requests.map(|(request, _)| *request).collect();
        requests.sort_unstable();
        let Some(request) = pick(&requests, which).map(|at| requests[at]) else { return };
        let want = process.wants.remove(&request).expect("just seen");
        process.withdrawn.insert(request, want);
        process.sent.push_back(Message::Withdraw(request));
    }

    pub(in crate::keeper::tests) fn lease(&mut self, who: u32) {
        let Some(at) = self.living(who) else { return };
        if self.has_slabs {
            let request = self.processes[at].want(Want::Slab);
            self.processes[at].sent.push_back(Message::Slab(request));
        }
    }
}
