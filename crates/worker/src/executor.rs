//! What others asked this process to do: calls that wait in lanes, calls that run, and when to end.
//!
//! Any number of calls run at once, each known by a key until its [`Call`] is answered. Which
//! thread runs them is the server's choice ([`crate::serve`]): the main thread one after the other,
//! a lane's threads, or a loop of the language's own.

use std::io;
use std::sync::Arc;

use oxiray_ids::{FunctionId, ProcessId, TaskId};
use oxiray_owner::{Content, Failure, Outbox};
use oxiray_wire::control::{self, JobConfig, StartActor, to_node};
use oxiray_wire::frame::{Answer, FailureCode, Frame, Outcome, Value, task_incarnation};
use slab::Slab;

use crate::blocked::TellBlocked;
use crate::call::Call;
use crate::cancel::{Interrupt, Unheard};
pub(crate) use crate::lane::Queued;
use crate::lane::{Lane, Stir};
use crate::lend::{Lending, without_lending};
use crate::port::Descriptor;
use crate::reading::Reading;
use crate::runtime::{Runtime, State, Waited};

/// What the main thread of a worker is to do next.
pub enum Work {
    /// Run a call, and answer it at any time.
    Call(Call),
    /// Become an actor.
    StartActor(StartActor),
    /// Work for a job: its modules are found in these places.
    JoinJob(JobConfig),
    /// Start one more thread for this lane.
    Grow(usize),
    /// Say that a task of ours failed, and that nobody has looked at its error.
    Tell(Arc<Failure>),
    /// Collect garbage: it may be all that keeps this process.
    Collect,
    /// Exit, for this reason.
    Exit(String),
}

/// Who runs the calls of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runner {
    /// The main thread, which is not back before a call has ended.
    Main,
    /// Threads of each lane.
    Threads,
    /// An event loop of each lane, the first in the main thread: it begins calls, and goes on.
    Loops,
}

/// Names a call that runs here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RunningKey(pub(crate) u32);

pub(crate) struct Running {
    pub(crate) giver: ProcessId,
    pub(crate) token: u64,
    pub(crate) task: TaskId,
    pub(crate) lane: u16,
    recorded: bool,
    /// Nobody wants it any more.
    pub(crate) cancelled: bool,
    /// Of what it yields so much was read,
    pub(crate) read: u32,
    /// or nobody reads it any more.
    pub(crate) no_reader: bool,
}

/// The work of this process.
pub struct Executor {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) running: Slab<Running>,
    pub(crate) runner: Runner,
    pub(crate) lending: Lending,
    /// How calls are stopped that run.
    pub(crate) interrupt: Option<Arc<Interrupt>>,
    /// One that may not have heard that it is to stop.
    pub(crate) unheard: Option<Unheard>,
    /// The constructor that was asked for.
    pub(crate) constructor: Option<Vec<u8>>,
    /// Become this, once.
    pub(crate) start: Option<StartActor>,
    /// Of the actor that this process is: calls for another are not begun.
    incarnation: u64,
    /// Work for this job, once.
    pub(crate) join: Option<JobConfig>,
    /// It is known what this process works for: before that it takes no task.
    has_job: bool,
    /// No more tasks are taken, for this reason.
    retired: Option<String>,
    /// Exit now, for this reason.
    leaving: Option<String>,
    /// And that is an error.
    is_failing: bool,
    /// The node wants us gone when idle.
    pub(crate) exit: bool,
    /// Garbage was collected since we are to exit.
    collected: bool,
    /// Memory is short, and garbage may hold some.
    pub(crate) memory_is_short: bool,
    /// Nobody holds a handle of our actor.
    pub(crate) unreferenced: bool,
    /// A loop was rung for since somebody asked.
    pub(crate) has_rung: bool,
    /// Whether the loop of the first lane reads for itself,
    pub(crate) reading: Reading,
    /// and whether its own program has called it.
    pub(crate) is_called: bool,
    /// Who is told of loops that are late.
    pub(crate) tell_blocked: Option<Arc<TellBlocked>>,
    /// When owners were last told of answers.
    told: u64,
    /// Whose task was answered last.
    answered: Option<ProcessId>,
}

impl Executor {
    pub(crate) fn new(has_job: bool) -> Self {
        Self {
            lanes: vec![Lane::new(1)],
            running: Slab::new(),
            runner: Runner::Main,
            lending: Lending::default(),
            interrupt: None,
            unheard: None,
            constructor: None,
            start: None,
            incarnation: 0,
            join: None,
            has_job,
            retired: None,
            leaving: None,
            is_failing: false,
            exit: false,
            collected: false,
            memory_is_short: false,
            unreferenced: false,
            has_rung: false,
            reading: Reading::No,
            is_called: false,
            tell_blocked: None,
            told: 0,
            answered: None,
        }
    }

    /// References in garbage that is a cycle are let go by nothing else, once no code runs here.
    fn collect_once(&mut self) -> Option<Work> {
        (!std::mem::replace(&mut self.collected, true)).then_some(Work::Collect)
    }

    pub(crate) fn push(&mut self, peer: ProcessId, number: u64, lane: u16, bytes: &[u8]) {
        // A lane that this process does not have is that of whatever names none.
        let at = if usize::from(lane) < self.lanes.len() { lane } else { 0 };
        let queued = Queued { peer, number, lane: at, bytes: bytes.to_vec() };
        self.lanes[usize::from(at)].push(queued);
    }

    /// Nobody waits for these any more.
    pub(crate) fn forget(&mut self, peer: ProcessId) {
        self.lanes.iter_mut().for_each(|lane| lane.forget(peer));
    }

    /// Threads that are in the middle of a call.
    pub(crate) fn busy_threads(&self) -> u32 {
        let running = self.running.len() as u32;
        if self.runner == Runner::Loops { running.min(1) } else { running }
    }

    /// Whose calls are or were here, as far as that is known.
    pub(crate) fn givers(&self) -> Vec<ProcessId> {
        let queued = self.lanes.iter().flat_map(|lane| lane.queued().map(|queued| queued.peer));
        let running = self.running.iter().map(|(_, running)| running.giver);
        let mut givers: Vec<ProcessId> = queued.chain(running).chain(self.answered).collect();
        givers.sort_unstable();
        givers.dedup();
        givers
    }

    /// Whether several calls may run here at once.
    pub(crate) fn running_tasks(&self) -> impl Iterator<Item = TaskId> {
        self.running.iter().map(|(_, running)| running.task)
    }

    pub(crate) fn is_concurrent(&self) -> bool {
        self.runner != Runner::Main
    }

    /// Whether what `task` does here is recorded.
    pub(crate) fn is_recorded(&self, task: Option<TaskId>) -> bool {
        self.running.iter().all(|(_, running)| Some(running.task) != task || running.recorded)
    }

    /// The call that submits what is submitted now, if there is one: `by`, where several run.
    pub(crate) fn parent(&self, by: Option<TaskId>) -> TaskId {
        let running = || self.running.iter().next().map(|(_, running)| running.task);
        by.or_else(running).unwrap_or(TaskId::NIL)
    }

    /// Whether what a cancelled call returns is let go.
    pub(crate) fn lets_go(&self, key: RunningKey) -> bool {
        self.runner != Runner::Loops && self.running[key.0 as usize].cancelled
    }

    /// Whether a call that runs here was cancelled.
    pub(crate) fn is_cancelled(&self, task: TaskId) -> bool {
        self.running.iter().any(|(_, running)| running.task == task && running.cancelled)
    }

    /// Ends the process, for this reason, unless it is ending already. `is_failing`: it is an
    /// error, after which an actor may be started again.
    pub(crate) fn leave(&mut self, reason: String, is_failing: bool) {
        if self.leaving.is_none() {
            (self.leaving, self.is_failing) = (Some(reason), is_failing);
        }
    }

    /// Whether owners are to be told of answers; then they were.
    pub(crate) fn is_time_to_tell(&mut self, now: u64, every: u64) -> bool {
        let is_due = self.told + every < now;
        if is_due {
            self.told = now;
        }
        is_due
    }

    /// Whether a call that ends may be what the main thread waits for to end the process.
    pub(crate) fn may_end(&self) -> bool {
        self.is_concurrent() && (self.exit || self.unreferenced || self.leaving.is_some())
    }

    /// Rings for the loops that have something to do.
    pub(crate) fn call_loops(&mut self) {
        if self.runner != Runner::Loops {
            return;
        }
        let calls_main = self.may_end() || self.memory_is_short;
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lane.is_startable() || (at == 0 && calls_main) {
                self.has_rung |= lane.ring();
            }
        }
    }
}

impl State {
    /// Whether an event loop waits for what comes in.
    pub(crate) fn has_loops(&self) -> bool {
        self.executor.runner == Runner::Loops || !self.ports.is_empty()
    }

    pub(crate) fn begin_running(
        &mut self,
        (giver, token): (ProcessId, u64),
        task: TaskId,
        lane: u16,
        recorded: bool,
    ) -> RunningKey {
        let running = Running {
            giver,
            token,
            task,
            lane,
            recorded,
            cancelled: false,
            read: 0,
            no_reader: false,
        };
        let key = self.executor.running.insert(running) as u32;
        self.executor.lanes[usize::from(lane)].begin();
        if !self.executor.lending.is_quiet() {
            self.lend_or_take_back();
        }
        RunningKey(key)
    }

    /// Does not begin a call that is for another incarnation of the actor: its caller will hear
    /// which one lives.
    fn refuse(&mut self, queued: &Queued) {
        let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else {
            return;
        };
        let text = "it was sent to another incarnation of the actor";
        let failure = Content::failed(FailureCode::ActorUnavailable, text);
        let values = [Value { body: failure.as_body(), contained: Vec::new() }].into();
        let (token, outcome, retained) = (task.token, Outcome::Unread, Vec::new());
        let answer = Answer { token, outcome, ran_ns: 0, values, retained };
        self.io.send(queued.peer, &Frame::Answer(answer));
    }

    /// Where the process is that had the last answer.
    pub(crate) fn near_caller(&self) -> Option<u32> {
        self.executor.answered.and_then(|caller| self.io.processor_of(caller))
    }

    pub(crate) fn end_running(&mut self, key: RunningKey) {
        let Running { giver, lane, .. } = self.executor.running.remove(key.0 as usize);
        self.executor.lanes[usize::from(lane)].end();
        self.executor.answered = Some(giver);
        self.executor.call_loops();
        if !self.executor.lending.is_quiet() {
            self.lend_or_take_back();
        }
    }
}

impl Runtime {
    /// Takes no more tasks. The worker exits when nobody needs what it owns.
    pub(crate) fn retire(&self, reason: String) {
        let state = &mut *self.lock();
        // The node gives it no other work once the lease is back.
        state.io.tell_node(to_node::Body::Exiting(control::Text { text: reason.clone() }));
        state.tell_owners();
        state.executor.retired = Some(reason);
    }

    /// Calls run in lanes with these limits from now on; of an actor, before it takes any.
    pub(crate) fn open_lanes(&self, runner: Runner, limits: &[u32]) -> io::Result<()> {
        let mut lanes: Vec<Lane> = limits.iter().map(|limit| Lane::new(*limit)).collect();
        if runner == Runner::Loops {
            lanes.iter_mut().try_for_each(Lane::open_door)?;
        }
        let state = &mut *self.lock();
        (state.executor.runner, state.executor.lanes) = (runner, lanes);
        Ok(())
    }

    /// In any thread of an actor: it ends in good order, for this reason. What runs may end.
    pub fn leave(&self, reason: String) {
        let state = &mut *self.lock();
        state.executor.leave(reason, false);
        self.call_main(state);
    }

    /// Wakes the main thread, which sleeps on the bell or in its loop.
    pub(crate) fn call_main(&self, state: &mut State) {
        state.executor.call_loops();
        self.bell().ring();
    }

    /// What the loop of a lane sleeps on.
    pub(crate) fn lane_descriptor(&self, lane: usize) -> Option<Descriptor> {
        self.lock().executor.lanes.get(lane)?.descriptor()
    }

    /// The loop of a lane looks for work now.
    pub(crate) fn answer_door(&self, lane: usize) {
        self.lock().executor.lanes[lane].answer();
    }

    /// Owners hear now of what was answered.
    pub fn tell_answers(&self) {
        self.lock().io.wake_peers();
    }

    /// Work for the main thread, if there is some now.
    pub fn take_work(self: &Arc<Self>) -> Option<Work> {
        let mut work = None;
        self.look_around(|state| {
            work = next_work(self, state);
            work.is_some()
        });
        work
    }

    /// Sleeps until there is work for the main thread, at most until `deadline`.
    pub(crate) fn next_work(self: &Arc<Self>, deadline: Option<u64>) -> Result<Work, Waited> {
        let mut work = None;
        let done = |state: &mut State| {
            work = next_work(self, state);
            work.is_some()
        };
        let near = |state: &mut State| state.near_caller();
        let waited = without_lending(|| self.wait(deadline, None, || false, done, near));
        work.ok_or(waited)
    }

    /// A call of a lane for one of its threads, if there is one now; and whether one more thread
    /// is to be started. `was_stirred`: the thread was woken or started for it.
    pub(crate) fn take_call(
        self: &Arc<Self>,
        lane: usize,
        was_stirred: bool,
    ) -> (Option<Call>, bool) {
        let (mut call, mut grows) = (None, false);
        self.look_around(|state| {
            if was_stirred {
                state.executor.lanes[lane].searched();
            }
            call = begin_next(self, state, lane);
            grows = stir(state, lane);
            call.is_some()
        });
        (call, grows)
    }

    /// Sleeps until there may be a call for a thread of this lane; whether it was woken for one.
    pub(crate) fn sleep_in_lane(&self, lane: usize) -> bool {
        let mut state = self.lock();
        if state.executor.lanes[lane].is_startable() {
            return false;
        }
        state.io.wake_peers();
        let awakened = state.executor.lanes[lane].awakened.clone();
        state.executor.lanes[lane].sleeps();
        awakened.wait(&mut state);
        state.executor.lanes[lane].woke();
        true
    }

    /// Asks `giver` for a function and sleeps until it is here.
    pub(crate) fn fetch_function(
        &self,
        giver: ProcessId,
        id: FunctionId,
    ) -> Result<Arc<[u8]>, String> {
        {
            let state = &mut *self.lock();
            if let Some(payload) = state.arrived.remove(&id) {
                return Ok(payload);
            }
            state.io.send(giver, &Frame::WantFunction(id));
        }
        loop {
            let mut payload = None;
            let arrived = |state: &mut State| {
                payload = state.arrived.remove(&id);
                payload.is_some()
            };
            match without_lending(|| self.wait_until(None, || false, arrived)) {
                Waited::Done => return payload.ok_or_else(|| "no payload".to_owned()),
                Waited::Stopped(reason) => return Err(reason),
                Waited::Interrupted | Waited::TimedOut => {}
            }
        }
    }

    /// Tells the node that this process is about to exit.
    pub(crate) fn announce_exit(&self, reason: &str) {
        let state = &mut *self.lock();
        state.owner.end_idle_leases(&mut state.io);
        state.io.wake_peers();
        let text = control::Text { text: reason.to_owned() };
        state.io.tell_node(match state.executor.is_failing {
            true => to_node::Body::Failing(text),
            false => to_node::Body::Exiting(text),
        });
    }
}

/// Sees to it that a thread looks after calls of a lane that could begin; whether that takes one
/// more.
fn stir(state: &mut State, lane: usize) -> bool {
    let lane = &mut state.executor.lanes[lane];
    match lane.stir() {
        Stir::Nothing => false,
        Stir::Wake => {
            lane.awakened.notify_one();
            false
        }
        Stir::Grow => true,
    }
}

/// Begins the next call of a lane that was not taken back by its owner.
fn begin_next(runtime: &Arc<Runtime>, state: &mut State, lane: usize) -> Option<Call> {
    while state.executor.leaving.is_none()
        && let Some(queued) = state.executor.lanes[lane].pop()
    {
        state.io.fence.check();
        if !state.io.take(queued.peer, queued.number) {
            continue;
        }
        if task_incarnation(&queued.bytes) != Some(state.executor.incarnation) {
            state.refuse(&queued);
        } else if let Some(call) = Call::begin(runtime, state, queued, 0) {
            return Some(call);
        }
    }
    None
}

fn next_call(runtime: &Arc<Runtime>, state: &mut State) -> Option<Work> {
    if !state.executor.has_job {
        return None;
    }
    let lanes = 0..state.executor.lanes.len();
    match state.executor.runner {
        Runner::Threads => lanes.into_iter().find(|lane| stir(state, *lane)).map(Work::Grow),
        Runner::Main | Runner::Loops => begin_next(runtime, state, 0).map(Work::Call),
    }
}

fn next_work(runtime: &Arc<Runtime>, state: &mut State) -> Option<Work> {
    if let Some(config) = state.executor.join.take() {
        state.executor.has_job = true;
        return Some(Work::JoinJob(config));
    }
    if let Some(start) = state.executor.start.take() {
        // What others hold must not go with the actor.
        let declined = start.asks && state.owner.is_counted_on();
        if start.asks {
            let answer = control::StartAnswer { actor: start.actor.clone(), declined };
            state.io.tell_node(to_node::Body::StartAnswer(answer));
        }
        if !declined {
            if start.fenced {
                state.io.fence.put_up();
                state.io.fence.check();
            }
            state.executor.incarnation = start.incarnation();
            return Some(Work::StartActor(start));
        }
    }
    if let Some(failure) = state.io.logs.take_unhandled() {
        return Some(Work::Tell(failure));
    }
    if let Some(reason) = &state.executor.leaving {
        // What runs may end; what waits never begins.
        return state.executor.running.is_empty().then(|| Work::Exit(reason.clone()));
    }
    if let Some(reason) = &state.executor.retired {
        let needed = state.owner.counts() != (0, 0) || !state.owner.owes_nothing();
        if !needed || state.stopped.is_some() {
            return Some(Work::Exit(reason.clone()));
        }
        return state.executor.collect_once();
    }
    if let Some(work) = next_call(runtime, state) {
        return Some(work);
    }
    if state.stopped.is_some() {
        return Some(Work::Exit("the session ended".to_owned()));
    }
    if std::mem::take(&mut state.executor.memory_is_short) {
        return Some(Work::Collect);
    }
    if !state.executor.running.is_empty() {
        return None;
    }
    let reason = match () {
        // What it owns, others may still hold; then it stays until they let go.
        () if state.executor.exit && state.owner.counts() == (0, 0) => {
            "idle worker no longer needed"
        }
        // Not while somebody still takes over references from it.
        () if state.executor.unreferenced && state.owner.owes_nothing() => {
            "all handles of the actor are gone"
        }
        () if state.executor.exit => return state.executor.collect_once(),
        () => return None,
    };
    Some(Work::Exit(reason.to_owned()))
}
