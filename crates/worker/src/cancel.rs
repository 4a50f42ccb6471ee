//! Calls that nobody wants any more: ours elsewhere, and others' here.

use std::sync::Arc;

use oxiray_ids::{ProcessId, TaskId};
use oxiray_owner::{ObjectKey, Outbox, cancelled};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::frame::{Answer, Cancelling, Frame, Outcome, Value};

use crate::lane::Queued;
use crate::runtime::{Runtime, State};

/// Makes a call that runs here stop, if it can be. It is called while the engine is locked: it
/// waits for nobody.
pub type Interrupt = dyn Fn(TaskId) + Send + Sync;

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
        self.executor.lanes[lane].tell_unwanted(task);
        if how.recursive {
            self.owner.cancel_children(task, how, &mut self.io);
        }
        if how.force && task.actor().is_home() {
            self.io.wake_peers();
            // Killed, so that nothing of it is waited for: its owner knows why.
            oxiray_sys::process::kill(std::process::id());
        }
        if let Some(interrupt) = &self.executor.interrupt {
            interrupt(task);
        }
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
        let names: Vec<_> = task.nested.iter().chain(contained).copied().collect();
        let held = self.owner.begin_task(names.into_iter());
        let retained = self.owner.end_task(*giver, task.token, held, &mut self.io);
        let failure = cancelled(task.id, task.name);
        let values = vec![Value { body: failure.as_body(), contained: Vec::new() }];
        let outcome = Outcome::Cancelled;
        let answer = Answer { token: task.token, outcome, ran_ns: 0, values, retained };
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

    /// Calls that the loop of a lane runs and that nobody wants any more.
    pub(crate) fn take_unwanted(&self, lane: usize) -> Vec<TaskId> {
        self.lock().executor.lanes[lane].take_unwanted()
    }

    /// Whether a call that runs here was cancelled.
    pub fn is_cancelled(&self, task: TaskId) -> bool {
        self.lock().executor.is_cancelled(task)
    }
}
