//! What programs ask their processes for, as `crates/python` and `crates/worker` do it: submit,
//! put, get; and how they wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use oxiray_ids::{ActorId, FunctionId, PUT_INDEX, ProcessId, StoreKey, TaskId};
use oxiray_owner::actor::handle_object;
use oxiray_owner::{CallOrder, Content, ObjectKey, Target, TaskSpec};
use oxiray_wire::control::{self, Allocate, CreateActor, NamedActor, Refused, Shape, to_node};
use oxiray_wire::frame::{RefName, Returns};

use crate::desk::{Desk, Exchange, Handle, Reply, Request, Running, Submission};
use crate::happening::Happening;
use crate::oracle::Fate;
use crate::parcel::{self, Arguments};
use crate::process::Thread;
use crate::program::{Order, Parcel};
use crate::shapes::cpus;
use crate::waiting::{Purpose, Waiting};
use crate::world::World;

/// Objects are larger than this: none is in a slab.
const SMALLEST: u64 = 2 << 20;

impl World {
    /// A program begins in a process.
    pub(crate) fn begin_thread(
        &mut self,
        id: ProcessId,
        goes_on: bool,
        make: impl FnOnce(Desk) -> Running,
    ) {
        let exchange = Rc::new(RefCell::new(Exchange::default()));
        let running = make(Desk::new(exchange.clone(), goes_on));
        let (refs, looks) = (Vec::new(), Vec::new());
        self.process_mut(id).thread = Some(Thread { running, exchange, refs, looks });
        self.poll(id, None);
    }

    /// A program has what it asked for, and goes on until it waits again.
    pub(crate) fn poll(&mut self, id: ProcessId, mut reply: Option<Reply>) {
        while let Some(mut thread) = self.process_mut(id).thread.take() {
            thread.exchange.borrow_mut().reply = reply;
            let polled = thread.running.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(ended) = polled {
                self.thread_ends(id, thread, ended);
                return self.take_work(id);
            }
            let request = thread.exchange.borrow_mut().request.take().expect("it asks");
            self.process_mut(id).thread = Some(thread);
            reply = self.request(id, request);
            if reply.is_none() {
                return;
            }
        }
    }

    /// Does what a program asks for; no reply: it waits.
    fn request(&mut self, id: ProcessId, request: Request) -> Option<Reply> {
        Some(match request {
            Request::Sleep(ns) => {
                let wait = self.wait_for(id, Waiting::Sleep);
                self.agenda.add(self.now + ns, Happening::Wake(id, wait));
                return None;
            }
            Request::Read(names) => {
                let read =
                    |world: &mut Self, name| world.with(id, |owner, out| owner.read_ref(name, out));
                let keys: Vec<ObjectKey> = names.into_iter().map(|name| read(self, name)).collect();
                self.hold(id, keys)
            }
            Request::Meet(name) => {
                let key = self.meet(id, name);
                self.hold(id, vec![key])
            }
            Request::Write(Parcel { number, inner }) => {
                let names: Vec<RefName> = self.names(id, &inner);
                Reply::Bytes(Ok(parcel::write(number, &names)))
            }
            Request::Store(bytes, owner) => {
                let owner = owner.unwrap_or(id);
                let process = self.process_mut(id);
                let request = process.next();
                let size = SMALLEST + self.random.between(1, 2 * SMALLEST);
                self.wait_for(id, Waiting::Room { request, bytes, owner });
                let ask = Allocate { request, size, owner: owner.0 };
                self.tell_node(id, to_node::Body::Allocate(ask));
                return None;
            }
            Request::Put(content, inner) => {
                let key = self.put(id, content, inner);
                self.hold(id, vec![key])
            }
            Request::Submit(order) => {
                let keys = self.submit(id, order);
                self.hold(id, keys)
            }
            Request::Create(order, name) => return self.create(id, order, name),
            Request::Call(handle, order) => {
                let keys = self.call(id, handle, order);
                self.hold(id, keys)
            }
            Request::Get(key) => {
                self.wait_for(id, Waiting::Complete(key));
                let reply = self.get_goes_on(id, key);
                if reply.is_none() {
                    self.lend_soon(id);
                }
                return reply;
            }
            Request::Look(origin, len) => return self.look(id, origin, len, Purpose::Argument),
            Request::Drop(key) => {
                let refs = &mut self.process_mut(id).thread.as_mut().expect("it asks").refs;
                let at = refs.iter().position(|held| *held == key).expect("it holds it");
                refs.swap_remove(at);
                self.with(id, |owner, out| owner.drop_ref(key, out));
                Reply::Done
            }
        })
    }

    fn hold(&mut self, id: ProcessId, keys: Vec<ObjectKey>) -> Reply {
        self.process_mut(id).thread.as_mut().expect("it asks").refs.extend_from_slice(&keys);
        Reply::Keys(keys)
    }

    /// The node answers a request for room.
    pub(crate) fn room_came(&mut self, id: ProcessId, request: u64, room: Result<u64, Refused>) {
        let Waiting::Room { request: asked, bytes, owner } = self.processes[&id].waiting.clone()
        else {
            return;
        };
        if asked == request {
            let content = match room {
                Ok(key) => {
                    let (origin, len) = self.fill(id, StoreKey(key), bytes, owner);
                    Ok(Content::Stored { origin, len })
                }
                Err(refused) => panic!("S-5: no room for an object at {id}: {}", refused.text),
            };
            self.reply(id, Reply::Content(content));
        }
    }

    fn put(&mut self, id: ProcessId, content: Content, inner: Vec<ObjectKey>) -> ObjectKey {
        let object = self.next_task(id, None).object(PUT_INDEX);
        let bytes = match &content {
            Content::Inline(bytes) => bytes.to_vec(),
            Content::Stored { origin, .. } => {
                let process = &self.processes[&id];
                let extent = process.io.table.extent(origin.key.slot());
                self.machines[process.machine].memory.read(extent)
            }
            Content::Failed(_) => unreachable!("a value is put"),
        };
        let (number, fates) = (parcel::read(&bytes).number, self.fates(id, &inner));
        self.expected.insert(object, Rc::new(Fate::Value { number, inner: fates }));
        self.with(id, |owner, _| {
            inner.iter().for_each(|key| owner.add_ref(*key));
            owner.put(object, content, inner)
        })
    }

    fn next_task(&mut self, id: ProcessId, actor: Option<ActorId>) -> TaskId {
        let process = self.process_mut(id);
        let counter = process.next();
        TaskId::new(actor.unwrap_or_else(|| ActorId::home(process.job, id)), id, counter)
    }

    fn names(&mut self, id: ProcessId, keys: &[ObjectKey]) -> Vec<RefName> {
        let owner = &mut self.process_mut(id).owner;
        keys.iter().map(|key| owner.name(*key)).collect()
    }

    /// What references turn out to be.
    fn fates(&self, id: ProcessId, keys: &[ObjectKey]) -> Vec<Rc<Fate>> {
        let owner = &self.processes[&id].owner;
        keys.iter().map(|key| self.expected[&owner.id_of(*key)].clone()).collect()
    }

    /// What an order is to the oracle.
    fn foreseen(&self, id: ProcessId, order: &Submission) -> Order<Rc<Fate>, Option<u64>> {
        let Order { job, returns, retries, kind, function, .. } = *order;
        let handles = order.handles.iter().map(|(_, actor)| self.actors[actor]).collect();
        let (values, nested) = (self.fates(id, &order.values), self.fates(id, &order.nested));
        Order { job, returns, values, nested, handles, retries, kind, function }
    }

    fn spec(&mut self, id: ProcessId, task: TaskId, target: Target, order: Submission) -> TaskSpec {
        let handles: Vec<ObjectKey> = order.handles.iter().map(|(key, _)| *key).collect();
        let arguments = Arguments {
            job: order.job,
            nested: self.names(id, &order.nested),
            handles: self.names(id, &handles),
        };
        let process = self.process_mut(id);
        let parent = process.execution.as_ref().map_or(TaskId::NIL, |execution| execution.task);
        let owner = &mut process.owner;
        let nested = order.nested.iter().chain(&handles);
        order.values.iter().chain(nested.clone()).for_each(|key| owner.add_ref(*key));
        TaskSpec {
            id: task,
            target,
            name: "".into(),
            returns: Returns::Fixed(order.returns),
            args: parcel::write_arguments(&arguments).as_slice().into(),
            refs: order.values.iter().copied().collect(),
            nested: nested.copied().collect(),
            handle: None,
            retries: order.retries,
            attempt: 0,
            recorded: true,
            parent,
        }
    }

    fn submit(&mut self, id: ProcessId, order: Submission) -> Vec<ObjectKey> {
        let task = self.next_task(id, None);
        let fates = self.oracle.task(self.foreseen(id, &order));
        self.expect(task, fates);
        if order.kind != 0 {
            self.kinds.insert(task, order.kind);
        }
        let function = FunctionId([1 + order.function as u8; 16]);
        let (stats, shape) = (order.function, order.kind as u32);
        let spec = self.spec(id, task, Target::Function { function, stats, shape }, order);
        self.history.ask(id, &spec, false);
        self.with(id, |owner, out| owner.submit(spec, out)).to_vec()
    }

    fn expect(&mut self, task: TaskId, fates: Vec<Rc<Fate>>) {
        for (index, fate) in (1..).zip(fates) {
            self.expected.insert(task.object(index), fate);
        }
    }

    fn call(&mut self, id: ProcessId, handle: Handle, order: Submission) -> Vec<ObjectKey> {
        let (key, actor) = handle;
        let task = self.next_task(id, Some(actor));
        let fates = self.oracle.call(self.actors[&actor], self.foreseen(id, &order));
        self.expect(task, fates);
        let target =
            Target::Method { actor, lane: 0, order: call_order(actor), variant: FunctionId::NIL };
        let mut spec = self.spec(id, task, target, order);
        spec.handle = Some(key);
        self.history.ask(id, &spec, call_order(actor) == CallOrder::All);
        self.with(id, |owner, out| {
            owner.add_ref(key);
            owner.submit(spec, out)
        })
        .to_vec()
    }

    fn create(&mut self, id: ProcessId, order: Submission, name: Option<String>) -> Option<Reply> {
        let process = self.process_mut(id);
        let counter = process.next() as u32;
        let actor = ActorId::new(process.job, id, counter);
        self.actors.insert(actor, self.oracle.actor(self.foreseen(id, &order)));
        let Some(name) = name else {
            return Some(Reply::Made(Some(self.make_actor(id, actor, order))));
        };
        self.naming.insert(actor, (name.clone(), order));
        self.wait_for(id, Waiting::Name(actor));
        let request = u64::from(counter);
        let wanted = NamedActor { request, name, actor: actor.0.to_vec(), ..NamedActor::default() };
        self.tell_node(id, to_node::Body::NameActor(wanted));
        None
    }

    /// Who has the name that a process asked for.
    pub(crate) fn name_came(&mut self, id: ProcessId, found: &NamedActor) {
        let Waiting::Name(actor) = self.processes[&id].waiting else { return };
        let (name, order) = self.naming.remove(&actor).expect("it asked");
        let mut made = None;
        if found.actor == actor.0 {
            let before = self.named.insert(name, actor);
            if let Some(before) = before.filter(|before| *before != actor) {
                assert!(!self.has_name(before), "S-4: {before} and {actor} have one name");
            }
            let handle = self.make_actor(id, actor, order);
            self.with(id, |owner, out| {
                owner.name(handle.0);
                out.io.named.insert(actor);
            });
            made = Some(handle);
        }
        self.reply(id, Reply::Made(made));
    }

    /// Whether an actor lives and has a name. One that was killed, or whose creator released its name
    /// with the last handle, is about to end.
    fn has_name(&self, actor: ActorId) -> bool {
        let creator = self.processes.get(&actor.creator());
        let named = creator.is_some_and(|creator| creator.io.named.contains(&actor));
        let stays = named && !self.faults.actors.contains(&actor);
        stays && self.incarnations.get(&actor).is_some_and(|process| self.lives(*process))
    }

    fn make_actor(&mut self, id: ProcessId, actor: ActorId, order: Submission) -> Handle {
        let task = self.next_task(id, Some(actor));
        let retries = order.retries;
        let class = FunctionId([9; 16]);
        let spec = self.spec(id, task, Target::Constructor { actor, class }, order);
        let message = CreateActor {
            actor: actor.0.to_vec(),
            class_name: "Counter".into(),
            placement: Some(Shape { resources: cpus(1), ..Shape::default() }),
            held: Some(Shape::default()),
            max_restarts: i64::from(retries),
            detached: false,
            kept: false,
        };
        let key = self.with(id, |owner, out| {
            let handle = owner.new_actor(actor, false);
            out.io.placements.insert(actor, message);
            owner.submit(spec, out);
            handle
        });
        self.process_mut(id).thread.as_mut().expect("it asks").refs.push(key);
        (key, actor)
    }

    fn meet(&mut self, id: ProcessId, name: RefName) -> ObjectKey {
        let actor = name.id.task().actor();
        assert_eq!(name.id, handle_object(actor));
        self.with(id, |owner, out| {
            if owner.meet_actor(actor) {
                let actor = control::Actor { actor: actor.0.to_vec(), ..Default::default() };
                out.io.tell_node(to_node::Body::WatchActor(actor));
            }
            owner.read_ref(name, out)
        })
    }
}

/// Some actors take calls in any order.
fn call_order(actor: ActorId) -> CallOrder {
    match actor.0[0] % 4 {
        0 => CallOrder::Free,
        _ => CallOrder::All,
    }
}
