//! The thread that listens to the node service.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use oxiray_ids::{ActorId, Origin, ProcessId, StoreKey};
use oxiray_owner::ActorEnd;
use oxiray_store::Miss;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::{packet, process};
use oxiray_wire::cluster::Kv;
use oxiray_wire::control::{
    self, ActorNames, ActorPhase, ActorState, Allocate, ClusterView, Fetch, FromNode, NamedActor,
    ProcessDied, PullObject, Query, Refused, Slab, Topic, Withdraw, from_node, to_node,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use prost::Message;

use crate::runtime::{Runtime, State};
use crate::store::{Look, Room};

/// Something for the driver's terminal.
#[derive(Clone, Debug)]
pub struct LogItem {
    /// A sentence of the engine rather than what a worker printed.
    pub is_warning: bool,
    /// Who printed.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Its machine, if it is another.
    pub host: String,
    /// To standard error.
    pub is_error: bool,
    /// Without line ends.
    pub lines: Vec<String>,
}

/// Lines on their way to the driver's terminal.
#[derive(Default)]
pub struct Logs {
    queue: Mutex<LogQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct LogQueue {
    items: VecDeque<LogItem>,
    bytes: usize,
    dropped: usize,
    closed: bool,
}

/// What may wait for a terminal that does not keep up. The session's log files have all.
const MOST_WAITING: usize = 16 << 20;

impl LogItem {
    fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum()
    }
}

impl Logs {
    fn push(&self, item: LogItem) {
        let mut queue = self.queue.lock();
        if queue.bytes > MOST_WAITING {
            queue.dropped += item.lines.len();
            return;
        }
        queue.bytes += item.bytes();
        queue.items.push_back(item);
        self.changed.notify_one();
    }

    /// No more will come.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.changed.notify_all();
    }

    /// Sleeps for the next item; `None` after the last.
    pub fn next(&self) -> Option<LogItem> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(item) = queue.items.pop_front() {
                queue.bytes -= item.bytes();
                return Some(item);
            }
            if queue.dropped > 0 {
                let dropped = std::mem::take(&mut queue.dropped);
                return Some(LogItem {
                    is_warning: true,
                    name: String::new(),
                    pid: 0,
                    host: String::new(),
                    is_error: true,
                    lines: vec![format!(
                        "{dropped} lines that workers printed were not shown: this terminal did \
                         not keep up. They are in the session's log files."
                    )],
                });
            }
            if queue.closed {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }
}

enum Reply {
    Room(Result<Room, Refused>),
    Fetched(Result<(), Refused>),
    Slab,
    View(Box<ClusterView>),
    Named(NamedActor),
    Names(Vec<String>),
    Copied(Result<StoreKey, Refused>),
    Kv(Kv),
}

/// Answers of the node service to questions of this process.
#[derive(Default)]
pub struct Replies {
    next: AtomicU64,
    arrived: Mutex<Arrived>,
    changed: Condvar,
}

#[derive(Default)]
struct Arrived {
    replies: HashMap<u64, Reply>,
    /// Views of which more parts are to come.
    views: HashMap<u64, ClusterView>,
    /// Asked by callers that were interrupted.
    abandoned: HashSet<u64>,
    closed: bool,
}

enum Unanswered {
    Ended,
    Interrupted,
}

/// Why there is no room in the store.
#[derive(Debug)]
pub enum NoRoom {
    /// The node service says why.
    Refused(Refused),
    /// The session is over.
    Ended,
    /// The caller's check said so.
    Interrupted,
}

/// Why an object of the store cannot be looked at.
#[derive(Debug)]
pub enum Unseen {
    /// It was freed, or its owner died.
    Gone,
    /// The node service says why.
    Refused(Refused),
    /// The session is over.
    Ended,
    /// The caller's check said so.
    Interrupted,
}

/// Smaller objects are not in the store: they travel inside messages.
pub const SMALLEST_STORED: u64 = 100 << 10;

/// How often a caller that waits for the node service looks at signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Replies {
    /// Takes in an answer. One that nobody waits for any more is dropped; room
    /// that is in it then goes back.
    fn put(&self, request: u64, reply: Reply) {
        let mut arrived = self.arrived.lock();
        if !arrived.abandoned.remove(&request) {
            arrived.replies.insert(request, reply);
            self.changed.notify_all();
        }
    }

    /// Takes in a part of a view; the last one is the answer.
    fn add_view(&self, part: ClusterView) {
        let (request, more) = (part.request, part.more);
        let view = {
            let mut arrived = self.arrived.lock();
            match arrived.views.remove(&request) {
                Some(mut whole) => {
                    whole.nodes.extend(part.nodes);
                    whole
                }
                None => part,
            }
        };
        match more {
            true => _ = self.arrived.lock().views.insert(request, view),
            false => self.put(request, Reply::View(Box::new(view))),
        }
    }

    fn close(&self) {
        self.arrived.lock().closed = true;
        self.changed.notify_all();
    }

    fn take(
        &self,
        request: u64,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Reply, Unanswered> {
        let mut arrived = self.arrived.lock();
        let mut looked = Instant::now();
        loop {
            if let Some(reply) = arrived.replies.remove(&request) {
                return Ok(reply);
            }
            if arrived.closed {
                return Err(Unanswered::Ended);
            }
            self.changed.wait_for(&mut arrived, LOOK_EVERY);
            // By the clock: others' replies wake us, too.
            if looked.elapsed() < LOOK_EVERY {
                continue;
            }
            looked = Instant::now();
            if MutexGuard::unlocked(&mut arrived, &mut interrupted) {
                // It may have come while nobody held the lock.
                let late = arrived.replies.remove(&request);
                if late.is_none() {
                    arrived.abandoned.insert(request);
                }
                drop(arrived);
                drop(late); // room in it goes back
                return Err(Unanswered::Interrupted);
            }
        }
    }
}

impl Runtime {
    /// Asks the node service, and sleeps until it has answered.
    fn ask(
        &self,
        question: impl FnOnce(u64) -> to_node::Body,
        interrupted: impl FnMut() -> bool,
    ) -> Result<Reply, Unanswered> {
        let request = self.replies.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.lock().io.tell_node(question(request));
        let reply = self.replies.take(request, interrupted);
        if let Err(Unanswered::Interrupted) = reply {
            self.lock().io.tell_node(to_node::Body::Withdraw(Withdraw { request }));
        }
        reply
    }

    /// Room for an object of `size` bytes that will belong to `owner`.
    /// `interrupted` is asked now and then.
    pub fn allocate(
        &self,
        size: u64,
        owner: ProcessId,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Room, NoRoom> {
        if let Some(room) = self.store.carve(size, owner) {
            return Ok(room);
        }
        if self.store.wants_slab(size) {
            let len = SMALLEST_STORED;
            let question =
                |request| to_node::Body::WantSlab(Slab { request, len, ..Slab::default() });
            match self.ask(question, &mut interrupted) {
                Ok(_) => {}
                Err(Unanswered::Ended) => return Err(NoRoom::Ended),
                Err(Unanswered::Interrupted) => return Err(NoRoom::Interrupted),
            }
            if let Some(room) = self.store.carve(size, owner) {
                return Ok(room);
            }
        }
        let owner = owner.0;
        let question = |request| to_node::Body::Allocate(Allocate { request, size, owner });
        match self.ask(question, interrupted) {
            Ok(Reply::Room(room)) => room.map_err(NoRoom::Refused),
            Ok(_) | Err(Unanswered::Ended) => Err(NoRoom::Ended),
            Err(Unanswered::Interrupted) => Err(NoRoom::Interrupted),
        }
    }

    /// Looks at an object, wherever it is: brings it from another node if it is there.
    pub fn look_at(
        &self,
        origin: Origin,
        len: u64,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Look, Unseen> {
        if origin.node == self.store.node() {
            return self.look_here(origin.key, interrupted);
        }
        loop {
            if let Some(Ok(look)) = self.store.copy_of(origin).map(|key| self.store.look(key)) {
                return Ok(look);
            }
            let Origin { node, key } = origin;
            let wanted = PullObject { node, key: key.0, len, ..PullObject::default() };
            let question = |request| to_node::Body::Pull(PullObject { request, ..wanted });
            match self.ask(question, &mut interrupted) {
                Ok(Reply::Copied(Ok(key))) => self.store.copied(origin, key),
                Ok(Reply::Copied(Err(refused))) => return Err(Unseen::Refused(refused)),
                Ok(_) | Err(Unanswered::Ended) => return Err(Unseen::Ended),
                Err(Unanswered::Interrupted) => return Err(Unseen::Interrupted),
            }
        }
    }

    /// Looks at an object of this node's store; brings it back from disk if it is there.
    fn look_here(
        &self,
        key: StoreKey,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Look, Unseen> {
        loop {
            match self.store.look(key) {
                Ok(look) => return Ok(look),
                Err(Miss::Gone) => return Err(Unseen::Gone),
                Err(Miss::Away) => {}
            }
            let question = |request| to_node::Body::Fetch(Fetch { request, key: key.0 });
            match self.ask(question, &mut interrupted) {
                Ok(Reply::Fetched(Ok(()))) => {}
                Ok(Reply::Fetched(Err(refused))) => return Err(Unseen::Refused(refused)),
                Ok(_) | Err(Unanswered::Ended) => return Err(Unseen::Ended),
                Err(Unanswered::Interrupted) => return Err(Unseen::Interrupted),
            }
        }
    }

    /// Asks for a name for an actor about to be made: whoever has it then.
    pub fn name_actor(
        &self,
        named: NamedActor,
        interrupted: impl FnMut() -> bool,
    ) -> Option<NamedActor> {
        let question = |request| to_node::Body::NameActor(NamedActor { request, ..named });
        match self.ask(question, interrupted) {
            Ok(Reply::Named(found)) => Some(found),
            _ => None,
        }
    }

    /// The actor of a name; without an id if there is none.
    pub fn find_actor(
        &self,
        name: &str,
        namespace: &str,
        interrupted: impl FnMut() -> bool,
    ) -> Option<NamedActor> {
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        let named = NamedActor { name, namespace, ..NamedActor::default() };
        let question = |request| to_node::Body::FindActor(NamedActor { request, ..named });
        match self.ask(question, interrupted) {
            Ok(Reply::Named(found)) => Some(found),
            _ => None,
        }
    }

    /// Namespace and name of every named actor, in turn; of one namespace, or of all.
    pub fn actor_names(
        &self,
        namespace: &str,
        mut interrupted: impl FnMut() -> bool,
    ) -> Option<Vec<String>> {
        let mut all: Vec<String> = Vec::new();
        loop {
            let names = all.last_chunk::<2>().map(|last| last.to_vec()).unwrap_or_default();
            let namespace = namespace.to_owned();
            let question =
                |request| to_node::Body::ListActors(ActorNames { request, namespace, names });
            match self.ask(question, &mut interrupted) {
                Ok(Reply::Names(names)) if names.is_empty() => return Some(all),
                Ok(Reply::Names(names)) => all.extend(names),
                _ => return None,
            }
        }
    }

    /// Asks the key-value table; `None` if the session ended or `interrupted` said so.
    pub fn key_value(&self, question: Kv, interrupted: impl FnMut() -> bool) -> Option<Kv> {
        match self.ask(|request| to_node::Body::Kv(Kv { request, ..question }), interrupted) {
            Ok(Reply::Kv(answer)) => Some(answer),
            _ => None,
        }
    }

    /// The cluster as it is now; `None` if the session ended or `interrupted` said so.
    pub fn cluster_view(&self, interrupted: impl FnMut() -> bool) -> Option<ClusterView> {
        let topic = Topic::Cluster as i32;
        match self.ask(
            |request| to_node::Body::Query(Query { request, topic, ..Query::default() }),
            interrupted,
        ) {
            Ok(Reply::View(view)) => Some(*view),
            _ => None,
        }
    }
}

/// Receives the next message of the node service.
pub(crate) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
) -> Option<(from_node::Body, Vec<OwnedFd>)> {
    loop {
        let (len, fds) = match packet::receive(socket, buffer) {
            // Too large to be one of ours; what follows it may be.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            received => received.ok()??,
        };
        // A message of a later version that we do not know is none of our business.
        if let Ok(FromNode { body: Some(body) }) = FromNode::decode(&buffer[..len]) {
            return Some((body, fds));
        }
    }
}

/// Runs until the connection ends.
pub(crate) fn run(runtime: &Arc<Runtime>, socket: &OwnedFd) {
    process::block_signals_in_this_thread();
    let mut buffer = vec![0; packet::MAX_PACKET];
    let mut last_words = String::new();
    while let Some((body, fds)) = receive(socket, &mut buffer) {
        if let from_node::Body::Stopped(why) = body {
            last_words = why.text;
            break;
        }
        handle(runtime, body, fds);
    }
    let expected = runtime.leaving.load(Ordering::SeqCst);
    if !runtime.identity.is_driver {
        // A worker without its node service has no reason to be.
        process::exit_now(0);
    }
    let reason = match (expected, last_words.is_empty()) {
        (true, _) => "the session has been shut down".to_owned(),
        (false, false) => last_words,
        (false, true) => "the node service (oxirayd) has ended unexpectedly".to_owned(),
    };
    runtime.lock().stopped = Some(reason);
    runtime.logs.close();
    runtime.replies.close();
    runtime.bell().ring();
}

fn handle(runtime: &Arc<Runtime>, body: from_node::Body, fds: Vec<OwnedFd>) {
    use from_node::Body;
    match body {
        Body::Allocated(allocated) => {
            let room = match allocated.refused {
                None => Ok(runtime.store.granted(StoreKey(allocated.key))),
                Some(refused) => Err(refused),
            };
            return runtime.replies.put(allocated.request, Reply::Room(room));
        }
        Body::Fetched(fetched) => {
            let answer = fetched.refused.map_or(Ok(()), Err);
            return runtime.replies.put(fetched.request, Reply::Fetched(answer));
        }
        Body::SlabGranted(slab) => {
            let request = slab.request;
            runtime.store.on_slab(slab);
            return runtime.replies.put(request, Reply::Slab);
        }
        Body::Pulled(pulled) => {
            let answer = pulled.refused.map_or(Ok(StoreKey(pulled.key)), Err);
            return runtime.replies.put(pulled.request, Reply::Copied(answer));
        }
        Body::JoinJob(config) => runtime.join_job(config),
        Body::Kv(answer) if answer.request == 0 => return,
        Body::Kv(answer) => return runtime.replies.put(answer.request, Reply::Kv(answer)),
        Body::NamedActor(found) => {
            return runtime.replies.put(found.request, Reply::Named(found));
        }
        Body::ActorNames(names) => {
            return runtime.replies.put(names.request, Reply::Names(names.names));
        }
        Body::Trim(_) => {
            // Whoever asks waits for memory: not at every such word, but now and then.
            if runtime.store.trim() {
                runtime.lock().executor.memory_is_short = true;
                runtime.bell().ring();
            }
            return;
        }
        Body::ReportTasks(query) => return runtime.report_tasks(&query),
        Body::ReportObjects(query) => return runtime.report_objects(query.request),
        Body::ClusterView(view) => return runtime.replies.add_view(view),
        Body::Log(log) => {
            return runtime.logs.push(LogItem {
                is_warning: false,
                name: log.name,
                pid: log.pid,
                host: log.host,
                is_error: log.is_error,
                lines: log.lines,
            });
        }
        Body::Warning(warning) => {
            return runtime.logs.push(LogItem {
                is_warning: true,
                name: String::new(),
                pid: 0,
                host: String::new(),
                is_error: true,
                lines: vec![warning.text],
            });
        }
        body => {
            let state = &mut *runtime.lock();
            state.owner.set_now(monotonic_ns());
            change_state(state, body, fds);
            state.collect_watched();
            state.io.wake_peers();
        }
    }
    runtime.bell().ring();
}

fn change_state(state: &mut State, body: from_node::Body, fds: Vec<OwnedFd>) {
    use from_node::Body;
    match body {
        Body::Granted(granted) => {
            let devices = granted.devices.into_iter().flat_map(|devices| devices.ids).collect();
            let worker = ProcessId(granted.worker);
            let shape = granted.shape_key as u32;
            state.owner.on_granted(shape, granted.lease, worker, devices, &mut state.io);
        }
        Body::Reclaim(_) => state.owner.on_reclaim(&mut state.io),
        Body::ChannelOpened(opened) => {
            if let Some(file) = fds.into_iter().next() {
                state.io.open(&opened, file);
                state.drain_peer(ProcessId(opened.peer));
            }
        }
        Body::ProcessDied(died) => on_process_died(state, &died),
        Body::StartActor(start) => state.executor.start = Some(start),
        Body::ActorState(actor) => on_actor_state(state, actor),
        Body::NodeLost(lost) => {
            state.owner.on_node_lost(lost.node, &lost.reason, &mut state.io);
        }
        Body::Unschedulable(failed) => {
            let shape = failed.shape_key as u32;
            state.owner.on_unschedulable(shape, &failed.reason, &mut state.io);
        }
        Body::Exit(_) => state.executor.exit = true,
        Body::Warm(_) => state.warm = true,
        _ => {}
    }
}

fn on_process_died(state: &mut State, died: &ProcessDied) {
    let peer = ProcessId(died.process);
    state.drain_peer(peer);
    state.io.close(peer);
    state.executor.forget(peer);
    let mut message = format!("the worker process {} died: {}", died.pid, died.reason);
    if !died.last_lines.is_empty() {
        message.push_str("\nThe last lines it printed:\n");
        died.last_lines.iter().for_each(|line| message.push_str(&format!("    {line}\n")));
    }
    state.owner.on_process_died(peer, died.out_of_memory, message.trim_end(), &mut state.io);
    state.io.forget_link(peer);
    state.io.store.on_process_died(peer);
    // What it made for us and we have not heard of now we never will.
    state.io.tell_node(to_node::Body::DeathSeen(control::Peer { process: died.process }));
}

fn on_actor_state(state: &mut State, message: ActorState) {
    let Some(actor) = ActorId::from_slice(&message.actor) else {
        return;
    };
    match ActorPhase::try_from(message.phase) {
        Ok(ActorPhase::Alive) => {
            state.owner.on_actor_alive(actor, ProcessId(message.process), &mut state.io);
        }
        Ok(ActorPhase::Dead) => {
            state.io.forget_constructor(actor);
            // What it had answered before it died still counts.
            if let Ok(Some(peer)) = state.owner.actor_peer(actor) {
                state.drain_peer(peer);
            }
            let end = ActorEnd { reason: message.reason, creation_error: message.creation_error };
            state.owner.on_actor_dead(actor, end, &mut state.io);
        }
        Ok(ActorPhase::Restarting) => {
            if let Ok(Some(peer)) = state.owner.actor_peer(actor) {
                state.drain_peer(peer);
            }
            state.owner.on_actor_restarting(actor, &message.reason, &mut state.io);
        }
        Ok(ActorPhase::Pending) | Err(_) => {}
    }
}

/// How long a driver waits for the node service to say that everything has stopped.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(3);
