//! Workers, and how processes hear from each other.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_node::Event;
use oxiray_wire::control::{ActorCreated, ProcessKind, Text, from_node, to_node};

use crate::happening::{Frame, Happening, Said};
use crate::plan::{MICROSECOND, MILLISECOND};
use crate::world::World;

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Nothing,
    /// A task, in this attempt, for this process.
    Task(usize, u32, ProcessId),
    Actor(ActorId),
}

pub(crate) struct Worker {
    pub(crate) machine: usize,
    pub(crate) work: Work,
    /// CPUs of its work.
    pub(crate) cpus: u64,
    /// It was killed, or told to exit.
    pub(crate) leaves: bool,
}

/// Between a process and its node.
const SOCKET: u64 = 10 * MICROSECOND;
/// Between two processes of a node.
const RING: u64 = 5 * MICROSECOND;

impl World {
    pub(crate) fn tell_node(&mut self, from: ProcessId, body: to_node::Body) {
        self.agenda.add(self.now + SOCKET, Happening::FromProcess(from, body));
    }

    pub(crate) fn tell_process(&mut self, to: ProcessId, body: from_node::Body) {
        self.agenda.add(self.now + SOCKET, Happening::ToProcess(to, body));
    }

    /// A process of a machine sends a frame, directly or through the gateways.
    pub(crate) fn send_frame(
        &mut self,
        machine: usize,
        from: ProcessId,
        to: ProcessId,
        frame: Frame,
    ) {
        if from.node() == to.node() {
            return self.agenda.add(self.now + RING, Happening::Frame(from, to, frame));
        }
        // Without a channel it is known, or soon will be, that the other is gone.
        if self.machines[machine].bridges.contains(&(from, to)) {
            self.say(machine, to.node(), Said::Frame(from, to, frame));
        }
    }

    /// A frame comes from another machine, at the gateway of this one.
    pub(crate) fn on_passed(
        &mut self,
        machine: usize,
        from: ProcessId,
        to: ProcessId,
        frame: Frame,
    ) {
        if !self.machines[machine].bridges.contains(&(to, from)) {
            self.event(machine, Event::FrameCame { from, to });
        }
        if self.machines[machine].bridges.contains(&(to, from)) {
            self.agenda.add(self.now + RING, Happening::Frame(from, to, frame));
        }
    }

    pub(crate) fn on_frame(&mut self, from: ProcessId, to: ProcessId, frame: Frame) {
        match frame {
            Frame::Task(task, attempt) => self.on_task(from, to, task, attempt),
            Frame::Answer(task, attempt) => self.on_answer(from, to, task, attempt),
        }
    }

    pub(crate) fn worker_starts(&mut self, machine: usize) {
        if !self.machines[machine].alive {
            return;
        }
        if self.random.once_in(self.plan.start_fails_once_in) {
            return self.event(machine, Event::StartFailed { reason: "bad luck".into() });
        }
        let process = self.register(machine, ProcessKind::Worker);
        let worker = Worker { machine, work: Work::Nothing, cpus: 0, leaves: false };
        self.workers.insert(process, worker);
        self.event(machine, Event::Ready(process));
    }

    fn on_task(&mut self, from: ProcessId, to: ProcessId, task: usize, attempt: u32) {
        let cpus = self.cpus_of(task);
        let Some(worker) = self.workers.get_mut(&to).filter(|worker| !worker.leaves) else {
            return;
        };
        assert_eq!(worker.work, Work::Nothing, "{to} is given task {task} by {from} meanwhile");
        worker.work = Work::Task(task, attempt, from);
        let machine = worker.machine;
        self.occupy(to, cpus);
        let (low, high) = self.plan.task_time;
        let end = self.now + self.random.between(low, high);
        if self.random.once_in(self.plan.crash_once_in) {
            self.agenda.add(end, Happening::ProcessEnds(to, "killed by signal 11 (SIGSEGV)"));
        } else {
            self.agenda.add(end, Happening::TaskEnds(to, task, attempt));
        }
        debug_assert!(self.machines[machine].alive);
    }

    pub(crate) fn task_ends(&mut self, id: ProcessId, task: usize, attempt: u32) {
        let Some(worker) = self.workers.get_mut(&id).filter(|worker| !worker.leaves) else {
            return;
        };
        let Work::Task(running, at, giver) = worker.work else {
            return;
        };
        assert_eq!((running, at), (task, attempt));
        worker.work = Work::Nothing;
        let machine = worker.machine;
        self.vacate(id);
        self.send_frame(machine, id, giver, Frame::Answer(task, attempt));
    }

    /// What runs never exceeds what its machine has.
    fn occupy(&mut self, id: ProcessId, cpus: u64) {
        let worker = self.workers.get_mut(&id).expect("works");
        worker.cpus = cpus;
        let at = worker.machine;
        let machine = &mut self.machines[at];
        machine.used += cpus;
        if machine.used > machine.cpus() {
            let here = self.workers.iter().filter(|(_, worker)| worker.machine == at);
            let here: Vec<String> =
                here.map(|(id, w)| format!("{id}: {:?}, {} CPUs", w.work, w.cpus)).collect();
            let node = self.machines[at].node.as_ref().expect("is a member");
            let busy: Vec<ProcessId> = node.busy_workers().map(|(id, _)| id).collect();
            panic!(
                "S-3: seed {}: at {} ns {id} is one too many: {here:?}; busy, as its node has it: \
                 {busy:?}, free {:?}",
                self.plan.seed,
                self.now,
                node.load().available
            );
        }
    }

    fn vacate(&mut self, id: ProcessId) {
        if let Some(worker) = self.workers.get_mut(&id) {
            self.machines[worker.machine].used -= std::mem::take(&mut worker.cpus);
        }
    }

    /// A worker hears from its node.
    pub(crate) fn worker_hears(&mut self, id: ProcessId, body: from_node::Body) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        match body {
            from_node::Body::Exit(_) => {
                worker.leaves = true;
                let text = Text { text: "it was not needed any more".into() };
                self.tell_node(id, to_node::Body::Exiting(text));
                self.agenda.add(self.now + MILLISECOND, Happening::ProcessEnds(id, "exit code 0"));
            }
            from_node::Body::StartActor(start) if !worker.leaves => {
                let actor = ActorId::from_slice(&start.actor).expect("an id");
                assert_eq!(worker.work, Work::Nothing, "{id} is made an actor meanwhile");
                worker.work = Work::Actor(actor);
                let before = self.incarnations.insert(actor, id);
                assert_eq!(before, None, "{actor} lives already, and is made at {id}");
                self.occupy(id, 1);
                let made = self.now + self.random.between(MILLISECOND, 20 * MILLISECOND);
                self.agenda.add(made, Happening::ActorIsMade(id));
            }
            _ => {}
        }
    }

    pub(crate) fn actor_is_made(&mut self, id: ProcessId) {
        let Some(worker) = self.workers.get(&id).filter(|worker| !worker.leaves) else {
            return;
        };
        let Work::Actor(actor) = worker.work else {
            return;
        };
        // It holds nothing while it lives.
        self.vacate(id);
        let created = ActorCreated { actor: actor.0.to_vec(), error: Vec::new() };
        self.tell_node(id, to_node::Body::ActorCreated(created));
    }

    /// A node wants a worker to be no more: it is as good as gone.
    pub(crate) fn kill(&mut self, id: ProcessId) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        worker.leaves = true;
        self.vacate(id);
        let end = self.now + self.random.between(100 * MICROSECOND, 3 * MILLISECOND);
        self.agenda.add(end, Happening::ProcessEnds(id, "killed by signal 9 (SIGKILL)"));
    }

    /// Ends a process at once; its node hears of it if it lives.
    pub(crate) fn process_ends(&mut self, id: ProcessId, reason: &'static str) {
        self.vacate(id);
        let machine = match self.workers.remove(&id) {
            Some(worker) => {
                if let Work::Actor(actor) = worker.work {
                    self.incarnations.remove(&actor);
                }
                worker.machine
            }
            None => return,
        };
        if self.machines[machine].alive {
            self.agenda.add(self.now + 2 * SOCKET, Happening::NodeHearsOfEnd(id, reason));
        }
    }
}
