//! What programs do: put, submit, call, read, drop.

use oxiray_ids::{
    ActorId, FunctionId, JobId, ObjectId, Origin, PUT_INDEX, ProcessId, StoreKey, TaskId,
};

use oxiray_wire::frame::{Cancelling, Returns};

use super::net::Side;
use super::world::{Process, World, value_of};
use crate::object::{Content, ObjectKey};
use crate::task::{CallOrder, Target, TaskSpec};

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
    /// It yields instead.
    pub(super) stream: Option<Returns>,
}

/// Which calls of an actor wait for which others: each kind of actor is among those of a world.
pub(super) fn call_order(actor: ActorId) -> CallOrder {
    let orders = [CallOrder::All, CallOrder::Lane, CallOrder::Free];
    orders[usize::from(actor.0[0]) % orders.len()]
}

pub(super) fn is_handle(id: ObjectId) -> bool {
    id.index() == 0
}

impl Order {
    fn gives(&self) -> Returns {
        self.stream.unwrap_or(Returns::Fixed(self.returns))
    }
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
    pub(super) fn counted(&mut self, places: &[usize], handles: bool) -> Vec<ObjectKey> {
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
            returns: order.gives(),
            args: serial.to_le_bytes().as_slice().into(),
            refs: self.counted(&order.refs, false).into(),
            nested: self.counted(&order.nested, true).into(),
            handle: None,
            retries: order.retries,
            attempt: 0,
            recorded: true,
            parent: TaskId::NIL,
        }
    }

    fn submitted(&mut self, spec: TaskSpec, watch: bool, out: &mut Side<'_>) {
        let arguments = spec.refs.iter().map(|key| self.owner.id_of(*key)).collect();
        out.net.arguments.insert(spec.id, arguments);
        if let Returns::Stream { .. } = spec.returns {
            self.readers.push((spec.id, 0));
        }
        let returns = self.owner.submit(spec, out);
        if let Some(first) = returns.first().copied().filter(|_| watch)
            && self.owner.watch(first, out)
        {
            self.owner.add_ref(first);
            self.watched.insert(first, self.owner.id_of(first));
        }
        self.refs.extend(returns);
    }

    /// Submits a task that takes the reference at a place. Cheaper than
    /// [`World::submit`], which checks the world each time.
    pub(super) fn chain(&mut self, place: usize, retries: i32, out: &mut Side<'_>) {
        let home = ActorId::home(JOB, ProcessId(out.from));
        let id = TaskId::new(home, ProcessId(out.from), self.next());
        let target = Target::Function { function: FunctionId([1; 16]), stats: 0, shape: 0 };
        let order = Order { refs: vec![place], returns: 1, retries, ..Order::default() };
        let spec = self.spec(&order, id, target);
        self.submitted(spec, false, out);
    }

    /// Brings a reference out of bytes, as deserialising does.
    pub(super) fn read(&mut self, key: ObjectKey, out: &mut Side<'_>) {
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
    /// The value of an object, made by a process; `stored`: in the store of its node.
    pub(super) fn content(&mut self, by: u64, id: ObjectId, stored: bool) -> Content {
        if !stored {
            return value_of(id);
        }
        let key = StoreKey(self.net.extents.len() as u64);
        self.net.extents.insert(key.0, false);
        let node = ProcessId(by).node();
        self.net.stored.insert(id, node);
        Content::Stored { origin: Origin { node, key }, len: 1 }
    }

    /// Puts a value, for `owner` to own.
    pub(super) fn put(&mut self, process: u64, owner: u64, contains: &[usize], stored: bool) {
        let putting = self.processes.get_mut(&process).expect("alive");
        let home = ActorId::home(JOB, ProcessId(process));
        let id = TaskId::new(home, ProcessId(process), putting.next()).object(PUT_INDEX);
        let keys = putting.counted(contains, true);
        let inner: Vec<ObjectId> = keys.iter().map(|key| putting.owner.id_of(*key)).collect();
        inner.into_iter().for_each(|inner| assert!(self.contain(id, inner), "puts are new"));
        let content = self.content(process, id, stored);
        self.with(process, |process, out| {
            let key = process.owner.entrust(id, ProcessId(owner), content, keys, out);
            process.entrusting.push(key);
        });
    }

    /// The task that is to return this is not wanted any more. Whether it is run again if it is
    /// lost is no longer said by how often it may be.
    pub(super) fn cancel(&mut self, process: u64, place: usize) {
        let key = self.processes[&process].at(place);
        let id = key.map(|key| self.processes[&process].owner.id_of(key));
        let (Some(key), Some(id)) = (key, id.filter(|id| !is_handle(*id))) else { return };
        self.taint(id);
        let how = Cancelling { force: false, recursive: true };
        self.with(process, |process, out| process.owner.cancel(key, how, out));
    }

    /// Frees a value that others may hold: what it contains may go with it.
    pub(super) fn free_value(&mut self, process: u64, place: usize) {
        let key = self.processes[&process].at(place);
        let id = key.map(|key| self.processes[&process].owner.id_of(key));
        let (Some(key), Some(id)) = (key, id.filter(|id| !is_handle(*id))) else { return };
        self.taint(id);
        self.with(process, |process, out| process.owner.free_value(key, out));
    }

    pub(super) fn submit(&mut self, process: u64, order: &Order) {
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

    pub(super) fn create_actor(&mut self, process: u64, order: &Order) {
        let mut order = order.clone();
        (order.returns, order.stream) = (0, None);
        let mut arguments = Vec::new();
        let handle = self.with(process, |process, out| {
            let actor = ActorId::new(JOB, ProcessId(out.from), process.next() as u32);
            let id = TaskId::new(actor, ProcessId(out.from), process.next());
            let target = Target::Constructor { actor, class: FunctionId([2; 16]) };
            let handle = process.owner.new_actor(actor, false);
            let spec = process.spec(&order, id, target);
            out.net.node.restarts.insert(actor, spec.retries);
            if spec.retries != 0 {
                let all = spec.refs.iter().chain(&spec.nested);
                arguments.extend(all.map(|key| process.owner.id_of(*key)));
            }
            process.owner.submit(spec, out);
            process.refs.push(handle);
            process.owner.id_of(handle)
        });
        // What may be constructed again holds its arguments while it lives.
        arguments.into_iter().for_each(|inner| assert!(self.contain(handle, inner)));
        self.obey_node();
    }

    /// Calls the actor whose handle is at `place` or after it.
    pub(super) fn call(&mut self, process: u64, place: usize, order: &Order) {
        let order = order.clone();
        self.with(process, |process, out| {
            let count = process.refs.len();
            let mut places = (0..count).map(|step| process.refs[(place + step) % count]);
            let handle = places.find(|key| is_handle(process.owner.id_of(*key)));
            let Some(handle) = handle else { return };
            let actor = process.owner.id_of(handle).task().actor();
            let id = TaskId::new(actor, ProcessId(out.from), process.next());
            process.owner.add_ref(handle);
            let target = Target::Method {
                actor,
                lane: (order.function % 3) as u16,
                order: call_order(actor),
                variant: FunctionId::NIL,
            };
            let mut spec = process.spec(&order, id, target);
            spec.handle = Some(handle);
            process.submitted(spec, order.watch, out);
        });
    }

    pub(super) fn drop_ref(&mut self, process: u64, place: usize) {
        self.with(process, |process, out| {
            if !process.refs.is_empty() {
                let key = process.refs.swap_remove(place % process.refs.len());
                process.owner.drop_ref(key, out);
            }
        });
        self.obey_node();
    }

    pub(super) fn want(&mut self, process: u64, place: usize) {
        self.with(process, |process, out| {
            if let Some(key) = process.at(place).filter(|key| !is_handle(process.owner.id_of(*key)))
            {
                process.owner.want(key, out);
            }
        });
    }

    /// Reads a value: brings out one of the references in it.
    pub(super) fn read(&mut self, process: u64, place: usize, inner: usize) {
        self.with(process, |process, out| {
            let Some(outer) = process.at(place) else { return };
            let contained = process.owner.contained(outer);
            if process.owner.content(outer).is_some() && !contained.is_empty() {
                process.read(contained[inner % contained.len()], out);
            }
        });
    }
}
