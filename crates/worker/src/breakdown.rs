//! A panic of the engine ends the session, never the user's program.
//!
//! What panicked may have left the state behind the lock half-changed, so nothing is done with it
//! any more: the connection to the node service is cut, which ends everything that the session
//! started, and whoever waits is woken. Each later call says what happened. Locks are no trouble:
//! those of `parking_lot` open when a panic passes them.
//!
//! A worker that panics ends, as one without its node service does: its tasks go elsewhere, as
//! those of any worker that dies.

use std::cell::RefCell;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use oxiray_sys::process;

use crate::runtime::Runtime;

thread_local! {
    /// What the last panic of this thread said, with its place.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// There was a breakdown in this process: that of its session now, or of one before.
static WAS_THERE: AtomicBool = AtomicBool::new(false);

/// See [`Runtime::broken`], which is asked seldom if this is asked first.
pub fn was_there() -> bool {
    WAS_THERE.load(Ordering::Relaxed)
}

/// Runs `body`; if it panics, what was said and where.
pub fn caught<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    note_places();
    // Whatever is left half-changed is not used again: see above.
    panic::catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let said = LAST.take();
        said.unwrap_or_else(|| words(&*payload).to_owned())
    })
}

/// Panics of this module are reported by exceptions, not on the terminal.
fn note_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let place = info.location().map_or_else(String::new, |at| format!(" ({at})"));
            LAST.set(Some(format!("{}{place}", words(info.payload()))));
        }));
    });
}

/// What a panic said.
fn words(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

impl Runtime {
    /// The engine has panicked in this process: ends the session, once. What is said of it.
    pub fn break_down(&self, said: &str) -> &str {
        let first = self.broken.set(format!(
            "the engine failed: {said}. This session has ended; shutdown() and init() begin \
             another. The fault is oxiray's, not your program's: please report it, with these \
             words, at {}/issues",
            env!("CARGO_PKG_REPOSITORY")
        ));
        let text = self.broken.get().map_or("", String::as_str);
        if first.is_ok() {
            WAS_THERE.store(true, Ordering::SeqCst);
            if !self.identity.is_driver {
                // That is in its log, and in the error of the task it had.
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            let mut state = self.lock();
            state.stop(text.to_owned());
            state.io.node().cut();
            drop(state);
            self.leaving.store(true, Ordering::SeqCst);
            self.logs.close();
            self.replies.close();
            self.bell().ring();
            self.pump.kick_if_deep();
        }
        text
    }

    /// Why nothing can be done with it any more, if that is so.
    pub fn broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }

    /// The body of a thread of the engine, or of one that runs calls.
    pub fn run_thread(&self, body: impl FnOnce()) {
        let Err(said) = caught(body) else { return };
        self.break_down(&said);
        if !self.identity.is_driver {
            process::exit_now(1);
        }
    }

    /// Makes whichever thread looks at the state next panic, as a fault of the engine does.
    pub fn damage(&self) {
        self.lock().io.ready.push(oxiray_owner::ObjectKey(u32::MAX));
        self.bell().ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place() {
        let empty: Vec<u32> = Vec::new();
        let said = caught(|| empty[std::hint::black_box(3)]).unwrap_err();
        assert!(said.starts_with("index out of bounds"), "{said}");
        assert!(said.contains("crates/worker/src/breakdown.rs:"), "{said}");
        assert_eq!(caught(|| 1), Ok(1));
    }

    #[test]
    fn what_another_library_throws_is_told_without_a_place() {
        let said = caught(|| panic::resume_unwind(Box::new("theirs".to_owned()))).unwrap_err();
        assert_eq!(said, "theirs");
    }
}
