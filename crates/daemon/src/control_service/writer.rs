//! The thread that writes to the store: a slow one must not keep the service from
//! hearing and asking its members.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use oxiray_control::Change;
use oxiray_persist::{Persist, PersistError};
use oxiray_sys::eventfd;
use parking_lot::Mutex;

/// Between two attempts to write to a store that is in trouble.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// How often the store is tended to while nothing is written.
const TEND_EVERY: Duration = Duration::from_secs(1);

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
}

impl Said {
    fn say(&self, outcome: Outcome) {
        self.outcomes.lock().push(outcome);
        eventfd::ring(&self.bell);
    }
}

impl Writer {
    pub(super) fn start(store: Box<dyn Persist>) -> io::Result<Self> {
        let (outcomes, bell) = (Mutex::default(), eventfd::new()?);
        let said = Arc::new(Said { outcomes, bell, over: AtomicBool::new(false) });
        let (batches, receiver) = mpsc::channel();
        let saying = said.clone();
        let run = move || write_all(store, &receiver, &saying);
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

    /// Ends the thread, which first writes what it was given, if it can.
    pub(super) fn finish(mut self) {
        self.batches = None;
        self.said.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(mut store: Box<dyn Persist>, batches: &Receiver<Vec<Change>>, said: &Said) {
    oxiray_sys::process::block_signals_in_this_thread();
    // Why the store cannot be used, as was last said.
    let mut trouble: Option<String> = None;
    loop {
        let (mut batch, over) = match batches.recv_timeout(TEND_EVERY) {
            Ok(batch) => (Some(batch), false),
            Err(RecvTimeoutError::Timeout) => (None, false),
            Err(RecvTimeoutError::Disconnected) => (None, true),
        };
        if over {
            return;
        }
        loop {
            let done = match &batch {
                Some(changes) => store.write(changes),
                None => store.tend(),
            };
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
                Err(error @ PersistError::Taken { .. }) => {
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
    }
}
