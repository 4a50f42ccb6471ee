//! Connections that have not shown the token yet: few, and not for long.
//!
//! Whoever can reach the port can connect. So that strangers cannot keep its owner out, each new
//! connection beyond the limit ends the oldest that is still unknown; the owner's shows the token
//! within a moment.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// Set by the first request with the token.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known(Arc<AtomicBool>);

impl Known {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The unknown, the oldest first.
#[derive(Debug)]
pub(crate) struct Crowd {
    most: usize,
    unknown: VecDeque<(Known, AbortHandle)>,
}

impl Crowd {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, unknown: VecDeque::new() }
    }

    /// One more.
    pub(crate) fn admit(&mut self, known: Known, connection: AbortHandle) {
        self.unknown.push_back((known, connection));
        if self.unknown.len() > self.most {
            self.unknown.retain(|(known, task)| !known.is_set() && !task.is_finished());
        }
        while self.unknown.len() > self.most
            && let Some((_, oldest)) = self.unknown.pop_front()
        {
            oldest.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_stranger_goes() {
        let mut crowd = Crowd::new(2);
        let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
        let known: Vec<Known> = (0..4).map(|_| Known::default()).collect();
        known[0].set();
        for (known, task) in known.iter().zip(&tasks) {
            crowd.admit(known.clone(), task.abort_handle());
        }
        tokio::task::yield_now().await;
        let ended: Vec<bool> = tasks.iter().map(|task| task.is_finished()).collect();
        assert_eq!(ended, [false, true, false, false]);
    }
}
