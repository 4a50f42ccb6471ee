//! The world: machines, the control service, and the network between them.

use std::collections::{BTreeMap, HashMap};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_node::Event;
use oxiray_wire::cluster::between_nodes;
use oxiray_wire::control::{JobConfig, ProcessKind};

use crate::drivers::{Driver, KINDS, cpus_of_kind};
use crate::happening::{Agenda, Happening, Said};
use crate::head::Head;
use crate::machine::{Asked, Machine, Wishes};
use crate::plan::{MICROSECOND, MILLISECOND, Plan, SECOND};
use crate::processes::Worker;
use crate::random::Random;

/// What came of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Tasks done.
    pub tasks: u64,
    /// Tasks that were begun anew.
    pub retries: u64,
    /// Everything that happened.
    pub happenings: u64,
    /// Of these, events of nodes.
    pub node_events: u64,
    /// Nodes that died.
    pub deaths: u64,
    /// Leases that were granted,
    pub grants: u64,
    /// and units that a node declined.
    pub declined: u64,
    /// When the last of them was done, in virtual nanoseconds.
    pub tasks_done_at: u64,
    /// How long all of it took, in virtual nanoseconds.
    pub virtual_ns: u64,
}

pub(crate) struct Task {
    pub(crate) kind: usize,
    pub(crate) attempt: u32,
    pub(crate) done: bool,
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
    last_delivery: HashMap<(usize, usize), u64>,
    /// How often the connection of two machines broke.
    broken: BTreeMap<(usize, usize), u64>,
    pub(crate) workers: HashMap<ProcessId, Worker>,
    pub(crate) drivers: Vec<Driver>,
    pub(crate) by_driver: HashMap<ProcessId, usize>,
    pub(crate) tasks: Vec<Task>,
    /// Where each actor lives.
    pub(crate) incarnations: HashMap<ActorId, ProcessId>,
    /// Who has each name.
    pub(crate) names: HashMap<String, ActorId>,
    pub(crate) progressed_at: u64,
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
            workers: HashMap::new(),
            drivers: Vec::new(),
            by_driver: HashMap::new(),
            tasks: Vec::new(),
            incarnations: HashMap::new(),
            names: HashMap::new(),
            progressed_at: SECOND,
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
        world.make_tasks();
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

    fn make_tasks(&mut self) {
        let mortal = self.plan.mortal_drivers * 200;
        for number in 0..self.plan.tasks + mortal {
            let index = match number.checked_sub(self.plan.tasks) {
                None => number % self.plan.drivers,
                Some(over) => self.plan.drivers + over % self.plan.mortal_drivers,
            };
            let special = self.random.once_in(self.plan.special_once_in);
            let kind = if special { 1 + self.random.place(KINDS - 1) } else { 0 };
            self.tasks.push(Task { kind, attempt: 0, done: false });
            let driver = &mut self.drivers[index];
            driver.demands[kind].waiting.push_back(number);
            driver.undone += 1;
        }
    }

    fn plan_troubles(&mut self) {
        let plan = self.plan.clone();
        let mut add = |count: usize, what: fn() -> Happening| {
            for _ in 0..count {
                let at = self.now + self.random.between(50 * MILLISECOND, plan.trouble);
                self.agenda.add(at, what());
            }
        };
        add(plan.node_deaths, || Happening::NodeDies);
        add(plan.broken_links, || Happening::LinkBreaks);
        add(plan.control_restarts, || Happening::ControlStops);
        for index in plan.drivers..plan.drivers + plan.mortal_drivers {
            let at = self.now + self.random.between(200 * MILLISECOND, plan.trouble);
            self.agenda.add(at, Happening::DriverDies(index));
        }
    }

    pub(crate) fn cpus_of(&self, task: usize) -> u64 {
        cpus_of_kind(self.tasks[task].kind)
    }

    /// When a message that is sent now comes; machines, or `None` for the control service.
    pub(crate) fn delivery(&mut self, from: Option<usize>, to: Option<usize>) -> u64 {
        let mut at = self.now + self.random.between(100 * MICROSECOND, 300 * MICROSECOND);
        if self.random.once_in(200) {
            at += self.random.between(0, 5 * MILLISECOND);
        }
        let place = |machine: Option<usize>| machine.map_or(0, |machine| machine + 1);
        let last = self.last_delivery.entry((place(from), place(to))).or_default();
        *last = at.max(*last);
        *last
    }

    /// Gives a new process of a machine its number.
    pub(crate) fn register(&mut self, machine: usize, kind: ProcessKind) -> ProcessId {
        let node = self.machines[machine].node.as_mut().expect("is a member");
        let config = JobConfig { log_to_driver: true, ..JobConfig::default() };
        let process = node.admit(kind, 1000, config).expect("there are bells").process;
        self.machines[machine].processes.insert(process);
        process
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
                    if ours.node() == number && other.node() != number {
                        self.machines[index].bridges.insert((ours, other));
                    }
                }
            }
            Asked::Close(local, foreign) => {
                self.machines[index].bridges.remove(&(local, foreign));
            }
            Asked::Start => {
                let at = self.now + self.random.between(2 * MILLISECOND, 10 * MILLISECOND);
                self.agenda.add(at, Happening::WorkerStarts(index));
            }
            Asked::Kill(process) => self.kill(process),
            Asked::Peer(node, message) => {
                if let Some(body) = message.body {
                    self.say(index, node, Said::Message(Box::new(body)));
                }
            }
            Asked::Control(body) => self.say_to_control(index, body),
            Asked::Dial(join) => self.dial(index, join),
            Asked::Left(number) => _ = self.machines[index].left.insert(number),
        }
    }

    /// A machine says something to another node.
    pub(crate) fn say(&mut self, from: usize, node: u32, said: Said) {
        if let Said::Message(body) = &said {
            match &**body {
                between_nodes::Body::AskLeases(asked) => {
                    let gone = self.machines[from].left.contains(&node);
                    assert!(!gone, "S-2: node {node} left and is asked for {asked:?}");
                }
                between_nodes::Body::Declined(declined) => self.report.declined += declined.count,
                _ => {}
            }
        }
        let to = self.by_number.get(&node).copied();
        let Some(to) = to.filter(|to| self.machines[*to].alive) else {
            if let Some(of) = to {
                // Nobody is there: the connection cannot be made.
                let epoch = self.epoch(from, of) + 1;
                let at = self.delivery(Some(of), Some(from));
                self.agenda.add(at, Happening::Lost { at: from, of, epoch });
            }
            return;
        };
        let epoch = self.epoch(from, to);
        let at = self.delivery(Some(from), Some(to));
        self.agenda.add(at, Happening::Peer { from, to, epoch, said });
    }

    fn epoch(&self, at: usize, of: usize) -> u64 {
        self.machines[at].epochs.get(&of).copied().unwrap_or(0)
    }

    pub(crate) fn on_peer(&mut self, from: usize, to: usize, epoch: u64, said: Said) {
        let pair = (from.min(to), from.max(to));
        let broken = self.broken.get(&pair).copied().unwrap_or(0);
        let number = self.machines[from].number();
        let left = self.machines[to].left.contains(&number);
        if epoch < broken || epoch < self.epoch(to, from) || left {
            return; // What an older connection carried.
        }
        if self.machines[to].alive && self.machines[to].node.is_none() {
            // It listens already; it takes in what came when it is a member.
            return self.machines[to].early.push(Happening::Peer { from, to, epoch, said });
        }
        if epoch > self.epoch(to, from) {
            self.on_lost(to, from, epoch);
        }
        match said {
            Said::Message(body) => self.event(to, Event::FromPeer(number, *body)),
            Said::Frame(sender, receiver, frame) => self.on_passed(to, sender, receiver, frame),
        }
    }

    /// A machine sees that the connection with another broke.
    pub(crate) fn on_lost(&mut self, at: usize, of: usize, epoch: u64) {
        if epoch <= self.epoch(at, of) {
            return;
        }
        self.machines[at].epochs.insert(of, epoch);
        let number = self.machines[of].number();
        self.event(at, Event::PeerLost(number, "it was reset".into()));
    }

    /// A connection between two living nodes that had one breaks.
    pub(crate) fn link_breaks(&mut self) {
        let both = |&&(a, b): &&(usize, usize)| a > 0 && b > 0;
        let mut pairs: Vec<(usize, usize)> =
            self.last_delivery.keys().filter(both).map(|(a, b)| (a - 1, b - 1)).collect();
        pairs.retain(|(a, b)| self.machines[*a].alive && self.machines[*b].alive);
        pairs.sort_unstable();
        if pairs.is_empty() {
            return;
        }
        let (a, b) = pairs[self.random.place(pairs.len())];
        let epoch = self.epoch(a, b).max(self.epoch(b, a)) + 1;
        self.broken.insert((a.min(b), a.max(b)), epoch);
        for (at, of) in [(a, b), (b, a)] {
            let when = self.delivery(Some(of), Some(at));
            self.agenda.add(when, Happening::Lost { at, of, epoch });
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
