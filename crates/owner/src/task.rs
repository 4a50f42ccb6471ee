//! Tasks from submission to their one end.

use std::sync::Arc;

use oxiray_ids::{ActorId, FunctionId, ProcessId, TaskId};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{self, Answer, FailureCode, Outcome, Returns, Value, Values};
use smallvec::{SmallVec, smallvec};

use crate::cancel::cancelled;
use crate::change::Change;
use crate::object::{Content, Failure, Object, ObjectKey, SmallBytes};
use crate::owner::{Outbox, Owner};

/// Names a task of this process, until it ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TaskKey(pub(crate) u32);

/// What a task calls.
#[derive(Clone, Debug)]
pub enum Target {
    /// A function, on any worker of a shape.
    Function {
        /// Its hash.
        function: FunctionId,
        /// Its place in the table of durations: see [`Owner::function`].
        stats: u32,
        /// Its shape: see [`Owner::shape`].
        shape: u32,
    },
    /// A method of an actor.
    Method {
        /// The actor.
        actor: ActorId,
        /// Which of its lanes the call runs in; 0 is for calls that name none.
        lane: u16,
        /// Which others it waits for (O-6).
        order: CallOrder,
        /// The method with options of the caller's own; nil: as the class has it.
        variant: FunctionId,
    },
    /// The constructor of an actor of ours.
    Constructor {
        /// The actor.
        actor: ActorId,
        /// Its class.
        class: FunctionId,
    },
}

/// Which calls of an actor wait behind one that waits for its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallOrder {
    /// All of the same caller that were submitted later: the actor runs one at a time, and has so
    /// many at most.
    All,
    /// Those of its lane.
    Lane,
    /// None.
    Free,
}

/// A task to submit. It takes over one count of every reference in it.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// The task.
    pub id: TaskId,
    /// What it calls.
    pub target: Target,
    /// Given name of the task, or name of the method.
    pub name: Arc<str>,
    /// What it gives back.
    pub returns: Returns,
    /// Serialised arguments, with places for `refs`.
    pub args: SmallBytes,
    /// References whose values are arguments.
    pub refs: SmallVec<[ObjectKey; 2]>,
    /// References inside arguments.
    pub nested: SmallVec<[ObjectKey; 1]>,
    /// Handle of the actor that is called: it lives while calls are under way.
    pub handle: Option<ObjectKey>,
    /// How often it may be run again; negative: for ever. Of a constructor: how
    /// often the actor may be started again.
    pub retries: i32,
    /// How often it was tried before.
    pub attempt: u16,
    /// Whether what happens to it is recorded.
    pub recorded: bool,
    /// The task that submitted it; nil for what a driver submits.
    pub parent: TaskId,
}

/// Where a task is (O-2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Arguments are missing, so many.
    Waiting(u32),
    /// In a shape's or an actor's queue.
    Ready,
    /// On a lease.
    Leased(usize),
    /// At its actor.
    AtActor,
    /// Put aside until this time, or until a node is lost: see [`crate::aside`].
    Aside(u64),
}

/// What they turned out to be.
pub(crate) type Contents = SmallVec<[Content; 1]>;

/// What a task returns: mostly one object.
pub type ReturnKeys = SmallVec<[ObjectKey; 1]>;

pub(crate) struct Task {
    pub(crate) spec: TaskSpec,
    pub(crate) returns: ReturnKeys,
    pub(crate) place: Place,
    /// Distinguishes attempts: an answer to an earlier one is not for this one.
    pub(crate) attempt: u32,
    /// How often it came back because an argument could not be read.
    pub(crate) unread: u16,
    /// How often it was tried again because memory had run out.
    pub(crate) memory_tries: u16,
    /// It is not wanted any more: it is not tried again.
    pub(crate) cancelled: bool,
}

impl Task {
    /// Whose calls of an actor go in order: those of a task, or of all that a driver or an actor
    /// does. A worker runs tasks that know nothing of each other: one may wait for another.
    pub(crate) fn caller(&self) -> TaskId {
        let parent = self.spec.parent;
        if parent.actor().is_home() { parent } else { TaskId::NIL }
    }
}

impl Owner {
    /// Takes a task: its returns, each counted once for the caller.
    pub fn submit(&mut self, spec: TaskSpec, out: &mut impl Outbox) -> ReturnKeys {
        let mut returns = ReturnKeys::new();
        for index in 1..=spec.returns.in_answer() {
            let mut object = Object::new(spec.id.object(index), None);
            object.refs = 2; // the caller's and the task's own
            returns.push(self.insert(object));
        }
        let key = self.insert_task(spec, ReturnKeys::from_slice(&returns));
        if self.is_stream(key) {
            self.open_stream(key);
        }
        let is_ready = self.await_arguments(key, out);
        match self.tasks[key.0 as usize].spec.target {
            Target::Function { shape, .. } if is_ready => self.enqueue(key, shape, out),
            Target::Function { .. } => {}
            Target::Method { actor, .. } => self.enqueue_call(key, actor, out),
            Target::Constructor { actor, .. } => {
                self.set_constructor(actor, key);
                if is_ready {
                    self.construct(key, out);
                }
            }
        }
        returns
    }

    #[inline]
    pub(crate) fn insert_task(&mut self, spec: TaskSpec, returns: ReturnKeys) -> TaskKey {
        let key = TaskKey(self.tasks.vacant_key() as u32);
        for object in &returns {
            self.objects[object.index()].maker = Some(key);
        }
        let place = Place::Ready;
        self.tasks.insert(Task {
            spec,
            returns,
            place,
            attempt: 0,
            unread: 0,
            memory_tries: 0,
            cancelled: false,
        });
        key
    }

    /// A task is to be run, for the first time or again: whether it is ready, or waits for the
    /// arguments that have no value now. There is no other way to [`Place::Ready`] (O-7).
    pub(crate) fn await_arguments(&mut self, key: TaskKey, out: &mut impl Outbox) -> bool {
        self.tasks[key.0 as usize].place = Place::Ready;
        let mut missing: SmallVec<[ObjectKey; 4]> = SmallVec::new();
        for index in 0..self.tasks[key.0 as usize].spec.refs.len() {
            let argument = self.tasks[key.0 as usize].spec.refs[index];
            if self.content(argument).is_none() {
                self.count_missing(key, argument);
                missing.push(argument);
            }
        }
        // All are counted first: to want one may have it made at once, or fail.
        for argument in &missing {
            if self.objects.get(argument.index()).is_some_and(|object| object.content.is_none()) {
                self.want(*argument, out);
            }
        }
        missing.is_empty()
    }

    /// One argument more is missing.
    pub(crate) fn count_missing(&mut self, key: TaskKey, argument: ObjectKey) {
        let place = &mut self.tasks[key.0 as usize].place;
        *place = Place::Waiting(match *place {
            Place::Waiting(missing) => missing + 1,
            _ => 1,
        });
        self.objects[argument.index()].dependents.push(key);
    }

    /// One more argument of `key` has its content.
    pub(crate) fn argument_ready(&mut self, key: TaskKey, out: &mut impl Outbox) {
        let Some(task) = self.tasks.get_mut(key.0 as usize) else {
            return;
        };
        let Place::Waiting(missing) = &mut task.place else {
            return;
        };
        *missing -= 1;
        if *missing > 0 {
            return;
        }
        task.place = Place::Ready;
        let target = task.spec.target.clone();
        self.note(key, Change::Ready, out);
        match target {
            Target::Function { shape, .. } => self.enqueue(key, shape, out),
            Target::Method { actor, .. } => self.push_calls(actor, out),
            Target::Constructor { .. } => self.construct(key, out),
        }
    }

    /// The failure of an argument.
    pub(crate) fn failed_argument(&self, key: TaskKey) -> Option<&Arc<Failure>> {
        let task = &self.tasks[key.0 as usize];
        task.spec.refs.iter().find_map(|argument| match self.content(*argument) {
            Some(Content::Failed(failure)) => Some(failure),
            _ => None,
        })
    }

    /// The failure of a task that cannot run because an argument of it failed.
    pub(crate) fn failed_by_argument(&self, key: TaskKey) -> Option<Content> {
        self.failed_argument(key).map(|failure| self.handed_on(key, failure))
    }

    /// Sends a task to `peer`, or a call to this incarnation there; its number in the claims of that
    /// channel.
    pub(crate) fn push(
        &mut self,
        key: TaskKey,
        peer: ProcessId,
        incarnation: u64,
        devices: Vec<u32>,
        claimable: bool,
        out: &mut impl Outbox,
    ) -> u64 {
        self.with_frame(key, incarnation, devices, |frame| out.push_task(peer, frame, claimable))
    }

    /// Builds the frame of a new attempt of a task.
    pub(crate) fn with_frame<R>(
        &mut self,
        key: TaskKey,
        incarnation: u64,
        devices: Vec<u32>,
        send: impl FnOnce(frame::Task<'_>) -> R,
    ) -> R {
        self.attempts = self.attempts.wrapping_add(1);
        self.tasks[key.0 as usize].attempt = self.attempts;
        if self.is_stream(key) {
            self.begin_stream(key);
        }
        let mut nested = Vec::new();
        let mut contained = Vec::new();
        // Names first: making them changes the tables that the values borrow from.
        let spec = &self.tasks[key.0 as usize].spec;
        if !spec.refs.is_empty() || !spec.nested.is_empty() {
            let refs = spec.refs.clone();
            let inner = spec.nested.clone();
            for argument in &refs {
                contained.push(self.names_of_contained(*argument));
            }
            nested.extend(inner.iter().map(|key| self.name(*key)));
        }
        let task = &self.tasks[key.0 as usize];
        let mut values = Values::new();
        for (argument, contained) in task.spec.refs.iter().zip(contained) {
            let body = self.content(*argument).expect("arguments are complete").as_body();
            values.push(Value { body, contained });
        }
        let (function, lane) = match task.spec.target {
            Target::Function { function, .. } => (function, 0),
            Target::Constructor { class, .. } => (class, 0),
            Target::Method { lane, variant, .. } => (variant, lane),
        };
        send(frame::Task {
            token: u64::from(task.attempt) << 32 | u64::from(key.0),
            number: 0,
            lane,
            incarnation,
            id: task.spec.id,
            function,
            name: &task.spec.name,
            returns: task.spec.returns,
            attempt: task.spec.attempt,
            recorded: task.spec.recorded,
            devices,
            args: &task.spec.args,
            values,
            nested,
        })
    }

    /// The task of an answer: one that `peer` has, and this attempt of it.
    pub(crate) fn task_of(&self, peer: ProcessId, token: u64) -> Option<TaskKey> {
        let key = TaskKey(token as u32);
        let task = self.tasks.get(key.0 as usize)?;
        let is_there = match (task.place, &task.spec.target) {
            (Place::Leased(lease), _) => self.leases[lease].peer == peer,
            (Place::AtActor, Target::Method { actor, .. }) => self.is_alive_at(*actor, peer),
            (Place::AtActor, _) => true,
            (Place::Waiting(_) | Place::Ready | Place::Aside(_), _) => false,
        };
        (is_there && u64::from(task.attempt) == token >> 32).then_some(key)
    }

    /// A worker answered.
    pub fn on_answer(&mut self, peer: ProcessId, answer: Answer<'_>, out: &mut impl Outbox) {
        let Some(key) = self.task_of(peer, answer.token) else {
            // An answer to an attempt that was given up: what it hands over is let go.
            self.keep_for_borrower(peer, &answer);
            return Self::decline_answer(peer, &answer, out);
        };
        let task = &self.tasks[key.0 as usize];
        let place = task.place;
        let actor = match task.spec.target {
            Target::Method { actor, .. } => Some(actor),
            _ => None,
        };
        self.keep_for_borrower(peer, &answer);
        self.note_answer(key, peer, &answer, out);
        let goes_again = match answer.outcome {
            _ if self.tasks[key.0 as usize].cancelled => false,
            Outcome::Unread => self.set_aside(key, place, out) || self.retry(key, place, out),
            Outcome::Retryable => self.retry(key, place, out),
            Outcome::Done | Outcome::Raised if self.is_stream(key) => {
                self.was_stopped_to_restart(key) && self.retry(key, place, out)
            }
            Outcome::Done | Outcome::Raised | Outcome::Cancelled => false,
        };
        if goes_again {
            return Self::decline_answer(peer, &answer, out);
        }
        if actor.is_none() && self.is_to_be_kept(key, &answer) {
            self.set_constructed(key);
            return Self::decline_contained(peer, answer.token, 0, &answer.values, out);
        }
        let mut contents = Contents::with_capacity(answer.values.len());
        for value in &answer.values {
            contents.push(Content::from_body(&value.body));
        }
        if answer.outcome == Outcome::Unread && self.tasks[key.0 as usize].cancelled {
            let spec = &self.tasks[key.0 as usize].spec;
            contents = smallvec![cancelled(spec.id, &spec.name)];
        }
        for content in &contents {
            if let Content::Stored { origin, .. } = content {
                out.take_stored(*origin);
            }
        }
        let contained = self.receive_contained(peer, answer.token, 0, &answer.values, out);
        self.leave_place(key, place, Some(answer.ran_ns));
        self.finish(key, contents, contained, out);
        match place {
            Place::Leased(lease) => self.dispatch_to(lease, out),
            Place::AtActor => self.push_calls_after(actor, out),
            Place::Waiting(_) | Place::Ready | Place::Aside(_) => {}
        }
    }

    /// Lets go of what comes with an answer that nobody needs.
    fn decline_answer(peer: ProcessId, answer: &Answer<'_>, out: &mut impl Outbox) {
        Self::decline_contained(peer, answer.token, 0, &answer.values, out);
        for value in &answer.values {
            if let frame::Body::Stored { origin, .. } = value.body {
                out.free_stored(origin);
            }
        }
    }

    /// Whether it is the constructor of an actor that may be started again: then
    /// its arguments are needed for as long as the actor lives.
    fn is_to_be_kept(&self, key: TaskKey, answer: &Answer<'_>) -> bool {
        let spec = &self.tasks[key.0 as usize].spec;
        let constructs = matches!(spec.target, Target::Constructor { .. });
        constructs && spec.retries != 0 && answer.outcome == Outcome::Done
    }

    /// Puts a task that ran once back into its queue, if it may run again.
    fn retry(&mut self, key: TaskKey, place: Place, out: &mut impl Outbox) -> bool {
        let task = &mut self.tasks[key.0 as usize];
        let target = task.spec.target.clone();
        if task.spec.retries == 0 || matches!(target, Target::Constructor { .. }) {
            return false;
        }
        task.spec.retries -= i32::from(task.spec.retries > 0);
        self.leave_place(key, place, None);
        match (target, place) {
            (Target::Function { shape, .. }, place) => {
                self.try_again(key, shape, out);
                match place {
                    Place::Leased(lease) => self.dispatch_to(lease, out),
                    _ => self.dispatch(shape, out),
                }
            }
            (Target::Method { actor, .. }, _) => {
                // Before all that was submitted later and has not gone yet.
                self.put_back_call(key, actor);
                self.await_arguments(key, out);
                self.next_attempt(key, out);
                self.push_calls(actor, out);
            }
            (Target::Constructor { .. }, _) => unreachable!("just refused"),
        }
        true
    }

    /// The worker of a running task is gone. `started`: it had begun.
    pub(crate) fn on_lost(
        &mut self,
        key: TaskKey,
        started: bool,
        memory: MemoryEnd,
        failure: &Content,
        out: &mut impl Outbox,
    ) {
        if self.tasks[key.0 as usize].cancelled {
            return self.end_cancelled(key, out);
        }
        let failure = self.crashed(key, failure);
        if started && memory != MemoryEnd::Not {
            if !self.waits_for_memory(key, memory, &failure, out) {
                self.fail(key, failure, out);
            }
            return;
        }
        let task = &mut self.tasks[key.0 as usize];
        let Target::Function { shape, .. } = task.spec.target else {
            unreachable!("only functions are leased")
        };
        if !started || task.spec.retries != 0 {
            if started {
                task.spec.retries -= i32::from(task.spec.retries > 0);
                self.note_failed(key, &failure, out);
                self.try_again(key, shape, out);
            } else {
                self.put_back(key, shape, out);
            }
        } else {
            self.fail(key, failure, out);
        }
    }

    /// Ends a task (O-1): a content each return, or one failure for all.
    pub(crate) fn finish(
        &mut self,
        key: TaskKey,
        mut contents: Contents,
        mut contained: Vec<Vec<ObjectKey>>,
        out: &mut impl Outbox,
    ) {
        if self.is_stream(key) {
            return self.finish_stream(key, contents, contained, out);
        }
        let task = self.tasks.remove(key.0 as usize);
        // If there are fewer, the last one is a failure, for all that have no value of their own.
        let own = match contents.last() {
            _ if contents.len() == task.returns.len() => contents.len(),
            Some(Content::Failed(_)) if contents.len() < task.returns.len() => contents.len() - 1,
            _ => 0,
        };
        let shared = (own < task.returns.len()).then(|| {
            let failure =
                contents.drain(own..).find(|content| matches!(content, Content::Failed(_)));
            let failure = failure.unwrap_or_else(|| {
                Content::failed(FailureCode::System, "the worker returned too few values")
            });
            (failure, contained.iter().skip(own).flatten().copied().collect::<Vec<_>>())
        });
        let mut contents = contents.into_iter();
        for (index, object) in task.returns.iter().copied().enumerate() {
            let (content, inner) = match (contents.next(), &shared) {
                (Some(content), _) => {
                    let inner = contained.get_mut(index).map(std::mem::take);
                    (content, inner.unwrap_or_default())
                }
                (None, Some((failure, inner))) => {
                    inner.iter().for_each(|key| self.add_ref(*key));
                    (failure.clone(), inner.clone())
                }
                (None, None) => unreachable!("one each"),
            };
            self.fill(object, content, inner, out);
        }
        // Not one by one: whether anybody needs a failure shows when all that share it have it.
        drop(shared);
        for object in &task.returns {
            self.drop_ref(*object, out);
        }
        for key in contained.into_iter().flatten() {
            self.drop_ref(key, out);
        }
        self.keep_recipe(task.spec, task.returns, out);
    }

    /// Gives an object of a task its content, which takes over one count of what it contains.
    pub(crate) fn fill(
        &mut self,
        object: ObjectKey,
        content: Content,
        inner: Vec<ObjectKey>,
        out: &mut impl Outbox,
    ) {
        if self.content(object).is_some() {
            inner.iter().for_each(|key| self.drop_ref(*key, out));
        } else if !inner.is_empty() {
            let rare = self.objects[object.index()].rare();
            // What it contained before it was lost and made again.
            for old in std::mem::replace(&mut rare.contained, inner) {
                self.drop_ref(old, out);
            }
        }
        self.complete(object, content, out);
    }

    /// Ends a task that never ran.
    pub(crate) fn fail(&mut self, key: TaskKey, failure: Content, out: &mut impl Outbox) {
        self.note_failed(key, &failure, out);
        self.finish(key, smallvec![failure], Vec::new(), out);
    }
}
