//! An actor that may be started again elsewhere ends, at the latest, with the lease of its node.
//!
//! Its node service sees to that. But it may be stopped while its workers are not: so they look
//! themselves at the time that the node shows.
//!
//! - **X-1** no call is begun, nor a constructor, after the lease has ended.
//! - **X-2** what runs then is ended by the thread that listens to the node service, which is not held
//!   up by the language.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxiray_channel::LeaseEnd;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::{packet, process};
use oxiray_wire::control::{Text, to_node};

use crate::line::Line;

/// What a process may not outlive, once it is such an actor.
pub(crate) struct Fence {
    end: LeaseEnd,
    line: Arc<Line>,
    /// It is one. Nobody waits for this to change.
    is_up: AtomicBool,
}

impl Fence {
    pub(crate) fn new(end: LeaseEnd, line: Arc<Line>) -> Self {
        Self { end, line, is_up: AtomicBool::new(false) }
    }

    /// From now on this process is an actor that may be started again elsewhere.
    pub(crate) fn put_up(&self) {
        self.is_up.store(true, Ordering::SeqCst);
    }

    /// How long the lease still runs; none: there is none.
    fn rest(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.end.at()?.saturating_sub(monotonic_ns())))
    }

    /// Ends this process if it may not go on.
    #[inline]
    pub(crate) fn check(&self) {
        if self.is_up.load(Ordering::Relaxed) && self.rest() == Some(Duration::ZERO) {
            self.end_process();
        }
    }

    #[cold]
    fn end_process(&self) {
        let text = "the lease of its node ended: it may have been started elsewhere".to_owned();
        // If the node service goes on one day, it reads that.
        _ = self.line.say(to_node::Body::Failing(Text { text }));
        process::end_own_group(1);
    }

    /// Sleeps until the node service says something; in vain if the lease ends before.
    pub(crate) fn sleep(&self, socket: &OwnedFd) {
        while let Some(rest) = self.rest() {
            // Beyond its end only a process sleeps here that has not become the actor.
            let rest = if rest.is_zero() { Duration::from_secs(1) } else { rest };
            // An error is told by whoever receives.
            if packet::await_packet(socket, rest).unwrap_or(true) {
                return;
            }
            self.check();
        }
    }
}
