//! The lives of actors: waiting, starting, alive, started again, dead.

use oxiray_ids::{ActorId, GroupId, JobId, ProcessId};
use oxiray_scheduler::Allocation;
use oxiray_wire::cluster::ActorNews;
use oxiray_wire::control::{
    ActorCreated, ActorPhase, ActorState, CreateActor, Empty, Shape, StartActor, StartAnswer,
    from_node, threads_of,
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
    pub(crate) restarts_left: i64,
    /// How often it was.
    pub(crate) restarts: u64,
    /// Which of its stays at nodes this one is: the control service counts them (C-10).
    pub(crate) stay: u32,
    /// The control service would start it again elsewhere if this node were given up (V-2).
    pub(crate) is_movable: bool,
    /// Neither its handles nor its creator keep it alive.
    pub(crate) detached: bool,
    /// It can be made without its creator.
    pub(crate) kept: bool,
    pub(crate) allocation: Option<Allocation>,
    pub(crate) watchers: Vec<ProcessId>,
    /// Process id of its worker, the last one it had.
    pub(crate) pid: u32,
    /// When it was given that.
    pub(crate) placed_at: u64,
}

impl Actor {
    /// Whether its end is not the last.
    pub(crate) fn may_restart(&self) -> bool {
        self.restarts_left != 0
    }

    /// What the control service hears of one that takes calls.
    pub(crate) fn alive_news(&self, id: ActorId, worker: ProcessId) -> ActorNews {
        ActorNews {
            actor: id.0.to_vec(),
            phase: ActorPhase::Alive as i32,
            restarts: self.restarts,
            stay: self.stay,
            process: worker.0,
            pid: self.pid,
            ..ActorNews::default()
        }
    }

    /// The placement group that it is to be in.
    pub(crate) fn group(&self) -> Option<GroupId> {
        self.placement.place().map(|(group, _)| group)
    }

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
        (stay, restarts): (u32, u64),
        job: Option<JobId>,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(&message.actor) else {
            return;
        };
        if let Some(death) = self.deaths.get_mut(&id) {
            // The control service had not heard of it, and may have told others of one more life.
            death.be_of(stay, restarts);
            let news = death.news(id);
            return self.tell_of_actor(news, out);
        }
        if self.actors.contains_key(&id) {
            return;
        }
        let placement = message.placement.unwrap_or_default();
        let stage = self.queue_actor(id, placement.clone());
        let restarts_left = match message.max_restarts {
            forever if forever < 0 => forever,
            most => most.saturating_sub_unsigned(restarts).max(0),
        };
        let actor = Actor {
            class_name: message.class_name,
            creator,
            job,
            stage,
            placement,
            held: message.held.unwrap_or_default(),
            restarts_left,
            restarts,
            stay,
            // Of restarts here it may not have heard.
            is_movable: restarts_left != 0,
            detached: message.detached,
            kept: message.kept,
            allocation: None,
            watchers: Vec::new(),
            pid: 0,
            placed_at: 0,
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
        let shape = self.intern(placement);
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
            stay: actor.stay,
            reason,
            ..ActorState::default()
        };
        state.set_phase(ActorPhase::Restarting);
        let news = ActorNews {
            actor: id.0.to_vec(),
            phase: ActorPhase::Restarting as i32,
            reason: state.reason.clone(),
            restarts: actor.restarts,
            stay: actor.stay,
            ..ActorNews::default()
        };
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
            self.return_again(Some(id));
            return;
        }
        let unknown =
            || Death { reason: "unknown actor".into(), restarts: u64::MAX, ..Death::default() };
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
        actor.placed_at = self.schedule.passed_at;
        let message = StartActor {
            actor: id.0.to_vec(),
            devices: allocation.devices(),
            creator: creator.0,
            class_name: actor.class_name.clone(),
            restarts: actor.restarts,
            stay: actor.stay,
            kept: actor.kept || !creator_lives,
            keep: actor.detached && actor.restarts_left != 0,
            asks: self.processes[&worker].has_worked,
            group: actor.group().map(|group| group.0.to_vec()).unwrap_or_default(),
            capture: actor.placement.strategy.as_ref().is_some_and(|asked| asked.capture),
            threads: threads_of(&actor.held.resources),
            fenced: actor.is_movable,
        };
        out.confine(worker, &actor.held.resources);
        let job = actor.job;
        actor.allocation = Some(allocation);
        let role = if message.asks { Role::Asked(id) } else { Role::Actor(id) };
        self.processes.get_mut(&worker).expect("was idle").role = role;
        self.has_worked = true;
        self.bind_job(worker, job, out);
        self.ensure_channel(creator, worker, out);
        out.send(worker, from_node::Body::StartActor(message));
    }

    /// A worker that was asked to become an actor does so, or not because others hold what it owns:
    /// then the actor waits for another. The actor may have died meanwhile.
    pub(crate) fn on_start_answer(
        &mut self,
        worker: ProcessId,
        answer: &StartAnswer,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let Some(process) = self.processes.get_mut(&worker) else {
            return;
        };
        let Role::Asked(id) = process.role else {
            return;
        };
        if id.0[..] != answer.actor[..] {
            return;
        }
        let actor = self.actors.get(&id);
        let is_wanted = actor.is_some_and(|actor| actor.stage == Stage::Starting(worker));
        match (answer.declined, is_wanted) {
            (false, true) => process.role = Role::Actor(id),
            (false, false) => self.send_away(worker, "its actor is not wanted any more", out),
            (true, true) => {
                self.queue_again(id);
                self.make_idle(worker, now);
                self.processes.get_mut(&worker).expect("has answered").is_held = true;
            }
            // What it was of may be over: it goes once nobody holds what it owns.
            (true, false) => {
                process.role = Role::Leaving;
                let unanswered = process.unanswered.take();
                unanswered.into_iter().for_each(|allocation| self.ledger.release(allocation));
                out.send(worker, from_node::Body::Exit(Empty {}));
            }
        }
    }

    /// The worker that an actor was to have is none: another is to be found.
    pub(crate) fn queue_again(&mut self, id: ActorId) {
        let Some(actor) = self.actors.get_mut(&id) else {
            return;
        };
        if let Some(allocation) = actor.allocation.take() {
            self.ledger.release(allocation);
        }
        let placement = actor.placement.clone();
        let stage = self.queue_actor(id, placement);
        self.actors.get_mut(&id).expect("waits again").stage = stage;
    }

    /// Whether it is not known yet that a worker becomes the actor that it was given. What it owns
    /// must not go with that.
    fn is_asked(&self, worker: ProcessId) -> bool {
        matches!(self.processes.get(&worker).map(|process| process.role), Some(Role::Asked(_)))
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
        // Who has made it has agreed to.
        self.processes.get_mut(&worker).expect("is its worker").role = Role::Actor(id);
        if !message.error.is_empty() {
            self.bury(id, "its constructor raised an exception".into(), message.error, out);
            self.send_away(worker, "its constructor raised an exception", out);
            return;
        }
        actor.stage = Stage::Alive(worker);
        if let Some(allocation) = &mut actor.allocation {
            self.ledger.shrink(allocation, &actor.held);
        }
        let watchers = actor.watchers.clone();
        let news = actor.alive_news(id, worker);
        self.tell_of_actor(news, out);
        for watcher in watchers {
            self.tell_watcher(watcher, id, out);
        }
    }

    /// Tells one watcher where an actor is, with a channel to it if it is alive.
    fn tell_watcher(&mut self, watcher: ProcessId, id: ActorId, out: &mut impl Outbox) {
        let actor = &self.actors[&id];
        let class_name = actor.class_name.clone();
        let (stay, restarts) = (actor.stay, actor.restarts);
        let actor_bytes = id.0.to_vec();
        let mut state =
            ActorState { actor: actor_bytes, class_name, stay, restarts, ..ActorState::default() };
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
            && let Some(actor) = self.actors.get(&id)
        {
            let has_worker = actor.worker().is_some_and(|worker| !self.is_asked(worker));
            let actor = self.actors.get_mut(&id).expect("just seen");
            if message.no_restart {
                actor.restarts_left = 0;
            } else if actor.restarts_left != 0 && !has_worker {
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
        match actor.worker().filter(|worker| !self.is_asked(*worker)) {
            None => self.bury(id, reason.into(), Vec::new(), out),
            Some(worker) => self.end_process(worker, reason.into(), out),
        }
    }

    /// Kills a worker whose actor is not wanted any more, if it has begun to be that.
    pub(crate) fn send_actor_away(
        &mut self,
        worker: ProcessId,
        reason: &str,
        out: &mut impl Outbox,
    ) {
        if !self.is_asked(worker) {
            self.send_away(worker, reason, out);
        }
    }

    /// Kills a worker that belongs to nothing any more.
    pub(crate) fn send_away(&mut self, worker: ProcessId, reason: &str, out: &mut impl Outbox) {
        if let Some(process) = self.processes.get_mut(&worker) {
            process.role = Role::Leaving;
            self.end_process(worker, reason.into(), out);
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
        let asked = actor.worker().filter(|worker| self.is_asked(*worker));
        match (actor.allocation.take(), asked.and_then(|w| self.processes.get_mut(&w))) {
            (allocation, Some(worker)) => worker.unanswered = allocation,
            (Some(allocation), None) => self.ledger.release(allocation),
            (None, None) => {}
        }
        if let Stage::Waiting(shape, order) = actor.stage {
            self.schedule.waiting_actors.remove(&(shape, order));
        }
        if let Some(creator) = self.processes.get_mut(&actor.creator) {
            creator.actors.remove(&id);
        }
        let Actor { class_name, stay, restarts, .. } = actor;
        let death = Death { class_name, reason, creation_error, stay, restarts };
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
