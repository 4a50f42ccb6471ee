//! The loop: the next thing happens, until all is done; and what must hold.
//!
//! - **S-1** every task of a driver that lives ends exactly once.
//! - **S-2** a node that left, as the control service said, is not asked and not listed.
//! - **S-3** what runs at a node never exceeds what it has.
//! - **S-4** an actor never lives twice; no two living actors have one name.
//! - **S-5** no task waits for long while a node that would do has room for it.
//! - **S-6** when all is done nothing is held anywhere.

use crate::drivers::{KINDS, cpus_of_kind, shape_of_kind};
use crate::happening::Happening;
use crate::plan::{MILLISECOND, SECOND};
use crate::world::{Report, World};

/// How often everything is looked at.
const REVIEW_EVERY: u64 = 250 * MILLISECOND;
/// Nothing ends for so long: something is stuck.
const STUCK_AFTER: u64 = 30 * SECOND;
/// When all is done, so long is waited before everything must be free.
const SETTLE: u64 = 5 * SECOND;

impl World {
    /// Lets everything happen, and says what came of it. Panics when something
    /// that must hold does not.
    pub fn run(mut self) -> Report {
        let begin = self.now;
        while let Some((at, happening)) = self.agenda.next() {
            assert!(at >= self.now, "time goes on");
            self.now = at;
            self.report.happenings += 1;
            self.happen(happening);
            if self.done_at.is_some_and(|done| self.now >= done + SETTLE) {
                break;
            }
        }
        self.check_end();
        self.report.virtual_ns = self.now - begin;
        self.report
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Join(machine) => self.join(machine),
            Happening::ToControl { connection, body } => self.control_hears(connection, body),
            Happening::ControlSeesEnd { connection } => self.control_sees_end(connection),
            Happening::FromControl { machine, connection, body } => {
                self.machine_hears(machine, connection, body);
            }
            Happening::UplinkEnds { machine, connection } => self.uplink_ends(machine, connection),
            Happening::ControlTick => self.control_tick(),
            Happening::ControlStops => {
                if self.head.control.is_some() {
                    self.stop_control();
                }
            }
            Happening::ControlStarts => self.start_control(),
            Happening::Peer { from, to, epoch, said } => self.on_peer(from, to, epoch, said),
            Happening::Lost { at, of, epoch } => self.on_lost(at, of, epoch),
            Happening::ToProcess(process, body) => match self.by_driver.get(&process) {
                Some(&driver) => self.driver_hears(driver, body),
                None => self.worker_hears(process, body),
            },
            Happening::FromProcess(process, body) => {
                if let Some(&machine) = self.by_number.get(&process.node()) {
                    self.event(machine, oxiray_node::Event::Message(process, body));
                }
            }
            Happening::Frame(from, to, frame) => self.on_frame(from, to, frame),
            Happening::WorkerStarts(machine) => self.worker_starts(machine),
            Happening::ProcessEnds(process, reason) => self.process_ends(process, reason),
            Happening::NodeHearsOfEnd(process, reason) => {
                if let Some(&machine) = self.by_number.get(&process.node()) {
                    self.machines[machine].processes.remove(&process);
                    let (reason, last_lines) = (reason.into(), Vec::new());
                    let ended = oxiray_node::Event::Ended { process, reason, last_lines };
                    self.event(machine, ended);
                }
            }
            Happening::TaskEnds(worker, task, attempt) => self.task_ends(worker, task, attempt),
            Happening::ActorIsMade(worker) => self.actor_is_made(worker),
            Happening::NodeTick(machine) => {
                self.machines[machine].tick_at = None;
                self.event(machine, oxiray_node::Event::Tick);
            }
            Happening::DriverStarts(driver) => self.driver_starts(driver),
            Happening::DriverTick(driver) => self.driver_tick(driver),
            Happening::NodeDies => self.node_dies(),
            Happening::LinkBreaks => self.link_breaks(),
            Happening::DriverDies(driver) => self.driver_dies(driver),
            Happening::Review => self.review(),
        }
    }

    /// Looks at all of the world, and lets drivers that are done wind up.
    fn review(&mut self) {
        self.check_members();
        self.check_waiting();
        let trouble = self.now < SECOND + self.plan.trouble || self.head.control.is_none();
        for index in 0..self.plan.drivers {
            if !trouble {
                self.wind_up(index);
            }
        }
        let done = self.drivers[..self.plan.drivers].iter().all(|driver| driver.is_done());
        if done && !trouble && self.done_at.is_none() {
            self.done_at = Some(self.now);
        }
        assert!(
            done || trouble || self.now < self.progressed_at + STUCK_AFTER,
            "S-1: seed {}: nothing moves: {}",
            self.plan.seed,
            self.describe()
        );
        self.agenda.add(self.now + REVIEW_EVERY, Happening::Review);
    }

    fn describe(&self) -> String {
        let drivers = self.drivers[..self.plan.drivers].iter().map(|driver| {
            let waiting: Vec<usize> = driver.demands.iter().map(|d| d.waiting.len()).collect();
            let actors = driver.actors.iter().filter(|(_, a)| !a.dead && a.process.is_none());
            let actors: Vec<String> = actors.map(|(id, _)| id.to_string()).collect();
            let (undone, process) = (driver.undone, driver.process);
            format!("{process:?} has {undone} tasks undone, waiting {waiting:?}, actors {actors:?}")
        });
        drivers.collect::<Vec<_>>().join("; ")
    }

    /// S-2.
    fn check_members(&self) {
        for machine in &self.machines {
            if let Some(node) = &machine.node {
                let listed = node.nodes().into_iter().find(|number| machine.left.contains(number));
                assert_eq!(listed, None, "S-2: at node {}", machine.number());
            }
        }
    }

    /// S-5.
    fn check_waiting(&mut self) {
        let now = self.now;
        for machine in &mut self.machines {
            let free = machine.node.as_ref().map_or(0, |node| {
                let available = node.load().available;
                available.iter().find(|amount| amount.name == "CPU").map_or(0, |cpu| cpu.amount)
            });
            let zone = machine.info.labels["zone"] == "zone-1";
            for kind in 0..KINDS {
                let room = free >= shape_of_kind(kind).resources[0].amount && (kind != 3 || zone);
                match room {
                    true => _ = machine.room_since[kind].get_or_insert(now),
                    false => machine.room_since[kind] = None,
                }
            }
        }
        for (index, driver) in self.drivers.iter().enumerate().filter(|(_, d)| d.process.is_some())
        {
            for kind in 0..KINDS {
                let Some(since) = driver.demands[kind].waiting_since else {
                    continue;
                };
                let late = |since: u64| now > since + self.plan.patience;
                let idle = |m: &&crate::machine::Machine| m.room_since[kind].is_some_and(late);
                if late(since)
                    && let Some(machine) = self.machines.iter().find(idle)
                {
                    panic!(
                        "S-5: seed {}: at {} ms driver {index} has {} tasks of kind {kind} that wait \
                         for {} ms while node {} has room: {:?}",
                        self.plan.seed,
                        now / MILLISECOND,
                        driver.demands[kind].waiting.len(),
                        (now - since) / MILLISECOND,
                        machine.number(),
                        machine.node.as_ref().map(oxiray_node::Node::load),
                    );
                }
            }
        }
        debug_assert!(cpus_of_kind(0) == 1);
    }

    /// S-1 and S-6.
    fn check_end(&self) {
        let seed = self.plan.seed;
        assert!(self.done_at.is_some(), "seed {seed}: {}", self.describe());
        assert!(self.tasks[..self.plan.tasks].iter().all(|task| task.done), "S-1: seed {seed}");
        assert!(self.incarnations.is_empty(), "S-6: seed {seed}: {:?}", self.incarnations);
        for machine in &self.machines {
            if let Some(node) = &machine.node {
                node.validate();
                let (load, number) = (node.load(), machine.number());
                assert_eq!(load.available, machine.info.total, "S-6: seed {seed}: node {number}");
                assert_eq!(load.waiting, 0, "S-6: seed {seed}: node {number}");
                assert_eq!(node.busy_workers().count(), 0, "S-6: seed {seed}: node {number}");
            }
        }
        if let Some(control) = &self.head.control {
            control.validate();
        }
    }
}
