//! The lives of actors: waiting, starting, alive, started again, dead.

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_scheduler::Allocation;
use oxiray_wire::cluster::ActorNews;
use oxiray_wire::control::{
    ActorCreated, ActorPhase, ActorState, CreateActor, Shape, StartActor, from_node,
};

use crate::deaths::Death;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::Role;
use crate::schedule::{ShapeId, Turn};

/// Where a live actor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// In the queue: its place there.
    Waiting(ShapeId, u64),
    /// Its constructor runs in this worker.
    Starting(ProcessId),
    /// It takes calls in this worker.
    Alive(ProcessId),
}

/// An actor that is not dead.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) class_name: String,
    pub(crate) creator: ProcessId,
    pub(crate) job: Option<JobId>,
    pub(crate) stage: Stage,
    placement: Shape,
    held: Shape,
    /// How often it may be started again; negative: for ever.
    restarts_left: i64,
    /// How often it was.
    pub(crate) restarts: u64,
    /// Neither its handles nor its creator keep it alive.
    pub(crate) detached: bool,
    pub(crate) allocation: Option<Allocation>,
    pub(crate) watchers: Vec<ProcessId>,
    /// Process id of its worker, the last one it had.
    pub(crate) pid: u32,
}

impl Actor {
    pub(crate) fn worker(&self) -> Option<ProcessId> {
        match self.stage {
            Stage::Waiting(..) => None,
            Stage::Starting(worker) | Stage::Alive(worker) => Some(worker),
        }
    }
}

impl Node {
    pub(crate) fn on_create_actor(
        &mut self,
        creator: ProcessId,
        message: CreateActor,
        restarts: u64,
        job: Option<JobId>,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(&message.actor) else {
            return;
        };
        if let Some(death) = self.deaths.get(&id) {
            // The control service had not heard of it.
            return self.tell_of_actor(death.news(id), out);
        }
        if self.actors.contains_key(&id) {
            return;
        }
        let placement = message.placement.unwrap_or_default();
        let stage = self.queue_actor(id, placement.clone());
        let actor = Actor {
            class_name: message.class_name,
            creator,
            job,
            stage,
            placement,
            held: message.held.unwrap_or_default(),
            restarts_left: match message.max_restarts {
                forever if forever < 0 => forever,
                most => most.saturating_sub_unsigned(restarts).max(0),
            },
            restarts,
            detached: message.detached,
            allocation: None,
            watchers: Vec::new(),
            pid: 0,
        };
        self.actors.insert(id, actor);
        let Some(process) = self.processes.get_mut(&creator) else {
            return; // It outlived its creator, and is made from what was kept.
        };
        process.actors.insert(id);
        self.watch(creator, id);
        // The control service has it, and need not be asked again.
        self.member.creating.remove(&id);
        // One of this node knows that it waits.
        if self.is_elsewhere(creator) {
            self.tell_watcher(creator, id, out);
        }
    }

    /// Puts an actor into the queue for a worker: where it is then.
    fn queue_actor(&mut self, id: ActorId, placement: Shape) -> Stage {
        let shape = self.schedule.intern(placement);
        self.schedule.last_waiting += 1;
        let order = self.schedule.last_waiting;
        self.schedule.waiting_actors.insert((shape, order), id);
        if !self.schedule.turns.contains(&Turn::Actors) {
            self.schedule.turns.push_back(Turn::Actors);
        }
        Stage::Waiting(shape, order)
    }

    /// The process of an actor is gone: starts it again if it may be, else it is
    /// dead. One that went by itself, `intended`, stays away.
    pub(crate) fn on_actor_lost(
        &mut self,
        id: ActorId,
        reason: String,
        intended: bool,
        out: &mut impl Outbox,
    ) {
        let Some(actor) = self.actors.get_mut(&id) else {
            return;
        };
        // Its creator has its class and arguments; or they were kept, if it was made once.
        let known = self.processes.contains_key(&actor.creator) || actor.detached;
        let can = known && actor.restarts_left != 0;
        if intended || !can {
            return self.bury(id, reason, Vec::new(), out);
        }
        actor.restarts_left -= i64::from(actor.restarts_left > 0);
        actor.restarts += 1;
        if let Some(allocation) = actor.allocation.take() {
            self.ledger.release(allocation);
        }
        let mut state = ActorState {
            actor: id.0.to_vec(),
            class_name: actor.class_name.clone(),
            restarts: actor.restarts,
            reason,
            ..ActorState::default()
        };
        state.set_phase(ActorPhase::Restarting);
        let restarts = actor.restarts;
        let reason = state.reason.clone();
        let phase = ActorPhase::Restarting as i32;
        let news =
            ActorNews { actor: id.0.to_vec(), phase, reason, restarts, ..ActorNews::default() };
        let (watchers, placement) = (actor.watchers.clone(), actor.placement.clone());
        let stage = self.queue_actor(id, placement);
        self.actors.get_mut(&id).expect("is started again").stage = stage;
        self.tell_of_actor(news, out);
        for watcher in watchers {
            self.tell_state(watcher, state.clone(), out);
        }
    }

    /// Tells a watcher how an actor of this node fares. One of another node hears it by way of
    /// that, which then notes what it heard; for our own that is done here.
    fn tell_state(&mut self, watcher: ProcessId, state: ActorState, out: &mut impl Outbox) {
        if let (Some(id), false) = (ActorId::from_slice(&state.actor), self.is_elsewhere(watcher)) {
            self.note_heard(watcher, id, self.number, &state);
        }
        out.send(watcher, from_node::Body::ActorState(state));
    }

    fn watch(&mut self, watcher: ProcessId, id: ActorId) {
        let process = self.processes.get_mut(&watcher).expect("is the sender");
        if process.watching.insert(id) {
            self.actors.get_mut(&id).expect("is alive").watchers.push(watcher);
        }
    }

    pub(crate) fn on_watch_actor(&mut self, from: ProcessId, id: &[u8], out: &mut impl Outbox) {
        let Some(id) = ActorId::from_slice(id) else {
            return;
        };
        if self.actors.contains_key(&id) {
            self.watch(from, id);
            self.tell_watcher(from, id, out);
            return;
        }
        let unknown = || Death { reason: "unknown actor".into(), ..Death::default() };
        let death = self.deaths.get(&id).cloned().unwrap_or_else(unknown);
        self.tell_state(from, death.state(id), out);
    }

    /// Gives a waiting actor its worker.
    pub(crate) fn place_actor(
        &mut self,
        id: ActorId,
        worker: ProcessId,
        allocation: Allocation,
        out: &mut impl Outbox,
    ) {
        let actor = self.actors.get_mut(&id).expect("was waiting");
        let creator = actor.creator;
        let creator_lives = self.processes.contains_key(&creator);
        actor.stage = Stage::Starting(worker);
        actor.pid = self.processes[&worker].pid;
        let message = StartActor {
            actor: id.0.to_vec(),
            devices: allocation.devices(),
            creator: creator.0,
            class_name: actor.class_name.clone(),
            restarts: actor.restarts,
            kept: !creator_lives,
            keep: actor.detached && actor.restarts_left != 0,
        };
        let job = actor.job;
        actor.allocation = Some(allocation);
        self.processes.get_mut(&worker).expect("was idle").role = Role::Actor(id);
        self.has_worked = true;
        self.bind_job(worker, job, out);
        self.ensure_channel(creator, worker, out);
        out.send(worker, from_node::Body::StartActor(message));
    }

    pub(crate) fn on_actor_created(
        &mut self,
        worker: ProcessId,
        message: ActorCreated,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(&message.actor) else {
            return;
        };
        let Some(actor) = self.actors.get_mut(&id) else {
            return;
        };
        if actor.stage != Stage::Starting(worker) {
            return;
        }
        if !message.error.is_empty() {
            self.bury(id, "its constructor raised an exception".into(), message.error, out);
            self.send_away(worker, "its constructor raised an exception", out);
            return;
        }
        actor.stage = Stage::Alive(worker);
        if let Some(allocation) = &mut actor.allocation {
            self.ledger.shrink(allocation, &actor.held);
        }
        let (watchers, restarts) = (actor.watchers.clone(), actor.restarts);
        let phase = ActorPhase::Alive as i32;
        let (process, pid) = (worker.0, actor.pid);
        let actor = id.0.to_vec();
        let news = ActorNews { actor, phase, restarts, process, pid, ..ActorNews::default() };
        self.tell_of_actor(news, out);
        for watcher in watchers {
            self.tell_watcher(watcher, id, out);
        }
    }

    /// Tells one watcher where an actor is, with a channel to it if it is alive.
    fn tell_watcher(&mut self, watcher: ProcessId, id: ActorId, out: &mut impl Outbox) {
        let actor = &self.actors[&id];
        let class_name = actor.class_name.clone();
        let restarts = actor.restarts;
        let actor_bytes = id.0.to_vec();
        let mut state =
            ActorState { actor: actor_bytes, class_name, restarts, ..ActorState::default() };
        state.set_phase(ActorPhase::Pending);
        if let Stage::Alive(worker) = actor.stage {
            state.set_phase(ActorPhase::Alive);
            state.process = worker.0;
            state.pid = self.processes[&worker].pid;
            self.ensure_channel(watcher, worker, out);
        }
        self.tell_state(watcher, state, out);
    }

    pub(crate) fn on_kill_actor(
        &mut self,
        message: &oxiray_wire::control::Actor,
        out: &mut impl Outbox,
    ) {
        if let Some(id) = ActorId::from_slice(&message.actor)
            && let Some(actor) = self.actors.get_mut(&id)
        {
            if message.no_restart {
                actor.restarts_left = 0;
            } else if actor.restarts_left != 0 && actor.worker().is_none() {
                return; // It is being started already.
            }
            let by_user = message.reason.is_empty();
            let reason = if by_user { "it was killed by ray.kill" } else { &message.reason };
            self.kill_actor(id, reason, out);
        }
    }

    /// Ends an actor. One with a worker is dead when the worker is.
    pub(crate) fn kill_actor(&mut self, id: ActorId, reason: &str, out: &mut impl Outbox) {
        let Some(actor) = self.actors.get(&id) else {
            return;
        };
        match actor.worker() {
            None => self.bury(id, reason.into(), Vec::new(), out),
            Some(worker) => self.end_process(worker, reason.into(), false, out),
        }
    }

    /// Kills a worker that belongs to nothing any more.
    pub(crate) fn send_away(&mut self, worker: ProcessId, reason: &str, out: &mut impl Outbox) {
        if let Some(process) = self.processes.get_mut(&worker) {
            process.role = Role::Leaving;
            self.end_process(worker, reason.into(), false, out);
        }
    }

    /// An actor is dead: resources go back, watchers hear of it.
    pub(crate) fn bury(
        &mut self,
        id: ActorId,
        reason: String,
        creation_error: Vec<u8>,
        out: &mut impl Outbox,
    ) {
        let Some(mut actor) = self.actors.remove(&id) else {
            return;
        };
        if let Some(allocation) = actor.allocation.take() {
            self.ledger.release(allocation);
        }
        if let Stage::Waiting(shape, order) = actor.stage {
            self.schedule.waiting_actors.remove(&(shape, order));
        }
        if let Some(creator) = self.processes.get_mut(&actor.creator) {
            creator.actors.remove(&id);
        }
        let death = Death { class_name: actor.class_name, reason, creation_error };
        self.tell_of_actor(death.news(id), out);
        for watcher in actor.watchers {
            if let Some(process) = self.processes.get_mut(&watcher) {
                process.watching.remove(&id);
                self.tell_state(watcher, death.state(id), out);
            }
        }
        self.deaths.insert(id, death);
    }

    /// The control service knows of a death (D-1).
    pub(crate) fn on_actor_buried(&mut self, id: &[u8]) {
        if let Some(id) = ActorId::from_slice(id) {
            self.deaths.remove(&id);
        }
    }
}
