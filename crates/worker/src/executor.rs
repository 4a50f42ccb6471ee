//! Tasks that others pushed to this process.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::ThreadId;

use oxiray_events::{EventLog, Ran};
use oxiray_ids::{ActorId, FunctionId, ObjectId, ProcessId, TaskId};
use oxiray_owner::{Failure, ObjectKey, Outbox};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{KEPT_ACTORS, Kv, KvVerb};
use oxiray_wire::control::{self, JobConfig, StartActor, to_node};
use oxiray_wire::frame::{self, Answer, Frame, Outcome, Task, Value};

use crate::runtime::{Runtime, State, Waited};

/// Answers are told at least this often while more work waits.
const TELL_EVERY_NS: u64 = 200_000;

/// Constructors up to this many bytes, with their classes, are kept.
const MOST_KEPT: usize = 100 << 10;

struct Queued {
    peer: ProcessId,
    number: u64,
    bytes: Vec<u8>,
}

/// What the main thread of a worker is to do next.
pub enum Work {
    /// Run a task.
    Task(Execution),
    /// Become an actor.
    StartActor(StartActor),
    /// Work for a job: its modules are found in these places.
    JoinJob(JobConfig),
    /// Say that a task of ours failed, and that nobody has looked at its error.
    Tell(Arc<Failure>),
    /// Collect garbage: it may be all that keeps this process.
    Collect,
    /// Exit, for this reason.
    Exit(String),
}

/// A task taken, until it is answered.
pub struct Execution {
    /// Who pushed it.
    pub giver: ProcessId,
    /// Its frame, checked to decode.
    bytes: Vec<u8>,
    /// References that came with it.
    held: Vec<ObjectKey>,
    token: u64,
    started: u64,
    /// When its function was called and when that returned; 0: not yet.
    called: Cell<u64>,
    returned: Cell<u64>,
    /// The task.
    pub id: TaskId,
    attempt: u16,
    recorded: bool,
}

impl Execution {
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

    /// The task's frame.
    pub fn task(&self) -> Task<'_> {
        match Frame::decode(&self.bytes) {
            Ok(Frame::Task(task)) => task,
            _ => unreachable!("checked when it was taken"),
        }
    }
}

/// The work of this process.
pub struct Executor {
    queue: VecDeque<Queued>,
    running: Option<ProcessId>,
    thread: Option<ThreadId>,
    /// The constructor that was asked for.
    pub(crate) constructor: Option<Vec<u8>>,
    /// Become this, once.
    pub(crate) start: Option<StartActor>,
    /// Work for this job, once.
    pub(crate) join: Option<JobConfig>,
    /// It is known what this process works for: before that it takes no task.
    has_job: bool,
    /// No more tasks are taken, for this reason.
    retired: Option<String>,
    /// The node wants us gone when idle.
    pub(crate) exit: bool,
    /// Garbage was collected since we are to exit.
    collected: bool,
    /// Memory is short, and garbage may hold some.
    pub(crate) memory_is_short: bool,
    /// Nobody holds a handle of our actor.
    pub(crate) unreferenced: bool,
    /// When owners were last told of answers.
    told: u64,
    /// Whose task was answered last.
    answered: Option<ProcessId>,
}

impl Executor {
    pub(crate) fn new(has_job: bool) -> Self {
        Self {
            queue: VecDeque::new(),
            running: None,
            thread: None,
            constructor: None,
            start: None,
            join: None,
            has_job,
            retired: None,
            exit: false,
            collected: false,
            memory_is_short: false,
            unreferenced: false,
            told: 0,
            answered: None,
        }
    }

    /// References in garbage that is a cycle are let go by nothing else, once no code runs here.
    fn collect_once(&mut self) -> Option<Work> {
        (!std::mem::replace(&mut self.collected, true)).then_some(Work::Collect)
    }

    pub(crate) fn push(&mut self, peer: ProcessId, number: u64, bytes: &[u8]) {
        self.queue.push_back(Queued { peer, number, bytes: bytes.to_vec() });
    }

    /// Nobody waits for these any more.
    pub(crate) fn forget(&mut self, peer: ProcessId) {
        self.queue.retain(|queued| queued.peer != peer);
    }

    /// How the calling thread, about to sleep, lends the CPUs of its task.
    pub(crate) fn lend(&self) -> Lend {
        let runs = self.running.is_some() && self.thread == Some(std::thread::current().id());
        if runs { Lend::Pending { due: false } } else { Lend::None }
    }
}

/// Whether a waiting thread has lent the CPUs of its task.
pub(crate) enum Lend {
    /// It runs no task.
    None,
    /// Not yet: most waits are short.
    Pending { due: bool },
    /// Yes, and these were told.
    Lent(Vec<ProcessId>),
}

impl Lend {
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self, Lend::Pending { .. })
    }

    pub(crate) fn time_is_up(&mut self) {
        if let Lend::Pending { due } = self {
            *due = true;
        }
    }

    pub(crate) fn advance(&mut self, state: &mut State) {
        if !matches!(self, Lend::Pending { due: true }) {
            return;
        }
        state.io.tell_node(to_node::Body::Blocked(control::Empty {}));
        *self = Lend::Lent(tell_owners(state));
    }

    pub(crate) fn end(self, state: &mut State) {
        if let Lend::Lent(told) = self {
            state.io.tell_node(to_node::Body::Unblocked(control::Empty {}));
            told.iter().for_each(|peer| state.io.send(*peer, &Frame::Unblocked));
            state.io.wake_peers();
        }
    }
}

/// Lets owners take back what is queued here: who was told.
fn tell_owners(state: &mut State) -> Vec<ProcessId> {
    let Executor { queue, running, answered, .. } = &state.executor;
    let queued = queue.iter().map(|queued| queued.peer);
    let mut told: Vec<ProcessId> = queued.chain(*running).chain(*answered).collect();
    told.sort_unstable();
    told.dedup();
    told.iter().for_each(|peer| state.io.send(*peer, &Frame::Blocked));
    state.io.wake_peers();
    told
}

impl Runtime {
    /// Takes no more tasks. The worker exits when nobody needs what it owns.
    pub fn retire(&self, reason: String) {
        let state = &mut *self.lock();
        // The node gives it no other work once the lease is back.
        state.io.tell_node(to_node::Body::Exiting(control::Text { text: reason.clone() }));
        tell_owners(state);
        state.executor.retired = Some(reason);
    }

    /// Says that the calling thread is the one that runs tasks.
    pub fn run_tasks_here(&self) {
        self.lock().executor.thread = Some(std::thread::current().id());
    }

    /// Work, if there is some now.
    pub fn take_work(&self) -> Option<Work> {
        let mut work = None;
        self.look_around(|state| {
            work = next_work(state);
            work.is_some()
        });
        work
    }

    /// Sleeps until there is work, at most until `deadline`.
    pub fn next_work(
        &self,
        deadline: Option<u64>,
        interrupted: impl FnMut() -> bool,
    ) -> Result<Work, Waited> {
        let mut work = None;
        let done = |state: &mut State| {
            work = next_work(state);
            work.is_some()
        };
        let near = |state: &mut State| {
            state.executor.answered.and_then(|caller| state.io.processor_of(caller))
        };
        let waited = self.wait(deadline, None, interrupted, done, near);
        work.ok_or(waited)
    }

    /// Asks `giver` for a function and sleeps until it is here.
    pub fn fetch_function(
        &self,
        giver: ProcessId,
        id: FunctionId,
    ) -> Result<std::sync::Arc<[u8]>, String> {
        {
            let state = &mut *self.lock();
            if let Some(payload) = state.arrived.remove(&id) {
                return Ok(payload);
            }
            state.io.send(giver, &Frame::WantFunction(id));
        }
        loop {
            let mut payload = None;
            match self.wait_until(
                None,
                || false,
                |state| {
                    payload = state.arrived.remove(&id);
                    payload.is_some()
                },
            ) {
                Waited::Done => return payload.ok_or_else(|| "no payload".to_owned()),
                Waited::Stopped(reason) => return Err(reason),
                Waited::Interrupted | Waited::TimedOut => {}
            }
        }
    }

    /// Answers a task. `contained` are the references inside each value; `error` is the name
    /// and the text of what it raised.
    pub fn answer(
        &self,
        execution: Execution,
        name: &Arc<str>,
        outcome: Outcome,
        values: &[(oxiray_owner::Content, Vec<ObjectKey>)],
        error: Option<(&str, &str)>,
    ) {
        let state = &mut *self.lock();
        let now = monotonic_ns();
        let ran_ns = now.saturating_sub(execution.started);
        execution.record(&mut state.io.events, name, now, error);
        let Execution { giver, held, token, .. } = execution;
        state.executor.running = None;
        state.executor.answered = Some(giver);
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
        state.owner.hand_over(giver, token, handed_over);
        state.io.send(giver, &Frame::Answer(Answer { token, outcome, ran_ns, values, retained }));
        // While more work waits here, the owner is told now and then only.
        if state.executor.told + TELL_EVERY_NS < now {
            state.executor.told = now;
            state.io.wake_peers();
        }
    }

    /// Tells the node how the constructor of our actor ended.
    pub fn actor_created(&self, actor: ActorId, error: Vec<u8>) {
        let created = control::ActorCreated { actor: actor.0.to_vec(), error };
        self.lock().io.tell_node(to_node::Body::ActorCreated(created));
    }

    /// Tells the node that this process is about to exit.
    pub fn announce_exit(&self, reason: &str) {
        let state = &mut *self.lock();
        state.io.wake_peers();
        state.io.tell_node(to_node::Body::Exiting(control::Text { text: reason.to_owned() }));
    }

    /// Keeps the constructor of an actor, which may outlive its creator, if it is not large.
    pub fn keep_constructor(&self, actor: ActorId, execution: &Execution, class: &[u8]) {
        let task = &execution.bytes;
        if task.len() + class.len() > MOST_KEPT {
            return;
        }
        let mut value = (task.len() as u32).to_le_bytes().to_vec();
        value.extend_from_slice(task);
        value.extend_from_slice(class);
        let (namespace, key) = (KEPT_ACTORS.to_owned(), actor.0.to_vec());
        let verb = KvVerb::Put as i32;
        let put = Kv { verb, namespace, key, value: Some(value), wide: true, ..Kv::default() };
        // Nobody waits for the answer.
        self.lock().io.tell_node(to_node::Body::Kv(put));
    }

    /// A constructor that was kept, and its class.
    fn kept_constructor(&self, actor: ActorId) -> Option<(Vec<u8>, Vec<u8>)> {
        let (namespace, key) = (KEPT_ACTORS.to_owned(), actor.0.to_vec());
        let get = Kv { verb: KvVerb::Get as i32, namespace, key, ..Kv::default() };
        let value = self.key_value(get, || false)?.value?;
        let (len, rest) = value.split_first_chunk()?;
        let (task, class) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        Some((task.to_vec(), class.to_vec()))
    }

    /// Asks the creator of an actor for its constructor, and begins it.
    pub fn begin_constructor(&self, actor: ActorId, start: &StartActor) -> Option<Execution> {
        let giver = ProcessId(start.creator);
        let restarts = u16::try_from(start.restarts).unwrap_or(u16::MAX);
        if start.kept {
            let (bytes, class) = self.kept_constructor(actor)?;
            let state = &mut *self.lock();
            let execution = begin(state, Queued { peer: giver, number: 0, bytes }, restarts)?;
            state.arrived.insert(execution.task().function, class.into());
            return Some(execution);
        }
        {
            let state = &mut *self.lock();
            state.io.send(giver, &Frame::WantConstructor(actor));
            state.io.wake_peers();
        }
        let mut execution = None;
        self.wait_until(
            None,
            || false,
            |state| {
                let Some(bytes) = state.executor.constructor.take() else { return false };
                execution = begin(state, Queued { peer: giver, number: 0, bytes }, restarts);
                true
            },
        );
        execution
    }
}

fn next_work(state: &mut State) -> Option<Work> {
    if let Some(config) = state.executor.join.take() {
        state.executor.has_job = true;
        return Some(Work::JoinJob(config));
    }
    if let Some(start) = state.executor.start.take() {
        return Some(Work::StartActor(start));
    }
    if let Some(failure) = state.io.logs.take_unhandled() {
        return Some(Work::Tell(failure));
    }
    if let Some(reason) = &state.executor.retired {
        let needed = state.owner.counts() != (0, 0) || !state.owner.owes_nothing();
        if !needed || state.stopped.is_some() {
            return Some(Work::Exit(reason.clone()));
        }
        return state.executor.collect_once();
    }
    while state.executor.has_job
        && let Some(queued) = state.executor.queue.pop_front()
    {
        // Its owner may have taken it back.
        if !state.io.take(queued.peer, queued.number) {
            continue;
        }
        if let Some(execution) = begin(state, queued, 0) {
            return Some(Work::Task(execution));
        }
    }
    let reason = match () {
        () if state.stopped.is_some() => "the session ended",
        // What it owns, others may still hold; then it stays until they let go.
        () if state.executor.exit && state.owner.counts() == (0, 0) => {
            "idle worker no longer needed"
        }
        // Not while somebody still takes over references from it.
        () if state.executor.unreferenced && state.owner.owes_nothing() => {
            "all handles of the actor are gone"
        }
        () if state.executor.exit => return state.executor.collect_once(),
        () if std::mem::take(&mut state.executor.memory_is_short) => return Some(Work::Collect),
        () => return None,
    };
    Some(Work::Exit(reason.to_owned()))
}

/// Begins a task. `restarts`: how often its actor was started again, of a constructor; its owner
/// sends the same bytes each time, and each run is an attempt.
fn begin(state: &mut State, queued: Queued, restarts: u16) -> Option<Execution> {
    let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else {
        return None;
    };
    let frame::Task { token, id, attempt, recorded, .. } = task;
    let attempt = attempt.saturating_add(restarts);
    let contained = task.values.iter().flat_map(|value| value.contained.iter());
    let names: Vec<_> = task.nested.iter().chain(contained).copied().collect();
    let held = state.owner.begin_task(names.into_iter());
    state.executor.running = Some(queued.peer);
    let started = monotonic_ns();
    match recorded {
        true => state.io.events.begin(id, attempt, started),
        false => state.io.events.begin_unrecorded(id),
    }
    Some(Execution {
        giver: queued.peer,
        bytes: queued.bytes,
        held,
        token,
        started,
        called: Cell::new(0),
        returned: Cell::new(0),
        id,
        attempt,
        recorded,
    })
}
