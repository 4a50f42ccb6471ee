//! Whole processes on shuttle's threads: hand-over of calls, waiting, lending, pump and doorbells.
//! `cargo test -p oxiray-worker --features shuttle`.
//!
//! Nothing of the engine is imitated: a driver and a worker, as they ship, on real channels. A sleep
//! that somebody must end never times out here, so that each lost wake-up hangs the execution, where
//! in a process it is a delay that nobody would find. Shuttle's atomics are all sequentially
//! consistent, those of channels no places to switch at: `oxiray-channel` explores them by itself.

mod tongue;
mod world;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

use self::tongue::{HAND_OVER, LET_GO, MEET, RETURN, SLEEP};
use self::world::World;
use crate::language::Serving;
use crate::port::Watcher;
use crate::sync::{Ordering, thread};

const ITERATIONS: usize = 150;

/// So many steps are a hang: sleepers look at their words for ever.
const HANG_STEPS: usize = 60_000;

fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(HANG_STEPS);
        config.stack_size = 1 << 19;
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(test);
    }
    run(RandomScheduler::new(ITERATIONS), test.clone());
    run(PctScheduler::new(3, ITERATIONS), test);
}

/// Two threads of a driver call and wait, and read each other's answers. Every call is run once, and
/// answered, also the one that its worker lets go (C-1).
#[test]
fn every_call_is_run_once_and_every_waiter_gets_its_value() {
    explore(|| {
        let running = World::start(Serving::InTurn);
        let other = running.spawn(|world| {
            let [first, second] =
                [(RETURN, 0), (HAND_OVER, 1)].map(|(what, at)| world.call(what, at));
            assert_eq!(world.get(first), Ok(0));
            assert_eq!(world.get(second), Ok(1));
        });
        let world = &running.world;
        let dropped = world.call(LET_GO, 2);
        let said = world.get(dropped).expect_err("nobody answered it");
        assert!(said.contains("gave the call up"), "{said}");
        let kept = world.call(RETURN, 3);
        assert_eq!(world.get(kept), Ok(3));
        other.join().expect("no panic");
        assert!((0..4).all(|serial| world.asked.times(serial) == 1));
        running.end();
    });
}

/// Calls in threads begin while others run, as many as may, and no more (L-1, L-2): of two that meet
/// both must run at once.
#[test]
fn calls_in_threads_meet_and_never_exceed_their_limit() {
    explore(|| {
        let running = World::start(Serving::Threads(vec![2]));
        let world = &running.world;
        let actor = world.make_actor();
        let calls = [(MEET, 0), (RETURN, 1), (HAND_OVER, 2), (HAND_OVER, 3), (LET_GO, 4)];
        let keys = calls.map(|(what, serial)| world.call_method(actor, what, serial));
        for (serial, key) in (0..).zip(keys) {
            assert_eq!(world.get(key).is_ok(), serial != 4);
        }
        assert!((0..5).all(|serial| world.asked.times(serial) == 1));
        assert!(world.asked.most_running.load(Ordering::SeqCst) <= 2, "L-1");
        world.driver().release([actor.1]);
        running.end();
    });
}

/// CPUs are lent once all calls of a process wait, and are back before any of them goes on (B-1).
#[test]
fn cpus_are_lent_while_all_wait_and_at_no_other_time() {
    explore(|| lend_once(Serving::Threads(vec![2]), [SLEEP, SLEEP]));
}

/// A loop that waits has lent its CPUs, once (B-1): a call of it that another thread ends meanwhile
/// changes nothing.
#[test]
fn a_loop_that_waits_lends_once() {
    explore(|| lend_once(Serving::Loops(vec![2]), [HAND_OVER, SLEEP]));
}

/// What sleeps goes on once CPUs were lent.
fn lend_once(served: Serving, calls: [u8; 2]) {
    let running = World::start(served);
    let opener = running.spawn(|world| {
        // It waits for ever if nobody lends.
        world.await_lending();
        world.asked.open();
        world.worker().bell().ring();
    });
    let world = &running.world;
    let actor = world.make_actor();
    let keys = [0, 1].map(|serial| world.call_method(actor, calls[usize::from(serial)], serial));
    for (serial, key) in (0..).zip(keys) {
        assert_eq!(world.get(key), Ok(serial));
    }
    opener.join().expect("no panic");
    world.driver().release([actor.1]);
    running.end();
}

/// An event loop of the driver hears of what it waits for, though no thread waits: then the pump
/// reads; and also when a thread that waits comes and goes.
#[test]
fn what_is_watched_is_told_whoever_reads() {
    explore(|| {
        let running = World::start(Serving::InTurn);
        let world = &running.world;
        let (port, _descriptor) = world.driver().open_port(false).expect("a descriptor");
        let [watched, waited] = [0, 1].map(|serial| world.call(RETURN, serial));
        let waiter = running.spawn(move |world| world.get(waited));
        world.driver().watch(watched, Watcher::Port(port), 5);
        let mut told = Vec::new();
        while told.is_empty() {
            told = world.driver().take_complete(port);
            thread::yield_now();
        }
        assert_eq!(told, [5]);
        assert_eq!(waiter.join().expect("no panic"), Ok(1));
        world.driver().close_port(port);
        running.end();
    });
}

/// A loop begins calls as they come, sleeping on its descriptor alone (P-1), and hears of each that
/// is cancelled. A cancelled call ends once, with or without having begun.
#[test]
fn a_loop_begins_what_comes_and_hears_what_is_cancelled() {
    explore(|| {
        let running = World::start(Serving::Loops(vec![2]));
        let world = &running.world;
        let actor = world.make_actor();
        let keys = [0, 1, 2].map(|serial| world.call_method(actor, RETURN, serial));
        let canceller = running.spawn(move |world| world.cancel(keys[1]));
        assert_eq!(world.get(keys[0]), Ok(0));
        canceller.join().expect("no panic");
        match world.get(keys[1]) {
            Ok(value) => assert_eq!(value, 1),
            Err(said) => assert!(said.contains("cancelled"), "{said}"),
        }
        assert_eq!(world.get(keys[2]), Ok(2));
        assert!([0, 2].iter().all(|serial| world.asked.times(*serial) == 1));
        assert!(world.asked.times(1) <= 1 && world.asked.most_running.load(Ordering::SeqCst) <= 2);
        world.driver().release([actor.1]);
        running.end();
    });
}

/// The same of a loop that reads for itself whenever it likes: nothing is lost as it begins to and
/// ceases to, neither calls nor what other threads of its own program have for it.
#[test]
fn a_loop_that_reads_for_itself_misses_nothing() {
    explore(|| {
        let running = World::start(Serving::Loops(vec![2]));
        let world = &running.world;
        world.asked.reads.store(true, Ordering::SeqCst);
        let actor = world.make_actor();
        let calls = [(RETURN, 0), (HAND_OVER, 1), (RETURN, 2), (LET_GO, 3)];
        let keys = calls.map(|(what, serial)| world.call_method(actor, what, serial));
        let canceller = running.spawn(move |world| world.cancel(keys[2]));
        let caller = running.spawn(|world| world.asked.call_soon(world.worker()));
        assert_eq!(world.get(keys[0]), Ok(0));
        assert_eq!(world.get(keys[1]), Ok(1));
        match world.get(keys[2]) {
            Ok(value) => assert_eq!(value, 2),
            Err(said) => assert!(said.contains("cancelled"), "{said}"),
        }
        assert!(world.get(keys[3]).is_err());
        canceller.join().expect("no panic");
        caller.join().expect("no panic");
        // From now on nothing else wakes it, wherever it sleeps.
        for _ in 0..4 {
            world.asked.call_soon(world.worker());
        }
        let last = world.call_method(actor, RETURN, 4);
        assert_eq!(world.get(last), Ok(4));
        world.driver().release([actor.1]);
        running.end();
    });
}

/// Whoever waits is told that the session is over, wherever it was on its way to sleep.
#[test]
fn every_waiter_hears_of_the_end() {
    explore(|| {
        let running = World::start(Serving::InTurn);
        let waiters = [0, 1].map(|_| running.spawn(|world| world.wait_for_the_end()));
        running.world.stop_driver();
        waiters.into_iter().for_each(|waiter| waiter.join().expect("no panic"));
        running.end();
    });
}
