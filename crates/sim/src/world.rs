//! The world: machines, the control service, and the network between them.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use oxiray_control::{Event as ControlEvent, PeerId};
use oxiray_ids::{ActorId, ObjectId, ProcessId, TaskId};
use oxiray_node::Event;
use oxiray_wire::cluster::{between_nodes, to_control};
use oxiray_wire::control::{ChannelOpened, Text, from_node};

use crate::desk::Submission;
use crate::drivers::Driver;
use crate::groups::Made;
use crate::happening::{Agenda, Happening, Said};
use crate::head::Head;
use crate::history::History;
use crate::judge::Faults;
use crate::machine::{Asked, Machine, Wishes};
use crate::oracle::{ActorFate, Fate, Oracle};
use crate::plan::{MILLISECOND, Plan, SECOND};
use crate::process::Process;
use crate::random::Random;
use crate::rings::{Bridge, Rings};

/// What came of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Tasks and calls that ended at their workers.
    pub tasks: u64,
    /// Tasks that were begun anew, by owners that were there at the end.
    pub retries: u64,
    /// Values that were waited for,
    pub gets: u64,
    /// and of these, those that something broke.
    pub faults: u64,
    /// Everything that happened.
    pub happenings: u64,
    /// Of these, events of nodes,
    pub node_events: u64,
    /// what happened to owners,
    pub owner_events: u64,
    /// and events of the control service.
    pub control_events: u64,
    /// Nodes that died.
    pub deaths: u64,
    /// Nodes that were drained, and left.
    pub drained: u64,
    /// Placement groups that were created.
    pub groups: u64,
    /// Leases that were granted,
    pub grants: u64,
    /// and units that a node declined.
    pub declined: u64,
    /// When the last of them was done, in virtual nanoseconds.
    pub tasks_done_at: u64,
    /// How long all of it took, in virtual nanoseconds.
    pub virtual_ns: u64,
}

impl std::ops::Add for Report {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tasks: self.tasks + other.tasks,
            retries: self.retries + other.retries,
            gets: self.gets + other.gets,
            faults: self.faults + other.faults,
            happenings: self.happenings + other.happenings,
            node_events: self.node_events + other.node_events,
            owner_events: self.owner_events + other.owner_events,
            control_events: self.control_events + other.control_events,
            deaths: self.deaths + other.deaths,
            drained: self.drained + other.drained,
            groups: self.groups + other.groups,
            grants: self.grants + other.grants,
            declined: self.declined + other.declined,
            tasks_done_at: self.tasks_done_at.max(other.tasks_done_at),
            virtual_ns: self.virtual_ns + other.virtual_ns,
        }
    }
}

/// A cluster in one thread.
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) random: Random,
    pub(crate) now: u64,
    pub(crate) agenda: Agenda,
    pub(crate) head: Head,
    pub(crate) machines: Vec<Machine>,
    pub(crate) by_number: HashMap<u32, usize>,
    /// When the last message of a pair comes: none overtakes it. 0 is the control service.
    pub(crate) last_delivery: HashMap<(usize, usize), u64>,
    /// How often the connection of two machines broke.
    pub(crate) broken: BTreeMap<(usize, usize), u64>,
    /// When two machines that are cut from each other find a way, or heal.
    pub(crate) apart: BTreeMap<(usize, usize), u64>,
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    pub(crate) rings: Rings,
    /// When the last message of a process comes to its node, and of its node to it.
    pub(crate) last_to_node: BTreeMap<ProcessId, u64>,
    pub(crate) last_to_process: BTreeMap<ProcessId, u64>,
    pub(crate) drivers: Vec<Driver>,
    pub(crate) oracle: Oracle,
    pub(crate) history: History,
    /// What every object and actor turns out to be.
    pub(crate) expected: HashMap<ObjectId, Rc<Fate>>,
    pub(crate) actors: HashMap<ActorId, ActorFate>,
    /// Kinds of tasks that are not plain.
    pub(crate) kinds: HashMap<TaskId, usize>,
    /// Where each actor lives.
    pub(crate) incarnations: BTreeMap<ActorId, ProcessId>,
    /// Who has each name, and who asked for one.
    pub(crate) named: HashMap<String, ActorId>,
    pub(crate) naming: HashMap<ActorId, (String, Submission)>,
    pub(crate) groups: Made,
    pub(crate) faults: Faults,
    pub(crate) progressed_at: u64,
    /// What had happened then.
    pub(crate) progressed: u64,
    pub(crate) done_at: Option<u64>,
    pub(crate) report: Report,
}

impl World {
    /// A world in which nothing has happened.
    pub fn new(plan: Plan) -> Self {
        let random = Random::new(plan.seed);
        let mut world = Self {
            random,
            now: SECOND,
            agenda: Agenda::default(),
            head: Head::default(),
            machines: Vec::new(),
            by_number: HashMap::new(),
            last_delivery: HashMap::new(),
            broken: BTreeMap::new(),
            apart: BTreeMap::new(),
            processes: BTreeMap::new(),
            rings: Rings::default(),
            last_to_node: BTreeMap::new(),
            last_to_process: BTreeMap::new(),
            drivers: Vec::new(),
            oracle: Oracle { menu: plan.menu },
            history: History::default(),
            expected: HashMap::new(),
            actors: HashMap::new(),
            kinds: HashMap::new(),
            incarnations: BTreeMap::new(),
            named: HashMap::new(),
            naming: HashMap::new(),
            groups: Made::default(),
            faults: Faults::default(),
            progressed_at: SECOND,
            progressed: 0,
            done_at: None,
            report: Report::default(),
            plan,
        };
        world.start_control();
        let drivers = world.plan.drivers + world.plan.mortal_drivers;
        for index in 0..world.plan.nodes {
            world.add_machine(index < drivers);
        }
        for index in 0..drivers {
            world.drivers.push(Driver::new(index));
            let at = world.now + world.random.between(0, 50 * MILLISECOND);
            world.agenda.add(at, Happening::DriverStarts(index));
        }
        world.plan_troubles();
        world.agenda.add(world.now, Happening::Review);
        world
    }

    fn add_machine(&mut self, is_safe: bool) {
        let index = self.machines.len();
        self.machines.push(Machine::new(index, self.plan.cpus, is_safe));
        let at = self.now + self.random.between(0, 10 * MILLISECOND);
        self.agenda.add(at, Happening::Join(index));
    }

    fn plan_troubles(&mut self) {
        let plan = self.plan.clone();
        let mut add = |count: usize, what: fn() -> Happening| {
            for _ in 0..count {
                let at = self.now + self.random.between(20 * MILLISECOND, plan.trouble);
                self.agenda.add(at, what());
            }
        };
        add(plan.node_deaths, || Happening::NodeDies);
        add(plan.broken_links, || Happening::LinkBreaks);
        add(plan.cuts, || Happening::CutOff);
        add(plan.pair_cuts, || Happening::PairIsCut);
        add(plan.drains, || Happening::NodeDrains);
        add(plan.control_restarts, || Happening::ControlStops);
        add(plan.actor_kills, || Happening::ActorIsKilled);
        add(plan.groups, || Happening::GroupIsMade);
        for index in plan.drivers..plan.drivers + plan.mortal_drivers {
            let at = self.now + self.random.between(20 * MILLISECOND, plan.trouble);
            self.agenda.add(at, Happening::DriverDies(index));
        }
    }

    /// Something ended.
    pub(crate) fn progress(&mut self) {
        self.progressed_at = self.now;
        self.progressed = self.report.happenings;
    }

    /// A node takes in an event, and what it asks for is done.
    pub(crate) fn event(&mut self, index: usize, event: Event) {
        let machine = &mut self.machines[index];
        let Some(node) = machine.node.as_mut().filter(|_| machine.alive) else {
            return;
        };
        self.report.node_events += 1;
        let mut wishes = Wishes::default();
        node.on_event(event, self.now, &mut wishes);
        if self.report.node_events.is_multiple_of(self.plan.validate_once_in) {
            node.validate();
        }
        for wish in wishes.0 {
            self.carry_out(index, wish);
        }
        self.deliver_early(index);
        self.plan_tick(index);
    }

    fn plan_tick(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        let wakeup = machine.node.as_ref().and_then(oxiray_node::Node::next_wakeup);
        if let Some(at) = wakeup.filter(|at| machine.tick_at.is_none_or(|tick| *at < tick)) {
            let at = at.max(self.now);
            machine.tick_at = Some(at);
            self.agenda.add(at, Happening::NodeTick(index));
        }
    }

    fn carry_out(&mut self, index: usize, wish: Asked) {
        let number = self.machines[index].number();
        match wish {
            Asked::Send(to, body) if to.node() == number => self.tell_process(to, body),
            Asked::Send(to, body) => {
                let message = Some(body.into());
                let said = oxiray_wire::cluster::ForProcess { process: to.0, message };
                let said = between_nodes::Body::ForProcess(said);
                self.say(index, to.node(), Said::Message(Box::new(said)));
            }
            Asked::Open(ends) => {
                let [a, b] = ends.map(|end| end.process);
                for (ours, other) in [(a, b), (b, a)] {
                    if ours.node() != number || ours.number() == 0 {
                        continue;
                    }
                    if other.node() != number {
                        self.machines[index].bridges.insert((ours, other), Bridge::default());
                    }
                    let opened = ChannelOpened { peer: other.0, ..ChannelOpened::default() };
                    self.tell_process(ours, from_node::Body::ChannelOpened(opened));
                }
            }
            Asked::Close(local, foreign) => self.close_bridge(index, local, foreign),
            Asked::Start(environment) => {
                let at = self.now + self.random.between(2 * MILLISECOND, 10 * MILLISECOND);
                self.agenda.add(at, Happening::WorkerStarts(index, environment));
            }
            Asked::Template(environment) => {
                let at = self.now + self.random.between(10 * MILLISECOND, 500 * MILLISECOND);
                self.agenda.add(at, Happening::TemplateIsThere(index, environment));
            }
            Asked::Kill(process) => self.kill(process),
            Asked::Peer(node, message) => {
                if let Some(body) = message.body {
                    self.say(index, node, Said::Message(Box::new(body)));
                }
            }
            Asked::Control(body) => self.say_to_control(index, body),
            Asked::Dial(join) => self.dial(index, join),
            Asked::Left(number) => {
                self.machines[index].left.insert(number);
                self.machines[index].early_frames.remove(&number);
            }
            Asked::Rejoin => self.machine_goes(index),
            Asked::Leave(why) => self.machine_leaves(index, why),
            Asked::Spill(batch) => self.spill(index, batch),
            Asked::Restore(key, extent) => self.restore(index, key, extent),
            Asked::ForgetCopy(key) => self.forget_copy(index, key),
            Asked::Transfer(transfer) => self.transfer(index, transfer),
            Asked::Lend(grant, extent) => {
                self.machines[index].memory.lent.insert(grant, extent);
            }
            Asked::EndLending(grant) => _ = self.machines[index].memory.lent.remove(&grant),
        }
    }

    /// A machine that nobody counts on dies with all that is on it; another one comes.
    pub(crate) fn node_dies(&mut self) {
        let mortal = |machine: &Machine| machine.alive && !machine.is_safe;
        let all = (0..self.machines.len()).filter(|index| mortal(&self.machines[*index]));
        let all: Vec<usize> = all.collect();
        if all.is_empty() {
            return;
        }
        let dead = all[self.random.place(all.len())];
        self.report.deaths += 1;
        self.faults.nodes += 1;
        self.machine_goes(dead);
    }

    /// Some machine that nobody counts on is to leave, with all the time that it needs.
    pub(crate) fn drain_some_node(&mut self) {
        let may = |machine: &Machine| machine.alive && !machine.is_safe && machine.node.is_some();
        let all = (0..self.machines.len()).filter(|index| may(&self.machines[*index]));
        let all: Vec<usize> = all.collect();
        if all.is_empty() || self.head.control.is_none() {
            return;
        }
        let index = all[self.random.place(all.len())];
        let node = self.machines[index].info.address.clone();
        let drain = oxiray_wire::cluster::Drain { node, ..Default::default() };
        // A tool's connection, of which the answer is not read.
        self.control_event(ControlEvent::Message(PeerId(u64::MAX), to_control::Body::Drain(drain)));
    }

    /// A machine has nothing left to do, and leaves.
    fn machine_leaves(&mut self, index: usize, text: String) {
        self.report.drained += 1;
        // What an actor owns goes with it when it is started again elsewhere.
        let here =
            self.incarnations.values().filter(|id| id.node() == self.machines[index].number());
        let here = here.count() as u64;
        self.faults.exits += here;
        self.faults.moved += here;
        self.say_to_control(index, to_control::Body::Leave(Text { text }));
        self.machine_goes(index);
    }

    fn machine_goes(&mut self, dead: usize) {
        self.end_machine(dead);
        let others: Vec<usize> = (0..self.machines.len()).collect();
        for other in others {
            let had = |world: &Self, a: usize, b: usize| {
                world.last_delivery.contains_key(&(a + 1, b + 1))
            };
            if self.machines[other].alive && (had(self, dead, other) || had(self, other, dead)) {
                let epoch = self.epoch(other, dead) + 1;
                let at = self.delivery(Some(dead), Some(other));
                self.agenda.add(at, Happening::Lost { at: other, of: dead, epoch });
            }
        }
        self.add_machine(false);
    }

    pub(crate) fn end_machine(&mut self, index: usize) {
        self.machines[index].alive = false;
        self.machines[index].node = None;
        for process in std::mem::take(&mut self.machines[index].processes) {
            self.process_ends(process, "its machine died");
        }
        let theirs = self.head.connections.iter().filter(|(_, machine)| **machine == index);
        let theirs: Vec<u64> = theirs.map(|(connection, _)| *connection).collect();
        for connection in theirs {
            let at = self.delivery(Some(index), None);
            self.agenda.add(at, Happening::ControlSeesEnd { connection });
        }
    }
}
