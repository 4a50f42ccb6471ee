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
use oxiray_sys::eventfd;

use crate::runtime::{Runtime, State};

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
    is_rung: bool,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { descriptor: Descriptor(Arc::new(eventfd::new()?)), is_rung: false })
    }

    pub(crate) fn ring(&mut self) {
        if !std::mem::replace(&mut self.is_rung, true) {
            eventfd::ring(&self.descriptor);
        }
    }

    /// Whoever calls this looks next.
    pub(crate) fn answer(&mut self) {
        if std::mem::replace(&mut self.is_rung, false) {
            eventfd::quiet(&self.descriptor);
        }
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        self.descriptor.clone()
    }
}

/// Where completions that a loop waits for are picked up.
pub(crate) struct Port {
    doorbell: Doorbell,
    complete: Vec<u64>,
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
        self.ports.iter_mut().for_each(|(_, port)| port.doorbell.ring());
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
    /// A new port, and what its loop sleeps on.
    pub fn open_port(&self) -> io::Result<(PortKey, Descriptor)> {
        let doorbell = Doorbell::new()?;
        let descriptor = doorbell.descriptor();
        let key = self.lock().ports.insert(Port { doorbell, complete: Vec::new() });
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
}
