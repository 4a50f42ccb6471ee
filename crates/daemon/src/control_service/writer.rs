//! The thread that writes to the store: a slow one must not keep the service from
//! hearing and asking its members.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use oxiray_control::Change;
use oxiray_persist::{Head, Persist, PersistError};
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::eventfd;
use parking_lot::Mutex;

/// Between two attempts to write to a store that is in trouble.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// How often it is said where this service is, and heard where those are that wait.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(1);

/// What the thread has to say.
#[derive(Debug)]
pub(super) enum Outcome {
    /// What was handed over is kept.
    Written,
    /// The store is in trouble, for this reason; it is tried again.
    Trouble(String),
    /// It is not any more.
    Recovered,
    /// It has lost everything: all must be written anew. What was handed over, if anything was,
    /// is not kept and not tried again.
    Emptied {
        /// Something was handed over.
        batch: bool,
    },
    /// It is another's now, for this reason: there is nothing left to do here.
    Lost(String),
    /// Where all control services are that use the store or wait to has changed.
    Heads(Vec<String>),
}

/// Hands changes over to the thread, one batch at a time.
pub(super) struct Writer {
    batches: Option<Sender<Vec<Change>>>,
    said: Arc<Said>,
    thread: Option<JoinHandle<()>>,
}

struct Said {
    outcomes: Mutex<Vec<Outcome>>,
    bell: OwnedFd,
    /// No more attempts: the service ends.
    over: AtomicBool,
    /// Until then nobody else can have begun to use the store.
    ours_until: AtomicU64,
}

impl Said {
    fn say(&self, outcome: Outcome) {
        self.outcomes.lock().push(outcome);
        eventfd::ring(&self.bell);
    }
}

impl Writer {
    /// `head` is this service, as others are told.
    pub(super) fn start(store: Box<dyn Persist>, head: Head) -> io::Result<Self> {
        let (outcomes, bell) = (Mutex::default(), eventfd::new()?);
        let ours_until = AtomicU64::new(until(monotonic_ns(), store.lasts()));
        let said = Arc::new(Said { outcomes, bell, over: AtomicBool::new(false), ours_until });
        let (batches, receiver) = mpsc::channel();
        let saying = said.clone();
        let run = move || write_all(store, &head, &receiver, &saying);
        let thread = thread::Builder::new().name("oxiray-store".into()).spawn(run)?;
        Ok(Self { batches: Some(batches), said, thread: Some(thread) })
    }

    /// What is readable when the thread has something to say.
    pub(super) fn bell(&self) -> impl AsFd {
        &self.said.bell
    }

    /// Keeps these changes: [`Outcome::Written`] follows.
    pub(super) fn write(&self, changes: Vec<Change>) {
        if let Some(batches) = &self.batches {
            let _ = batches.send(changes);
        }
    }

    /// What the thread has said since the last time.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        eventfd::quiet(&self.said.bell);
        std::mem::take(&mut *self.said.outcomes.lock())
    }

    /// Until when nobody else can have begun to use the store, in nanoseconds.
    pub(super) fn ours_until(&self) -> u64 {
        self.said.ours_until.load(Ordering::SeqCst)
    }

    /// Ends the thread, which first writes what it was given, if it can.
    pub(super) fn finish(mut self) {
        self.batches = None;
        self.said.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// When what was begun then is no longer sure.
fn until(begun: u64, lasts: Option<Duration>) -> u64 {
    lasts.map_or(u64::MAX, |lasts| begun + lasts.as_nanos() as u64)
}

fn write_all(
    mut store: Box<dyn Persist>,
    head: &Head,
    batches: &Receiver<Vec<Change>>,
    said: &Said,
) {
    oxiray_sys::process::block_signals_in_this_thread();
    // Why the store cannot be used, as was last said.
    let mut trouble: Option<String> = None;
    let mut announced = Announced::default();
    loop {
        let (mut batch, over) = match batches.recv_timeout(store.tend_every()) {
            Ok(batch) => (Some(batch), false),
            Err(RecvTimeoutError::Timeout) => (None, false),
            Err(RecvTimeoutError::Disconnected) => (None, true),
        };
        if over {
            return;
        }
        loop {
            let begun = monotonic_ns();
            let done = match &batch {
                Some(changes) => store.write(changes),
                None => store.tend(),
            };
            if done.is_ok() {
                said.ours_until.store(until(begun, store.lasts()), Ordering::SeqCst);
            }
            match done {
                Ok(()) if trouble.take().is_some() => {
                    tracing::info!("the store can be used again");
                    said.say(Outcome::Recovered);
                }
                Ok(()) => {}
                Err(PersistError::Emptied { .. }) => {
                    said.say(Outcome::Emptied { batch: batch.is_some() });
                    batch = None;
                }
                Err(error @ (PersistError::Taken { .. } | PersistError::Succeeded { .. })) => {
                    return said.say(Outcome::Lost(error.to_string()));
                }
                Err(error) => {
                    let why = error.to_string();
                    if trouble.as_ref() != Some(&why) {
                        tracing::error!(why, "the store cannot be used");
                        said.say(Outcome::Trouble(why.clone()));
                        trouble = Some(why);
                    }
                    if said.over.load(Ordering::SeqCst) {
                        return;
                    }
                    thread::sleep(TRY_AGAIN);
                    if batch.is_some() {
                        continue;
                    }
                }
            }
            break;
        }
        if batch.is_some() {
            said.say(Outcome::Written);
        }
        if trouble.is_none() {
            announced.again(&mut *store, head, said);
        }
    }
}

/// What was said of this service to those that wait, and heard of them.
#[derive(Default)]
struct Announced {
    at: Option<Instant>,
    heard: Vec<String>,
}

impl Announced {
    fn again(&mut self, store: &mut dyn Persist, head: &Head, said: &Said) {
        if self.at.is_some_and(|at| at.elapsed() < ANNOUNCE_EVERY) {
            return;
        }
        self.at = Some(Instant::now());
        // A store that is in trouble says so when it is tended to.
        if let Ok(heads) = store.announce(head)
            && heads != self.heard
        {
            self.heard.clone_from(&heads);
            said.say(Outcome::Heads(heads));
        }
    }
}
