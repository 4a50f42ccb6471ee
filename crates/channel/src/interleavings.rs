//! Two threads on one ring, one bell, one claim: shuttle tries the interleavings.
//! `cargo test -p oxiray-channel --features shuttle`.
//!
//! Shuttle runs every atomic operation as if it were sequentially consistent,
//! and its fences do nothing. So this finds a missing re-check or a wrong order
//! of steps; it does not find an ordering that is too weak, nor a fence that is
//! missing on a machine that reorders. For those, the argument is beside each
//! fence in `bell` and `ring`.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner, thread};

use crate::bell::{self, BellMemory, WORDS};
use crate::claim;
use crate::ring::tests::Bed;
use crate::ring::{Consumer, Full, Producer};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

const ITERATIONS: usize = 5_000;

/// A sleeper that nobody wakes spins in `sync::futex`: that many steps are a hang.
const HANG_STEPS: usize = 20_000;

fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(HANG_STEPS);
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(test);
    }
    run(RandomScheduler::new(ITERATIONS), test.clone());
    run(PctScheduler::new(3, ITERATIONS), test);
}

struct TestBell {
    word: AtomicU32,
    sleepers: AtomicU32,
    pending: [AtomicU64; WORDS],
}

impl TestBell {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            pending: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    fn ticket(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    fn tell(&self, bit: u32) {
        bell::mark(self, bit);
        bell::wake(self);
    }
}

impl BellMemory for TestBell {
    fn word(&self) -> &AtomicU32 {
        &self.word
    }

    fn sleepers(&self) -> &AtomicU32 {
        &self.sleepers
    }

    fn pending(&self) -> &[AtomicU64; WORDS] {
        &self.pending
    }
}

/// B-1: whatever the receiver was doing when a bit was set, it sees the bit.
#[test]
fn no_wake_up_is_lost() {
    explore(|| {
        let bell = TestBell::new();
        let senders: Vec<_> = [3, 70]
            .map(|bit| {
                let bell = bell.clone();
                thread::spawn(move || bell.tell(bit))
            })
            .into();
        let mut seen = 0;
        while seen < 2 {
            let ticket = bell.ticket();
            let before = seen;
            bell::take(&*bell, |_| seen += 1);
            if seen == before {
                bell::sleep(&*bell, ticket, None);
            }
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(seen, 2);
        assert!(!bell::has_news(&*bell));
    });
}

/// B-2: a frame written while its channel is being drained is not overlooked.
/// what is read is what was written, in order.
#[test]
fn frames_reach_a_receiver_that_sleeps_between_them() {
    const FRAMES: u8 = 4;
    explore(|| {
        let (ring, bell) = (Bed::new(128), TestBell::new());
        let sender = {
            let (ring, bell) = (ring.clone(), bell.clone());
            thread::spawn(move || {
                let mut producer = Producer::new(ring);
                for serial in 0..FRAMES {
                    producer.push(&[&[serial; 5]]).expect("room for all");
                    bell.tell(9);
                }
            })
        };
        let mut consumer = Consumer::new(ring);
        let mut next = 0;
        while next < FRAMES {
            let ticket = bell.ticket();
            let before = next;
            // Drained while the bits are being visited: they are cleared by then.
            bell::take(&*bell, |_| {
                consumer
                    .drain(|frame| {
                        assert_eq!(frame, [next; 5]);
                        next += 1;
                    })
                    .unwrap();
            });
            if next == before {
                bell::sleep(&*bell, ticket, None);
            }
        }
        sender.join().unwrap();
    });
}

/// a producer that sleeps because the ring is full is woken, as `Link` does it.
#[test]
fn a_starved_producer_is_told_of_room() {
    const FRAMES: u8 = 6;
    explore(|| {
        let (ring, to_consumer, to_producer) = (Bed::new(64), TestBell::new(), TestBell::new());
        let sender = {
            let ring = ring.clone();
            let (mine, theirs) = (to_producer.clone(), to_consumer.clone());
            thread::spawn(move || {
                let mut producer = Producer::new(ring);
                let mut serial = 0;
                while serial < FRAMES {
                    let ticket = mine.ticket();
                    bell::take(&*mine, |_| ());
                    match producer.push(&[&[serial; 16]]) {
                        Ok(()) => {
                            serial += 1;
                            theirs.tell(1);
                        }
                        Err(Full) => {
                            bell::sleep(&*mine, ticket, None);
                        }
                    }
                }
            })
        };
        let mut consumer = Consumer::new(ring);
        let mut next = 0;
        while next < FRAMES {
            let ticket = to_consumer.ticket();
            let mut news = false;
            bell::take(&*to_consumer, |_| news = true);
            if !news {
                bell::sleep(&*to_consumer, ticket, None);
                continue;
            }
            let starved = consumer.drain(|frame| {
                assert_eq!(frame, [next; 16]);
                next += 1;
            });
            if starved.unwrap() {
                to_producer.tell(1);
            }
        }
        sender.join().unwrap();
    });
}

/// C-1: of the two who want a task, exactly one gets it. C-2: not the next one.
#[test]
fn a_task_is_taken_by_exactly_one() {
    explore(|| {
        let cell = Arc::new(AtomicU64::new(0));
        claim::offer(&cell, 1);
        for number in 1..4 {
            let worker = {
                let cell = cell.clone();
                thread::spawn(move || (claim::take(&cell, number), claim::take(&cell, number + 1)))
            };
            let taken_back = claim::take_back(&cell, number);
            let (taken, not_offered) = worker.join().unwrap();
            assert!(taken != taken_back, "C-1");
            assert!(!not_offered, "C-2");
            assert!(!claim::take(&cell, number) && !claim::take_back(&cell, number), "C-1");
            claim::offer(&cell, number + 1);
            assert!(!claim::take(&cell, number) && !claim::take_back(&cell, number), "C-2");
        }
    });
}
