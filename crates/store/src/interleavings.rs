//! Processes that look, an owner that frees, and whoever wants the memory:
//! shuttle tries the interleavings. `cargo test -p oxiray-store --features shuttle`.
//!
//! Shuttle runs every atomic operation as if it were sequentially consistent,
//! which those of the table are. So this finds a wrong order of steps.

use std::sync::Arc;

use oxiray_ids::StoreKey;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::mpsc::{Sender, channel};
use shuttle::{Config, MaxSteps, Runner, thread};

use crate::sync::{AtomicU64, Ordering};
use crate::table::{
    Miss, TableMemory, begin_to_leave, doom, doom_untaken, end_use, is_over, own, pin, seal, unpin,
    update,
};
use crate::word::{State, Word};

const ITERATIONS: usize = 4_000;

/// The slot that all is about, and the two names it has here.
const SLOT: u32 = 5;
const FIRST: StoreKey = StoreKey::new(SLOT, 1);
const SECOND: StoreKey = StoreKey::new(SLOT, 2);
const ROWS: u32 = 2;

fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(20_000);
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(test);
    }
    run(RandomScheduler::new(ITERATIONS), test.clone());
    run(PctScheduler::new(3, ITERATIONS), test);
}

/// A table of one slot, and the memory that the slot's object is in.
struct Bed {
    word: AtomicU64,
    rows: Vec<AtomicU64>,
    /// Whose bytes the memory holds.
    memory: AtomicU64,
}

impl TableMemory for Bed {
    fn word(&self, _: u32) -> &AtomicU64 {
        &self.word
    }

    fn bits(&self, row: u32, _: u32) -> &AtomicU64 {
        &self.rows[row as usize]
    }
}

impl Bed {
    /// With an object that is called [`FIRST`].
    fn new(word: Word) -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU64::new(word.0),
            rows: (0..ROWS).map(|_| AtomicU64::new(0)).collect(),
            memory: AtomicU64::new(FIRST.0),
        })
    }

    fn word_now(&self) -> Word {
        Word(self.word.load(Ordering::SeqCst))
    }

    /// T-1, for as long as a process looks.
    fn look(&self, key: StoreKey) {
        for _ in 0..2 {
            assert_eq!(StoreKey(self.memory.load(Ordering::SeqCst)), key, "T-1");
        }
    }

    /// One attempt of a process to look; whether it told the node of its end.
    fn visit(&self, row: u32, key: StoreKey) -> (Result<(), Miss>, bool) {
        let found = pin(self, row, key);
        if found.is_ok() {
            self.look(key);
        }
        (found, unpin(self, row, SLOT))
    }

    /// Takes the object away, and the memory with it.
    fn to_disk(&self) {
        self.memory.store(0, Ordering::SeqCst);
        update(self, SLOT, |word| Some(word.with(State::Away)));
    }

    fn from_disk(&self, key: StoreKey) {
        self.memory.store(key.0, Ordering::SeqCst);
        update(self, SLOT, |word| Some(word.with(State::Sealed)));
    }

    /// Takes the memory of [`FIRST`] back if it can be had, and gives it and
    /// the slot to [`SECOND`]; whether it did.
    fn reclaim(&self) -> bool {
        let over = is_over(self, SLOT, 0..ROWS);
        if over {
            self.memory.store(0, Ordering::SeqCst);
            assert_eq!(end_use(self, SLOT), SECOND.generation(), "T-4");
            update(self, SLOT, |word| Some(word.with(State::Writing)));
            self.memory.store(SECOND.0, Ordering::SeqCst);
            assert!(seal(self, SECOND, true));
        }
        over
    }
}

fn sealed() -> Word {
    Word::new(FIRST.generation(), State::Sealed).owned()
}

/// T-1: what goes to disk and comes back is never looked at meanwhile.
#[test]
fn what_is_looked_at_stays() {
    explore(|| {
        let bed = Bed::new(sealed());
        let readers: Vec<_> = (0..ROWS)
            .map(|row| {
                let bed = bed.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        let (found, doomed) = bed.visit(row, FIRST);
                        assert_ne!(found, Err(Miss::Gone));
                        assert!(!doomed);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            if begin_to_leave(&*bed, SLOT, 0..ROWS) {
                bed.to_disk();
                bed.from_disk(FIRST);
            }
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(bed.visit(0, FIRST), (Ok(()), false), "nothing is left over");
    });
}

enum News {
    /// Freed by its owner, or no longer looked at.
    Doomed,
    /// The process of a row is gone.
    Ended(u32),
}

/// T-1 to T-4: an owner frees an object while processes look at it, begin to,
/// die doing so, and the node evicts it. Its memory is had back, once.
#[test]
fn a_freed_object_goes_when_nobody_looks() {
    explore(|| {
        let bed = Bed::new(sealed());
        let (tell, news) = channel();
        let mut threads = Vec::new();
        for row in 0..ROWS {
            let (bed, tell) = (bed.clone(), tell.clone());
            threads.push(thread::spawn(move || reader(&bed, row, tell)));
        }
        let owner = bed.clone();
        threads.push(thread::spawn(move || {
            assert!(doom(&*owner, FIRST).is_some());
            tell.send(News::Doomed).unwrap();
        }));
        // The node.
        let mut had_back = false;
        if begin_to_leave(&*bed, SLOT, 0..ROWS) {
            if thread_rng().r#gen() {
                bed.to_disk();
            }
            bed.from_disk(FIRST);
        }
        while let Ok(news) = news.recv() {
            if let News::Ended(row) = news {
                bed.rows[row as usize].store(0, Ordering::SeqCst);
            }
            had_back |= !had_back && bed.reclaim();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(had_back, "T-3");
        assert_eq!(bed.visit(0, FIRST).0, Err(Miss::Gone), "T-4");
        assert_eq!(bed.visit(0, SECOND), (Ok(()), false));
    });
}

/// Looks twice; may die at any point of that, even after it cleared its bit and
/// before it could say so.
fn reader(bed: &Bed, row: u32, tell: Sender<News>) {
    let dies_at = thread_rng().gen_range(0..8);
    for visit in 0..2 {
        if pin(bed, row, FIRST).is_ok() {
            bed.look(FIRST);
        }
        if dies_at == 2 * visit {
            return tell.send(News::Ended(row)).unwrap();
        }
        let doomed = unpin(bed, row, SLOT);
        if dies_at == 2 * visit + 1 {
            return tell.send(News::Ended(row)).unwrap();
        }
        if doomed {
            tell.send(News::Doomed).unwrap();
        }
    }
}

/// T-3: an object that is freed while its creator fills it goes when it is full.
#[test]
fn an_object_freed_while_it_is_filled_goes() {
    explore(|| {
        let bed = Bed::new(Word::new(FIRST.generation(), State::Writing));
        let (tell, news) = channel();
        let (creator, tell_too) = (bed.clone(), tell.clone());
        let filling = thread::spawn(move || {
            creator.look(FIRST);
            if !seal(&*creator, FIRST, true) {
                tell_too.send(()).unwrap();
            }
        });
        let owner = bed.clone();
        let freeing = thread::spawn(move || {
            assert!(doom(&*owner, FIRST).is_some());
            tell.send(()).unwrap();
        });
        let mut had_back = false;
        while news.recv().is_ok() {
            had_back |= !had_back && bed.reclaim();
        }
        filling.join().unwrap();
        freeing.join().unwrap();
        assert!(had_back, "T-3");
    });
}

/// T-1, T-3: an object in a slab is freed while it is looked at. Its memory is
/// had back by the holder of the slab; or, that one gone, by the node, which
/// hears of what happens from then on and sees for itself what was before.
#[test]
fn an_object_in_a_slab_goes_with_or_without_its_holder() {
    explore(|| {
        let bed = Bed::new(sealed().in_slab());
        let (tell, news) = channel();
        let mut threads = Vec::new();
        for row in 0..ROWS {
            let (bed, tell) = (bed.clone(), tell.clone());
            threads.push(thread::spawn(move || {
                let (_, doomed) = bed.visit(row, FIRST);
                if doomed {
                    tell.send(()).unwrap();
                }
            }));
        }
        let owner = bed.clone();
        threads.push(thread::spawn(move || {
            let word = doom(&*owner, FIRST).expect("only its owner frees it");
            if !word.is_in_slab() {
                tell.send(()).unwrap();
            }
        }));
        // The holder, until it dies.
        let mut had_back = bed.reclaim();
        let dies = thread_rng().r#gen();
        if dies && !had_back {
            update(&*bed, SLOT, |word| Some(word.without_slab()));
            had_back = bed.reclaim();
            while news.recv().is_ok() {
                had_back |= !had_back && bed.reclaim();
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        had_back |= !dies && !had_back && bed.reclaim();
        assert!(had_back, "T-3");
        assert!(!bed.word_now().is_doomed());
    });
}

/// A result whose creator died is its owner's, or goes: never both, never neither.
#[test]
fn a_result_is_taken_up_or_goes() {
    explore(|| {
        let bed = Bed::new(Word::new(FIRST.generation(), State::Sealed));
        let owner = bed.clone();
        let owner = thread::spawn(move || {
            let taken = own(&*owner, FIRST);
            let found = owner.visit(0, FIRST);
            assert_eq!(found.0.is_ok(), taken);
            (taken, found.1)
        });
        let mut had_back = doom_untaken(&*bed, FIRST).is_some() && bed.reclaim();
        let (taken, told) = owner.join().unwrap();
        had_back |= told && !had_back && bed.reclaim();
        assert!(taken != had_back, "T-3");
    });
}
