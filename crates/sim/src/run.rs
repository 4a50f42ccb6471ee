//! The loop: the next thing happens, until all is done; and what must hold.
//!
//! - **S-1** every value that a program waits for is the one that the oracle foresaw, or a failure
//!   that a fault of the run explains; and every wait ends.
//! - **S-2** a node that left, as the control service said, is not asked and not listed.
//! - **S-3** what runs at a node never exceeds what it has.
//! - **S-4** an actor never lives twice, be its node cut off or not; no two living actors have one name.
//! - **S-5** no task waits for long while a node that would do has room for it.
//! - **S-7** every placement group is created, unless it is removed before; and when all is done, no
//!   bundle is left anywhere, nor is a group.
//! - **S-6** when all is done nothing is held anywhere: no object, task or lease in an owner, no
//!   resource at a node, no object in a store.

use oxiray_control::Health;

use crate::apart::LONGEST_APART;
use crate::cutting::LONGEST_CUT;
use crate::happening::Happening;
use crate::plan::{MILLISECOND, SECOND};
use crate::program::KINDS;
use crate::seeds::tell;
use crate::shapes::shape_of_kind;
use crate::world::{Report, World};

/// How often everything is looked at.
const REVIEW_EVERY: u64 = 250 * MILLISECOND;
/// Nothing ends for so long: something is stuck.
const STUCK_AFTER: u64 = 60 * SECOND;
/// When all is done, so long is waited before everything must be free.
const SETTLE: u64 = 5 * SECOND;
/// So much happens and nothing ends: something goes round in circles.
const CIRCLES: u64 = 3_000_000;

impl World {
    /// Lets everything happen, and says what came of it. Panics when something
    /// that must hold does not.
    pub fn run(self) -> Report {
        let trace = std::env::var_os("SIM_TRACE").is_some();
        self.run_watched(|at, what| {
            if trace {
                let ms = (at - SECOND) as f64 / MILLISECOND as f64;
                tell(&format!("{ms:>12.6} ms {what:?}"));
            }
        })
    }

    /// The same, and tells of everything that happens: when, and what.
    pub fn run_watched(mut self, mut watch: impl FnMut(u64, &dyn std::fmt::Debug)) -> Report {
        let begin = self.now;
        // A control service that was started again waits for nodes that died meanwhile.
        let patience = Health::default().given_up_after().max(oxiray_control::GRACE);
        let grace = if self.plan.control_restarts > 0 { patience } else { 0 };
        let cut = if self.plan.cuts > 0 { LONGEST_CUT + patience } else { 0 };
        let apart = if self.plan.pair_cuts > 0 { LONGEST_APART } else { 0 };
        let settle = SETTLE + grace + cut + apart;
        while let Some((at, happening)) = self.agenda.next() {
            assert!(at >= self.now, "time goes on");
            self.now = at;
            self.report.happenings += 1;
            let since = self.report.happenings - self.progressed;
            assert!(since < CIRCLES, "S-1: it goes round in circles: {}", self.describe());
            watch(at, &happening);
            self.happen(happening);
            if self.done_at.is_some_and(|done| self.now >= done + settle) {
                break;
            }
        }
        self.check_end();
        self.report.virtual_ns = self.now - begin;
        self.report.groups = self.groups.created;
        self.report.retries = self.processes.values().map(|process| process.io.retries).sum();
        self.report
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Join(machine) => self.join(machine),
            Happening::ToControl { connection, body } => self.control_hears(connection, body),
            Happening::ControlSeesEnd { connection } => self.control_sees_end(connection),
            Happening::ControlSeesSilence { connection } => self.control_sees_silence(connection),
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
            Happening::Parts { at, of, epoch } => self.on_parting(at, of, epoch),
            Happening::Away { at, of } => self.on_away(at, of),
            Happening::Back { at, of } => self.on_back(at, of),
            Happening::ToProcess(process, body) => self.process_hears(process, body),
            Happening::FromProcess(process, body) => {
                if let Some(&machine) = self.by_number.get(&process.node()) {
                    self.event(machine, oxiray_node::Event::Message(process, body));
                }
            }
            Happening::RingRead(way) => self.ring_read(way),
            Happening::Tick(process) => self.process_tick(process),
            Happening::Wake(process, wait) => self.wake(process, wait),
            Happening::Lend(process, wait) => self.lend_cpus(process, wait),
            Happening::WorkerStarts(machine, environment) => {
                self.worker_starts(machine, environment);
            }
            Happening::TemplateIsThere(machine, environment) => {
                self.event(machine, oxiray_node::Event::Template(environment, Ok(())));
            }
            Happening::ProcessEnds(process, reason) => self.process_ends(process, reason),
            Happening::NodeHearsOfEnd(process, reason) => {
                if let Some(&machine) = self.by_number.get(&process.node()) {
                    self.machines[machine].processes.remove(&process);
                    let (reason, last_lines) = (reason.into(), Vec::new());
                    let ended = oxiray_node::Event::Ended { process, reason, last_lines };
                    self.event(machine, ended);
                }
            }
            Happening::Disk(machine, news) => self.event(machine, oxiray_node::Event::Disk(news)),
            Happening::Transfer(machine, transfer) => self.transferred(machine, transfer),
            Happening::NodeTick(machine) => {
                // One that was planned before an earlier one means nothing.
                if self.machines[machine].tick_at.take_if(|at| *at <= self.now).is_some() {
                    self.event(machine, oxiray_node::Event::Tick);
                }
            }
            Happening::DriverStarts(driver) => self.driver_starts(driver),
            Happening::NodeDies => self.node_dies(),
            Happening::NodeDrains => self.drain_some_node(),
            Happening::LinkBreaks => self.link_breaks(),
            Happening::CutOff => self.cut_off_some_node(),
            Happening::PairIsCut => self.cut_some_pair(),
            Happening::DriverDies(driver) => self.driver_dies(driver),
            Happening::ActorIsKilled => self.kill_some_actor(),
            Happening::GroupIsMade => self.make_group(),
            Happening::GroupIsRemoved(group) => self.remove_group(group),
            Happening::Crash(process) => {
                if self.lives(process) {
                    self.faults.processes += 1;
                    self.process_ends(process, "killed by signal 11 (SIGSEGV)");
                }
            }
            Happening::Review => self.review(),
        }
    }

    /// Looks at all of the world.
    fn review(&mut self) {
        self.check_members();
        self.check_waiting();
        let trouble = self.now < SECOND + self.plan.trouble || self.head.control.is_none();
        let drivers = &self.drivers[..self.plan.drivers];
        let groups = self.groups_left();
        let done = drivers.iter().all(|driver| driver.is_done) && groups.is_empty();
        if done && !trouble && self.done_at.is_none() {
            self.done_at = Some(self.now);
            self.let_all_go();
        }
        assert!(
            done || trouble || self.now < self.progressed_at + STUCK_AFTER,
            "S-1, S-7: nothing moves: {}; groups: {groups:?}",
            self.describe()
        );
        self.agenda.add(self.now + REVIEW_EVERY, Happening::Review);
    }

    /// Programs that live are done: what workers kept goes.
    fn let_all_go(&mut self) {
        let all: Vec<_> = self.processes.keys().copied().filter(|id| self.lives(*id)).collect();
        for id in all {
            for key in std::mem::take(&mut self.process_mut(id).kept) {
                self.with(id, |owner, out| owner.drop_ref(key, out));
            }
            self.go_on(id);
        }
    }

    fn describe(&self) -> String {
        let busy = self.processes.iter().filter(|(_, p)| p.thread.is_some() || p.start.is_some());
        let busy = busy.map(|(id, process)| {
            let (waiting, counts) = (&process.waiting, process.owner.counts());
            let why = process.owner.reasons(20, |_, _| true);
            format!("{id} waits for {waiting:?}, and has {counts:?} objects and tasks: {why:?}")
        });
        busy.collect::<Vec<_>>().join("; ")
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
        for (id, process) in &self.processes {
            for (kind, wanted) in process.io.wanted.iter().take(KINDS).enumerate() {
                let Some(since) = wanted.since.filter(|_| !process.leaves) else { continue };
                let late = |since: u64| now > since + self.plan.patience;
                let idle = |m: &&crate::machine::Machine| m.room_since[kind].is_some_and(late);
                if late(since)
                    && let Some(machine) = self.machines.iter().find(idle)
                {
                    panic!(
                        "S-5: at {} ms {id} has waited for a lease of kind {kind} for {} ms while \
                         node {} has room: {:?}",
                        now / MILLISECOND,
                        (now - since) / MILLISECOND,
                        machine.number(),
                        machine.node.as_ref().map(oxiray_node::Node::load),
                    );
                }
            }
        }
    }

    /// S-1 and S-6.
    fn check_end(&self) {
        assert!(self.done_at.is_some(), "S-1: {}", self.describe());
        assert!(self.incarnations.is_empty(), "S-6: {:?}", self.incarnations);
        for (id, process) in self.processes.iter().filter(|(_, process)| !process.leaves) {
            let owner = &process.owner;
            owner.validate();
            let (held, why) = (owner.report(), owner.reasons(5, |_, _| true));
            assert_eq!(owner.counts(), (0, 0), "S-6: {id} holds {held:?}: {why:?}");
            assert!(!owner.has_leases() && owner.owes_nothing(), "S-6: {id}");
            assert!(process.looks.is_empty(), "S-6: {id} looks at {:?}", process.looks);
        }
        for machine in &self.machines {
            if let Some(node) = &machine.node {
                node.validate();
                let (load, number) = (node.load(), machine.number());
                assert_eq!(node.bundles(), [], "S-7: node {number}, {:?}", self.groups);
                assert_eq!(load.available, machine.info.total, "S-6: node {number}");
                assert_eq!(load.waiting, 0, "S-6: node {number}");
                assert_eq!(node.busy_workers().count(), 0, "S-6: node {number}");
                let left = node.store_usage().objects;
                assert_eq!(left, 0, "S-6: in the store of node {number}: {:?}", machine.stored());
            }
        }
        if let Some(control) = &self.head.control {
            control.validate();
            assert_eq!(control.group_count(), 0, "S-7");
        }
    }
}
