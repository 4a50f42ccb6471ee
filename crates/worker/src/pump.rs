//! The thread that reads frames while nobody else does.
//!
//! It is in one of three beds:
//! - *nap*: user threads are active and read for themselves, and none of them is an event loop that does not. It
//!   wakes every millisecond to ring bells that a burst left unrung, and to let time pass.
//! - *deep*: a user thread waits and so reads everything. It sleeps until that
//!   one leaves or sets an alarm, or until the owner has something to do with time.
//! - *on the bell*: nobody reads, so it does.
//!
//! The common case, a loop of calls, costs it one look each millisecond and
//! costs the callers nothing.

use std::sync::Arc;
use std::time::Duration;

use oxiray_channel::Bell;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::process;

use crate::runtime::{Runtime, State};
use crate::sync::{AtomicU32, Ordering, futex, thread};

const NAP: Duration = Duration::from_millis(1);

const AWAKE: u32 = 0;
const NAPPING: u32 = 1;
const DEEP: u32 = 2;
const ON_BELL: u32 = 3;

/// Where the pump is. Also the word that it sleeps on when deep.
#[derive(Default)]
pub struct PumpBed(AtomicU32);

impl PumpBed {
    pub(crate) fn is_napping(&self) -> bool {
        self.0.load(Ordering::Relaxed) == NAPPING
    }

    /// A reader leaves: somebody must read now.
    pub(crate) fn kick_if_deep(&self) {
        if self.0.compare_exchange(DEEP, AWAKE, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            futex::wake_all(&self.0);
        }
    }

    /// Time may matter sooner than it knows: then it looks, wherever it is on its way to bed. That
    /// a loop which was rung for is late, or a call does not hear that it is to stop, nobody else
    /// will see.
    pub(crate) fn hear_alarm(&self, state: &mut State, activity: &AtomicU32) {
        if state.owner.take_alarm() || state.executor.has_rung || state.executor.unheard.is_some() {
            activity.fetch_add(1, Ordering::SeqCst);
            self.kick_if_deep();
        }
    }

    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn words(&self) -> &'static str {
        ["awake", "napping", "deep", "on the bell"][self.0.load(Ordering::SeqCst) as usize]
    }

    /// Something happened that time matters for.
    pub(crate) fn rouse_if_on_bell(&self, bell: &Bell) {
        if self.0.load(Ordering::Relaxed) == ON_BELL {
            bell.ring();
        }
    }
}

/// Runs until the session ends.
pub(crate) fn run(runtime: &Arc<Runtime>) {
    process::block_signals_in_this_thread();
    let mut seen = 0;
    loop {
        // Before the look at `leaving`: whoever sets that rings afterwards.
        let ticket = runtime.bell().ticket();
        if runtime.leaving.load(Ordering::SeqCst) {
            return;
        }
        let (next, has_loops, has_deaf_loops) = {
            let state = &mut *runtime.lock();
            runtime.drain(state, 0);
            state.set_now(monotonic_ns());
            let next = state.owner.on_tick(&mut state.io);
            let next = next.into_iter().chain(state.interrupt_again(monotonic_ns())).min();
            state.collect_watched();
            state.io.wake_peers();
            (next, state.has_loops(), state.has_deaf_loops())
        };
        let next = match has_loops {
            true => next.into_iter().chain(runtime.look_at_loops()).min(),
            false => next,
        };
        let until_next =
            next.map(|at| Duration::from_nanos(at.saturating_sub(monotonic_ns()).max(100_000)));
        let activity = runtime.activity.load(Ordering::Relaxed);
        let bed = &runtime.pump.0;
        // Most loops do not read for themselves, however active they are.
        if std::mem::replace(&mut seen, activity) != activity && !has_deaf_loops {
            bed.store(NAPPING, Ordering::SeqCst);
            thread::sleep(NAP);
        } else if runtime.waiters.load(Ordering::SeqCst) > 0 {
            bed.store(DEEP, Ordering::SeqCst);
            // Look again: the reader may have left, or have set an alarm, before it could see us
            // go to bed.
            let is_quiet = runtime.activity.load(Ordering::SeqCst) == activity;
            if is_quiet && runtime.waiters.load(Ordering::SeqCst) > 0 {
                futex::wait(bed, DEEP, until_next);
            }
        } else {
            bed.store(ON_BELL, Ordering::SeqCst);
            runtime.bell().sleep(ticket, until_next);
        }
        bed.store(AWAKE, Ordering::SeqCst);
    }
}
