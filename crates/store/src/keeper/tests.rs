//! Tests of the keeper: what it does when, and a whole node at random.
//!
//! - `order`: who gets memory, and who waits
//! - `spilling`: what goes to disk and comes back
//! - `ends`: slabs, and what a process leaves behind
//! - `random`: processes, a disk and messages that come late, against a model
//! - `world`: that model

mod ends;
mod order;
mod random;
mod spilling;
mod world;

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_sys::memory::memory_file;

use super::{Keeper, Lack, Orders, Refusal};
use crate::carver::SlabGrant;
use crate::table::{Extent, TABLE_BYTES, Table};

pub(super) const SECOND: u64 = 1_000_000_000;

fn table() -> Table {
    Table::map(memory_file("store-test", TABLE_BYTES).expect("a memory file")).expect("a mapping")
}

/// What the keeper ordered.
#[derive(Debug)]
enum Order {
    Allocated(ProcessId, u64, Result<(StoreKey, u64), Refusal>),
    Slab(ProcessId, u64, Option<SlabGrant>),
    Fetched(ProcessId, u64, Result<(), Refusal>),
    Trim(ProcessId),
    Spill(Vec<(StoreKey, Extent)>),
    Restore(StoreKey, Extent),
    Forget(StoreKey),
    Tell(String),
    CopyGone(StoreKey),
}

#[derive(Debug, Default)]
struct Record(Vec<Order>);

impl Orders for Record {
    fn allocated(&mut self, to: ProcessId, request: u64, answer: Result<(StoreKey, u64), Refusal>) {
        self.0.push(Order::Allocated(to, request, answer));
    }

    fn slab(&mut self, to: ProcessId, request: u64, slab: Option<SlabGrant>) {
        self.0.push(Order::Slab(to, request, slab));
    }

    fn fetched(&mut self, to: ProcessId, request: u64, answer: Result<(), Refusal>) {
        self.0.push(Order::Fetched(to, request, answer));
    }

    fn trim(&mut self, process: ProcessId) {
        self.0.push(Order::Trim(process));
    }

    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.0.push(Order::Spill(batch));
    }

    fn restore(&mut self, key: StoreKey, extent: Extent) {
        self.0.push(Order::Restore(key, extent));
    }

    fn forget(&mut self, key: StoreKey) {
        self.0.push(Order::Forget(key));
    }

    fn tell_user(&mut self, text: String) {
        self.0.push(Order::Tell(text));
    }

    fn copy_gone(&mut self, key: StoreKey) {
        self.0.push(Order::CopyGone(key));
    }

    // What tests see of it is that memory, slots and disk are empty.
    fn gone(&mut self, _key: StoreKey) {}
}

/// Nothing is left: no memory, no slot, no copy on disk, nobody who waits.
fn assert_empty(keeper: &Keeper) {
    let usage = keeper.usage();
    let left = (usage.used, usage.objects, usage.on_disk, usage.objects_on_disk);
    assert_eq!(left, (0, 0, 0, 0), "bytes and objects, in all and on disk");
    assert_eq!((keeper.arena.used(), keeper.arena.given_count()), (0, 0), "one free extent");
    assert!(keeper.arena.fits(keeper.arena.size()), "A-3");
    assert_eq!(keeper.slots.in_use(), 0, "a slot is in use");
    assert!(keeper.waiting.is_empty() && keeper.fetching.is_empty(), "somebody waits");
}

fn no_space() -> Refusal {
    Refusal { lack: Lack::Disk, text: "no space left".to_owned() }
}
