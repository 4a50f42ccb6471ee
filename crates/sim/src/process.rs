//! A process: a real [`Owner`], and around it what `crates/worker` does.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use oxiray_ids::{ActorId, JobId, Origin, ProcessId, StoreKey};
use oxiray_node::Event;
use oxiray_owner::{ObjectKey, Owner};
use oxiray_store::Table;
use oxiray_wire::control::{JobConfig, ProcessKind, StartActor, from_node, to_node};

use crate::desk::{Exchange, Running};
use crate::happening::Happening;
use crate::outbox::{Io, Peer, Side};
use crate::plan::{MICROSECOND, MILLISECOND};
use crate::program::{FUNCTIONS, KINDS};
use crate::waiting::Waiting;
use crate::world::World;

/// The pump of a process looks at the time so often while something happens there,
const NAP: u64 = MILLISECOND;
/// and at most so often.
const SHORTEST_NAP: u64 = 100 * MICROSECOND;

/// A task that was pushed here.
pub(crate) struct Queued {
    pub(crate) giver: ProcessId,
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A task taken, until it is answered.
pub(crate) struct Execution {
    pub(crate) giver: ProcessId,
    pub(crate) token: u64,
    pub(crate) held: Vec<ObjectKey>,
    pub(crate) task: oxiray_ids::TaskId,
    pub(crate) returns: u32,
    /// Its first attempt raises.
    pub(crate) flaky: bool,
    pub(crate) constructs: Option<ActorId>,
    pub(crate) started: u64,
}

/// A program under way, and what it holds.
pub(crate) struct Thread {
    pub(crate) running: Running,
    pub(crate) exchange: Rc<RefCell<Exchange>>,
    /// References, one count each.
    pub(crate) refs: Vec<ObjectKey>,
    /// Slots of the store that it looks at.
    pub(crate) looks: Vec<u32>,
}

pub(crate) struct Process {
    pub(crate) machine: usize,
    /// Which driver it is, if it is one.
    pub(crate) driver: Option<usize>,
    pub(crate) owner: Owner,
    pub(crate) io: Io,
    /// Its own in the store's table.
    pub(crate) row: u32,
    pub(crate) job: JobId,
    pub(crate) counter: u64,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) execution: Option<Execution>,
    pub(crate) answered: Option<ProcessId>,
    pub(crate) thread: Option<Thread>,
    pub(crate) waiting: Waiting,
    /// Which wait of its thread this is.
    pub(crate) wait: u64,
    /// Who was told that its task sleeps, if it does.
    pub(crate) lent: Option<Vec<ProcessId>>,
    pub(crate) start: Option<StartActor>,
    /// What it is, and what its constructor made.
    pub(crate) actor: Option<(ActorId, Option<u64>)>,
    /// Of that actor.
    pub(crate) incarnation: u64,
    pub(crate) exit: bool,
    pub(crate) unreferenced: bool,
    /// It was killed, or exits.
    pub(crate) leaves: bool,
    /// References that stay when tasks end.
    pub(crate) kept: Vec<ObjectKey>,
    /// How often it looks at each slot.
    pub(crate) looks: BTreeMap<u32, u32>,
    pub(crate) copies: BTreeMap<Origin, StoreKey>,
    /// CPUs of what it does.
    pub(crate) cpus: u64,
    tick_at: Option<u64>,
}

impl Process {
    pub(crate) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

impl World {
    /// Gives a new process of a machine its number.
    pub(crate) fn add_process(
        &mut self,
        machine: usize,
        driver: Option<usize>,
        environment: u32,
    ) -> ProcessId {
        let node = self.machines[machine].node.as_mut().expect("is a member");
        let config = JobConfig { log_to_driver: true, ..JobConfig::default() };
        let kind = if driver.is_some() { ProcessKind::Driver } else { ProcessKind::Worker };
        let admitted = node.admit(kind, 1000, config, environment).expect("there are bells");
        let id = admitted.process;
        let mut owner = Owner::new(id);
        for kind in 0..KINDS {
            let number = if kind == 2 { owner.spread_shape() } else { owner.shape() };
            assert_eq!(number as usize, kind);
        }
        (0..FUNCTIONS).for_each(|number| assert_eq!(owner.function(), number));
        let table: Table = self.machines[machine].table.clone().expect("is a member");
        let process = Process {
            machine,
            driver,
            owner,
            io: Io::new(id, table),
            row: admitted.bell,
            job: admitted.job.unwrap_or(JobId::NIL),
            counter: 0,
            queue: VecDeque::new(),
            execution: None,
            answered: None,
            thread: None,
            waiting: Waiting::Nothing,
            wait: 0,
            lent: None,
            start: None,
            actor: None,
            incarnation: 0,
            exit: false,
            unreferenced: false,
            leaves: false,
            kept: Vec::new(),
            looks: BTreeMap::new(),
            copies: BTreeMap::new(),
            cpus: 0,
            tick_at: None,
        };
        self.processes.insert(id, process);
        self.machines[machine].processes.insert(id);
        self.event(machine, Event::Ready(id));
        id
    }

    /// Lets something happen to the owner of a process that lives, and does what it asks for.
    pub(crate) fn with<R>(
        &mut self,
        id: ProcessId,
        act: impl FnOnce(&mut Owner, &mut Side<'_>) -> R,
    ) -> R {
        let process = self.processes.get_mut(&id).expect("it lives");
        process.owner.set_now(self.now);
        process.io.now = self.now;
        let mut side = Side { io: &mut process.io, rings: &mut self.rings };
        let result = act(&mut process.owner, &mut side);
        self.report.owner_events += 1;
        if self.report.owner_events.is_multiple_of(self.plan.validate_once_in) {
            process.owner.validate();
        }
        let tick = self.now + NAP;
        if process.tick_at.is_none() {
            process.tick_at = Some(tick);
            self.agenda.add(tick, Happening::Tick(id));
        }
        let said = std::mem::take(&mut process.io.to_node);
        said.into_iter().for_each(|body| self.tell_node(id, body));
        self.wake_readers();
        result
    }

    /// After something happened to a process: its program goes on, or it takes up work.
    pub(crate) fn go_on(&mut self, id: ProcessId) {
        self.advance(id);
        self.take_work(id);
    }

    /// Whoever was written to reads, in a while.
    pub(crate) fn wake_readers(&mut self) {
        for way in std::mem::take(&mut self.rings.written) {
            let mut at = self.now + self.random.between(2 * MICROSECOND, 20 * MICROSECOND);
            if self.random.once_in(50) {
                at += self.random.between(0, 2 * MILLISECOND);
            }
            self.agenda.add(at, Happening::RingRead(way));
        }
    }

    pub(crate) fn process_tick(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id).filter(|process| !process.leaves) else {
            return;
        };
        // Calls meanwhile must not ask for another.
        process.tick_at = Some(self.now);
        let next = self.with(id, |owner, out| owner.on_tick(out));
        let process = self.processes.get_mut(&id).expect("it lives");
        process.tick_at = next.map(|at| at.max(self.now + SHORTEST_NAP));
        if let Some(at) = process.tick_at {
            self.agenda.add(at, Happening::Tick(id));
        }
        self.go_on(id);
    }

    /// When something between a process and its node comes: in order.
    fn over_socket(
        &mut self,
        last: fn(&mut Self) -> &mut BTreeMap<ProcessId, u64>,
        id: ProcessId,
    ) -> u64 {
        let mut at = self.now + self.random.between(5 * MICROSECOND, 30 * MICROSECOND);
        if self.random.once_in(100) {
            at += self.random.between(0, MILLISECOND);
        }
        let last = last(self).entry(id).or_default();
        *last = at.max(*last);
        *last
    }

    pub(crate) fn tell_node(&mut self, from: ProcessId, body: to_node::Body) {
        let at = self.over_socket(|world| &mut world.last_to_node, from);
        self.agenda.add(at, Happening::FromProcess(from, body));
    }

    pub(crate) fn tell_process(&mut self, to: ProcessId, body: from_node::Body) {
        let at = self.over_socket(|world| &mut world.last_to_process, to);
        self.agenda.add(at, Happening::ToProcess(to, body));
    }

    /// Ends a process at once; its node hears of it if it lives.
    pub(crate) fn process_ends(&mut self, id: ProcessId, reason: &'static str) {
        self.vacate(id);
        let Some(process) = self.processes.remove(&id) else { return };
        if let Some((actor, _)) = process.actor {
            self.incarnations.remove(&actor);
        }
        if self.machines[process.machine].alive {
            let at = self.over_socket(|world| &mut world.last_to_node, id);
            self.agenda.add(at, Happening::NodeHearsOfEnd(id, reason));
        }
    }

    /// A node wants a process to be no more: it is as good as gone.
    pub(crate) fn kill(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        process.leaves = true;
        self.note_exit(id);
        self.vacate(id);
        let end = self.now + self.random.between(100 * MICROSECOND, 3 * MILLISECOND);
        self.agenda.add(end, Happening::ProcessEnds(id, "killed by signal 9 (SIGKILL)"));
    }

    /// Whether a process takes part in what happens.
    pub(crate) fn lives(&self, id: ProcessId) -> bool {
        self.processes.get(&id).is_some_and(|process| !process.leaves)
    }

    /// Reads and handles what a peer wrote for a process.
    pub(crate) fn drain(&mut self, id: ProcessId, peer: ProcessId) {
        while self.lives(id) {
            let io = &self.processes[&id].io;
            // Before it was told of the channel there is nothing that it could read.
            if !matches!(io.peers.get(&peer), Some(Peer::Open)) {
                return;
            }
            let way = io.way_from(peer);
            let Some(frame) = self.rings.pop(way) else { return };
            self.on_frame(id, peer, frame);
        }
    }

    /// A peer is gone, and what it wrote has been read.
    pub(crate) fn forget_peer(&mut self, id: ProcessId, peer: ProcessId) {
        let io = &mut self.processes.get_mut(&id).expect("it lives").io;
        let (to, from) = (io.way_to(peer), io.way_from(peer));
        io.peers.insert(peer, Peer::Dead);
        self.rings.forget(to);
        self.rings.forget(from);
    }
}
