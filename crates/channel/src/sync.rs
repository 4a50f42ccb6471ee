//! The atomics and the sleep that this crate is built from: the machine's, or
//! shuttle's when its interleavings are explored.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(feature = "shuttle"))]
pub(crate) mod futex {
    pub(crate) use oxiray_sys::futex::{wait, wake_all};
}

/// A sleep with the one property that matters: it returns at once if the word
/// has changed. Under shuttle a waker is a yield, and a lost wake-up shows as a
/// receiver that never makes progress.
#[cfg(feature = "shuttle")]
pub(crate) mod futex {
    use std::time::Duration;

    use oxiray_sys::futex::Woken;

    use super::{AtomicU32, Ordering};

    pub(crate) fn wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) -> Woken {
        while word.load(Ordering::SeqCst) == expected {
            shuttle::thread::yield_now();
        }
        Woken::Maybe
    }

    pub(crate) fn wake_all(_word: &AtomicU32) {
        shuttle::thread::yield_now();
    }
}
