//! Ports: how an event loop of the language hears that something is there for it.
//!
//! A loop sleeps on descriptors. Each port has one, which is readable while there is something at
//! the port that was not taken.
//!
//! - **P-1** Whatever is put at a port is taken at the next look after the descriptor was readable.
//! - **P-2** However much is put there in a burst, it rings once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use oxiray_owner::ObjectKey;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::eventfd;

use crate::reading::Reading;
use crate::runtime::{Runtime, State, Waited};

/// A descriptor that a loop sleeps on.
#[derive(Clone)]
pub struct Descriptor(Arc<OwnedFd>);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Rings once until somebody looks (P-2).
pub(crate) struct Doorbell {
    descriptor: Descriptor,
    /// Since when it is rung.
    rung: Option<u64>,
    /// Whether the descriptor is readable.
    is_heard: bool,
    /// Its loop reads for itself (see [`crate::reading`]), and sees that it is rung.
    is_hushed: bool,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let descriptor = Descriptor(Arc::new(eventfd::new()?));
        Ok(Self { descriptor, rung: None, is_heard: false, is_hushed: false })
    }

    /// Whether that is news.
    pub(crate) fn ring(&mut self) -> bool {
        let is_news = self.rung.is_none();
        if is_news {
            self.rung = Some(monotonic_ns());
        }
        if !self.is_heard && !self.is_hushed {
            self.is_heard = true;
            eventfd::ring(&self.descriptor);
        }
        is_news
    }

    /// Whether its loop sees by itself that it is rung. One that ceases to is rung for (P-1).
    pub(crate) fn hush(&mut self, is_hushed: bool) {
        self.is_hushed = is_hushed;
        if self.rung.is_some() {
            self.ring();
        }
    }

    /// Since when nobody has answered it.
    pub(crate) fn rung_since(&self) -> Option<u64> {
        self.rung
    }

    /// Whoever calls this looks next.
    pub(crate) fn answer(&mut self) {
        self.rung = None;
        if std::mem::take(&mut self.is_heard) {
            eventfd::quiet(&self.descriptor);
        }
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        self.descriptor.clone()
    }
}

/// Where completions that a loop waits for are picked up.
pub(crate) struct Port {
    pub(crate) doorbell: Doorbell,
    complete: Vec<u64>,
    /// It is of the loop that reads for itself, while that does.
    pub(crate) is_readers: bool,
}

impl Port {
    pub(crate) fn put(&mut self, token: u64) {
        self.complete.push(token);
        self.doorbell.ring();
    }
}

/// Names a port of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortKey(usize);

/// Who hears of a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watcher {
    /// The thread that sleeps in [`Runtime::next_fired`].
    Thread,
    /// A loop.
    Port(PortKey),
}

impl State {
    /// The session is over: loops hear that what they wait for will not come.
    pub(crate) fn stop(&mut self, reason: String) {
        // What was said first is why.
        self.stopped.get_or_insert(reason);
        self.ports.iter_mut().for_each(|(_, port)| _ = port.doorbell.ring());
    }

    pub(crate) fn tell_watcher(&mut self, watcher: Watcher, token: u64) {
        match watcher {
            Watcher::Thread => self.fired.push(token),
            // A loop that was closed waits for nothing.
            Watcher::Port(PortKey(key)) => {
                if let Some(port) = self.ports.get_mut(key) {
                    port.put(token);
                }
            }
        }
    }
}

impl Runtime {
    /// A new port, and what its loop sleeps on. `is_readers`: that is the loop of the first lane.
    pub fn open_port(&self, is_readers: bool) -> io::Result<(PortKey, Descriptor)> {
        let mut doorbell = Doorbell::new()?;
        let descriptor = doorbell.descriptor();
        let key = {
            let state = &mut *self.lock();
            doorbell.hush(is_readers && state.executor.reading != Reading::No);
            state.ports.insert(Port { doorbell, complete: Vec::new(), is_readers })
        };
        // Somebody has to read from now on, whatever the threads of the user do.
        self.pump.rouse_if_on_bell(self.bell());
        Ok((PortKey(key), descriptor))
    }

    /// The loop is gone.
    pub fn close_port(&self, port: PortKey) {
        self.lock().ports.try_remove(port.0);
    }

    /// What is complete of what the loop of a port waits for.
    pub fn take_complete(&self, port: PortKey) -> Vec<u64> {
        let state = &mut *self.lock();
        let Some(port) = state.ports.get_mut(port.0) else {
            return Vec::new();
        };
        port.doorbell.answer();
        std::mem::take(&mut port.complete)
    }

    /// Asks for `token` to be put at `watcher` once the object is complete. Takes over one count
    /// of it.
    pub fn watch(&self, key: ObjectKey, watcher: Watcher, token: u64) {
        let state = &mut *self.lock();
        if state.watching.contains_key(&key) || state.owner.watch(key, &mut state.io) {
            let watchers = state.watching.entry(key).or_default();
            if !watchers.is_empty() {
                // One count stays for all who watch.
                state.owner.drop_ref(key, &mut state.io);
            }
            watchers.push((watcher, token));
        } else {
            state.tell_watcher(watcher, token);
            state.owner.drop_ref(key, &mut state.io);
        }
        state.io.wake_peers();
        if watcher == Watcher::Thread {
            self.bell().ring();
        }
    }

    /// Sleeps until watched objects are complete: their tokens.
    pub fn next_fired(&self) -> Result<Vec<u64>, Waited> {
        let mut fired = Vec::new();
        let waited = self.wait_until(
            None,
            || false,
            |state| {
                fired = std::mem::take(&mut state.fired);
                !fired.is_empty()
            },
        );
        if waited == Waited::Done { Ok(fired) } else { Err(waited) }
    }
}
