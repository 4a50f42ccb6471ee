//! The atomics and the sleep that this crate is built from: the machine's, or
//! shuttle's when its interleavings are explored.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(any(feature = "shuttle", feature = "shuttle-sleep")))]
pub(crate) mod futex {
    pub(crate) use oxiray_sys::futex::{wait, wake_all};
}

#[cfg(any(feature = "shuttle", feature = "shuttle-sleep"))]
pub(crate) mod futex {
    //! A sleep with the one property that matters: it returns at once if the word
    //! has changed. Under shuttle a waker is a yield, and a lost wake-up shows as a
    //! receiver that never makes progress.

    use std::time::Duration;

    use oxiray_sys::futex::Woken;
    use shuttle::rand::{Rng, thread_rng};

    use super::{AtomicU32, Ordering};

    /// Who sleeps for longer than this counts on being woken: its time is never up.
    const SHORT: Duration = Duration::from_millis(20);

    pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Woken {
        sleep_while(|| word.load(Ordering::SeqCst) == expected, timeout)
    }

    pub(crate) fn wake_all(_word: &AtomicU32) {
        shuttle::thread::yield_now();
    }

    /// Sleeps while that is so. The time of a short sleep is up at any moment.
    pub fn sleep_while(is_so: impl Fn() -> bool, timeout: Option<Duration>) -> Woken {
        let may_end = timeout.is_some_and(|timeout| timeout <= SHORT);
        while is_so() {
            if may_end && thread_rng().gen_bool(0.2) {
                return Woken::TimedOut;
            }
            shuttle::thread::yield_now();
        }
        Woken::Maybe
    }
}
