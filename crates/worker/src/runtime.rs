//! The state of this process, and how its threads wait.
//!
//! Everything is behind one lock, held for microseconds. There is no thread
//! between a caller and its answer: a thread that waits reads the frames itself.
//! The pump (see [`crate::pump`]) reads only while nobody else does.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_channel::Bell;
use oxiray_events::{Label, TaskKind};
use oxiray_ids::{ActorId, FunctionId, JobId, NodeId, ObjectId, PUT_INDEX, ProcessId, TaskId};
use oxiray_owner::{Content, ObjectKey, Owner, ReturnKeys, Target, TaskSpec};
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::cpu;
use oxiray_sys::futex::Woken;
use oxiray_wire::control::{self, JobConfig, Shape, to_node};
use oxiray_wire::frame::{Frame, RefName, task_place};
use parking_lot::RwLock;
use slab::Slab;

use crate::awaits::Awaits;
use crate::executor::Executor;
use crate::groups::Groups;
use crate::io::{Inbox, Io};
use crate::lend::Lend;
use crate::logs::Logs;
use crate::near::{Near, Turns};
use crate::port::{Port, Watcher};
use crate::pump::PumpBed;
use crate::questions::Replies;
use crate::store::Store;
use crate::sync::{AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering};

/// A submission within this time of the last wake-up does not wake again by
/// itself: the pump or the next wait does. A burst then costs few system calls.
const BURST_NS: u64 = 50_000;

/// A task that waits longer than this lends its CPUs.
const BLOCKED_AFTER: Duration = Duration::from_millis(1);

/// The longest sleep of a waiting thread before it looks at signals: one that
/// arrived just before the sleep interrupts nothing.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Who this process is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number.
    pub process: ProcessId,
    /// Its node.
    pub node: NodeId,
    /// Directory of the session.
    pub session_dir: String,
    /// Whether it is a driver.
    pub is_driver: bool,
    /// Modules to import while idle.
    pub preload: Vec<String>,
    /// Where the node is reached, if it is one of many.
    pub address: String,
    /// Where the control service is reached, if there is one.
    pub control: String,
}

/// How a wait ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waited {
    /// What was waited for is there.
    Done,
    /// The time was up.
    TimedOut,
    /// The caller's check said so.
    Interrupted,
    /// The session is over, for this reason.
    Stopped(String),
}

/// What the lock protects.
pub struct State {
    /// Objects, tasks, leases, actors.
    pub owner: Owner,
    /// Channels and the control connection.
    pub io: Io,
    /// Tasks that others pushed here.
    pub executor: Executor,
    /// The workers that the node starts in advance are there.
    pub warm: bool,
    /// Why the session is over, once it is.
    pub stopped: Option<String>,
    /// Functions that we ship, by content.
    pub(crate) shipped: HashMap<FunctionId, (Arc<[u8]>, u32), RandomState>,
    /// Functions that we asked for and that came.
    pub(crate) arrived: HashMap<FunctionId, Arc<[u8]>, RandomState>,
    pub(crate) shapes: HashMap<Shape, u32, RandomState>,
    /// Who asked to hear of an object, and by which token.
    pub(crate) watching: HashMap<ObjectKey, Vec<(Watcher, u64)>, RandomState>,
    pub(crate) fired: Vec<u64>,
    pub(crate) ports: Slab<Port>,
    pub(crate) groups: Groups,
    pub(crate) awaits: Awaits,
    inbox: Inbox,
    turns: Turns,
    last_wake: u64,
}

/// This process's side of the engine.
pub struct Runtime {
    state: Mutex<State>,
    bell: Bell,
    /// The object store.
    pub store: Arc<Store>,
    /// Who this process is.
    pub identity: Identity,
    /// What this process works for. A worker hears of it before its first task.
    job: RwLock<JobConfig>,
    /// The bytes of its id, which is in that of every task.
    job_id: AtomicU32,
    counter: AtomicU64,
    actors: AtomicU32,
    pub(crate) last_group: AtomicU32,
    /// Changes whenever a thread of the user submits or waits.
    pub(crate) activity: AtomicU32,
    /// Threads that wait and so read frames.
    pub(crate) waiters: AtomicU32,
    pub(crate) pump: PumpBed,
    near: Near,
    pub(crate) replies: Replies,
    /// What workers print, for a driver.
    pub logs: Arc<Logs>,
    pub(crate) leaving: AtomicBool,
    pid: u32,
    pub(crate) broken: OnceLock<String>, // see `breakdown`
}

impl State {
    /// The time, for whatever happens next.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.owner.set_now(now);
        self.io.events.set_now(now);
    }

    /// Takes a task that people call `label`: its returns. `by`: the call that submits it, where
    /// several run. (Inline, like [`Self::on_frame`]: tasks and frames are large, and each hand they
    /// go through is a copy.)
    #[inline]
    pub(crate) fn submit(
        &mut self,
        mut spec: TaskSpec,
        label: Label<'_>,
        by: Option<TaskId>,
    ) -> ReturnKeys {
        let Self { owner, io, executor, .. } = self;
        spec.parent = executor.parent(by);
        if spec.recorded {
            let kind = match spec.target {
                Target::Function { .. } => TaskKind::Function,
                Target::Method { .. } => TaskKind::Method,
                Target::Constructor { .. } => TaskKind::Constructor,
            };
            let waits = spec.refs.iter().any(|key| owner.content(*key).is_none());
            let needs = spec.refs.iter().map(|key| owner.id_of(*key));
            if executor.is_concurrent() {
                io.events.act_for(by, true);
            }
            io.events.submitted(spec.id, kind, label, waits, needs);
        }
        owner.submit(spec, io)
    }

    /// Reads and handles every frame that has come; whether there was any.
    fn drain(&mut self, bell: &Bell) -> bool {
        if !self.io.loopback.is_empty() {
            let mut inbox = std::mem::take(&mut self.io.loopback);
            self.handle(&mut inbox);
            return true;
        }
        let Self { io, inbox, .. } = self;
        bell.take(|bit| io.receive_at(bit, inbox));
        if self.inbox.is_empty() {
            return false;
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        self.handle(&mut inbox);
        self.inbox = inbox;
        true
    }

    /// Reads and handles what one peer has written.
    pub(crate) fn drain_peer(&mut self, peer: ProcessId) {
        let mut inbox = std::mem::take(&mut self.inbox);
        self.io.receive(peer, &mut inbox);
        self.handle(&mut inbox);
        self.inbox = inbox;
    }

    fn handle(&mut self, inbox: &mut Inbox) {
        if inbox.is_empty() {
            return;
        }
        self.set_now(monotonic_ns());
        for (peer, bytes) in inbox.iter() {
            if let Some((number, lane)) = task_place(bytes) {
                self.executor.push(peer, number, lane, bytes);
            } else if let Ok(frame) = Frame::decode(bytes) {
                self.on_frame(peer, frame);
            }
        }
        inbox.clear();
        self.collect_watched();
    }

    #[inline]
    fn on_frame(&mut self, peer: ProcessId, frame: Frame<'_>) {
        let Self { owner, io, .. } = self;
        match frame {
            Frame::Answer(answer) => owner.on_answer(peer, answer, io),
            Frame::WantObject(id) => owner.on_want(peer, id, io),
            Frame::Object(id, value) => owner.on_object(id, value, io),
            Frame::Borrow(id) => owner.on_borrow(peer, id, io),
            Frame::Borrowed(id) => owner.on_borrowed(id, io),
            Frame::Release(id) => owner.on_release(peer, id, io),
            Frame::SettledArgs(token) => owner.on_settled_args(peer, token, io),
            Frame::SettledReturns(token, item) => owner.on_settled_returns(peer, token, item, io),
            Frame::Blocked => owner.on_blocked(peer, io),
            Frame::Unblocked => owner.on_unblocked(peer, io),
            Frame::WantFunction(id) => {
                if let Some((payload, _)) = self.shipped.get(&id) {
                    use oxiray_owner::Outbox;
                    io.send(peer, &Frame::Function(id, payload));
                }
            }
            Frame::Function(id, payload) => {
                self.arrived.insert(id, payload.into());
            }
            Frame::WantConstructor(actor) => io.send_constructor(peer, actor),
            Frame::Constructor(_, task) => self.executor.constructor = Some(task.to_vec()),
            Frame::ActorUnreferenced(_) => self.executor.unreferenced = true,
            Frame::FreeObject(id) => owner.on_free(id, io),
            Frame::TakenBack(number) => owner.on_taken_back(peer, number, io),
            // For the node services between us.
            Frame::TakeBack(_) => {}
            Frame::Entrust(id, value) => owner.on_entrusted(peer, id, value, io),
            Frame::Cancel(token, how) => self.cancel(peer, token, how),
            Frame::CancelObject(id, how) => owner.on_cancel(id, how, io),
            Frame::Yield(item) => owner.on_yield(peer, item, io),
            Frame::Consumed(token, items) => self.reader_is_at(peer, token, Some(items)),
            Frame::NoReader(token) => self.reader_is_at(peer, token, None),
            Frame::Task(_) => {}
        }
    }

    /// Moves completions and calls to where those who wait for them look.
    pub(crate) fn collect_watched(&mut self) {
        for key in std::mem::take(&mut self.io.ready) {
            for (watcher, token) in self.watching.remove(&key).unwrap_or_default() {
                self.tell_watcher(watcher, token);
            }
            self.owner.drop_ref(key, &mut self.io);
        }
        self.executor.call_loops();
    }
}

/// The id of a job, nil if there is none, as one word.
fn id_word(job: &JobConfig) -> u32 {
    u32::from_ne_bytes(JobId::from_slice(&job.job).unwrap_or(JobId::NIL).0)
}

impl Runtime {
    pub(crate) fn new(
        io: Io,
        bell: Bell,
        store: Arc<Store>,
        identity: Identity,
        job: JobConfig,
        executor: Executor,
    ) -> Self {
        let logs = io.logs.clone();
        Self {
            logs,
            state: Mutex::new(State {
                owner: Owner::new(identity.process),
                io,
                executor,
                warm: false,
                stopped: None,
                shipped: HashMap::default(),
                arrived: HashMap::default(),
                shapes: HashMap::default(),
                watching: HashMap::default(),
                fired: Vec::new(),
                ports: Slab::new(),
                groups: Groups::default(),
                awaits: Awaits::default(),
                inbox: Inbox::default(),
                turns: Turns::default(),
                last_wake: 0,
            }),
            bell,
            store,
            identity,
            job_id: AtomicU32::new(id_word(&job)),
            job: RwLock::new(job),
            counter: AtomicU64::new(1),
            actors: AtomicU32::new(1),
            last_group: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            pump: PumpBed::default(),
            near: Near::default(),
            replies: Replies::default(),
            leaving: AtomicBool::new(false),
            pid: std::process::id(),
            broken: OnceLock::new(),
        }
    }

    /// Whether this process is the one that connected: a forked child only inherits it.
    pub(crate) fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Notes a span of time that the user marked, in `task` where several run in this process.
    pub fn record_span(
        &self,
        task: Option<TaskId>,
        name: &str,
        start: u64,
        duration: u64,
        extra: &str,
    ) {
        let State { executor, io, .. } = &mut *self.lock();
        if executor.is_concurrent() {
            io.events.act_for(task, executor.is_recorded(task));
        }
        io.events.span(name, start, duration, extra);
    }

    /// The state. Never held while Python runs.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// An id for a new task of ours; of `actor` if it is a call.
    pub fn next_task_id(&self, actor: Option<ActorId>) -> TaskId {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        let process = self.identity.process;
        TaskId::new(actor.unwrap_or_else(|| ActorId::home(self.job(), process)), process, counter)
    }

    /// The job of this process; nil for a worker that has none yet.
    pub fn job(&self) -> JobId {
        JobId(self.job_id.load(Ordering::Relaxed).to_ne_bytes())
    }

    /// What is known of the job of this process.
    pub fn job_config(&self) -> JobConfig {
        self.job.read().clone()
    }

    /// This process works for a job from now on.
    pub(crate) fn join_job(&self, config: JobConfig) {
        self.job_id.store(id_word(&config), Ordering::Relaxed);
        *self.job.write() = config.clone();
        self.lock().executor.join = Some(config);
    }

    /// An id for a new actor of ours.
    pub fn next_actor_id(&self) -> ActorId {
        let counter = self.actors.fetch_add(1, Ordering::Relaxed);
        ActorId::new(self.job(), self.identity.process, counter)
    }

    /// An id for a value that is put.
    pub fn next_put_id(&self) -> ObjectId {
        self.next_task_id(None).object(PUT_INDEX)
    }

    /// Remembers a function so that workers can ask for it: its number among the durations.
    pub fn ship_function(&self, id: FunctionId, payload: &[u8]) -> u32 {
        let state = &mut *self.lock();
        let owner = &mut state.owner;
        state.shipped.entry(id).or_insert_with(|| (payload.into(), owner.function())).1
    }

    /// Submits a task or call, which people call `label`. `by`: the call that submits it, where
    /// several run in this process.
    pub fn submit(&self, spec: TaskSpec, label: Label<'_>, by: Option<TaskId>) -> ReturnKeys {
        let now = monotonic_ns();
        let state = &mut *self.lock();
        // Answers that came meanwhile make room for what is submitted now.
        self.drain(state, 0);
        state.set_now(now);
        state.turns.submitted();
        state.io.take_turns(state.turns.are_taken());
        let returns = state.submit(spec, label, by);
        self.after_submit(state, now);
        returns
    }

    pub(crate) fn after_submit(&self, state: &mut State, now: u64) {
        self.activity.fetch_add(1, Ordering::Relaxed);
        if !state.io.has_unwoken() {
            self.pump.rouse_if_on_bell(&self.bell);
        } else if now - state.last_wake < BURST_NS && self.pump.is_napping() {
            // The pump wakes them within its nap.
        } else {
            state.last_wake = now;
            state.io.wake_peers();
        }
    }

    /// Makes an object with a value.
    pub fn put(&self, content: Content, contained: Vec<ObjectKey>) -> ObjectKey {
        let id = self.next_put_id();
        self.lock().owner.put(id, content, contained)
    }

    /// Makes an object with a value for another process to own, and sleeps until
    /// that one knows it.
    pub fn put_for(
        &self,
        owner: ProcessId,
        content: Content,
        contained: Vec<ObjectKey>,
        interrupted: impl FnMut() -> bool,
    ) -> (ObjectId, ObjectKey, Waited) {
        let id = self.next_put_id();
        let key = {
            let state = &mut *self.lock();
            let key = state.owner.entrust(id, owner, content, contained, &mut state.io);
            state.io.wake_peers();
            key
        };
        let waited = self.wait_until(None, interrupted, |state| state.owner.is_settled(key));
        (id, key, waited)
    }

    /// Frees the values of objects, whoever holds references to them.
    pub fn free_values(&self, keys: &[ObjectKey]) {
        let state = &mut *self.lock();
        for key in keys {
            state.owner.free_value(*key, &mut state.io);
        }
        state.io.wake_peers();
    }

    /// A handle of an actor that is to be made, counted once. One that is to have a name is found by
    /// others as soon as it has that, which may be before it is made.
    pub fn expect_actor(&self, actor: ActorId, detached: bool, is_named: bool) -> ObjectKey {
        let state = &mut *self.lock();
        let handle = state.owner.new_actor(actor, detached);
        if is_named {
            state.owner.name(handle);
            state.io.named.insert(actor);
        }
        handle
    }

    /// It is not made after all: its name is another's.
    pub fn give_up_actor(&self, actor: ActorId, handle: ObjectKey) {
        let state = &mut *self.lock();
        state.io.named.remove(&actor);
        state.owner.give_up_actor(actor, handle, &mut state.io);
    }

    /// A handle of an actor that came in from another process, counted once.
    pub fn meet_actor(&self, actor: ActorId, name: RefName) -> ObjectKey {
        let state = &mut *self.lock();
        if state.owner.meet_actor(actor) {
            let actor = control::Actor { actor: actor.0.to_vec(), ..control::Actor::default() };
            state.io.tell_node(to_node::Body::WatchActor(actor));
        }
        state.owner.read_ref(name, &mut state.io)
    }

    /// Drops one count of each.
    pub fn release(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        let state = &mut *self.lock();
        let before = state.io.outgoing();
        for key in keys {
            state.owner.drop_ref(key, &mut state.io);
        }
        // Most objects go quietly. What their end says to others is said now.
        if state.io.outgoing() > before {
            state.io.wake_peers();
        }
    }

    /// Reads and handles every frame that has come. What one thread reads,
    /// another may wait for, and nobody rings for it any more: so ring, if
    /// there are more than `own` waiting threads.
    pub(crate) fn drain(&self, state: &mut State, own: u32) {
        if state.drain(&self.bell) && self.waiters.load(Ordering::SeqCst) > own {
            self.bell.ring();
        }
        self.pump.hear_alarm(state, &self.activity);
    }

    /// Looks once for what a caller waits for, without sleeping.
    pub fn look(&self, done: impl FnOnce(&mut State) -> bool) -> bool {
        self.look_around(|state| {
            let found = done(state);
            if found {
                state.turns.waited();
            }
            found
        })
    }

    pub(crate) fn look_around(&self, done: impl FnOnce(&mut State) -> bool) -> bool {
        let state = &mut *self.lock();
        self.drain(state, 0);
        let found = done(state);
        if state.io.has_unwoken() {
            state.last_wake = monotonic_ns();
            state.io.wake_peers();
        }
        found
    }

    /// Sleeps until `done`, reading frames meanwhile. `deadline` is in
    /// nanoseconds of the monotonic clock. `interrupted` is asked after every
    /// signal and now and then; what it says ends the wait.
    pub fn wait_until(
        &self,
        deadline: Option<u64>,
        interrupted: impl FnMut() -> bool,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Waited {
        let near = |state: &mut State| {
            (state.turns.are_taken() && state.owner.counts().1 == 1).then(cpu::current)
        };
        let done = |state: &mut State| {
            let found = done(state);
            if found {
                state.turns.waited();
            }
            found
        };
        self.wait(deadline, Some(LONGEST_SLEEP), interrupted, done, near)
    }

    /// [`Self::wait_until`], sleeping at most `longest` at a time, and on the
    /// processor that `near` names.
    pub(crate) fn wait(
        &self,
        deadline: Option<u64>,
        longest: Option<Duration>,
        mut interrupted: impl FnMut() -> bool,
        mut done: impl FnMut(&mut State) -> bool,
        mut near: impl FnMut(&mut State) -> Option<u32>,
    ) -> Waited {
        let mut lends = None;
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let waited = loop {
            let ticket = self.bell.ticket();
            let processor = {
                let state = &mut *self.lock();
                if let Some(reason) = self.broken() {
                    break Waited::Stopped(reason.to_owned());
                }
                self.drain(state, 1);
                let found = done(state);
                state.io.wake_peers();
                if found {
                    break Waited::Done;
                }
                if let Some(reason) = &state.stopped {
                    break Waited::Stopped(reason.clone());
                }
                let lend = lends.get_or_insert_with(|| Lend::new(state));
                lend.advance(state);
                near(state)
            };
            self.activity.fetch_add(1, Ordering::Relaxed);
            let mut limit = longest;
            if lends.as_ref().is_some_and(|lend| lend.is_pending()) {
                limit = Some(BLOCKED_AFTER);
            }
            if let Some(deadline) = deadline {
                let now = monotonic_ns();
                if now >= deadline {
                    break Waited::TimedOut;
                }
                let left = Duration::from_nanos(deadline - now);
                limit = Some(limit.map_or(left, |limit| limit.min(left)));
            }
            match self.near.sleep(&self.bell, ticket, limit, processor) {
                Woken::Interrupted | Woken::TimedOut if interrupted() => {
                    break Waited::Interrupted;
                }
                Woken::TimedOut => {
                    if let Some(lend) = &mut lends {
                        lend.time_is_up();
                    }
                }
                Woken::Interrupted | Woken::Maybe => {}
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        self.pump.kick_if_deep();
        if let Some(lend) = lends.filter(|_| self.broken().is_none()) {
            lend.end(&mut self.lock());
        }
        waited
    }
}
