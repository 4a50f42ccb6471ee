//! A driver, a worker and what there must be of a node between them, in one shuttle execution.
//!
//! Both are whole runtimes, as the product has them, with their pumps; channel and bells are real
//! memory. Of the node there is what it answers: a lease of the one worker, the way to an actor.

use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};

use oxiray_channel::{BELLS_BYTES, Bells, CHANNEL_BYTES};
use oxiray_events::{EventLog, Label, Role};
use oxiray_ids::{ActorId, FunctionId, NodeId, ProcessId, TaskId};
use oxiray_owner::{CallOrder, Content, ObjectKey, SmallBytes, Target, TaskSpec};
use oxiray_store::TABLE_BYTES;
use oxiray_sys::{memory::memory_file, packet};
use oxiray_wire::control::{
    ActorPhase, ActorState, ChannelOpened, CreateActor, Empty, FromNode, Granted, JobConfig, Shape,
    StartActor, ToNode, from_node, to_node,
};
use oxiray_wire::frame::{Cancelling, Returns};
use prost::Message;

use super::tongue::{Asked, Tongue};
use crate::executor::Executor;
use crate::io::Io;
use crate::language::Serving;
use crate::line::Line;
use crate::runtime::{Identity, Runtime, Waited};
use crate::store::Store;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::{control, pump, serve};

const FUNCTION: FunctionId = FunctionId([7; 16]);
const ARENA_BYTES: usize = 4096;

/// Looks of the node after which nothing will come any more.
const HANG: u32 = 4_000;

/// Never written to: what is returned here is small.
static ARENA: LazyLock<OwnedFd> = LazyLock::new(|| file("arena", ARENA_BYTES));
static TABLE: LazyLock<OwnedFd> = LazyLock::new(|| file("table", TABLE_BYTES));

fn file(name: &str, bytes: usize) -> OwnedFd {
    memory_file(name, bytes).expect("memory")
}

/// A process: its runtime, and the node's end of its connection.
struct Party {
    runtime: Arc<Runtime>,
    node_end: OwnedFd,
}

fn party(bells: &OwnedFd, number: u32, is_driver: bool) -> Party {
    let (ours, node_end) = packet::pair().expect("sockets");
    packet::set_nonblocking(&node_end).expect("a socket");
    let process = ProcessId::new(1, number);
    let bells = Bells::map(bells).expect("memory");
    let bell = bells.bell(number).expect("a place");
    let identity = Identity {
        process,
        node: NodeId([1; 28]),
        session_dir: "/nowhere".into(),
        is_driver,
        preload: Vec::new(),
        address: String::new(),
        control: String::new(),
    };
    let line = Line::new(ours);
    let size = ARENA_BYTES as u64;
    let store = Store::map(&*ARENA, &*TABLE, size, process, number, line.clone()).expect("memory");
    let role = if is_driver { Role::Driver } else { Role::Worker };
    let events = EventLog::new("/nowhere".as_ref(), process, role);
    let io = Io::new(line, None, process, bells, bell.clone(), store.clone(), events);
    let job = JobConfig { job: vec![1; 4], ..JobConfig::default() };
    let runtime = Runtime::new(io, bell, store, identity, job, Executor::new(true));
    Party { runtime: Arc::new(runtime), node_end }
}

/// What the node has heard.
#[derive(Default)]
struct Heard {
    has_channel: bool,
    /// Leases that were asked for and given, in all; whether there is one.
    requested: u64,
    granted: u64,
    is_leased: bool,
    /// Whether CPUs are lent; how often they were.
    is_lent: bool,
    lent: u32,
}

/// Both processes.
pub(super) struct World {
    driver: Party,
    worker: Party,
    pub(super) asked: Arc<Asked>,
    heard: Mutex<Heard>,
    is_over: AtomicBool,
}

/// A world with its threads.
pub(super) struct Running {
    pub(super) world: Arc<World>,
    pumps: Vec<JoinHandle<()>>,
    node: JoinHandle<()>,
    main: JoinHandle<()>,
}

impl World {
    /// Everything runs. An actor's calls are `served` so.
    pub(super) fn start(served: Serving) -> Running {
        let bells = file("bells", BELLS_BYTES);
        let world = Arc::new(Self {
            driver: party(&bells, 1, true),
            worker: party(&bells, 2, false),
            asked: Arc::default(),
            heard: Mutex::new(Heard::default()),
            is_over: AtomicBool::new(false),
        });
        world.driver().ship_function(FUNCTION, b"a function");
        assert_eq!(world.driver().shape(Shape::default()), 0);
        let pump = |runtime: &Arc<Runtime>| {
            let runtime = runtime.clone();
            thread::spawn(move || pump::run(&runtime))
        };
        let pumps = vec![pump(world.driver()), pump(world.worker())];
        let node = {
            let world = world.clone();
            thread::spawn(move || world.be_node())
        };
        let main = {
            let (runtime, asked) = (world.worker().clone(), world.asked.clone());
            thread::spawn(move || serve(&runtime, &mut Tongue::new(&runtime, &asked, served)))
        };
        Running { world, pumps, node, main }
    }

    pub(super) fn driver(&self) -> &Arc<Runtime> {
        &self.driver.runtime
    }

    pub(super) fn worker(&self) -> &Arc<Runtime> {
        &self.worker.runtime
    }

    fn spec(&self, id: TaskId, target: Target, args: &[u8], returns: u32) -> TaskSpec {
        TaskSpec {
            id,
            target,
            name: "call".into(),
            returns: Returns::Fixed(returns),
            args: SmallBytes::from_slice(args),
            refs: Default::default(),
            nested: Default::default(),
            handle: None,
            retries: 0,
            attempt: 0,
            recorded: false,
            parent: TaskId::NIL,
        }
    }

    /// The driver calls a function that is to do this.
    pub(super) fn call(&self, what: u8, serial: u8) -> ObjectKey {
        let target = Target::Function { function: FUNCTION, stats: 0, shape: 0 };
        let id = self.driver().next_task_id(None);
        let spec = self.spec(id, target, &[what, serial], 1);
        self.driver().submit(spec, Label::from(&Arc::from("call")), None)[0]
    }

    /// The driver makes an actor.
    pub(super) fn make_actor(&self) -> (ActorId, ObjectKey) {
        let actor = self.driver().next_actor_id();
        let wanted = CreateActor {
            actor: actor.0.to_vec(),
            class_name: "Actor".into(),
            ..CreateActor::default()
        };
        let id = self.driver().next_task_id(Some(actor));
        let spec = self.spec(id, Target::Constructor { actor, class: FUNCTION }, &[], 0);
        let handle = self.driver().expect_actor(actor, false, false);
        self.driver().create_actor(actor, wanted, spec, None);
        (actor, handle)
    }

    /// The driver calls a method that is to do this.
    pub(super) fn call_method(
        &self,
        actor: (ActorId, ObjectKey),
        what: u8,
        serial: u8,
    ) -> ObjectKey {
        let (actor, handle) = actor;
        let (lane, variant) = (0, FunctionId::NIL);
        let target = Target::Method { actor, lane, order: CallOrder::All, variant };
        let id = self.driver().next_task_id(Some(actor));
        let spec = self.spec(id, target, &[what, serial], 1);
        self.driver().lock().owner.add_ref(handle);
        let spec = TaskSpec { handle: Some(handle), ..spec };
        self.driver().submit(spec, Label::from(&Arc::from("call")), None)[0]
    }

    /// A thread of the driver waits for a value; what it is, or of what the failure speaks.
    pub(super) fn get(&self, key: ObjectKey) -> Result<u8, String> {
        let mut content = None;
        let done = |state: &mut crate::State| {
            content = state.owner.content(key).cloned();
            content.is_some()
        };
        assert_eq!(self.driver().wait_until(None, || false, done), Waited::Done);
        self.driver().release([key]);
        match content {
            Some(Content::Inline(bytes)) => Ok(bytes[0]),
            Some(Content::Failed(failure)) => Err(failure.message.to_string()),
            other => unreachable!("{other:?}"),
        }
    }

    /// Sleeps until the node was told that CPUs are lent.
    pub(super) fn await_lending(&self) {
        while self.heard.lock().lent == 0 {
            thread::yield_now();
        }
    }

    pub(super) fn cancel(&self, key: ObjectKey) {
        self.driver().cancel(key, Cancelling { force: false, recursive: true });
    }

    /// A thread of the driver waits for what never comes.
    pub(super) fn wait_for_the_end(&self) {
        let waited = self.driver().wait_until(None, || false, |_| false);
        assert_eq!(waited, Waited::Stopped("so".into()));
    }

    /// As the thread does that listens to the node service, at its end.
    pub(super) fn stop_driver(&self) {
        self.driver().lock().stop("so".into());
        self.driver().bell().ring();
    }

    fn be_node(&self) {
        let mut buffer = vec![0; packet::MAX_PACKET];
        let mut looks = 0;
        // What is said last is heard, too.
        while !self.is_over.load(Ordering::SeqCst) || self.hear(&mut buffer) {
            self.hear(&mut buffer);
            looks += 1;
            assert!(looks < HANG, "it hangs: {}", self.words());
            thread::yield_now();
        }
    }

    /// Where everybody is, for whoever looks for a lost wake-up.
    fn words(&self) -> String {
        let words = |runtime: &Runtime| {
            let state = runtime.lock();
            format!(
                "{} wait, {} objects and tasks, {} run, called: {}, unwoken: {}, news: {}, pump: {}",
                runtime.waiters.load(Ordering::SeqCst),
                format_args!("{:?}", state.owner.counts()),
                state.executor.running.len(),
                state.executor.lanes.iter().any(|lane| lane.is_startable()),
                state.io.has_unwoken(),
                runtime.bell().has_news(),
                runtime.pump.words(),
            )
        };
        format!("driver: {}; worker: {}", words(self.driver()), words(self.worker()))
    }

    /// Hears what both have said; whether that was anything.
    fn hear(&self, buffer: &mut [u8]) -> bool {
        let mut has_heard = false;
        for party in [&self.driver, &self.worker] {
            while let Ok(Some((length, _))) = packet::receive(&party.node_end, buffer) {
                has_heard = true;
                let said = ToNode::decode(&buffer[..length]).expect("one of ours");
                self.on(said.body.expect("something"));
            }
        }
        has_heard
    }

    fn on(&self, body: to_node::Body) {
        use to_node::Body;
        match body {
            Body::SetDemand(demand) => {
                self.heard.lock().requested = demand.requested_total;
                self.grant();
            }
            Body::ReturnLease(_) => {
                self.heard.lock().is_leased = false;
                self.grant();
            }
            Body::CreateActor(create) => {
                self.open_channel();
                let creator = self.driver().identity.process.0;
                let start = StartActor { actor: create.actor, creator, ..StartActor::default() };
                self.tell(self.worker(), from_node::Body::StartActor(start), Vec::new());
            }
            Body::ActorCreated(created) => {
                let process = self.worker().identity.process.0;
                let phase = ActorPhase::Alive as i32;
                let state =
                    ActorState { actor: created.actor, phase, process, ..ActorState::default() };
                self.tell(self.driver(), from_node::Body::ActorState(state), Vec::new());
            }
            Body::Blocked(_) => {
                let heard = &mut *self.heard.lock();
                assert!(!std::mem::replace(&mut heard.is_lent, true), "B-1: lent twice");
                heard.lent += 1;
            }
            Body::Unblocked(_) => {
                let heard = &mut *self.heard.lock();
                assert!(std::mem::replace(&mut heard.is_lent, false), "B-1: taken back twice");
            }
            _ => {}
        }
    }

    /// Leases the only worker, if somebody asks and nobody has it.
    fn grant(&self) {
        let lease = {
            let heard = &mut *self.heard.lock();
            if heard.is_leased || heard.granted >= heard.requested {
                return;
            }
            (heard.is_leased, heard.granted) = (true, heard.granted + 1);
            heard.granted
        };
        self.open_channel();
        let worker = self.worker().identity.process.0;
        let granted = Granted { shape_key: 0, lease, worker, devices: Vec::new() };
        self.tell(self.driver(), from_node::Body::Granted(granted), Vec::new());
    }

    /// As the thread does that listens to the node service.
    fn tell(&self, runtime: &Arc<Runtime>, body: from_node::Body, files: Vec<OwnedFd>) {
        let message = FromNode { body: Some(body) };
        let body = FromNode::decode(&*message.encode_to_vec()).expect("one of ours").body;
        control::handle(runtime, body.expect("something"), files);
    }

    fn open_channel(&self) {
        if std::mem::replace(&mut self.heard.lock().has_channel, true) {
            return;
        }
        let channel = file("channel", CHANNEL_BYTES);
        for (side, (here, there)) in
            [(self.driver(), self.worker()), (self.worker(), self.driver())].into_iter().enumerate()
        {
            let peer = there.identity.process;
            let opened = ChannelOpened {
                peer: peer.0,
                peer_bell: peer.number(),
                side: side as u32,
                ..ChannelOpened::default()
            };
            let file = channel.try_clone().expect("a descriptor");
            self.tell(here, from_node::Body::ChannelOpened(opened), vec![file]);
        }
    }
}

impl Running {
    /// A thread that does this with the world.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        body: impl FnOnce(&World) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let world = self.world.clone();
        thread::spawn(move || body(&world))
    }

    /// All that was asked for is done: every thread ends, and nothing is left behind.
    pub(super) fn end(self) {
        let Self { world, pumps, node, main } = self;
        world.tell(world.worker(), from_node::Body::Exit(Empty {}), Vec::new());
        main.join().expect("no panic");
        world.is_over.store(true, Ordering::SeqCst);
        node.join().expect("no panic");
        for runtime in [world.driver(), world.worker()] {
            runtime.leaving.store(true, Ordering::SeqCst);
            runtime.bell().ring();
            runtime.pump.kick_if_deep();
        }
        pumps.into_iter().for_each(|pump| pump.join().expect("no panic"));
        assert!(!world.heard.lock().is_lent, "B-1: never taken back");
        for runtime in [world.driver(), world.worker()] {
            let state = runtime.lock();
            assert_eq!(state.owner.counts().1, 0, "tasks that nobody will answer");
            assert!(state.executor.running.is_empty(), "C-1");
            assert_eq!(runtime.waiters.load(Ordering::SeqCst), 0);
            state.owner.validate();
        }
    }
}
