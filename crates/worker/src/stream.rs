//! Streams: calls that yield here, and reading what others yield.
//!
//! A call that yields goes on at once, as long as it is not further ahead of its reader than it may
//! be. Items are told as submissions are: a burst of them wakes the reader now and then.

use std::sync::Arc;

use oxiray_ids::{ObjectId, ProcessId, TaskId};
use oxiray_owner::{Content, ObjectKey, Outbox};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::frame::{Frame, Returns, Value, Yield, item_object};

use crate::call::Call;
use crate::executor::RunningKey;
use crate::lane::News;
use crate::runtime::{Runtime, State, Waited};

/// What a call that yields is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Go on.
    On,
    /// Wait: the reader has enough for now.
    Full,
    /// End: nobody reads on.
    NoReader,
    /// End: it was cancelled.
    Cancelled,
}

impl Call {
    /// Whether it yields.
    pub fn is_stream(&self) -> bool {
        !matches!(self.returns, Returns::Fixed(_))
    }

    /// Items that it yielded so far.
    pub fn yielded(&self) -> u32 {
        self.yielded.get()
    }

    /// Gives the reader the next item, with the references inside it.
    pub fn yield_item(&self, content: &Content, contained: Vec<ObjectKey>) -> Flow {
        let (giver, token, item) = (self.giver, self.token, self.yielded.get() + 1);
        self.yielded.set(item);
        let state = &mut *self.runtime.lock();
        let names = contained.iter().map(|key| state.owner.name(*key)).collect();
        state.owner.hand_over(giver, token, item, contained);
        let value = Value { body: content.as_body(), contained: names };
        state.io.send(giver, &Frame::Yield(Yield { token, item, value }));
        self.runtime.after_yield(state);
        self.flow_in(state)
    }

    /// It yields from now on.
    pub fn begin_items(&self) {
        self.yields.set(true);
    }

    /// Whether it has begun to yield.
    pub fn has_yielded(&self) -> bool {
        self.yields.get()
    }

    /// The objects that it has yielded.
    pub fn items(&self) -> impl Iterator<Item = ObjectId> {
        (1..=self.yielded.get()).map(|item| item_object(self.id, item))
    }

    /// What it is to do now.
    pub fn flow(&self) -> Flow {
        self.flow_in(&self.runtime.lock())
    }

    fn flow_in(&self, state: &State) -> Flow {
        self.progress().flow(state)
    }

    fn progress(&self) -> Progress {
        let limit = match self.returns {
            Returns::Stream { ahead } => ahead,
            Returns::Gathered | Returns::Fixed(_) => 0,
        };
        Progress { running: self.running, yielded: self.yielded.get(), limit }
    }

    /// To wait for its reader.
    pub fn reader(&self) -> Reader {
        Reader { runtime: self.runtime.clone(), progress: self.progress() }
    }
}

/// How far a call is that yields.
#[derive(Clone, Copy)]
struct Progress {
    running: RunningKey,
    yielded: u32,
    limit: u32,
}

impl Progress {
    fn flow(self, state: &State) -> Flow {
        let running = &state.executor.running[self.running.0 as usize];
        match () {
            () if running.cancelled => Flow::Cancelled,
            () if running.no_reader => Flow::NoReader,
            () if self.limit > 0 && self.yielded.saturating_sub(running.read) >= self.limit => {
                Flow::Full
            }
            () => Flow::On,
        }
    }
}

/// Who reads what a call yields, as the call sees it.
pub struct Reader {
    runtime: Arc<Runtime>,
    progress: Progress,
}

impl Reader {
    /// Sleeps until the call need not wait for it any more.
    pub fn wait(&self, interrupted: impl FnMut() -> bool) -> Waited {
        let done = |state: &mut State| self.progress.flow(state) != Flow::Full;
        self.runtime.wait_until(None, interrupted, done)
    }
}

impl State {
    /// The reader of a call that yields here has had so many items; `None`: it is gone.
    pub(crate) fn reader_is_at(&mut self, giver: ProcessId, token: u64, items: Option<u32>) {
        let mut running = self.executor.running.iter_mut().map(|(_, running)| running);
        let Some(running) = running.find(|call| call.giver == giver && call.token == token) else {
            return;
        };
        match items {
            Some(items) => running.read = running.read.max(items),
            None => running.no_reader = true,
        }
        let (task, lane) = (running.task, usize::from(running.lane));
        self.executor.lanes[lane].tell_loop(task, News::Read);
    }
}

impl Runtime {
    fn after_yield(&self, state: &mut State) {
        let now = monotonic_ns();
        self.after_submit(state, now);
        // It tells what is left untold when the next item is long in coming.
        self.pump.rouse_if_on_bell(self.bell());
    }

    /// The reader of a task's stream is gone.
    pub fn drop_reader(&self, task: TaskId) {
        let state = &mut *self.lock();
        state.set_now(monotonic_ns());
        state.owner.drop_reader(task, &mut state.io);
        state.collect_watched();
        state.io.wake_peers();
    }
}
