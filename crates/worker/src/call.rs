//! One call that this process took: what was sent, and the handle by which it is answered.
//!
//! - **C-1** A call ends once: by its answer, or with its process. One that is dropped before that
//!   has failed, so none can end unanswered.
//! - **C-2** It may be answered by any thread, in any order with others.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use oxiray_events::{EventLog, Ran};
use oxiray_ids::{FunctionId, ObjectId, ProcessId, TaskId};
use oxiray_owner::{Content, Failure, ObjectKey, Outbox, cancelled};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::frame::{Answer, FailureCode, Frame, Outcome, Returns, Task, Value, Values};

use crate::executor::{Queued, RunningKey};
use crate::lend::are_calls_run_here;
use crate::runtime::{Runtime, State};

/// Answers are told at least this often while more work waits.
const TELL_EVERY_NS: u64 = 200_000;

/// A call that was taken, until it is answered.
pub struct Call {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) running: RunningKey,
    /// Who pushed it.
    pub giver: ProcessId,
    /// The task.
    pub id: TaskId,
    /// What to call: a function, or nil for a method of the actor.
    pub function: FunctionId,
    /// What it gives back.
    pub returns: Returns,
    /// Its name, in the frame.
    name: Range<usize>,
    /// Its serialised arguments, in the frame.
    args: Range<usize>,
    /// Some arguments are values of references.
    has_values: bool,
    /// Devices given to it.
    pub devices: Vec<u32>,
    /// Its frame, checked to decode.
    bytes: Vec<u8>,
    /// References that came with it.
    held: Vec<ObjectKey>,
    pub(crate) token: u64,
    attempt: u16,
    recorded: bool,
    started: u64,
    /// When its function was called and when that returned; 0: not yet.
    called: Cell<u64>,
    returned: Cell<u64>,
    /// It has begun to yield,
    pub(crate) yields: Cell<bool>,
    /// and has yielded so many items.
    pub(crate) yielded: Cell<u32>,
    has_ended: bool,
}

/// What a call raised, as others need it.
#[derive(Debug)]
pub struct Raised {
    /// For whoever gets the value.
    pub data: Vec<u8>,
    /// For the record: its name.
    pub exception: String,
    /// For the record: its traceback.
    pub text: String,
    /// What its owner is to do about it.
    pub outcome: Outcome,
}

impl Raised {
    /// There is no exception, only this text.
    pub(crate) fn without_exception(text: String) -> Self {
        Self { data: Vec::new(), exception: String::new(), text, outcome: Outcome::Raised }
    }
}

impl Call {
    /// Begins what was queued. `restarts`: how often its actor was started again, of a constructor;
    /// its owner sends the same bytes each time, and each run is an attempt.
    pub(crate) fn begin(
        runtime: &Arc<Runtime>,
        state: &mut State,
        queued: Queued,
        restarts: u16,
    ) -> Option<Self> {
        let Queued { peer: giver, lane, bytes, .. } = queued;
        let Ok(Frame::Task(mut task)) = Frame::decode(&bytes) else {
            return None;
        };
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        let (name, args) = (place(task.name.as_bytes()), place(task.args));
        let has_values = !task.values.is_empty();
        let held = if has_values || !task.nested.is_empty() {
            let contained = task.values.iter().flat_map(|value| value.contained.iter());
            state.owner.begin_task(task.nested.iter().chain(contained).copied())
        } else {
            Vec::new()
        };
        let Task { token, id, function, returns, attempt, recorded, .. } = task;
        let devices = std::mem::take(&mut task.devices);
        drop(task);
        let attempt = attempt.saturating_add(restarts);
        let started = monotonic_ns();
        let running = state.begin_running((giver, token), id, lane, recorded);
        let events = &mut state.io.events;
        match (recorded, state.executor.is_concurrent()) {
            (true, false) => events.begin(id, attempt, started),
            (true, true) => events.began(id, attempt, started),
            (false, _) => events.begin_unrecorded(id),
        }
        Some(Self {
            runtime: runtime.clone(),
            running,
            giver,
            id,
            function,
            returns,
            name,
            args,
            has_values,
            devices,
            bytes,
            held,
            token,
            attempt,
            recorded,
            started,
            called: Cell::new(0),
            returned: Cell::new(0),
            yields: Cell::new(false),
            yielded: Cell::new(0),
            has_ended: false,
        })
    }

    /// Name of the actor's method, or the task's given name, or empty.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.name.clone()]).unwrap_or_default()
    }

    /// Whether that is `name`.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.bytes[self.name.clone()] == *name.as_bytes()
    }

    /// Its serialised arguments, with places for [`Self::values`].
    pub fn args(&self) -> &[u8] {
        &self.bytes[self.args.clone()]
    }

    /// Whether some arguments are values of references.
    pub fn has_values(&self) -> bool {
        self.has_values
    }

    /// Values of references among its arguments, in order. Decoding them takes its time.
    pub fn values(&self) -> Values<'_> {
        if !self.has_values {
            return Values::new();
        }
        match Frame::decode(&self.bytes) {
            Ok(Frame::Task(task)) => task.values,
            _ => unreachable!("checked when it was taken"),
        }
    }

    /// The bytes of the task's frame.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its function is about to be called, after arguments or the function had to be fetched.
    pub fn note_call(&self) {
        if self.recorded {
            self.called.set(monotonic_ns());
        }
    }

    /// Its function returned, or raised.
    pub fn note_return(&self) {
        if self.recorded {
            self.returned.set(monotonic_ns());
        }
    }

    /// It returned these: a value each, with the references inside it. `name` is the function's.
    pub fn succeed(mut self, name: &Arc<str>, values: &[(Content, Vec<ObjectKey>)]) {
        if self.is_let_go(values) {
            return self.end_cancelled(name);
        }
        self.end(name, Outcome::Done, values, None);
    }

    /// Whether it is a call of an actor that was cancelled while it ran: it was told and may have
    /// cleaned up, and what it returned is let go, as in Ray. A coroutine was cancelled itself.
    fn is_let_go(&self, values: &[(Content, Vec<ObjectKey>)]) -> bool {
        if self.id.actor().is_home() {
            return false;
        }
        let state = &mut *self.runtime.lock();
        let is_let_go = state.executor.lets_go(self.running);
        if is_let_go {
            for (content, keys) in values {
                if let Content::Stored { origin, .. } = content {
                    state.io.free_stored(*origin);
                }
                keys.iter().for_each(|key| state.owner.drop_ref(*key, &mut state.io));
            }
        }
        is_let_go
    }

    /// It raised.
    pub fn fail(self, name: &Arc<str>, raised: Raised) {
        self.fail_after(name, raised, &[]);
    }

    /// It raised after it had made the values of its first returns: the others have the failure.
    pub fn fail_after(
        mut self,
        name: &Arc<str>,
        raised: Raised,
        made: &[(Content, Vec<ObjectKey>)],
    ) {
        let Raised { data, exception, text, outcome } = raised;
        let failure = Failure::new(FailureCode::TaskError, String::new(), data);
        let failure = (Content::Failed(Arc::new(failure)), Vec::new());
        let has_all = !made.is_empty() && made.len() == self.returns.in_answer() as usize;
        let values = match has_all {
            true => made.to_vec(),
            false => made.iter().cloned().chain([failure]).collect(),
        };
        self.end(name, outcome, &values, Some((&exception, &text)));
    }

    /// It raised, and that is the last item that it yielded: this is the value that it returns.
    pub fn fail_as_item(
        mut self,
        name: &Arc<str>,
        raised: &Raised,
        value: (Content, Vec<ObjectKey>),
    ) {
        let record = Some((&*raised.exception, &*raised.text));
        self.end(name, Outcome::Raised, &[value], record);
    }

    /// Whether nobody wants it any more.
    pub fn is_cancelled(&self) -> bool {
        self.runtime.is_cancelled(self.id)
    }

    /// It was stopped, because nobody wants it any more.
    pub fn end_cancelled(mut self, name: &Arc<str>) {
        let failure = cancelled(self.id, name);
        let record = Some(("TaskCancelledError", "it was cancelled"));
        self.end(name, Outcome::Cancelled, &[(failure, Vec::new())], record);
    }

    /// It raised, and whoever waits for it hears of that by another way: of constructors.
    pub fn fail_quietly(mut self, name: &Arc<str>, exception: &str, text: &str) {
        self.end(name, Outcome::Raised, &[], Some((exception, text)));
    }

    /// The process ends, for this reason, and the call with it. `is_failing`: as if it had
    /// crashed, so that an actor may be started again.
    pub fn end_process(mut self, reason: String, is_failing: bool) {
        self.has_ended = true;
        let state = &mut *self.runtime.lock();
        state.end_running(self.running);
        state.executor.leave(reason, is_failing);
        self.runtime.call_main(state);
    }

    fn end(
        &mut self,
        name: &Arc<str>,
        outcome: Outcome,
        values: &[(Content, Vec<ObjectKey>)],
        error: Option<(&str, &str)>,
    ) {
        self.has_ended = true;
        let (giver, token) = (self.giver, self.token);
        let held = std::mem::take(&mut self.held);
        let runtime = &self.runtime;
        let state = &mut *runtime.lock();
        let now = monotonic_ns();
        let ran_ns = now.saturating_sub(self.started);
        self.record(&mut state.io.events, name, now, error);
        state.end_running(self.running);
        let retained: Vec<ObjectId> = state.owner.end_task(giver, token, held, &mut state.io);
        let mut handed_over = Vec::new();
        let values = values
            .iter()
            .map(|(content, keys)| {
                handed_over.extend_from_slice(keys);
                let contained = keys.iter().map(|key| state.owner.name(*key)).collect();
                Value { body: content.as_body(), contained }
            })
            .collect();
        state.owner.hand_over(giver, token, 0, handed_over);
        state.io.send(giver, &Frame::Answer(Answer { token, outcome, ran_ns, values, retained }));
        // While more work waits here, the owner is told now and then only: a thread that runs calls
        // tells the rest, and looks for more, before it sleeps. Another one (C-2) does neither.
        let is_elsewhere = !are_calls_run_here();
        if state.executor.is_time_to_tell(now, TELL_EVERY_NS) || is_elsewhere {
            state.io.wake_peers();
        }
        if state.executor.may_end() || is_elsewhere {
            runtime.call_main(state);
        }
    }

    /// Notes how it ran, if that is recorded.
    fn record(
        &self,
        events: &mut EventLog,
        name: &Arc<str>,
        now: u64,
        error: Option<(&str, &str)>,
    ) {
        if !self.recorded {
            return events.end();
        }
        let (called, returned) = match (self.called.get(), self.returned.get()) {
            // It failed on the way to its function.
            (_, 0) => (now, now),
            // Its arguments came with it.
            (0, returned) => (self.started, returned),
            times => times,
        };
        events.ran(&Ran {
            task: self.id,
            attempt: self.attempt,
            name,
            start: self.started,
            fetch: called.saturating_sub(self.started),
            execute: returned.saturating_sub(called),
            store: now.saturating_sub(returned),
            error,
        });
    }
}

impl Drop for Call {
    /// Nobody will answer it (C-1). In a forked child it is the parent's to answer.
    fn drop(&mut self) {
        if self.has_ended || !self.runtime.is_ours() {
            return;
        }
        if self.is_cancelled() {
            let name: Arc<str> = self.name().into();
            let failure = cancelled(self.id, &name);
            let record = Some(("TaskCancelledError", "it was cancelled"));
            return self.end(&name, Outcome::Cancelled, &[(failure, Vec::new())], record);
        }
        let text = "its worker gave the call up without an answer";
        let failure = Content::failed(FailureCode::System, text);
        let name: Arc<str> = self.name().into();
        self.end(&name, Outcome::Raised, &[(failure, Vec::new())], Some(("RaySystemError", text)));
    }
}
