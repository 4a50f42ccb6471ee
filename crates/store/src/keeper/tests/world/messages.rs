//! What the keeper hears and orders, delivered when somebody says so.

use oxiray_ids::StoreKey;

use super::{DiskJob, Filling, Message, News, Want, World, pick};
use crate::keeper::tests::{Order, Record, no_space};
use crate::table::Extent;

impl World {
    /// The keeper hears the next `count` messages of a process.
    pub(in crate::keeper::tests) fn deliver(&mut self, who: u32, count: u32) {
        if let Some(at) = pick(&self.processes, who) {
            let _ = (0..count).any(|_| !self.deliver_from(at));
        }
    }

    pub(super) fn deliver_from(&mut self, at: usize) -> bool {
        let process = &mut self.processes[at];
        let Some(message) = process.sent.pop_front() else { return false };
        let (from, now, mut out) = (process.id, self.now, Record::default());
        let keeper = &mut self.keeper;
        match message {
            Message::Allocate { request, size, owner } => {
                keeper.on_allocate(from, request, size, owner, now, &mut out);
            }
            Message::Withdraw(request) => keeper.on_withdraw(from, request, now, &mut out),
            Message::Fetch(request, key) => keeper.on_fetch(from, request, key, now, &mut out),
            Message::Free(key) => keeper.on_free(&[key], now, &mut out),
            Message::Unpinned(slot) => keeper.on_unpinned(&[slot], now, &mut out),
            Message::Slab(request) => keeper.on_slab(from, request, 4096, &mut out),
            Message::SlabReturned(offset) => {
                keeper.on_slab_returned(from, offset, now, &mut out);
            }
            Message::DeathSeen(dead) => keeper.on_death_seen(from, dead, now, &mut out),
        }
        self.carry_out(out);
        true
    }

    pub(in crate::keeper::tests) fn tick(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        let mut out = Record::default();
        self.keeper.on_tick(self.now, &mut out);
        self.carry_out(out);
    }

    pub(super) fn carry_out(&mut self, out: Record) {
        for order in out.0 {
            let (to, news) = match order {
                Order::Allocated(to, request, answer) => (to, News::Allocated(request, answer)),
                Order::Slab(to, request, slab) => (to, News::Slab(request, slab)),
                Order::Fetched(to, request, answer) => (to, News::Fetched(request, answer)),
                Order::Trim(to) => (to, News::Trim),
                Order::Spill(batch) => {
                    self.jobs.push(DiskJob::Spill(batch));
                    continue;
                }
                Order::Restore(key, extent) => {
                    assert!(self.disk.contains(&key), "K-5: {key:?}");
                    self.jobs.push(DiskJob::Restore(key, extent));
                    continue;
                }
                Order::Forget(key) => {
                    assert!(self.disk.remove(&key), "K-5: {key:?}");
                    continue;
                }
                Order::CopyGone(key) => panic!("{key:?} is no copy"),
                Order::Tell(_) => continue,
            };
            let to = self.processes.iter_mut().find(|process| process.id == to);
            if let Some(process) = to.filter(|process| !process.dead) {
                process.inbox.push_back(news);
            }
        }
    }

    /// A process reads the next `count` answers of the keeper.
    pub(in crate::keeper::tests) fn hear(&mut self, who: u32, count: u32) {
        if let Some(at) = self.living(who) {
            let _ = (0..count).any(|_| !self.hear_at(at));
        }
    }

    pub(super) fn hear_at(&mut self, at: usize) -> bool {
        let process = &mut self.processes[at];
        let Some(news) = process.inbox.pop_front() else { return false };
        match news {
            News::Allocated(request, answer) => match process.answered(request) {
                (Want::Allocate { size, owner }, withdrawn) => {
                    let Ok((key, offset)) = answer else { return true };
                    self.fill(at, key, Extent { offset, len: size }, owner, false);
                    if withdrawn {
                        self.abandon(at);
                    }
                }
                _ => panic!("it did not ask for memory"),
            },
            News::Slab(request, grant) => {
                assert!(matches!(process.answered(request).0, Want::Slab));
                grant.into_iter().for_each(|grant| process.carver.add(grant));
            }
            News::Fetched(request, answer) => match process.answered(request) {
                (Want::Fetch(key), false) => match answer {
                    Ok(()) => self.look_at(at, key),
                    Err(why) => {
                        let freed = why == crate::keeper::Refusal::freed();
                        assert!(!freed || !self.must_be_there(key), "T-4: {key:?}");
                    }
                },
                (Want::Fetch(_), true) => {}
                _ => panic!("it did not ask for an object"),
            },
            News::Trim => process.trim(),
            News::Died(owner) => process.carver.on_process_died(owner),
        }
        true
    }

    /// The creator of the object that was filled last wants it no more.
    pub(super) fn abandon(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let Filling { key, in_slab, .. } = process.filling.pop().expect("it fills one");
        self.table.doom(key);
        assert!(!self.table.seal(key, false));
        process.over(key.slot(), in_slab);
    }

    /// The disk finishes a job, well or not: of a batch, `fails` objects are not written.
    pub(in crate::keeper::tests) fn disk(&mut self, which: u32, fails: u32) {
        let Some(which) = pick(&self.jobs, which) else { return };
        let mut out = Record::default();
        match self.jobs.swap_remove(which) {
            DiskJob::Spill(batch) => {
                let (bad, good) = batch.split_at(fails as usize % (batch.len() + 1));
                for (key, extent) in good {
                    assert!(self.memory.holds(*extent, *key), "T-1: {key:?} left too early");
                    assert!(self.disk.insert(*key), "written twice: {key:?}");
                }
                let keys = |list: &[(StoreKey, Extent)]| -> Vec<StoreKey> {
                    list.iter().map(|(key, _)| *key).collect()
                };
                if !good.is_empty() {
                    self.keeper.on_spilled(&keys(good), 1000, self.now, &mut out);
                }
                if !bad.is_empty() {
                    let why = no_space();
                    self.keeper.on_not_spilled(&keys(bad), why, self.now, &mut out);
                }
            }
            DiskJob::Restore(key, extent) if fails.is_multiple_of(2) => {
                self.memory.write(extent, key);
                self.keeper.on_restored(key, self.now, &mut out);
            }
            DiskJob::Restore(key, _) => {
                self.keeper.on_not_restored(key, "the disk has lost it", self.now, &mut out);
            }
        }
        self.carry_out(out);
    }
}
