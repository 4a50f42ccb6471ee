//! Sleeping on a word of shared memory. The futexes are not process-private:
//! the waker is usually another process.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

/// Why a [`wait`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Somebody woke us, or the word had already changed, or for no reason at all.
    Maybe,
    /// The time was up.
    TimedOut,
    /// A signal handler ran in this thread.
    Interrupted,
}

/// Sleeps while `word` is `expected`, at most for `timeout`.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Woken {
    let timeout = timeout.map(|limit| rustix::time::Timespec {
        tv_sec: limit.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    match futex::wait(word, Flags::empty(), expected, timeout.as_ref()) {
        Err(Errno::TIMEDOUT) => Woken::TimedOut,
        Err(Errno::INTR) => Woken::Interrupted,
        _ => Woken::Maybe,
    }
}

/// Wakes every sleeper on `word`.
pub fn wake_all(word: &AtomicU32) {
    // Fails only for an address that is not mapped, which a reference always is.
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}
