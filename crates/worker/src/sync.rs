//! The locks, atomics and sleeps at which the threads of a process meet: the machine's, or shuttle's
//! when their interleavings are explored.
//!
//! What no thread waits in is not here: the locks of logs and of the store, and mere counters.

#[cfg(not(feature = "shuttle"))]
mod machine {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    pub(crate) use std::{thread, thread_local};

    pub(crate) use oxiray_sys::futex;
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
}

#[cfg(not(feature = "shuttle"))]
pub(crate) use machine::*;

#[cfg(feature = "shuttle")]
pub(crate) use explored::*;

/// Shuttle's, in the form of those above.
#[cfg(feature = "shuttle")]
mod explored {
    use std::ops::{Deref, DerefMut};
    use std::sync::PoisonError;

    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    pub(crate) use shuttle::{thread, thread_local};

    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    /// Empty only while its thread sleeps on a [`Condvar`].
    pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("its thread is awake")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("its thread is awake")
        }
    }

    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let locked = guard.0.take().expect("its thread is awake");
            guard.0 = Some(self.0.wait(locked).unwrap_or_else(PoisonError::into_inner));
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
    }

    pub(crate) mod futex {
        use std::time::Duration;

        use oxiray_sys::futex::Woken;

        use super::{AtomicU32, Ordering};

        pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Woken {
            let is_expected = || word.load(Ordering::SeqCst) == expected;
            oxiray_channel::sleep_while(is_expected, timeout)
        }

        pub(crate) fn wake_all(_word: &AtomicU32) {
            super::thread::yield_now();
        }
    }
}
