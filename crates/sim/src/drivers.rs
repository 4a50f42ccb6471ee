//! Drivers: an owner that only counts. It asks for leases as the owner of
//! production does, gives each lease one task at a time, and makes tasks anew
//! whose worker died.

use std::collections::{BTreeMap, VecDeque};

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_node::Event;
use oxiray_wire::control::{
    Actor, ActorPhase, ActorState, Amount, CreateActor, LabelSelector, Lease, NamedActor,
    ProcessKind, SetDemand, Shape, Strategy, UNIT, from_node, to_node,
};

use crate::happening::{Frame, Happening};
use crate::plan::MILLISECOND;
use crate::world::World;

/// A lease without a task goes back after this time.
const IDLE: u64 = 20 * MILLISECOND;

/// Kinds of tasks.
pub(crate) const KINDS: usize = 4;

fn cpus(count: u64) -> Vec<Amount> {
    vec![Amount { name: "CPU".into(), amount: count * UNIT }]
}

/// CPUs that a kind of task needs.
pub(crate) const fn cpus_of_kind(kind: usize) -> u64 {
    if kind == 1 { 2 } else { 1 }
}

/// What a kind of task needs: one CPU, two, one of each node in turn, one of a zone.
pub(crate) fn shape_of_kind(kind: usize) -> Shape {
    let strategy = match kind {
        2 => Some(Strategy { spread: true, ..Strategy::default() }),
        3 => {
            let values = vec!["zone-1".to_owned()];
            let zone = LabelSelector { key: "zone".into(), test: 0, values };
            Some(Strategy { labels: vec![zone], ..Strategy::default() })
        }
        _ => None,
    };
    Shape { resources: cpus(cpus_of_kind(kind)), strategy, ..Shape::default() }
}

#[derive(Default)]
pub(crate) struct Demand {
    pub(crate) waiting: VecDeque<usize>,
    pub(crate) waiting_since: Option<u64>,
    granted: u64,
    requested: u64,
}

struct Held {
    kind: usize,
    worker: ProcessId,
    task: Option<usize>,
    idle_since: u64,
    retiring: bool,
}

/// What a driver believes of an actor of its own.
#[derive(Default)]
pub(crate) struct Belief {
    pub(crate) process: Option<ProcessId>,
    pub(crate) dead: bool,
    pub(crate) for_ever: bool,
    name: Option<String>,
    killed: bool,
}

pub(crate) struct Driver {
    pub(crate) machine: usize,
    pub(crate) process: Option<ProcessId>,
    pub(crate) demands: [Demand; KINDS],
    leases: BTreeMap<u64, Held>,
    pub(crate) actors: BTreeMap<ActorId, Belief>,
    pub(crate) undone: usize,
    ticking: bool,
}

impl Driver {
    pub(crate) fn new(machine: usize) -> Self {
        Self {
            machine,
            process: None,
            demands: Default::default(),
            leases: BTreeMap::new(),
            actors: BTreeMap::new(),
            undone: 0,
            ticking: false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.process.is_some() && self.undone == 0 && self.actors.values().all(|actor| actor.dead)
    }
}

impl World {
    pub(crate) fn driver_starts(&mut self, index: usize) {
        let machine = self.drivers[index].machine;
        if self.machines[machine].node.is_none() {
            return self.agenda.add(self.now + MILLISECOND, Happening::DriverStarts(index));
        }
        let process = self.register(machine, ProcessKind::Driver);
        self.drivers[index].process = Some(process);
        self.by_driver.insert(process, index);
        self.event(machine, Event::Ready(process));
        for kind in 0..KINDS {
            self.update_demand(index, kind);
        }
        self.make_actors(index, process);
    }

    fn make_actors(&mut self, index: usize, process: ProcessId) {
        for count in 0..self.plan.actors {
            let id = ActorId::new(JobId([1; 4]), process, count as u32 + 1);
            let for_ever = !count.is_multiple_of(3);
            let name = count.is_multiple_of(2).then(|| format!("name-{count}"));
            let belief = Belief { for_ever, name: name.clone(), ..Belief::default() };
            self.drivers[index].actors.insert(id, belief);
            match name {
                Some(name) => {
                    let wanted = NamedActor {
                        request: count as u64 + 1,
                        name,
                        actor: id.0.to_vec(),
                        ..NamedActor::default()
                    };
                    self.tell_node(process, to_node::Body::NameActor(wanted));
                }
                None => self.make_actor(process, id, for_ever),
            }
        }
    }

    fn make_actor(&mut self, process: ProcessId, id: ActorId, for_ever: bool) {
        let create = CreateActor {
            actor: id.0.to_vec(),
            class_name: "Counter".into(),
            placement: Some(Shape { resources: cpus(1), ..Shape::default() }),
            held: Some(Shape::default()),
            max_restarts: if for_ever { -1 } else { 1 },
            detached: false,
        };
        self.tell_node(process, to_node::Body::CreateActor(create));
    }

    /// Asks for leases as the owner of production does.
    fn update_demand(&mut self, index: usize, kind: usize) {
        let now = self.now;
        let driver = &mut self.drivers[index];
        let Some(process) = driver.process else {
            return;
        };
        let demand = &mut driver.demands[kind];
        let wanted = demand.waiting.len() as u64;
        match wanted {
            0 => demand.waiting_since = None,
            _ => _ = demand.waiting_since.get_or_insert(now),
        }
        let outstanding = demand.requested.saturating_sub(demand.granted);
        let more = wanted > outstanding && (outstanding == 0 || wanted >= 2 * outstanding);
        if more || (wanted == 0 && outstanding > 0) {
            demand.requested = demand.granted + wanted;
            let message = SetDemand {
                shape_key: kind as u64,
                shape: Some(shape_of_kind(kind)),
                requested_total: demand.requested,
            };
            self.tell_node(process, to_node::Body::SetDemand(message));
        }
    }

    /// A driver hears from its node.
    pub(crate) fn driver_hears(&mut self, index: usize, body: from_node::Body) {
        match body {
            from_node::Body::Granted(granted) => {
                let kind = granted.shape_key as usize;
                let demand = &mut self.drivers[index].demands[kind];
                demand.granted += 1;
                self.report.grants += 1;
                demand.requested = demand.requested.max(demand.granted);
                let worker = ProcessId(granted.worker);
                let (task, idle_since, retiring) = (None, self.now, false);
                let held = Held { kind, worker, task, idle_since, retiring };
                let before = self.drivers[index].leases.insert(granted.lease, held);
                assert!(before.is_none(), "a lease is granted once");
                self.use_lease(index, granted.lease);
                self.update_demand(index, kind);
            }
            from_node::Body::ProcessDied(died) => {
                self.on_worker_died(index, ProcessId(died.process));
            }
            from_node::Body::Reclaim(_) => self.on_reclaim(index),
            from_node::Body::NamedActor(found) => self.on_named(index, &found),
            from_node::Body::ActorState(state) => self.on_actor_state(index, &state),
            from_node::Body::Unschedulable(why) => panic!("driver {index}: {why:?}"),
            _ => {}
        }
    }

    /// Gives a lease its next task, or back.
    fn use_lease(&mut self, index: usize, lease: u64) {
        let driver = &mut self.drivers[index];
        let process = driver.process.expect("has a lease");
        let held = driver.leases.get_mut(&lease).expect("is held");
        let next = match held.retiring {
            true => None,
            false => driver.demands[held.kind].waiting.pop_front(),
        };
        held.task = next;
        held.idle_since = self.now;
        match next {
            Some(task) => {
                driver.demands[held.kind].waiting_since = Some(self.now);
                let (worker, machine) = (held.worker, driver.machine);
                self.tasks[task].attempt += 1;
                let frame = Frame::Task(task, self.tasks[task].attempt);
                self.send_frame(machine, process, worker, frame);
            }
            None if held.retiring => self.give_back(index, lease),
            None if !driver.ticking => {
                driver.ticking = true;
                self.agenda.add(self.now + IDLE, Happening::DriverTick(index));
            }
            None => {}
        }
    }

    fn give_back(&mut self, index: usize, lease: u64) {
        let driver = &mut self.drivers[index];
        driver.leases.remove(&lease);
        let process = driver.process.expect("had a lease");
        self.tell_node(process, to_node::Body::ReturnLease(Lease { lease }));
    }

    pub(crate) fn driver_tick(&mut self, index: usize) {
        let driver = &mut self.drivers[index];
        driver.ticking = false;
        if driver.process.is_none() {
            return;
        }
        let idle = driver.leases.iter().filter(|(_, held)| held.task.is_none());
        let idle: Vec<(u64, u64)> = idle.map(|(lease, held)| (*lease, held.idle_since)).collect();
        for (lease, since) in idle {
            if self.now >= since + IDLE {
                self.give_back(index, lease);
            } else if !self.drivers[index].ticking {
                self.drivers[index].ticking = true;
                self.agenda.add(since + IDLE, Happening::DriverTick(index));
            }
        }
    }

    fn on_reclaim(&mut self, index: usize) {
        let leases = self.drivers[index].leases.iter();
        let idle: Vec<u64> =
            leases.filter(|(_, held)| held.task.is_none()).map(|(lease, _)| *lease).collect();
        for lease in idle {
            self.give_back(index, lease);
        }
        for kind in 0..KINDS {
            let mut of_kind =
                self.drivers[index].leases.values_mut().filter(|held| held.kind == kind);
            if let Some(first) = of_kind.next()
                && !first.retiring
                && of_kind.all(|held| !held.retiring)
            {
                let mut of_kind = self.drivers[index].leases.values_mut();
                of_kind.find(|held| held.kind == kind).expect("just seen").retiring = true;
            }
        }
    }

    fn on_worker_died(&mut self, index: usize, worker: ProcessId) {
        let leases = &mut self.drivers[index].leases;
        let gone: Vec<u64> =
            leases.iter().filter(|(_, held)| held.worker == worker).map(|(id, _)| *id).collect();
        for lease in gone {
            let held = self.drivers[index].leases.remove(&lease).expect("just seen");
            if let Some(task) = held.task {
                self.report.retries += 1;
                self.drivers[index].demands[held.kind].waiting.push_front(task);
            }
            self.update_demand(index, held.kind);
        }
        for belief in self.drivers[index].actors.values_mut() {
            if belief.process == Some(worker) {
                belief.process = None;
            }
        }
    }

    /// An answer comes: the task is done, if it is this attempt that was waited for.
    pub(crate) fn on_answer(&mut self, from: ProcessId, to: ProcessId, task: usize, attempt: u32) {
        let Some(&index) = self.by_driver.get(&to) else {
            return;
        };
        let is_it = |held: &Held| held.worker == from && held.task == Some(task);
        let mut leases = self.drivers[index].leases.iter_mut().map(|(id, held)| (*id, held));
        let Some((lease, held)) = leases.find(|(_, held)| is_it(held)) else {
            return;
        };
        if self.tasks[task].attempt != attempt {
            return;
        }
        let kind = held.kind;
        assert!(!self.tasks[task].done, "task {task} ends twice");
        self.tasks[task].done = true;
        self.progressed_at = self.now;
        self.report.tasks += 1;
        self.report.tasks_done_at = self.now;
        self.drivers[index].undone -= 1;
        self.use_lease(index, lease);
        self.update_demand(index, kind);
    }

    fn on_named(&mut self, index: usize, found: &NamedActor) {
        let process = self.drivers[index].process.expect("asked");
        let id = ActorId::new(JobId([1; 4]), process, found.request as u32);
        let belief = self.drivers[index].actors.get_mut(&id).expect("asked");
        if found.actor != id.0 {
            belief.dead = true; // Another was first.
            return;
        }
        let name = belief.name.clone().expect("asked for one");
        let for_ever = belief.for_ever;
        let before = self.names.insert(name, id);
        if let Some(before) = before.filter(|before| *before != id) {
            assert!(!self.incarnations.contains_key(&before), "{before} and {id} have one name");
        }
        self.make_actor(process, id, for_ever);
    }

    fn on_actor_state(&mut self, index: usize, state: &ActorState) {
        let id = ActorId::from_slice(&state.actor).expect("an id");
        let Some(belief) = self.drivers[index].actors.get_mut(&id) else {
            return;
        };
        if belief.dead {
            return; // Old news, by another way.
        }
        self.progressed_at = self.now;
        belief.process = None;
        match state.phase() {
            ActorPhase::Alive => belief.process = Some(ProcessId(state.process)),
            ActorPhase::Dead => {
                // Where a connection breaks, each side takes the other for dead.
                let alone = self.plan.broken_links > 0 && state.reason == "its owner died";
                let may = alone || belief.killed || !belief.for_ever;
                assert!(may, "{id} died: {}", state.reason);
                belief.dead = true;
            }
            _ => {}
        }
    }

    /// Its tasks are done: when its actors are all there, they are to go.
    pub(crate) fn wind_up(&mut self, index: usize) {
        let driver = &mut self.drivers[index];
        let (Some(process), 0) = (driver.process, driver.undone) else {
            return;
        };
        let is_there = |actor: &Belief| actor.dead || actor.killed || actor.process.is_some();
        if !driver.actors.values().all(is_there) {
            return;
        }
        let mut kills = Vec::new();
        for (id, actor) in &mut driver.actors {
            if !actor.dead && !actor.killed {
                actor.killed = true;
                kills.push(Actor { actor: id.0.to_vec(), no_restart: true, ..Actor::default() });
            }
        }
        for kill in kills {
            self.tell_node(process, to_node::Body::KillActor(kill));
        }
    }

    /// A driver ends in the middle of its work.
    pub(crate) fn driver_dies(&mut self, index: usize) {
        let Some(process) = self.drivers[index].process.take() else {
            return;
        };
        self.by_driver.remove(&process);
        self.drivers[index].leases.clear();
        self.agenda.add(self.now + MILLISECOND, Happening::NodeHearsOfEnd(process, "exit code 1"));
    }
}
