//! Slabs, and what processes leave behind when they end.

use oxiray_ids::{ProcessId, StoreKey};

use super::order::{Bench, MADE_BY, OTHER, SIZE};
use super::{Order, assert_empty};
use crate::carver::{Carver, SlabGrant};
use crate::table::Miss;

const LARGE: u64 = 16 << 20;

impl Bench {
    fn slab(&mut self, from: ProcessId) -> Option<SlabGrant> {
        self.keeper.on_slab(from, 0, 0, &mut self.out);
        match self.orders().pop() {
            Some(Order::Slab(_, _, grant)) => grant,
            other => panic!("{other:?}"),
        }
    }

    /// The carver of [`MADE_BY`], with a slab.
    fn carver(&mut self) -> Carver {
        let mut carver = Carver::new(self.table.clone(), MADE_BY);
        carver.add(self.slab(MADE_BY).expect("a slab"));
        carver
    }

    fn end(&mut self, process: ProcessId, will_say: bool) {
        self.keeper.on_ended(process, |_| will_say, self.now, &mut self.out);
        self.keeper.validate();
    }

    fn carve(&mut self, carver: &mut Carver, owner: ProcessId) -> StoreKey {
        let (key, _) = carver.carve(1000, owner).expect("room");
        carver.validate();
        assert!(self.table.seal(key, owner == MADE_BY));
        key
    }
}

#[test]
fn slabs_have_their_share_and_no_more() {
    let mut bench = Bench::new(LARGE);
    let (one, two) = (bench.slab(MADE_BY).unwrap(), bench.slab(OTHER).unwrap());
    assert_eq!(one.len + two.len, LARGE / 8);
    assert_eq!(bench.slab(OTHER), None);
    bench.keeper.on_slab_returned(OTHER, one.offset, bench.now, &mut bench.out);
    assert_eq!(bench.slab(OTHER), None, "only its holder gives a slab back");
    bench.keeper.on_slab_returned(MADE_BY, one.offset, bench.now, &mut bench.out);
    assert!(bench.slab(OTHER).is_some());
    assert_eq!(Bench::new(SIZE).slab(OTHER), None, "a small store has none");
    assert_eq!(bench.slab(ProcessId(7)), None, "nor has a stranger one");
}

#[test]
fn no_slab_passes_those_who_wait_and_all_are_asked_back() {
    let mut bench = Bench::new(LARGE);
    let mut carver = bench.carver();
    bench.ask(OTHER, LARGE);
    let asked = bench.trims();
    assert!(asked.contains(&MADE_BY) && asked.contains(&OTHER), "for slabs, and for garbage");
    assert_eq!(bench.slab(OTHER), None);
    let key = bench.carve(&mut carver, MADE_BY);
    assert!(bench.table.pin(1, key).is_ok());
    assert!(bench.table.doom(key).is_some());
    let [offset] = carver.trim()[..] else { panic!("nothing is written in it") };
    bench.keeper.on_slab_returned(MADE_BY, offset, bench.now, &mut bench.out);
    bench.keeper.validate();
    assert!(bench.allocated().is_empty(), "it is looked at");
    assert!(bench.table.unpin(1, key.slot()), "T-3: the node sees to it now");
    bench.keeper.on_unpinned(&[key.slot()], bench.now, &mut bench.out);
    assert!(bench.allocated()[0].1.is_some());
}

/// Whatever passes through has few places, also beside what stays; and what is remembered of it does
/// not grow.
#[test]
fn memory_that_was_just_written_is_used_again() {
    for stay in [0_usize, 5] {
        let mut bench = Bench::new(LARGE);
        let mut carver = bench.carver();
        let staying: Vec<StoreKey> = (0..stay).map(|_| bench.carve(&mut carver, MADE_BY)).collect();
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let passing = bench.carve(&mut carver, MADE_BY);
            places.insert(bench.table.extent(passing.slot()).offset);
            assert!(bench.table.doom(passing).is_some());
        }
        assert!(places.len() <= 1 + stay.div_ceil(2) + usize::from(stay > 0), "{}", places.len());
        assert!(carver.remembered() <= 2 * (stay + 2), "{}", carver.remembered());
        staying.iter().for_each(|key| assert!(bench.table.doom(*key).is_some()));
        carver.sweep();
        carver.validate();
    }
}

#[test]
fn objects_in_a_slab_outlive_its_holder() {
    let mut bench = Bench::new(LARGE);
    let mut carver = bench.carver();
    let kept = bench.carve(&mut carver, OTHER);
    let untaken = bench.carve(&mut carver, OTHER);
    carver.carve(1000, OTHER).expect("one that is never finished");
    assert!(bench.table.own(kept));
    bench.end(MADE_BY, true);
    assert_eq!(bench.keeper.usage().objects, 2);
    assert!(bench.table.pin(1, kept).is_ok());
    bench.keeper.on_death_seen(OTHER, MADE_BY, bench.now, &mut bench.out);
    bench.keeper.validate();
    assert_eq!(bench.table.word(untaken.slot()).generation(), untaken.generation() + 1);
    bench.free(kept);
    assert!(bench.table.unpin(1, kept.slot()), "T-3: the node sees to it now");
    bench.keeper.on_unpinned(&[kept.slot()], bench.now, &mut bench.out);
    assert_empty(&bench.keeper);
}

#[test]
fn what_was_freed_in_a_slab_goes_with_its_holder() {
    let mut bench = Bench::new(LARGE);
    let mut carver = bench.carver();
    let key = bench.carve(&mut carver, OTHER);
    assert!(bench.table.own(key));
    assert!(bench.table.doom(key).is_some_and(|word| word.is_in_slab()), "nobody is told");
    bench.end(MADE_BY, true);
    assert_empty(&bench.keeper);
}

#[test]
fn what_belongs_to_the_dead_in_a_slab_goes_with_its_holder() {
    let mut bench = Bench::new(LARGE);
    let mut carver = bench.carver();
    let key = bench.carve(&mut carver, OTHER);
    assert!(bench.table.own(key));
    bench.end(OTHER, true);
    assert_eq!(bench.keeper.usage().objects, 1, "the holder is to hear of it first");
    bench.end(MADE_BY, true);
    assert_empty(&bench.keeper);
}

#[test]
fn who_dies_before_it_says_that_it_ended_looking_leaves_nothing() {
    let mut bench = Bench::new(SIZE);
    let key = bench.object(SIZE);
    assert!(bench.table.pin(1, key).is_ok());
    bench.free(key);
    assert_eq!(bench.keeper.usage().objects, 1);
    assert!(bench.table.unpin(1, key.slot()), "T-3");
    bench.end(OTHER, false);
    assert_empty(&bench.keeper);
}

#[test]
fn who_dies_while_it_looks_fills_or_waits_leaves_nothing() {
    let mut bench = Bench::new(SIZE);
    let key = bench.object(SIZE / 2);
    assert!(bench.table.pin(1, key).is_ok());
    bench.ask(OTHER, SIZE / 2);
    let filled = bench.allocated()[0].1.unwrap();
    bench.ask(OTHER, SIZE / 2);
    bench.free(key);
    bench.end(OTHER, false);
    assert!(bench.allocated().is_empty());
    assert_eq!(bench.table.pin(0, filled), Err(Miss::Gone));
    assert_empty(&bench.keeper);
}

#[test]
fn what_the_dead_ask_for_is_not_given() {
    let mut bench = Bench::new(SIZE);
    bench.end(OTHER, false);
    let request = bench.ask(OTHER, SIZE / 2);
    assert_eq!(bench.allocated(), [(request, None)]);
    assert_empty(&bench.keeper);
}

#[test]
fn what_is_filled_for_the_dead_goes_when_it_is_full() {
    let mut bench = Bench::new(SIZE);
    bench.end(OTHER, false);
    bench.keeper.on_allocate(MADE_BY, 1, SIZE, OTHER, bench.now, &mut bench.out);
    let key = bench.allocated()[0].1.expect("room");
    assert!(!bench.table.seal(key, false), "T-3");
    bench.keeper.on_unpinned(&[key.slot()], bench.now, &mut bench.out);
    assert_empty(&bench.keeper);
}

#[test]
fn a_name_that_was_never_given_out_harms_nobody() {
    let mut bench = Bench::new(SIZE);
    let key = bench.object(SIZE);
    assert!(bench.table.pin(1, key).is_ok());
    // Its bit would be that of the same slot in the next row.
    let nonsense = StoreKey::new(key.slot() + crate::table::MAX_SLOTS, key.generation());
    assert_eq!(bench.table.pin(0, nonsense), Err(Miss::Gone));
    assert!(!bench.table.unpin(0, nonsense.slot()));
    bench.free(key);
    assert_eq!(bench.keeper.usage().objects, 1, "T-1");
}

#[test]
fn what_is_carved_for_the_dead_goes_when_it_is_full() {
    let mut bench = Bench::new(LARGE);
    let mut carver = bench.carver();
    carver.on_process_died(OTHER);
    let (key, _) = carver.carve(1000, OTHER).expect("room");
    carver.validate();
    assert_eq!(carver.trim(), [], "it is being filled");
    assert!(!bench.table.seal(key, false), "C-3");
    assert_eq!(carver.trim().len(), 1);
}
