//! Calls that nobody wants any more: ours elsewhere, and others' here.

use std::sync::Arc;

use oxiray_ids::{ProcessId, TaskId};
use oxiray_owner::{ObjectKey, Outbox, cancelled};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::frame::{Answer, Cancelling, Frame, Outcome, Value};

use crate::lane::{News, Queued};
use crate::runtime::{Runtime, State};

/// Makes a call that runs here stop, if it can be; whether it may not hear of it. It is called while
/// the engine is locked: it waits for nobody.
pub type Interrupt = dyn Fn(TaskId, Asked) -> bool + Send + Sync;

/// How often a call was asked to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// This is the first time.
    Now,
    /// It was before: once it has heard of it, there is nothing to do.
    Again,
}

/// A call that was asked to stop and may not have heard of it: a signal that comes just before a
/// system call interrupts nothing. So it is sent again, less and less often.
#[derive(Clone, Copy)]
pub(crate) struct Unheard {
    task: TaskId,
    again_at: u64,
    pause: u64,
}

/// How long a call has to hear that it is to stop, before it is told again.
const FIRST_PAUSE: u64 = 5_000_000;
const LONGEST_PAUSE: u64 = 1_000_000_000;

impl State {
    /// Its owner does not want a call any more. One that waits is answered now; one that runs is
    /// told, and answered when it ends; one that was answered is left alone.
    pub(crate) fn cancel(&mut self, giver: ProcessId, token: u64, how: Cancelling) {
        let mut lanes = self.executor.lanes.iter_mut();
        if let Some(queued) = lanes.find_map(|lane| lane.remove(giver, token)) {
            return self.answer_cancelled(&queued);
        }
        let mut running = self.executor.running.iter_mut().map(|(_, running)| running);
        let Some(running) = running.find(|call| call.giver == giver && call.token == token) else {
            return;
        };
        running.cancelled = true;
        let (task, lane) = (running.task, usize::from(running.lane));
        self.executor.lanes[lane].tell_loop(task, News::Unwanted);
        if how.recursive {
            self.owner.cancel_children(task, how, &mut self.io);
            // Not with what this process says next: what is cancelled late may have ended by then.
            self.io.wake_peers();
        }
        if how.force && task.actor().is_home() {
            self.io.wake_peers();
            // Killed, so that nothing of it is waited for: its owner knows why.
            oxiray_sys::process::kill(std::process::id());
        }
        if let Some(interrupt) = &self.executor.interrupt
            && interrupt(task, Asked::Now)
        {
            let again_at = monotonic_ns() + FIRST_PAUSE;
            self.executor.unheard = Some(Unheard { task, again_at, pause: FIRST_PAUSE });
        }
    }

    /// Asks a call again that may not have heard that it is to stop: when to do that next.
    pub(crate) fn interrupt_again(&mut self, now: u64) -> Option<u64> {
        let unheard = self.executor.unheard?;
        if unheard.again_at > now {
            return Some(unheard.again_at);
        }
        let runs = self.executor.is_cancelled(unheard.task);
        let interrupt = self.executor.interrupt.as_ref().filter(|_| runs);
        let pause = (unheard.pause * 2).min(LONGEST_PAUSE);
        self.executor.unheard = interrupt
            .filter(|interrupt| interrupt(unheard.task, Asked::Again))
            .map(|_| Unheard { again_at: now + pause, pause, ..unheard });
        self.executor.unheard.map(|unheard| unheard.again_at)
    }

    /// Answers a call that is not to begin.
    fn answer_cancelled(&mut self, queued: &Queued) {
        let Queued { peer: giver, number, bytes, .. } = queued;
        let Ok(Frame::Task(task)) = Frame::decode(bytes) else {
            return;
        };
        if !self.io.take(*giver, *number) {
            return;
        }
        let contained = task.values.iter().flat_map(|value| value.contained.iter());
        let held = self.owner.begin_task(task.nested.iter().chain(contained).copied());
        let retained = self.owner.end_task(*giver, task.token, held, &mut self.io);
        let failure = cancelled(task.id, task.name);
        let value = Value { body: failure.as_body(), contained: Vec::new() };
        let outcome = Outcome::Cancelled;
        let answer =
            Answer { token: task.token, outcome, ran_ns: 0, values: [value].into(), retained };
        self.io.send(*giver, &Frame::Answer(answer));
        self.io.wake_peers();
    }
}

impl Runtime {
    /// The task that is to return an object is not wanted any more.
    pub fn cancel(&self, key: ObjectKey, how: Cancelling) {
        let state = &mut *self.lock();
        state.set_now(monotonic_ns());
        state.owner.cancel(key, how, &mut state.io);
        state.collect_watched();
        state.io.wake_peers();
        // Other threads may wait for what has ended by it.
        self.bell().ring();
    }

    /// From now on calls that run and are cancelled are stopped by this.
    pub fn interrupt_by(&self, interrupt: Arc<Interrupt>) {
        self.lock().executor.interrupt = Some(interrupt);
    }

    /// What the loop of a lane is to hear of calls that it runs.
    pub(crate) fn take_news(&self, lane: usize) -> Vec<(TaskId, News)> {
        self.lock().executor.lanes[lane].take_news()
    }

    /// Whether a call that runs here was cancelled.
    pub fn is_cancelled(&self, task: TaskId) -> bool {
        self.lock().executor.is_cancelled(task)
    }
}
