//! Calls to actors, in order.
//!
//! A handle is a counted reference like any other: an object without a value,
//! owned by the actor's creator. When nothing counts on it any more the actor ends.
//!
//! News of an actor come by several ways: from its node, from the control service when that node is
//! lost, from the next node. So they say which *incarnation* they are of, by a number that only
//! grows, and what is older than what was heard already is no news (O-9).

use std::collections::VecDeque;
use std::sync::Arc;

use oxiray_ids::{ActorId, ObjectId, ProcessId, TaskId};
use oxiray_wire::frame::{About, FailureCode, Frame};
use smallvec::SmallVec;

use crate::object::{Object, ObjectKey};
use crate::owner::{Outbox, Owner};
use crate::task::{CallOrder, Contents, Place, Target, Task, TaskKey};

/// Calls at an actor at one time; the rest waits with its caller.
const MAX_AT_ACTOR: usize = 1000;

/// Of news that are true whichever incarnation was the last.
pub const ANY_INCARNATION: u64 = u64::MAX;

/// Why an actor takes no calls.
#[derive(Clone, Default, Debug)]
pub struct ActorEnd {
    /// Name of its class, as far as it is known.
    pub class_name: String,
    /// In words.
    pub reason: String,
    /// The exception of its constructor, if that is why.
    pub creation_error: Vec<u8>,
    /// What its calls fail with, if it is not that it died.
    pub failure: Option<FailureCode>,
    /// The first of this process's calls that it had and did not answer.
    pub during: Option<Arc<str>>,
}

pub(crate) enum Phase {
    Pending,
    Alive(ProcessId),
    Dead(ActorEnd),
}

pub(crate) struct Actor {
    pub(crate) phase: Phase,
    /// The latest that was heard of (O-9).
    incarnation: u64,
    /// Not pushed yet, in order of submission (O-6).
    pub(crate) queue: VecDeque<TaskKey>,
    pub(crate) at_actor: VecDeque<TaskKey>,
    /// The constructor, until it ended; of an actor that may be started again,
    /// until that is dead.
    constructor: Option<TaskKey>,
    /// The constructor has returned, once at least.
    pub(crate) constructed: bool,
    /// No handle of it is left in this process.
    unreferenced: bool,
}

impl Actor {
    fn new() -> Self {
        Self {
            phase: Phase::Pending,
            incarnation: 0,
            queue: VecDeque::new(),
            at_actor: VecDeque::new(),
            constructor: None,
            constructed: false,
            unreferenced: false,
        }
    }

    /// Its constructor, while it has not ended.
    pub(crate) fn constructing(&self) -> Option<&TaskKey> {
        self.constructor.as_ref().filter(|_| !self.constructed)
    }
}

/// The object that stands for the handles of an actor.
pub fn handle_object(actor: ActorId) -> ObjectId {
    TaskId::new(actor, ProcessId(0), 0).object(0)
}

impl Owner {
    /// A handle of an actor that we are about to create, counted once.
    /// `detached`: it does not end with its last handle.
    pub fn new_actor(&mut self, actor: ActorId, detached: bool) -> ObjectKey {
        self.actors.insert(actor, Actor::new());
        if detached {
            self.detached.insert(actor);
        }
        self.insert(Object::new(handle_object(actor), None))
    }

    /// An actor that was to be created is not, and nobody has heard of it.
    pub fn give_up_actor(&mut self, actor: ActorId, handle: ObjectKey, out: &mut impl Outbox) {
        self.actors.remove(&actor);
        self.detached.remove(&actor);
        self.drop_ref(handle, out);
    }

    /// Starts to follow an actor that another process created; whether that is news.
    pub fn meet_actor(&mut self, actor: ActorId) -> bool {
        if let Some(state) = self.actors.get_mut(&actor) {
            state.unreferenced = false;
            return false;
        }
        self.actors.insert(actor, Actor::new());
        true
    }

    pub(crate) fn set_constructor(&mut self, actor: ActorId, key: TaskKey) {
        if let Some(state) = self.actors.get_mut(&actor) {
            state.constructor = Some(key);
        }
    }

    /// The constructor of an actor that may be started again returned.
    pub(crate) fn set_constructed(&mut self, key: TaskKey) {
        if let Target::Constructor { actor, .. } = self.tasks[key.0 as usize].spec.target
            && let Some(state) = self.actors.get_mut(&actor)
        {
            state.constructed = true;
        }
    }

    /// The arguments of a constructor are complete.
    pub(crate) fn construct(&mut self, key: TaskKey, out: &mut impl Outbox) {
        let Target::Constructor { actor, .. } = self.tasks[key.0 as usize].spec.target else {
            unreachable!("only constructors construct")
        };
        let wanted = self
            .actors
            .get(&actor)
            .is_some_and(|state| !state.unreferenced && !matches!(state.phase, Phase::Dead(_)));
        if !wanted {
            // The node was told to end it before it heard of it: it must not begin.
            let reason = "all handles of the actor are gone".to_owned();
            self.note_ended(key, &ActorEnd { reason, ..ActorEnd::default() }, out);
            self.leave_actor(key);
            self.finish(key, Contents::new(), Vec::new(), out);
            return self.forget_if_done(actor);
        }
        if let Some(failure) = self.failed_argument(key) {
            let mut reason = "an argument of its constructor could not be computed".to_owned();
            let creation_error = match failure.code.about() {
                About::Exception => failure.data.to_vec(),
                _ => {
                    reason.push_str(&format!(": {}", failure.message));
                    Vec::new()
                }
            };
            let end = ActorEnd { reason, creation_error, ..ActorEnd::default() };
            self.note_ended(key, &end, out);
            self.leave_actor(key);
            self.finish(key, Contents::new(), Vec::new(), out);
            // Others may have been given a handle, and ask the node about it.
            out.kill_actor(actor, &end.reason);
            return self.on_actor_dead(actor, ANY_INCARNATION, end, out);
        }
        self.tasks[key.0 as usize].place = Place::AtActor;
        self.with_frame(key, 0, Vec::new(), |frame| out.create_actor(actor, frame));
    }

    pub(crate) fn enqueue_call(&mut self, key: TaskKey, actor: ActorId, out: &mut impl Outbox) {
        let queue = &mut self.actors.entry(actor).or_insert_with(Actor::new).queue;
        let before = queue.back().copied();
        queue.push_back(key);
        // What is left in the queue waits, and so does what comes behind it.
        let waits = before.is_some_and(|before| {
            let (before, task) = (&self.tasks[before.0 as usize], &self.tasks[key.0 as usize]);
            let in_turn = |task: &Task| {
                matches!(task.spec.target, Target::Method { order: CallOrder::All, .. })
            };
            in_turn(before) && in_turn(task) && before.caller() == task.caller()
        });
        if !waits {
            self.push_calls(actor, out);
        }
    }

    /// Puts a call that did not begin at its actor back among those that are to go there.
    pub(crate) fn put_back_call(&mut self, key: TaskKey, actor: ActorId) {
        let Some(state) = self.actors.get_mut(&actor) else {
            return;
        };
        let order = |key: TaskKey| self.tasks[key.0 as usize].spec.id.unique();
        let behind = state.queue.iter().position(|other| order(*other) > order(key));
        state.queue.insert(behind.unwrap_or(state.queue.len()), key);
    }

    /// How many calls of an actor are under way from this process.
    pub fn pending_calls(&self, actor: ActorId) -> usize {
        self.actors.get(&actor).map_or(0, |state| state.queue.len() + state.at_actor.len())
    }

    pub(crate) fn push_calls_after(&mut self, actor: Option<ActorId>, out: &mut impl Outbox) {
        if let Some(actor) = actor {
            self.push_calls(actor, out);
        }
    }

    /// The next call to push, where it is in the queue, and its order: the first that is ready and
    /// not behind one that it waits for.
    fn next_call(&self, state: &Actor) -> Option<(usize, TaskKey, CallOrder)> {
        let mut held_back = SmallVec::<[u16; 4]>::new();
        let mut waiting = SmallVec::<[TaskId; 1]>::new();
        for (at, key) in state.queue.iter().copied().enumerate() {
            let task = &self.tasks[key.0 as usize];
            let Target::Method { lane, order, .. } = task.spec.target else {
                unreachable!("only calls wait here")
            };
            match (task.place == Place::Ready, order) {
                (true, CallOrder::Lane) if held_back.contains(&lane) => {}
                (true, CallOrder::All) if waiting.contains(&task.caller()) => {}
                (true, _) => return Some((at, key, order)),
                (false, CallOrder::All) if task.caller() == TaskId::NIL => return None,
                (false, CallOrder::All) => waiting.push(task.caller()),
                (false, CallOrder::Lane) => held_back.push(lane),
                (false, CallOrder::Free) => {}
            }
        }
        None
    }

    /// Pushes calls that wait neither for arguments nor for others, from the front of the queue.
    pub(crate) fn push_calls(&mut self, actor: ActorId, out: &mut impl Outbox) {
        loop {
            let next = self.actors.get(&actor).and_then(|state| self.next_call(state));
            let Some((at, key, order)) = next else {
                return;
            };
            let in_turn = order == CallOrder::All;
            let state = self.actors.get_mut(&actor).expect("just seen");
            match &state.phase {
                Phase::Pending => return,
                // One that runs many at once has to see them: one may be what others wait for.
                Phase::Alive(_) if in_turn && state.at_actor.len() >= MAX_AT_ACTOR => return,
                Phase::Alive(peer) => {
                    let peer = *peer;
                    state.queue.remove(at);
                    if let Some(failure) = self.failed_by_argument(key) {
                        self.fail(key, failure, out);
                        continue;
                    }
                    let state = self.actors.get_mut(&actor).expect("just seen");
                    state.at_actor.push_back(key);
                    let incarnation = state.incarnation;
                    self.tasks[key.0 as usize].place = Place::AtActor;
                    self.push(key, peer, incarnation, Vec::new(), false, out);
                }
                Phase::Dead(end) => {
                    let end = end.clone();
                    state.queue.remove(at);
                    let failure = self.died(key, actor, &end, false);
                    self.fail(key, failure, out);
                }
            }
        }
    }

    pub(crate) fn leave_actor(&mut self, key: TaskKey) {
        match self.tasks[key.0 as usize].spec.target {
            Target::Method { actor, .. } => {
                let Some(state) = self.actors.get_mut(&actor) else {
                    return;
                };
                if let Some(at) = state.at_actor.iter().position(|other| *other == key) {
                    state.at_actor.remove(at);
                }
            }
            Target::Constructor { actor, .. } => {
                if let Some(state) = self.actors.get_mut(&actor) {
                    state.constructor = None;
                }
            }
            Target::Function { .. } => {}
        }
    }

    /// An incarnation of the actor takes calls at `peer`.
    pub fn on_actor_alive(
        &mut self,
        actor: ActorId,
        peer: ProcessId,
        incarnation: u64,
        out: &mut impl Outbox,
    ) {
        let Some(state) = self.actors.get(&actor).filter(|state| state.incarnation <= incarnation)
        else {
            return;
        };
        let is_elsewhere = matches!(state.phase, Phase::Alive(other) if other != peer);
        if state.incarnation < incarnation || is_elsewhere {
            // The end of the one before was not heard of: calls it had are made again, or fail.
            self.begin_incarnation(actor, incarnation, "its node was lost", out);
        } else if matches!(state.phase, Phase::Pending) {
            self.give_up_calls(actor, out);
        }
        // With its last calls it may be forgotten.
        let Some(state) = self.actors.get_mut(&actor) else {
            return;
        };
        if matches!(state.phase, Phase::Dead(_)) {
            return;
        }
        state.phase = Phase::Alive(peer);
        if state.unreferenced && actor.creator() == self.process && !self.detached.contains(&actor)
        {
            // Said to the process that died, if at all.
            out.send(peer, &Frame::ActorUnreferenced(actor));
        }
        self.push_calls(actor, out);
    }

    /// A process could not be reached for a while, and is back. If it is an actor's, news of that
    /// follow, and calls go nowhere meanwhile.
    pub(crate) fn lose_sight_of_actors(&mut self, peer: ProcessId) {
        for state in self.actors.values_mut() {
            if matches!(state.phase, Phase::Alive(at) if at == peer) {
                state.phase = Phase::Pending;
            }
        }
    }

    /// The incarnation that was lost sight of lives, and with it calls whose frames or answers were
    /// lost: each may have run there, and runs there once (O-9).
    fn give_up_calls(&mut self, actor: ActorId, out: &mut impl Outbox) {
        let Some(state) = self.actors.get_mut(&actor) else {
            return;
        };
        for key in std::mem::take(&mut state.at_actor) {
            match self.tasks[key.0 as usize].cancelled {
                true => self.end_cancelled(key, out),
                false => self.fail(key, self.unknown_fate(key, actor), out),
            }
        }
    }

    /// The actor's process died and this incarnation is to follow; everything it had
    /// answered has been read. Calls that it had and that may be made again are
    /// made again, before all others and in their order (O-6).
    pub fn on_actor_restarting(
        &mut self,
        actor: ActorId,
        incarnation: u64,
        reason: &str,
        out: &mut impl Outbox,
    ) {
        let is_news = |state: &Actor| state.incarnation < incarnation;
        if self.actors.get(&actor).is_some_and(is_news) {
            self.begin_incarnation(actor, incarnation, reason, out);
        }
    }

    fn begin_incarnation(
        &mut self,
        actor: ActorId,
        incarnation: u64,
        reason: &str,
        out: &mut impl Outbox,
    ) {
        let Some(state) = self.actors.get_mut(&actor) else {
            return;
        };
        if matches!(state.phase, Phase::Dead(_)) {
            return;
        }
        state.incarnation = incarnation;
        state.phase = Phase::Pending;
        let (mut lost, mut again) = (Vec::new(), Vec::new());
        while let Some(key) = state.at_actor.pop_back() {
            let task = &mut self.tasks[key.0 as usize];
            if task.spec.retries == 0 || task.cancelled {
                lost.push(key);
                continue;
            }
            task.spec.retries -= i32::from(task.spec.retries > 0);
            state.queue.push_front(key);
            again.push(key);
        }
        for key in again.into_iter().rev() {
            self.note_failed(key, &self.interrupted(key, actor, reason), out);
            self.await_arguments(key, out);
            self.next_attempt(key, out);
        }
        for key in lost.into_iter().rev() {
            match self.tasks[key.0 as usize].cancelled {
                true => self.end_cancelled(key, out),
                false => self.fail(key, self.interrupted(key, actor, reason), out),
            }
        }
    }

    /// The actor is dead for good with this incarnation, and everything it had answered has been
    /// read.
    pub fn on_actor_dead(
        &mut self,
        actor: ActorId,
        incarnation: u64,
        mut end: ActorEnd,
        out: &mut impl Outbox,
    ) {
        let state = self.actors.get_mut(&actor);
        let Some(state) = state.filter(|state| state.incarnation <= incarnation) else {
            return;
        };
        self.detached.remove(&actor);
        if matches!(state.phase, Phase::Dead(_)) {
            return;
        }
        let name = |key: &TaskKey| self.tasks[key.0 as usize].spec.name.clone();
        end.during = state.at_actor.front().map(name);
        state.phase = Phase::Dead(end.clone());
        let lost = std::mem::take(&mut state.at_actor);
        let queue = std::mem::take(&mut state.queue);
        // One that waits for its arguments ends when they are here.
        let tasks = &self.tasks;
        let pushed = |key: &mut TaskKey| tasks[key.0 as usize].place == Place::AtActor;
        let constructed = state.constructed;
        if let Some(constructor) = state.constructor.take_if(pushed) {
            if !constructed {
                self.note_ended(constructor, &end, out);
            }
            self.finish(constructor, Contents::new(), Vec::new(), out);
        }
        for key in lost {
            self.fail(key, self.died(key, actor, &end, true), out);
        }
        for key in queue {
            if self.tasks[key.0 as usize].place == Place::Ready {
                self.fail(key, self.died(key, actor, &end, false), out);
            } else {
                // Its arguments are on their way; `push_calls` fails it when they are here.
                self.actors.get_mut(&actor).expect("just seen").queue.push_back(key);
            }
        }
        self.forget_if_done(actor);
    }

    /// Constructors that ended and are kept, because their actors may be started again.
    #[cfg(test)]
    pub(crate) fn kept_constructors(&self) -> usize {
        let alive = |state: &&Actor| matches!(state.phase, Phase::Alive(_));
        self.actors.values().filter(alive).filter(|state| state.constructor.is_some()).count()
    }

    /// Whether an incarnation is later than the latest heard of.
    #[cfg(test)]
    pub(crate) fn is_news(&self, actor: ActorId, incarnation: u64) -> bool {
        self.actors.get(&actor).is_some_and(|state| state.incarnation < incarnation)
    }

    pub(crate) fn is_alive_at(&self, actor: ActorId, peer: ProcessId) -> bool {
        let phase = self.actors.get(&actor).map(|state| &state.phase);
        matches!(phase, Some(Phase::Alive(at)) if *at == peer)
    }

    /// Where an actor is: `Ok(None)` is not known yet.
    pub fn actor_peer(&self, actor: ActorId) -> Result<Option<ProcessId>, &ActorEnd> {
        match self.actors.get(&actor).map(|state| &state.phase) {
            Some(Phase::Alive(peer)) => Ok(Some(*peer)),
            Some(Phase::Dead(end)) => Err(end),
            Some(Phase::Pending) | None => Ok(None),
        }
    }

    /// Nothing in this process counts on a handle any more; if the actor is
    /// `ours`, nothing anywhere does.
    pub(crate) fn on_handle_gone(&mut self, actor: ActorId, ours: bool, out: &mut impl Outbox) {
        let Some(state) = self.actors.get_mut(&actor) else {
            return;
        };
        state.unreferenced = true;
        match &state.phase {
            _ if self.detached.contains(&actor) => {}
            Phase::Alive(peer) if ours => {
                out.release_name(actor);
                out.send(*peer, &Frame::ActorUnreferenced(actor));
            }
            Phase::Pending if ours => out.kill_actor(actor, "all handles of the actor are gone"),
            _ => {}
        }
        self.forget_if_done(actor);
    }

    /// Forgets an actor without handles here once nothing is under way.
    fn forget_if_done(&mut self, actor: ActorId) {
        let done = self.actors.get(&actor).is_some_and(|state| {
            state.unreferenced
                && state.constructor.is_none()
                && state.queue.is_empty()
                && state.at_actor.is_empty()
        });
        if done {
            self.actors.remove(&actor);
        }
    }
}
