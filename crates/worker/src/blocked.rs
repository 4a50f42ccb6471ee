//! Event loops that are late: they were rung for seconds ago, and nobody looks.
//!
//! Code that blocks a loop holds up all calls that it runs, and says nothing of it. So the pump
//! looks since when each loop is rung for, and rings now and then for one that runs calls; of one
//! that is late it has somebody told, once a time: who then asks the language where the loop is. That
//! may take long; the pump does not wait for it.

use std::sync::Arc;
use std::time::Duration;

use oxiray_sys::clock::monotonic_ns;

use crate::reading::Reading;
use crate::runtime::{Runtime, State};

/// A loop that has not looked for so long is late.
const LATE: Duration = Duration::from_secs(2);

/// One that runs calls is rung for so long after it looked last.
const RING_AFTER: Duration = Duration::from_secs(1);

/// Finds out where the loop of a lane is, and says it; in a thread of its own.
pub type TellBlocked = dyn Fn(usize) + Send + Sync;

impl State {
    /// Loops that are late now and were not when somebody looked last; and when to look again.
    pub(crate) fn late_loops(&mut self, now: u64) -> (Vec<usize>, Option<u64>) {
        self.executor.has_rung = false;
        let (mut late, mut next) = (Vec::new(), None::<u64>);
        // It is asleep, and not blocked.
        if self.executor.reading == Reading::Asleep {
            return (late, next);
        }
        for (at, lane) in self.executor.lanes.iter_mut().enumerate() {
            if lane.rung_since().is_none() && lane.is_running() {
                let due = lane.answered() + RING_AFTER.as_nanos() as u64;
                if due > now {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    continue;
                }
                let _ = lane.ring();
            }
            let Some(due) = lane.rung_since().map(|since| since + LATE.as_nanos() as u64) else {
                continue;
            };
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
            } else if lane.blocked.is_none() {
                lane.blocked = Some(String::new());
                late.push(at);
            }
        }
        (late, next)
    }

    /// What is known of loops that are late, in words.
    pub(crate) fn blocked(&self) -> String {
        let late = self
            .executor
            .lanes
            .iter()
            .filter_map(|lane| Some((lane.rung_since()?, lane.blocked.as_ref()?)));
        let told = late.map(|(since, place)| {
            let seconds = monotonic_ns().saturating_sub(since) / 1_000_000_000;
            let place = if place.is_empty() { ".".into() } else { format!(":\n{place}") };
            format!("its event loop has begun nothing for {seconds} s{place}")
        });
        told.collect::<Vec<_>>().join("\n")
    }
}

impl Runtime {
    /// From now on loops that are late are told to this.
    pub fn tell_of_blocked_by(&self, tell: Arc<TellBlocked>) {
        self.lock().executor.tell_blocked = Some(tell);
    }

    /// For how long the loop of a lane has been late, if it still is.
    pub fn late_for(&self, lane: usize) -> Option<Duration> {
        let state = self.lock();
        let since = state.executor.lanes.get(lane)?.rung_since()?;
        Some(Duration::from_nanos(monotonic_ns().saturating_sub(since)))
            .filter(|late| *late >= LATE)
    }

    /// Where the loop of a lane is that is late.
    pub fn note_blocked(&self, lane: usize, place: String) {
        if let Some(lane) = self.lock().executor.lanes.get_mut(lane)
            && lane.blocked.is_some()
        {
            lane.blocked = Some(place);
        }
    }

    /// Has it told which loops are late: when to look again.
    pub(crate) fn look_at_loops(&self) -> Option<u64> {
        let (late, next, tell) = {
            let state = &mut *self.lock();
            let (late, next) = state.late_loops(monotonic_ns());
            (late, next, state.executor.tell_blocked.clone())
        };
        late.into_iter().for_each(|lane| tell.iter().for_each(|tell| tell(lane)));
        next
    }
}
