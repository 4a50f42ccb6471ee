//! What programs do: put, submit, call, read, answer, drop.

use oxiray_ids::{ActorId, FunctionId, JobId, ObjectId, PUT_INDEX, ProcessId, TaskId};
use oxiray_wire::frame::{Answer, FailureCode, Frame, Outcome, Value};

use super::world::{Process, Queued, Running, Side, World, value_of};
use crate::object::{Content, ObjectKey};
use crate::owner::Outbox;
use crate::task::{Target, TaskSpec};

const JOB: JobId = JobId([1; 4]);

/// What a task is made of. References are places among the submitter's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    pub(super) refs: Vec<usize>,
    pub(super) nested: Vec<usize>,
    pub(super) returns: u32,
    pub(super) retries: i32,
    pub(super) function: u32,
    pub(super) shape: u32,
    pub(super) watch: bool,
}

/// How a task ends. References as in [`Order`], of the worker.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) contains: Vec<usize>,
    pub(super) stored: bool,
    pub(super) ran_ns: u64,
}

impl Ending {
    pub(super) fn done() -> Self {
        Self { outcome: Outcome::Done, contains: Vec::new(), stored: false, ran_ns: 1_000 }
    }
}

pub(super) fn is_handle(id: ObjectId) -> bool {
    id.index() == 0
}

impl Process {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// The reference at a place, if there is any.
    pub(super) fn at(&self, place: usize) -> Option<ObjectKey> {
        (!self.refs.is_empty()).then(|| self.refs[place % self.refs.len()])
    }

    /// One more count of each of these.
    fn counted(&mut self, places: &[usize], handles: bool) -> Vec<ObjectKey> {
        let keys: Vec<ObjectKey> = places
            .iter()
            .filter_map(|place| self.at(*place))
            .filter(|key| handles || !is_handle(self.owner.id_of(*key)))
            .collect();
        keys.iter().for_each(|key| self.owner.add_ref(*key));
        keys
    }

    fn spec(&mut self, order: &Order, id: TaskId, target: Target) -> TaskSpec {
        let serial = u64::from_le_bytes(id.0[..8].try_into().expect("eight bytes"));
        TaskSpec {
            id,
            target,
            name: "".into(),
            num_returns: order.returns,
            args: serial.to_le_bytes().as_slice().into(),
            refs: self.counted(&order.refs, false).into(),
            nested: self.counted(&order.nested, true).into(),
            handle: None,
            retries: order.retries,
        }
    }

    fn submitted(&mut self, spec: TaskSpec, watch: bool, out: &mut Side<'_>) {
        let returns = self.owner.submit(spec, out);
        if let (true, Some(first)) = (watch, returns.first().copied()) {
            if self.owner.watch(first, out) {
                self.owner.add_ref(first);
                self.watched.insert(first, self.owner.id_of(first));
            }
        }
        self.refs.extend(returns);
    }

    /// Brings a reference out of bytes, as deserialising does.
    fn read(&mut self, key: ObjectKey, out: &mut Side<'_>) {
        let name = self.owner.name(key);
        if is_handle(name.id) {
            let actor = name.id.task().actor();
            if self.owner.meet_actor(actor) {
                out.net.node.watch(actor, out.from);
            }
        }
        let key = self.owner.read_ref(name, out);
        self.refs.push(key);
    }
}

impl World {
    fn content(&mut self, id: ObjectId, stored: bool) -> Content {
        if !stored {
            return value_of(id);
        }
        let offset = self.net.extents.len() as u64;
        self.net.extents.insert(offset, false);
        Content::Stored { offset, len: 1 }
    }

    pub(super) fn put(&mut self, process: u32, contains: &[usize], stored: bool) {
        let putting = self.processes.get_mut(&process).expect("alive");
        let home = ActorId::home(JOB, ProcessId(process));
        let id = TaskId::new(home, ProcessId(process), putting.next()).object(PUT_INDEX);
        let keys = putting.counted(contains, true);
        let inner: Vec<ObjectId> = keys.iter().map(|key| putting.owner.id_of(*key)).collect();
        inner.into_iter().for_each(|inner| assert!(self.contain(id, inner), "puts are new"));
        let content = self.content(id, stored);
        self.with(process, |process, _| {
            let key = process.owner.put(id, content, keys);
            process.refs.push(key);
        });
    }

    pub(super) fn submit(&mut self, process: u32, order: &Order) {
        let submitting = self.processes.get_mut(&process).expect("alive");
        let home = ActorId::home(JOB, ProcessId(process));
        let id = TaskId::new(home, ProcessId(process), submitting.next());
        self.begun.insert(id, (0, 1 + order.retries as u32));
        let (stats, shape) = (order.function, order.shape);
        self.with(process, |process, out| {
            let target = Target::Function { function: FunctionId([1; 16]), stats, shape };
            let spec = process.spec(order, id, target);
            process.submitted(spec, order.watch, out);
        });
    }

    pub(super) fn create_actor(&mut self, process: u32, order: &Order) {
        let mut order = order.clone();
        order.returns = 0;
        self.with(process, |process, out| {
            let actor = ActorId::new(JOB, ProcessId(out.from), process.next());
            let id = TaskId::new(actor, ProcessId(out.from), process.next());
            let target = Target::Constructor { actor, class: FunctionId([2; 16]) };
            let handle = process.owner.new_actor(actor);
            let spec = process.spec(&order, id, target);
            process.owner.submit(spec, out);
            process.refs.push(handle);
        });
        self.obey_node();
    }

    /// Calls the actor whose handle is at `place` or after it.
    pub(super) fn call(&mut self, process: u32, place: usize, order: &Order) {
        let mut order = order.clone();
        order.retries = 0;
        self.with(process, |process, out| {
            let count = process.refs.len();
            let mut places = (0..count).map(|step| process.refs[(place + step) % count]);
            let handle = places.find(|key| is_handle(process.owner.id_of(*key)));
            let Some(handle) = handle else { return };
            let actor = process.owner.id_of(handle).task().actor();
            let id = TaskId::new(actor, ProcessId(out.from), process.next());
            process.owner.add_ref(handle);
            let mut spec = process.spec(&order, id, Target::Method { actor });
            spec.handle = Some(handle);
            process.submitted(spec, order.watch, out);
        });
    }

    pub(super) fn drop_ref(&mut self, process: u32, place: usize) {
        self.with(process, |process, out| {
            if !process.refs.is_empty() {
                let key = process.refs.swap_remove(place % process.refs.len());
                process.owner.drop_ref(key, out);
            }
        });
        self.obey_node();
    }

    pub(super) fn want(&mut self, process: u32, place: usize) {
        self.with(process, |process, out| {
            if let Some(key) = process.at(place).filter(|key| !is_handle(process.owner.id_of(*key)))
            {
                process.owner.want(key, out);
            }
        });
    }

    /// Reads a value: brings out one of the references in it.
    pub(super) fn read(&mut self, process: u32, place: usize, inner: usize) {
        self.with(process, |process, out| {
            let Some(outer) = process.at(place) else { return };
            let contained = process.owner.contained(outer);
            if process.owner.content(outer).is_some() && !contained.is_empty() {
                process.read(contained[inner % contained.len()], out);
            }
        });
    }

    /// Reads an argument of the running task.
    pub(super) fn take_argument(&mut self, process: u32, place: usize) {
        self.with(process, |process, out| {
            let Some(running) = &process.running else { return };
            if !running.held.is_empty() {
                process.read(running.held[place % running.held.len()], out);
            }
        });
    }

    /// An idle process takes its next task; an actor without handles ends.
    pub(super) fn begin_next(&mut self, process: u32) {
        let state = self.processes.get_mut(&process).expect("alive");
        if state.running.is_some() {
            return;
        }
        while let Some(queued) = state.queue.pop_front() {
            let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else { unreachable!() };
            if task.number == 0 || self.net.claims.remove(&task.number) {
                if let Some((begun, most)) = self.begun.get_mut(&task.id) {
                    *begun += 1;
                    assert!(*begun <= *most, "O-1: run more often than it may be");
                }
                return self.begin(process, queued, None);
            }
        }
        if state.unreferenced {
            self.kill(process);
        }
    }

    pub(super) fn begin(&mut self, process: u32, queued: Queued, constructs: Option<ActorId>) {
        self.with(process, |process, _| {
            let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else { unreachable!() };
            let contained = task.values.iter().flat_map(|value| value.contained.iter());
            let names: Vec<_> = task.nested.iter().chain(contained).copied().collect();
            process.running = Some(Running {
                giver: queued.giver,
                token: task.token,
                id: task.id,
                num_returns: task.num_returns,
                held: process.owner.begin_task(names.into_iter()),
                constructs,
            });
        });
    }

    pub(super) fn block(&mut self, process: u32) {
        self.with(process, |process, out| {
            let (Some(running), None) = (&process.running, &process.blocked) else { return };
            let mut told: Vec<u32> = process.queue.iter().map(|queued| queued.giver).collect();
            told.push(running.giver);
            told.sort_unstable();
            told.dedup();
            told.iter().for_each(|peer| out.send(ProcessId(*peer), &Frame::Blocked));
            process.blocked = Some(told);
        });
    }

    pub(super) fn unblock(&mut self, process: u32) {
        self.with(process, |process, out| {
            for peer in process.blocked.take().unwrap_or_default() {
                out.send(ProcessId(peer), &Frame::Unblocked);
            }
        });
    }

    /// The running task ends, as `worker::executor` does it.
    pub(super) fn answer(&mut self, process: u32, ending: &Ending) {
        self.unblock(process);
        let state = self.processes.get_mut(&process).expect("alive");
        let Some(running) = state.running.take() else { return };
        let well = ending.outcome == Outcome::Done;
        let count = if well { running.num_returns } else { 1 };
        let ids: Vec<ObjectId> = (1..=running.num_returns).map(|i| running.id.object(i)).collect();
        let mut values = Vec::new();
        for index in 0..count {
            let places: &[usize] = if index == 0 { &ending.contains } else { &[] };
            let inner = self.processes.get_mut(&process).expect("alive").counted(places, true);
            let (fine, cyclic): (Vec<_>, Vec<_>) = inner.into_iter().partition(|key| {
                let inner = self.processes[&process].owner.id_of(*key);
                ids.iter().all(|outer| self.contain(*outer, inner))
            });
            self.with(process, |process, out| {
                cyclic.iter().for_each(|key| process.owner.drop_ref(*key, out));
            });
            let content = match well {
                true => self.content(ids[index as usize], ending.stored),
                false => Content::failed(FailureCode::TaskError, "raised"),
            };
            values.push((content, fine));
        }
        self.with(process, |process, out| {
            let (giver, token) = (ProcessId(running.giver), running.token);
            let retained = process.owner.end_task(giver, token, running.held, out);
            let mut handed_over = Vec::new();
            let named = values.iter().map(|(content, keys)| {
                handed_over.extend_from_slice(keys);
                let contained = keys.iter().map(|key| process.owner.name(*key)).collect();
                Value { body: content.as_body(), contained }
            });
            let values = named.collect();
            process.owner.hand_over(giver, token, handed_over);
            let (outcome, ran_ns) = (ending.outcome, ending.ran_ns);
            out.send(giver, &Frame::Answer(Answer { token, outcome, ran_ns, values, retained }));
        });
        if let Some(actor) = running.constructs {
            self.net.node.constructed(actor, well);
        }
        self.obey_node();
    }
}
