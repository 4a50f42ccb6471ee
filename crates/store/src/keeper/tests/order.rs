//! Who gets memory, and who waits: K-4, and when waiting is given up.

use oxiray_ids::{ProcessId, StoreKey};

use super::super::Lack;
use super::{Order, Record, SECOND, no_space, table};
use crate::keeper::Keeper;
use crate::table::Table;

pub(super) const MADE_BY: ProcessId = ProcessId(1);
pub(super) const OTHER: ProcessId = ProcessId(2);
pub(super) const SIZE: u64 = 1 << 16;
const PATIENCE: u64 = 10 * SECOND;

/// A keeper with two processes, in rows 0 and 1.
pub(super) struct Bench {
    pub(super) keeper: Keeper,
    pub(super) table: Table,
    pub(super) out: Record,
    pub(super) now: u64,
    requests: u64,
}

impl Bench {
    pub(super) fn new(size: u64) -> Self {
        let table = table();
        let mut keeper = Keeper::new(size, table.clone(), PATIENCE);
        keeper.on_process(MADE_BY, 0);
        keeper.on_process(OTHER, 1);
        Self { keeper, table, out: Record::default(), now: SECOND, requests: 0 }
    }

    /// Asks for memory: the request.
    pub(super) fn ask(&mut self, from: ProcessId, size: u64) -> u64 {
        self.requests += 1;
        self.keeper.on_allocate(from, self.requests, size, from, self.now, &mut self.out);
        self.keeper.validate();
        self.requests
    }

    pub(super) fn fetch(&mut self, from: ProcessId, key: StoreKey) -> u64 {
        self.requests += 1;
        self.keeper.on_fetch(from, self.requests, key, self.now, &mut self.out);
        self.keeper.validate();
        self.requests
    }

    pub(super) fn free(&mut self, key: StoreKey) {
        self.keeper.on_free(&[key], self.now, &mut self.out);
        self.keeper.validate();
    }

    /// All that has been ordered since this was last called.
    /// All but requests for memory, which come with most others.
    pub(super) fn orders(&mut self) -> Vec<Order> {
        let orders = std::mem::take(&mut self.out.0);
        orders.into_iter().filter(|order| !matches!(order, Order::Trim(_))).collect()
    }

    /// Who was asked for memory.
    pub(super) fn trims(&mut self) -> Vec<ProcessId> {
        let orders = std::mem::take(&mut self.out.0);
        let trims = orders.into_iter().filter_map(|order| match order {
            Order::Trim(process) => Some(process),
            _ => None,
        });
        trims.collect()
    }

    /// Requests for memory answered since then, and with what.
    pub(super) fn allocated(&mut self) -> Vec<(u64, Option<StoreKey>)> {
        let answers = self.orders().into_iter().filter_map(|order| match order {
            Order::Allocated(_, request, answer) => {
                Some((request, answer.ok().map(|(key, _)| key)))
            }
            _ => None,
        });
        answers.collect()
    }

    /// An object that its maker owns, is done with and last looked at now.
    pub(super) fn object(&mut self, size: u64) -> StoreKey {
        self.ask(MADE_BY, size);
        let key = self.allocated()[0].1.expect("room");
        assert!(self.table.seal(key, true));
        self.now += 10_000_000;
        key
    }

    /// The keys of the batch that is to be written to disk.
    pub(super) fn spilled(&mut self) -> Vec<StoreKey> {
        let batches = self.orders().into_iter().filter_map(|order| match order {
            Order::Spill(batch) => Some(batch),
            _ => None,
        });
        batches.flatten().map(|(key, _)| key).collect()
    }

    pub(super) fn tick(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.keeper.on_tick(self.now, &mut self.out);
        self.keeper.validate();
    }
}

/// Memory that is being filled, and so stays.
fn filled(bench: &mut Bench, size: u64) -> StoreKey {
    bench.ask(MADE_BY, size);
    bench.allocated()[0].1.expect("room")
}

fn finish(bench: &mut Bench, key: StoreKey) {
    assert!(bench.table.seal(key, true));
    bench.free(key);
}

#[test]
fn those_who_wait_are_served_in_their_order() {
    let mut bench = Bench::new(SIZE);
    let whole = filled(&mut bench, SIZE);
    let requests: Vec<u64> = (0..4).map(|_| bench.ask(OTHER, SIZE / 4)).collect();
    assert!(bench.allocated().is_empty());
    finish(&mut bench, whole);
    let served: Vec<u64> = bench.allocated().into_iter().map(|(request, _)| request).collect();
    assert_eq!(served, requests);
}

#[test]
fn while_the_first_cannot_be_helped_others_have_what_fits() {
    let mut bench = Bench::new(SIZE);
    let half = filled(&mut bench, SIZE / 2);
    let large = bench.ask(OTHER, SIZE);
    let small = bench.ask(OTHER, SIZE / 4);
    let served = bench.allocated();
    assert_eq!(served.len(), 1);
    assert_eq!(served[0].0, small);
    finish(&mut bench, served[0].1.unwrap());
    finish(&mut bench, half);
    assert_eq!(bench.allocated()[0].0, large);
}

#[test]
fn nobody_passes_the_first_while_room_is_being_made_for_it() {
    let mut bench = Bench::new(SIZE);
    let kept = bench.object(SIZE / 2);
    let large = bench.ask(OTHER, SIZE);
    let small = bench.ask(OTHER, SIZE / 4);
    assert_eq!(bench.spilled(), [kept]);
    bench.keeper.on_spilled(&[kept], 1, bench.now, &mut bench.out);
    assert_eq!(bench.allocated()[0].0, large, "not {small}");
}

#[test]
fn what_never_fits_is_refused_at_once() {
    let mut bench = Bench::new(SIZE);
    let request = bench.ask(OTHER, SIZE + 1);
    let [Order::Allocated(OTHER, answered, Err(why))] = &bench.orders()[..] else {
        panic!("no refusal")
    };
    assert_eq!(*answered, request);
    assert!(why.text.contains("larger than the whole object store") && why.lack == Lack::Memory);
}

#[test]
fn patience_ends_when_nothing_moves() {
    let mut bench = Bench::new(SIZE);
    filled(&mut bench, SIZE);
    bench.ask(OTHER, 1);
    bench.tick(PATIENCE / 2 + 1);
    let orders = bench.orders();
    assert!(matches!(&orders[..], [Order::Tell(text)] if text.starts_with("Waiting for memory")));
    bench.tick(PATIENCE / 2 - 2);
    assert!(bench.orders().is_empty(), "not yet, and told once");
    bench.tick(2);
    let orders = bench.orders();
    let [Order::Allocated(OTHER, _, Err(why))] = &orders[..] else { panic!("{orders:?}") };
    assert!(why.text.contains("is full") && why.lack == Lack::Memory);
}

#[test]
fn a_full_disk_is_named_in_the_refusal() {
    let mut bench = Bench::new(SIZE);
    let kept = bench.object(SIZE);
    bench.ask(OTHER, 1);
    assert_eq!(bench.spilled(), [kept]);
    bench.keeper.on_not_spilled(&[kept], no_space(), bench.now, &mut bench.out);
    let orders = bench.orders();
    assert!(matches!(&orders[..], [Order::Tell(text)] if text.contains("no space left")));
    assert!(bench.table.pin(1, kept).is_ok(), "it stays");
    bench.tick(PATIENCE);
    let mut orders = bench.orders();
    let Some(Order::Allocated(OTHER, _, Err(why))) = orders.pop() else { panic!("{orders:?}") };
    assert!(why.lack == Lack::Disk && why.text.contains("no space left"), "{why:?}");
}

#[test]
fn a_slow_disk_is_named_in_the_refusal() {
    let mut bench = Bench::new(SIZE);
    let kept = bench.object(SIZE);
    bench.ask(OTHER, 1);
    assert_eq!(bench.spilled(), [kept]);
    bench.tick(PATIENCE);
    let mut orders = bench.orders();
    let Some(Order::Allocated(OTHER, _, Err(why))) = orders.pop() else { panic!("{orders:?}") };
    assert!(why.lack == Lack::Memory && why.text.contains("has been writing 1 object"), "{why:?}");
}

#[test]
fn after_a_refusal_the_next_has_what_is_there() {
    let mut bench = Bench::new(SIZE);
    filled(&mut bench, SIZE / 4);
    let kept = bench.object(SIZE / 4);
    // The disk takes longer to write this than anyone has patience for.
    let large = bench.ask(OTHER, SIZE);
    assert_eq!(bench.spilled(), [kept]);
    bench.tick(SECOND);
    let small = bench.ask(OTHER, SIZE / 4);
    assert!(bench.allocated().is_empty());
    bench.tick(PATIENCE - SECOND);
    let answers = bench.allocated();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers[0], (large, None));
    assert!(answers[1].0 == small && answers[1].1.is_some());
}

#[test]
fn who_withdraws_is_not_answered() {
    let mut bench = Bench::new(SIZE);
    let whole = filled(&mut bench, SIZE);
    let first = bench.ask(OTHER, SIZE);
    let second = bench.ask(OTHER, SIZE);
    bench.keeper.on_withdraw(OTHER, first, bench.now, &mut bench.out);
    finish(&mut bench, whole);
    assert_eq!(bench.allocated()[0].0, second);
}
