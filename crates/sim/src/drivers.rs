//! Programs of users: they submit, make actors, wait for values, and end.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::control::{Actor, to_node};

use crate::desk::{Desk, Ended, Handle};
use crate::happening::Happening;
use crate::oracle::plain_job;
use crate::plan::{MILLISECOND, Menu};
use crate::program::{Engine, FUNCTIONS, Given, Job, KINDS, Order, body};
use crate::random::Random;
use crate::world::World;

/// A program's place in the world.
pub(crate) struct Driver {
    pub(crate) machine: usize,
    pub(crate) process: Option<ProcessId>,
    pub(crate) is_done: bool,
}

impl Driver {
    pub(crate) fn new(machine: usize) -> Self {
        Self { machine, process: None, is_done: false }
    }
}

/// What one program does.
#[derive(Clone, Copy)]
struct Script {
    seed: u64,
    menu: Menu,
    /// Named actors, which other programs want, too;
    actors: usize,
    /// plain tasks;
    tasks: usize,
    /// and steps of the body that all tasks have.
    steps: u8,
}

impl World {
    pub(crate) fn driver_starts(&mut self, index: usize) {
        let machine = self.drivers[index].machine;
        if self.machines[machine].node.is_none() {
            return self.agenda.add(self.now + MILLISECOND, Happening::DriverStarts(index));
        }
        let process = self.add_process(machine, Some(index), 0);
        self.drivers[index].process = Some(process);
        let plan = &self.plan;
        let tasks = if index < plan.drivers { plan.tasks / plan.drivers } else { 200 };
        let script = Script {
            seed: plan.seed ^ (index as u64 + 1) << 40,
            menu: plan.menu,
            actors: plan.actors,
            tasks: if plan.tasks > 0 { tasks } else { 0 },
            steps: plan.steps,
        };
        self.begin_thread(process, true, |desk| Box::pin(drive(desk, script)));
    }

    pub(crate) fn driver_is_done(&mut self, id: ProcessId) {
        let index = self.processes[&id].driver.expect("only drivers have programs of their own");
        self.drivers[index].is_done = true;
    }

    /// A driver ends in the middle of its work.
    pub(crate) fn driver_dies(&mut self, index: usize) {
        if let Some(process) = self.drivers[index].process.take() {
            self.faults.processes += 1;
            self.process_ends(process, "exit code 1");
        }
    }

    /// Somebody kills an actor, now and then so that it is started again.
    pub(crate) fn kill_some_actor(&mut self) {
        let living: Vec<ActorId> = self.incarnations.keys().copied().collect();
        if living.is_empty() {
            return;
        }
        let actor = living[self.random.place(living.len())];
        let by = actor.creator();
        if !self.lives(by) {
            return;
        }
        let no_restart = self.random.once_in(2);
        self.faults.actors.insert(actor);
        let kill = Actor { actor: actor.0.to_vec(), no_restart, ..Actor::default() };
        self.tell_node(by, to_node::Body::KillActor(kill));
    }
}

async fn drive(mut desk: Desk, script: Script) -> Ended {
    let Script { seed, menu, actors, tasks, steps } = script;
    let mut random = Random::new(seed);
    let mut handles: Vec<Handle> = Vec::new();
    for count in 0..actors {
        let retries = if count.is_multiple_of(3) { 1 } else { -1 };
        let order = plain_order(random.number(), 0, retries);
        match count.is_multiple_of(2) {
            true => handles.extend(desk.create_named(order, format!("name-{count}")).await),
            false => handles.push(desk.create(order).await),
        }
    }
    let mut waited_for = Vec::with_capacity(tasks);
    for _ in 0..tasks {
        let mut order = plain_order(random.number(), 1, -1);
        order.job.quiet = false;
        let special = random.once_in(menu.special_once_in);
        order.kind = if special { 1 + random.place(KINDS - 1) } else { 0 };
        order.function = random.place(FUNCTIONS as usize) as u32;
        waited_for.extend(desk.submit(order).await);
    }
    for handle in &handles {
        waited_for.extend(desk.call(handle, plain_order(random.number(), 1, -1)).await);
    }
    for reference in waited_for {
        // What went wrong was judged where it was seen.
        let _ = desk.get(&reference).await;
        desk.drop(reference).await;
    }
    let job = Job { seed: random.number() | 1, depth: 2, steps, quiet: false };
    let (values, nested) = (Vec::new(), Vec::new());
    let given = Given { job, returns: 0, attempt: 1, state: 0, values, nested, handles };
    let left = body(&mut desk, menu, given).await.map_or_else(|_| Vec::new(), |made| made.refs);
    for reference in left {
        let _ = desk.get(&reference).await;
    }
    Ended::Done(0, Vec::new())
}

fn plain_order(seed: u64, returns: u32, retries: i32) -> crate::desk::Submission {
    let (values, nested, handles) = (Vec::new(), Vec::new(), Vec::new());
    let (job, kind, function) = (plain_job(seed), 0, 0);
    Order { job, returns, values, nested, handles, retries, kind, function }
}
