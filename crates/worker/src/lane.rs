//! Lanes: calls that wait to begin, and how many of them may run at once.
//!
//! A lane is a concurrency group; the first is for whatever names none. Calls of a lane begin in
//! the order in which they came, each as soon as fewer than its limit run.
//!
//! - **L-1** Never do more calls of a lane run than its limit.
//! - **L-2** At most one thread of a lane looks for work at a time: while calls are short, the
//!   threads that run them take the next ones too, and the others are left asleep.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use oxiray_ids::{ProcessId, TaskId};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::frame::task_token;

use crate::port::{Descriptor, Doorbell};
use crate::sync::Condvar;

/// A call that has not begun.
pub(crate) struct Queued {
    pub(crate) peer: ProcessId,
    /// In the claims of its channel; 0: it cannot be taken back.
    pub(crate) number: u64,
    pub(crate) lane: u16,
    pub(crate) bytes: Vec<u8>,
}

/// Calls that share a limit.
pub(crate) struct Lane {
    limit: u32,
    running: u32,
    queue: VecDeque<Queued>,
    threads: u32,
    asleep: u32,
    /// A thread was woken or started, and has not looked yet (L-2).
    is_searched: bool,
    pub(crate) awakened: Arc<Condvar>,
    /// Of the loop that begins its calls, if there is one.
    doorbell: Option<Doorbell>,
    /// What the loop is to hear of calls that it runs.
    news: Vec<(TaskId, News)>,
    /// The loop is late, and somebody was told: where it is, as far as that is known.
    pub(crate) blocked: Option<String>,
    answered: u64,
}

/// What a loop hears of a call that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nobody wants it any more.
    Unwanted,
    /// Who reads what it yields is further, or gone.
    Read,
}

/// What is to be done so that a call of a lane begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stir {
    Nothing,
    /// A thread that sleeps is to be woken.
    Wake,
    /// One more thread is to be started.
    Grow,
}

impl Lane {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit: limit.max(1),
            running: 0,
            queue: VecDeque::new(),
            threads: 0,
            asleep: 0,
            is_searched: false,
            awakened: Arc::new(Condvar::new()),
            doorbell: None,
            news: Vec::new(),
            blocked: None,
            answered: 0,
        }
    }

    /// A loop begins its calls.
    pub(crate) fn open_door(&mut self) -> io::Result<()> {
        self.doorbell = Some(Doorbell::new()?);
        Ok(())
    }

    /// Whether that is news to its loop.
    pub(crate) fn ring(&mut self) -> bool {
        self.doorbell.as_mut().is_some_and(Doorbell::ring)
    }

    pub(crate) fn answer(&mut self) {
        self.doorbell.as_mut().into_iter().for_each(Doorbell::answer);
        self.blocked = None;
        self.answered = monotonic_ns();
    }

    /// Whether its loop sees by itself that it is rung for.
    pub(crate) fn hush(&mut self, is_hushed: bool) {
        self.doorbell.as_mut().into_iter().for_each(|doorbell| doorbell.hush(is_hushed));
    }

    /// Its loop has looked, and there was nothing to do.
    pub(crate) fn note_look(&mut self, now: u64) {
        self.answered = now;
    }

    /// When its loop looked last.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Since when its loop has not looked, though there is something to do.
    pub(crate) fn rung_since(&self) -> Option<u64> {
        self.doorbell.as_ref().and_then(Doorbell::rung_since)
    }

    pub(crate) fn descriptor(&self) -> Option<Descriptor> {
        self.doorbell.as_ref().map(Doorbell::descriptor)
    }

    pub(crate) fn push(&mut self, queued: Queued) {
        self.queue.push_back(queued);
    }

    pub(crate) fn is_startable(&self) -> bool {
        !self.queue.is_empty() && self.running < self.limit
    }

    /// The next call, if one may begin now (L-1). Whoever begins it says [`Self::begin`].
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        if self.is_startable() { self.queue.pop_front() } else { None }
    }

    pub(crate) fn begin(&mut self) {
        self.running += 1;
        debug_assert!(self.running <= self.limit, "L-1");
    }

    pub(crate) fn end(&mut self) {
        self.running -= 1;
    }

    pub(crate) fn queued(&self) -> impl Iterator<Item = &Queued> {
        self.queue.iter()
    }

    pub(crate) fn forget(&mut self, peer: ProcessId) {
        self.queue.retain(|queued| queued.peer != peer);
    }

    /// Lets the loop, if there is one, hear of a call that it runs.
    pub(crate) fn tell_loop(&mut self, task: TaskId, news: News) {
        if self.doorbell.is_some() {
            self.news.push((task, news));
            let _ = self.ring();
        }
    }

    pub(crate) fn take_news(&mut self) -> Vec<(TaskId, News)> {
        std::mem::take(&mut self.news)
    }

    /// Takes out the call that has this token, if it waits here.
    pub(crate) fn remove(&mut self, peer: ProcessId, token: u64) -> Option<Queued> {
        let is_meant =
            |queued: &Queued| queued.peer == peer && task_token(&queued.bytes) == Some(token);
        let at = self.queue.iter().position(is_meant)?;
        self.queue.remove(at)
    }

    /// How a call that could begin comes to a thread (L-2).
    pub(crate) fn stir(&mut self) -> Stir {
        if self.is_searched || !self.is_startable() {
            return Stir::Nothing;
        }
        if self.asleep > 0 {
            self.is_searched = true;
            Stir::Wake
        } else if self.threads < self.limit {
            self.is_searched = true;
            self.threads += 1;
            Stir::Grow
        } else {
            Stir::Nothing
        }
    }

    pub(crate) fn sleeps(&mut self) {
        self.asleep += 1;
    }

    pub(crate) fn woke(&mut self) {
        self.asleep -= 1;
    }

    /// The thread that was to look has looked.
    pub(crate) fn searched(&mut self) {
        self.is_searched = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(number: u64) -> Queued {
        Queued { peer: ProcessId(number), number, lane: 0, bytes: Vec::new() }
    }

    fn lane(limit: u32, calls: u64) -> Lane {
        let mut lane = Lane::new(limit);
        (1..=calls).for_each(|number| lane.push(queued(number)));
        lane
    }

    #[test]
    fn l1_calls_begin_in_order_and_no_more_than_the_limit() {
        let mut lane = lane(2, 3);
        for number in [1, 2] {
            assert_eq!(lane.pop().map(|queued| queued.number), Some(number));
            lane.begin();
        }
        assert!(lane.pop().is_none());
        lane.end();
        assert_eq!(lane.pop().map(|queued| queued.number), Some(3));
    }

    #[test]
    fn l1_a_limit_of_zero_is_one() {
        assert!(lane(0, 1).is_startable());
    }

    #[test]
    fn l2_one_thread_at_a_time_is_stirred() {
        let mut lane = lane(2, 3);
        assert_eq!(lane.stir(), Stir::Grow);
        assert_eq!(lane.stir(), Stir::Nothing, "one is on its way");
        lane.searched();
        lane.pop();
        lane.begin();
        assert_eq!(lane.stir(), Stir::Grow);
        lane.searched();
        lane.pop();
        lane.begin();
        assert_eq!(lane.stir(), Stir::Nothing, "as many run as may");
        lane.end();
        lane.sleeps();
        assert_eq!(lane.stir(), Stir::Wake);
        lane.woke();
    }

    #[test]
    fn what_a_dead_process_asked_for_does_not_begin() {
        let mut lane = lane(1, 2);
        lane.forget(ProcessId(1));
        assert_eq!(lane.pop().map(|queued| queued.number), Some(2));
    }
}
