//! The threads that spill and restore for an event loop.
//!
//! One thread writes and deletes, another reads, so that a restore, for which somebody waits, is
//! never behind a long write. Each is started by its first job: a session that never spills has
//! none.
//!
//! - **C-1** Every job that was submitted before [`Clerk::stop`] and begun ends in one [`Done`];
//!   a deletion in none.
//! - **C-2** Jobs of one thread are done in the order they were submitted.
//! - **C-3** `wake` is called after each [`Done`] is queued, never before.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use oxiray_sys::memory::Mapping;
use oxiray_sys::process::block_signals_in_this_thread;
use parking_lot::{Condvar, Mutex};

use crate::{Place, SpillError, Spillway};

/// What is to be done. The caller sees to it that nobody else uses the room of a read, and that
/// nobody changes what is written, until the job is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// Spill objects of the arena into one file.
    Write {
        /// The caller's key, the offset and the length of each.
        batch: Vec<(u64, u64, u64)>,
    },
    /// Restore one object.
    Read {
        /// The caller's key.
        key: u64,
        /// Where it was spilled to.
        place: Place,
        /// Where in the arena `place.len` bytes of room are.
        offset: u64,
    },
    /// Forget one object.
    Delete {
        /// Where it was spilled to.
        place: Place,
    },
}

/// What was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// A batch was spilled.
    Written {
        /// Key and place of each object.
        batch: Vec<(u64, Place)>,
        /// How long it took.
        nanoseconds: u64,
    },
    /// A batch was not spilled, none of it.
    NotWritten {
        /// Its keys.
        keys: Vec<u64>,
        /// Why not.
        error: SpillError,
    },
    /// An object was restored.
    Read {
        /// Its key.
        key: u64,
        /// How long it took.
        nanoseconds: u64,
    },
    /// An object was not restored; its room holds anything.
    NotRead {
        /// Its key.
        key: u64,
        /// Why not.
        error: SpillError,
    },
}

/// See the module documentation. Dropping it stops it.
pub struct Clerk {
    office: Arc<Office>,
    writer: Lane,
    reader: Lane,
}

/// What both threads share.
struct Office {
    spillway: Arc<Spillway>,
    arena: Arc<Mapping>,
    done: Mutex<Vec<Done>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A thread and the jobs that wait for it.
struct Lane {
    name: &'static str,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    stopping: bool,
}

impl Clerk {
    /// Takes jobs on objects in `arena`. `wake` is called from the clerk's threads whenever there
    /// is something to be had from [`Clerk::completed`].
    pub fn start(
        spillway: Arc<Spillway>,
        arena: Arc<Mapping>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let done = Mutex::default();
        let office = Arc::new(Office { spillway, arena, done, wake: Box::new(wake) });
        Self { office, writer: Lane::new("spill-write"), reader: Lane::new("spill-read") }
    }

    /// Has `job` done; returns at once.
    pub fn submit(&self, job: Job) {
        let lane = if matches!(job, Job::Read { .. }) { &self.reader } else { &self.writer };
        lane.submit(&self.office, job);
    }

    /// What was done since the last call, in the order it was.
    pub fn completed(&self) -> Vec<Done> {
        std::mem::take(&mut *self.office.done.lock())
    }

    /// Finishes what is under way, drops what waits, ends the threads and closes the spillway.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        // Both are told before either is waited for.
        self.writer.tell_to_stop();
        self.reader.tell_to_stop();
        self.writer.join();
        self.reader.join();
        self.office.spillway.close();
    }
}

impl std::fmt::Debug for Clerk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clerk").field("spillway", &self.office.spillway).finish_non_exhaustive()
    }
}

impl Lane {
    fn new(name: &'static str) -> Self {
        Self { name, queue: Arc::default(), thread: Mutex::new(None) }
    }

    fn submit(&self, office: &Arc<Office>, job: Job) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let (office_of_thread, queue) = (office.clone(), self.queue.clone());
            let work = move || work(&office_of_thread, &queue);
            match thread::Builder::new().name(self.name.to_owned()).spawn(work) {
                Ok(started) => *thread = Some(started),
                Err(error) => {
                    let reason = format!("the system has no thread for it ({error})");
                    office.report(refused(&job, reason));
                    return;
                }
            }
        }
        self.queue.jobs.lock().jobs.push_back(job);
        self.queue.changed.notify_one();
    }

    fn tell_to_stop(&self) {
        let mut waiting = self.queue.jobs.lock();
        waiting.stopping = true;
        waiting.jobs.clear();
        self.queue.changed.notify_one();
    }

    fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // A thread that broke has nothing left to do either.
            let _ = thread.join();
        }
    }
}

fn work(office: &Office, queue: &Queue) {
    block_signals_in_this_thread();
    loop {
        let job = {
            let mut waiting = queue.jobs.lock();
            loop {
                if waiting.stopping {
                    return;
                }
                match waiting.jobs.pop_front() {
                    Some(job) => break job,
                    None => queue.changed.wait(&mut waiting),
                }
            }
        };
        office.report(guarded(&job, || office.perform(&job)));
    }
}

/// A defect costs one job, not all that come after it. (Where panics abort, as in release builds,
/// it costs the process: so what can be checked is checked, and is an error.)
fn guarded(job: &Job, perform: impl FnOnce() -> Option<Done>) -> Option<Done> {
    catch_unwind(AssertUnwindSafe(perform)).unwrap_or_else(|_| {
        refused(job, "of a defect in the spill code, please report it".to_owned())
    })
}

/// The answer to a job that could not even be begun.
fn refused(job: &Job, reason: String) -> Option<Done> {
    match job {
        Job::Write { batch } => {
            let keys = batch.iter().map(|&(key, ..)| key).collect();
            let bytes = batch.iter().map(|&(_, _, len)| len).fold(0, u64::saturating_add);
            Some(Done::NotWritten { keys, error: SpillError::NotWritten { bytes, reason } })
        }
        &Job::Read { key, .. } => {
            Some(Done::NotRead { key, error: SpillError::NotRead { reason } })
        }
        Job::Delete { .. } => None,
    }
}

impl Office {
    fn report(&self, done: Option<Done>) {
        if let Some(done) = done {
            self.done.lock().push(done);
            (self.wake)();
        }
    }

    fn perform(&self, job: &Job) -> Option<Done> {
        let begun = Instant::now();
        let elapsed = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match job {
            Job::Write { batch } => {
                let Some(ranges) = batch
                    .iter()
                    .map(|&(_, offset, len)| self.range(offset, len))
                    .collect::<Option<Vec<_>>>()
                else {
                    return refused(job, "an object lies outside of the arena".to_owned());
                };
                let objects: Vec<&[u8]> =
                    ranges.iter().map(|&(offset, len)| self.arena.bytes(offset, len)).collect();
                let keys = batch.iter().map(|&(key, ..)| key);
                Some(match self.spillway.write(&objects) {
                    Ok(places) => {
                        Done::Written { batch: keys.zip(places).collect(), nanoseconds: elapsed() }
                    }
                    Err(error) => Done::NotWritten { keys: keys.collect(), error },
                })
            }
            Job::Read { key, place, offset } => {
                let Some((offset, len)) = self.range(*offset, place.len) else {
                    return refused(job, "its room lies outside of the arena".to_owned());
                };
                let read = self.arena.fill(offset, len, |room| self.spillway.read(place, room));
                Some(match read {
                    Ok(()) => Done::Read { key: *key, nanoseconds: elapsed() },
                    Err(error) => Done::NotRead { key: *key, error },
                })
            }
            Job::Delete { place } => {
                self.spillway.delete(place);
                None
            }
        }
    }

    /// Offset and length, if they lie within the arena.
    fn range(&self, offset: u64, len: u64) -> Option<(usize, usize)> {
        let end = usize::try_from(offset.checked_add(len)?).ok()?;
        (end <= self.arena.len()).then_some((offset as usize, len as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_costs_one_job() {
        let place = Place { file: 1, offset: 0, len: 1, checksum: 0 };
        let write = Job::Write { batch: vec![(1, 0, 8), (2, 8, 8)] };
        match guarded(&write, || panic!("on purpose")) {
            Some(Done::NotWritten { keys, error: SpillError::NotWritten { bytes: 16, .. } }) => {
                assert_eq!(keys, [1, 2]);
            }
            other => panic!("not told: {other:?}"),
        }
        let read = Job::Read { key: 3, place, offset: 0 };
        let told = guarded(&read, || panic!("on purpose"));
        assert!(matches!(told, Some(Done::NotRead { key: 3, .. })));
        assert_eq!(guarded(&Job::Delete { place }, || panic!("on purpose")), None);
    }
}
