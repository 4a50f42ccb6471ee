//! What goes to disk and comes back, and what is freed on the way: K-2, K-3, K-5, K-6.

use oxiray_ids::StoreKey;

use super::order::{Bench, MADE_BY, OTHER, SIZE};
use super::{Order, SECOND, assert_empty, no_space};
use crate::table::Miss;

impl Bench {
    fn write(&mut self, keys: &[StoreKey]) {
        self.keeper.on_spilled(keys, SECOND, self.now, &mut self.out);
        self.keeper.validate();
    }

    fn restored(&mut self, key: StoreKey) {
        self.keeper.on_restored(key, self.now, &mut self.out);
        self.keeper.validate();
    }
}

/// An object on disk alone, whose memory another has that is being filled.
fn away(bench: &mut Bench) -> (StoreKey, StoreKey) {
    let key = bench.object(SIZE);
    bench.ask(OTHER, SIZE);
    assert_eq!(bench.spilled(), [key]);
    bench.write(&[key]);
    let other = bench.allocated()[0].1.expect("room");
    assert_eq!(bench.table.pin(0, key), Err(Miss::Away));
    assert!(!bench.table.unpin(0, key.slot()));
    (key, other)
}

#[test]
fn what_was_not_looked_at_for_the_longest_goes_first() {
    let mut bench = Bench::new(SIZE);
    let [first, second, third] = [(); 3].map(|()| bench.object(SIZE / 4));
    bench.object(SIZE / 4);
    bench.table.touch(first.slot(), bench.now / 1_000_000);
    bench.ask(OTHER, SIZE / 2);
    assert_eq!(bench.spilled(), [second, third]);
}

#[test]
fn a_new_object_does_not_have_the_age_of_its_slot() {
    let mut bench = Bench::new(SIZE);
    let old = bench.object(SIZE / 2);
    bench.table.touch(old.slot(), 0);
    bench.free(old);
    let elder = bench.object(SIZE / 2);
    let younger = bench.object(SIZE / 2);
    bench.table.touch(elder.slot(), 5);
    assert_eq!(elder.slot(), old.slot());
    assert!(bench.table.touched(younger.slot()) > bench.table.touched(elder.slot()));
    bench.ask(OTHER, SIZE / 2);
    assert_eq!(bench.spilled(), [elder]);
}

#[test]
fn what_is_looked_at_or_not_taken_up_stays() {
    let mut bench = Bench::new(SIZE);
    let looked_at = bench.object(SIZE / 2);
    assert!(bench.table.pin(1, looked_at).is_ok());
    bench.keeper.on_allocate(MADE_BY, 99, SIZE / 2, OTHER, bench.now, &mut bench.out);
    let untaken = bench.allocated()[0].1.unwrap();
    assert!(bench.table.seal(untaken, false));
    bench.ask(OTHER, SIZE / 2);
    assert!(bench.spilled().is_empty());
    assert!(bench.table.own(untaken));
    bench.tick(20_000_000);
    assert_eq!(bench.spilled(), [untaken]);
}

#[test]
fn what_is_also_on_disk_goes_first_and_at_once() {
    let mut bench = Bench::new(SIZE);
    let (key, other) = away(&mut bench);
    assert!(bench.table.seal(other, true));
    bench.free(other);
    let request = bench.fetch(OTHER, key);
    assert!(matches!(bench.orders()[..], [Order::Restore(back, _)] if back == key));
    bench.restored(key);
    assert!(matches!(bench.orders()[..], [Order::Fetched(OTHER, to, Ok(()))] if to == request));
    bench.ask(OTHER, SIZE);
    assert!(bench.orders().is_empty(), "it stays until whoever asked had time to look");
    bench.tick(SECOND);
    let orders = bench.orders();
    assert!(matches!(orders[..], [Order::Allocated(OTHER, _, Ok(_))]), "{orders:?}");
    assert_eq!(bench.table.pin(0, key), Err(Miss::Away));
    assert!(!bench.table.unpin(0, key.slot()));
    bench.free(key);
    assert!(matches!(bench.orders()[..], [Order::Forget(forgotten)] if forgotten == key));
}

#[test]
fn what_is_wanted_while_it_leaves_stays() {
    let mut bench = Bench::new(SIZE);
    let key = bench.object(SIZE);
    bench.ask(OTHER, SIZE);
    bench.spilled();
    assert_eq!(bench.table.pin(1, key), Err(Miss::Away));
    bench.table.unpin(1, key.slot());
    let request = bench.fetch(OTHER, key);
    bench.write(&[key]);
    let orders = bench.orders();
    assert!(
        matches!(&orders[..], [Order::Fetched(_, to, Ok(())), Order::Tell(_)] if *to == request),
        "{orders:?}"
    );
    assert!(bench.table.pin(1, key).is_ok());
}

#[test]
fn what_is_freed_while_it_leaves_goes_when_the_disk_is_done() {
    for written in [true, false] {
        let mut bench = Bench::new(SIZE);
        let key = bench.object(SIZE);
        let request = bench.ask(OTHER, SIZE);
        bench.spilled();
        bench.free(key);
        assert!(bench.orders().is_empty(), "the disk still reads these bytes");
        if written {
            bench.write(&[key]);
        } else {
            bench.keeper.on_not_spilled(&[key], no_space(), bench.now, &mut bench.out);
        }
        let orders = bench.orders();
        let forgotten = orders.iter().any(|order| matches!(order, Order::Forget(_)));
        assert_eq!(forgotten, written);
        let Some(Order::Allocated(_, to, Ok((other, _)))) =
            orders.into_iter().find(|order| matches!(order, Order::Allocated(..)))
        else {
            panic!("no room")
        };
        assert_eq!(to, request);
        assert!(bench.table.seal(other, true));
        bench.free(other);
        assert_empty(&bench.keeper);
    }
}

#[test]
fn what_is_freed_while_it_returns_goes_when_the_disk_is_done() {
    for read in [true, false] {
        let mut bench = Bench::new(SIZE);
        let (key, other) = away(&mut bench);
        bench.fetch(OTHER, key);
        assert!(bench.table.seal(other, true));
        bench.free(other);
        assert!(matches!(bench.orders()[..], [Order::Restore(..)]));
        bench.free(key);
        assert!(bench.orders().is_empty(), "the disk still writes these bytes");
        if read {
            bench.restored(key);
        } else {
            bench.keeper.on_not_restored(key, "lost", bench.now, &mut bench.out);
        }
        let orders = bench.orders();
        assert!(matches!(orders[..], [Order::Fetched(..), Order::Forget(_)]), "{orders:?}");
        assert_empty(&bench.keeper);
    }
}

#[test]
fn what_is_freed_while_it_is_waited_for_is_refused() {
    let mut bench = Bench::new(SIZE);
    let (key, _) = away(&mut bench);
    let request = bench.fetch(OTHER, key);
    bench.free(key);
    let orders = bench.orders();
    let [Order::Forget(_), Order::Fetched(_, to, Err(_))] = orders[..] else {
        panic!("{orders:?}")
    };
    assert_eq!(to, request);
    assert_eq!(bench.table.pin(0, key), Err(Miss::Gone), "T-4");
}

#[test]
fn nothing_is_brought_back_for_those_who_do_not_want_it_any_more() {
    let mut bench = Bench::new(SIZE);
    let (key, other) = away(&mut bench);
    let request = bench.fetch(MADE_BY, key);
    bench.fetch(OTHER, key);
    bench.keeper.on_withdraw(MADE_BY, request, bench.now, &mut bench.out);
    bench.keeper.on_ended(OTHER, |_| false, bench.now, &mut bench.out);
    bench.keeper.validate();
    assert!(bench.orders().is_empty(), "K-6: its memory was {other:?}'s");
    bench.fetch(MADE_BY, key);
    assert!(matches!(bench.orders()[..], [Order::Restore(..)]));
}

#[test]
fn the_user_hears_of_spilling_at_first_and_at_each_doubling() {
    let mut bench = Bench::new(8 << 20);
    let mut told = Vec::new();
    for _ in 0..9 {
        let key = bench.object(8 << 20);
        bench.ask(OTHER, 8 << 20);
        assert_eq!(bench.spilled(), [key]);
        bench.write(&[key]);
        for order in bench.orders() {
            match order {
                Order::Tell(text) => told.push(text),
                Order::Allocated(_, _, Ok((key, _))) => {
                    assert!(bench.table.seal(key, true));
                    bench.keeper.on_free(&[key], bench.now, &mut bench.out);
                }
                _ => {}
            }
        }
        bench.orders();
    }
    let starts = ["Spilled 8.0 MiB so far (1 object)", "Spilled 16", "Spilled 32", "Spilled 64"];
    assert_eq!(told.len(), starts.len(), "{told:?}");
    for (text, start) in told.iter().zip(starts) {
        assert!(text.starts_with(start) && text.contains("at 8 MiB/s"), "{text}");
    }
}
