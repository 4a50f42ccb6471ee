//! Frames out and in: the pure owner's outbox.
//!
//! A frame goes into the peer's ring at once if there is room, else it waits
//! here in order. Waking the peer is apart from that: several frames share one
//! wake-up. A frame larger than a ring takes is cut in pieces.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use oxiray_channel::layout::BELL_BITS;
use oxiray_channel::{Bell, Bells, LeaseEnd, Link, MAX_FRAME};
use oxiray_events::EventLog;
use oxiray_ids::{ActorId, Origin, ProcessId, ProcessSet};
use oxiray_owner::{Attempt, Change, Failure, ObjectKey, Outbox};
use oxiray_sys::{cpu, packet};
use oxiray_wire::control::{self, ChannelOpened, Shape, threads_of, to_node};
use oxiray_wire::frame::{self, Frame, LAST_PIECE, PIECE};
use oxiray_wire::given::Given;
use smallvec::SmallVec;

use crate::fence::Fence;
use crate::keeping::{Asked, Keeping};
use crate::line::{Line, TooLarge};
use crate::logs::{LogItem, Logs};
use crate::store::Store;

/// Bytes of the names that go with a demand.
const LONGEST_NAMES: usize = 200;

const PIECE_BYTES: usize = 64 * 1024;
const _: () = assert!(PIECE_BYTES < MAX_FRAME);

#[derive(Default)]
struct PeerState {
    link: Option<Link>,
    /// Frames that found no room, or no channel yet, in order.
    waiting: VecDeque<Vec<u8>>,
    /// Pieces of a large frame that is coming in.
    assembling: Vec<u8>,
    unwoken: bool,
    dead: bool,
}

impl PeerState {
    /// Reads every frame that it has written into `inbox`.
    fn receive(&mut self, peer: ProcessId, inbox: &mut Inbox, unwoken: &mut Vec<ProcessId>) {
        let Some(link) = &mut self.link else { return };
        let assembling = &mut self.assembling;
        let drained = link.drain(|bytes| match bytes.split_first() {
            Some((&PIECE, piece)) => assembling.extend_from_slice(piece),
            Some((&LAST_PIECE, piece)) => {
                assembling.extend_from_slice(piece);
                inbox.push(peer, assembling);
                assembling.clear();
            }
            _ => inbox.push(peer, bytes),
        });
        if drained.is_err() {
            // No correct peer does this. Its end is near; do not read on.
            self.link = None;
        }
        self.flush(peer, unwoken);
    }

    /// Sends a frame, behind those that wait.
    fn send(&mut self, peer: ProcessId, frame: &[u8], unwoken: &mut Vec<ProcessId>) {
        let direct = match &mut self.link {
            Some(link) if self.waiting.is_empty() && frame.len() <= PIECE_BYTES => {
                link.push(&[frame]).is_ok()
            }
            _ => false,
        };
        if !direct {
            self.queue(frame);
            self.flush(peer, unwoken);
        }
        self.is_to_be_woken(peer, unwoken);
    }

    /// Lets a frame wait, in pieces if it is large.
    fn queue(&mut self, frame: &[u8]) {
        if frame.len() <= PIECE_BYTES {
            return self.waiting.push_back(frame.to_vec());
        }
        let mut pieces = frame.chunks(PIECE_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            let mark = if pieces.peek().is_some() { PIECE } else { LAST_PIECE };
            self.waiting.push_back([&[mark], piece].concat());
        }
    }

    /// Moves waiting frames into the ring, as far as there is room.
    fn flush(&mut self, peer: ProcessId, unwoken: &mut Vec<ProcessId>) {
        let Some(link) = &mut self.link else { return };
        let mut moved = false;
        while let Some(bytes) = self.waiting.front() {
            if link.push(&[bytes]).is_err() {
                break;
            }
            self.waiting.pop_front();
            moved = true;
        }
        if moved {
            self.is_to_be_woken(peer, unwoken);
        }
    }

    fn is_to_be_woken(&mut self, peer: ProcessId, unwoken: &mut Vec<ProcessId>) {
        if !std::mem::replace(&mut self.unwoken, true) {
            unwoken.push(peer);
        }
    }
}

/// Frames that came in, one after the other in a buffer that is used again.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    frames: Vec<(ProcessId, usize)>,
}

impl Inbox {
    fn push(&mut self, peer: ProcessId, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.frames.push((peer, self.bytes.len()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProcessId, &[u8])> {
        let mut start = 0;
        self.frames.iter().map(move |(peer, end)| {
            let frame = &self.bytes[start..*end];
            start = *end;
            (*peer, frame)
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
        // A rare flood should not be remembered for ever.
        self.bytes.shrink_to(1 << 20);
    }
}

/// The channels and the control connection of this process.
pub struct Io {
    node: Arc<Line>,
    /// Wakes the node service for what goes to other nodes.
    gateway: Option<Arc<OwnedFd>>,
    bells: Bells,
    bell: Bell,
    pub(crate) fence: Arc<Fence>,
    process: ProcessId,
    /// What this process says to itself: an actor that calls itself.
    pub(crate) loopback: Inbox,
    peers: HashMap<ProcessId, PeerState, RandomState>,
    /// Processes that are gone, as far as is known: nothing is sent to them, and nothing else is
    /// known of them.
    gone: ProcessSet,
    /// Which peers share a bit of our bell.
    by_bit: Vec<SmallVec<[ProcessId; 1]>>,
    unwoken: Vec<ProcessId>,
    scratch: Vec<u8>,
    shapes: Vec<Shape>,
    freed: Vec<u64>,
    /// Keys at other nodes.
    freed_elsewhere: HashMap<u32, Vec<u64>, RandomState>,
    pub(crate) store: Arc<Store>,
    /// Whether this process takes turns with those it calls.
    takes_turns: bool,
    /// Objects whose completion somebody asked to hear of.
    pub(crate) ready: Vec<ObjectKey>,
    /// Constructors whose actors' workers have not asked for them yet, or may ask
    /// again: whether that is so.
    constructors: HashMap<ActorId, (Vec<u8>, bool), RandomState>,
    /// What the node needs to know of actors that we create.
    pub(crate) placements: HashMap<ActorId, control::CreateActor, RandomState>,
    /// What is to be kept of those that may outlive us.
    pub(crate) keeping: Keeping,
    /// Actors of ours that have names.
    pub(crate) named: HashSet<ActorId, RandomState>,
    /// What happens to tasks here.
    pub events: EventLog,
    /// Where errors go that nobody has looked at.
    pub(crate) logs: Arc<Logs>,
}

impl Io {
    pub(crate) fn new(
        node: Arc<Line>,
        gateway: Option<Arc<OwnedFd>>,
        process: ProcessId,
        bells: Bells,
        bell: Bell,
        store: Arc<Store>,
        events: EventLog,
    ) -> Self {
        Self {
            fence: Arc::new(Fence::new(LeaseEnd::beside(&bells), node.clone())),
            node,
            gateway,
            bells,
            bell,
            process,
            store,
            events,
            loopback: Inbox::default(),
            peers: HashMap::default(),
            gone: ProcessSet::default(),
            by_bit: Vec::new(),
            unwoken: Vec::new(),
            scratch: Vec::new(),
            shapes: Vec::new(),
            freed: Vec::new(),
            freed_elsewhere: HashMap::default(),
            takes_turns: false,
            ready: Vec::new(),
            constructors: HashMap::default(),
            placements: HashMap::default(),
            keeping: Keeping::default(),
            named: HashSet::default(),
            logs: Arc::default(),
        }
    }

    /// Sends a message to the node service, without waiting for it.
    pub fn tell_node(&self, body: to_node::Body) {
        // What users can make large is bounded where it enters. What is not goes unsaid, and is
        // told to people: whoever waits for its answer has reason to look.
        if let Err(TooLarge(bytes)) = self.node.say(body) {
            self.logs.push(LogItem::Warning(format!(
                "a message of {bytes} bytes to the node service was not sent: it can have {}. \
                 This is a fault of oxiray; please report it.",
                packet::MAX_PACKET
            )));
        }
    }

    /// The connection to the node service.
    pub(crate) fn node(&self) -> &Line {
        &self.node
    }

    fn is_elsewhere(&self, peer: ProcessId) -> bool {
        peer.node() != self.process.node()
    }

    /// An actor is dead: nobody asks for its constructor, or finds it by its name.
    pub(crate) fn forget_actor(&mut self, actor: ActorId) {
        self.constructors.remove(&actor);
        self.placements.remove(&actor);
        self.keeping.forget(actor);
        self.named.remove(&actor);
    }

    /// Sends the constructor of an actor of ours to its worker. One that we have no more use for was
    /// started again by a control service that has not heard of its end.
    pub(crate) fn send_constructor(&mut self, peer: ProcessId, actor: ActorId) {
        let Some((task, again)) = self.constructors.remove(&actor) else {
            return self.kill_actor(actor, "all handles of the actor are gone");
        };
        self.send(peer, &Frame::Constructor(actor, &task));
        if again {
            self.constructors.insert(actor, (task, again));
        }
    }

    /// Has an actor made whose worker asks us for its constructor: arguments may be larger than a
    /// packet.
    pub(crate) fn ask_for_actor(&mut self, actor: ActorId, (message, bytes): Asked) {
        let again = message.max_restarts != 0;
        self.constructors.insert(actor, (bytes, again));
        self.tell_node(to_node::Body::CreateActor(message));
    }

    /// Remembers the next shape, in the order in which the owner numbers them.
    pub(crate) fn add_shape(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    /// What a lease of a shape gives to its worker, beside these devices.
    pub(crate) fn given_with(&self, shape: u32, devices: Vec<u32>) -> Given {
        let shape = self.shapes.get(shape as usize);
        let group = shape.and_then(Shape::place).map(|(group, _)| group);
        let strategy = shape.and_then(|shape| shape.strategy.as_ref());
        let threads = shape.map_or(1, |shape| threads_of(&shape.resources));
        let captures = strategy.is_some_and(|strategy| strategy.capture);
        Given { devices, threads, group, captures }
    }

    pub(crate) fn open(&mut self, opened: &ChannelOpened, file: OwnedFd) {
        let peer = ProcessId(opened.peer);
        // One that was thought to be gone is back: see `Owner::on_channel`.
        self.gone.remove(&peer);
        let Ok(mut bell) = self.bells.bell(opened.peer_bell) else {
            return;
        };
        if let Some(gateway) = self.gateway.as_ref().filter(|_| self.is_elsewhere(peer)) {
            // The node service is the other end, and sleeps among its sockets.
            bell = bell.woken_by(gateway.clone());
        }
        let Ok(link) = Link::map(file, opened.side as usize & 1, bell, opened.peer_index) else {
            return;
        };
        let bit = opened.index as usize % BELL_BITS;
        if self.by_bit.len() <= bit {
            self.by_bit.resize_with(bit + 1, SmallVec::new);
        }
        self.by_bit[bit].push(peer);
        let state = self.peers.entry(peer).or_default();
        state.link = Some(link);
        state.flush(peer, &mut self.unwoken);
        self.wake_peers();
    }

    /// Forgets a dead process. What it had written must have been drained.
    pub(crate) fn close(&mut self, peer: ProcessId) {
        self.by_bit.iter_mut().for_each(|peers| peers.retain(|other| *other != peer));
        // The link stays until the last claim was looked at; then only the number remains.
        self.gone.insert(peer);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.dead = true;
            state.waiting.clear();
        }
    }

    /// Nothing of a process that is gone is of use any more.
    pub(crate) fn forget_peer(&mut self, peer: ProcessId) {
        self.peers.remove(&peer);
    }

    /// Reads what those have written into `inbox` who may have set `bit` of our bell.
    pub(crate) fn receive_at(&mut self, bit: u32, inbox: &mut Inbox) {
        let Self { by_bit, peers, unwoken, .. } = self;
        for peer in by_bit.get(bit as usize).into_iter().flatten() {
            if let Some(state) = peers.get_mut(peer) {
                state.receive(*peer, inbox, unwoken);
            }
        }
    }

    /// Reads every frame that `peer` has written into `inbox`.
    pub(crate) fn receive(&mut self, peer: ProcessId, inbox: &mut Inbox) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.receive(peer, inbox, &mut self.unwoken);
        }
    }

    /// Whether a pushed task may still be taken; takes it.
    pub(crate) fn take(&self, peer: ProcessId, number: u64) -> bool {
        let link = self.peers.get(&peer).and_then(|state| state.link.as_ref());
        number == 0 || link.is_some_and(|link| link.take(number))
    }

    /// Says, or no longer says, where callees had best sleep.
    pub(crate) fn take_turns(&mut self, takes_turns: bool) {
        if self.takes_turns && !takes_turns {
            self.bell.set_processor(None);
        }
        self.takes_turns = takes_turns;
    }

    /// Where `peer` is, if it takes turns with those it calls.
    pub(crate) fn processor_of(&self, peer: ProcessId) -> Option<u32> {
        self.peers.get(&peer)?.link.as_ref()?.peer_bell().processor()
    }

    /// Sends the frame that `encode` writes; `encode` may give it a number of the channel.
    fn send_with(
        &mut self,
        peer: ProcessId,
        encode: impl FnOnce(Option<&mut Link>, &mut EventLog, &mut Vec<u8>),
    ) {
        self.scratch.clear();
        if peer == self.process {
            encode(None, &mut self.events, &mut self.scratch);
            return self.loopback.push(peer, &self.scratch);
        }
        let state = match self.peers.entry(peer) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if self.gone.contains(&peer) => return,
            Entry::Vacant(new) => {
                let connect = to_node::Body::Connect(control::Peer { process: peer.0 });
                let _ = self.node.say(connect);
                new.insert(PeerState::default())
            }
        };
        encode(state.link.as_mut(), &mut self.events, &mut self.scratch);
        if !state.dead {
            state.send(peer, &self.scratch, &mut self.unwoken);
        }
    }

    /// How many peers are to be woken, and extents to be given back.
    pub(crate) fn outgoing(&self) -> usize {
        self.unwoken.len() + self.freed.len() + self.freed_elsewhere.len()
    }

    /// Whether somebody is to be woken or told.
    pub(crate) fn has_unwoken(&self) -> bool {
        self.outgoing() > 0 || !self.loopback.is_empty()
    }

    /// Wakes every peer that was written to, and passes on what was freed.
    pub(crate) fn wake_peers(&mut self) {
        if !self.loopback.is_empty() {
            self.bell.ring();
        }
        if self.takes_turns && !self.unwoken.is_empty() {
            self.bell.set_processor(Some(cpu::current()));
        }
        while let Some(peer) = self.unwoken.pop() {
            let Some(state) = self.peers.get_mut(&peer) else {
                continue;
            };
            state.unwoken = false;
            if let Some(link) = &state.link {
                link.wake();
            }
        }
        if !self.freed.is_empty() {
            let keys = std::mem::take(&mut self.freed);
            for chunk in keys.chunks(4096) {
                self.tell_node(to_node::Body::Free(control::Stored { keys: chunk.to_vec() }));
            }
        }
        if self.freed_elsewhere.is_empty() {
            return;
        }
        for (node, keys) in std::mem::take(&mut self.freed_elsewhere) {
            for chunk in keys.chunks(4096) {
                let keys = chunk.to_vec();
                self.tell_node(to_node::Body::FreeAt(control::StoredAt { node, keys }));
            }
        }
    }
}

impl Outbox for Io {
    fn push_task(&mut self, peer: ProcessId, mut task: frame::Task<'_>, claimable: bool) -> u64 {
        self.send_with(peer, |link, events, bytes| {
            if let (true, Some(link)) = (claimable, link) {
                task.number = link.offer();
            }
            if task.recorded {
                events.sent(task.id, task.attempt, peer);
            }
            task.encode(bytes);
        });
        task.number
    }

    fn take_back(&mut self, peer: ProcessId, number: u64) -> bool {
        let link = self.peers.get(&peer).and_then(|state| state.link.as_ref());
        let taken = link.is_some_and(|link| link.take_back(number));
        if !taken && self.is_elsewhere(peer) {
            // It may be on its way, or wait there.
            self.send(peer, &Frame::TakeBack(number));
        }
        taken
    }

    fn send(&mut self, peer: ProcessId, frame: &Frame<'_>) {
        self.send_with(peer, |_, _, bytes| frame.encode(bytes));
    }

    fn set_demand(&mut self, shape: u32, requested_total: u64, tasks: &str) {
        self.tell_node(to_node::Body::SetDemand(control::SetDemand {
            shape_key: u64::from(shape),
            shape: Some(self.shapes[shape as usize].clone()),
            requested_total,
            tasks: tasks[..tasks.floor_char_boundary(LONGEST_NAMES)].to_owned(),
        }));
    }

    fn return_lease(&mut self, lease: u64) {
        self.tell_node(to_node::Body::ReturnLease(control::Lease { lease }));
    }

    fn near_shape(&mut self, shape: u32, node: u32) {
        let near = Shape { near: node, ..self.shapes[shape as usize].clone() };
        self.shapes.push(near);
    }

    fn take_stored(&mut self, origin: Origin) {
        let Origin { node, key } = origin;
        match node == self.process.node() {
            true => self.store.take_up(key),
            false => {
                let keys = vec![key.0];
                self.tell_node(to_node::Body::OwnAt(control::StoredAt { node, keys }));
            }
        }
    }

    fn free_stored(&mut self, origin: Origin) {
        let Origin { node, key } = origin;
        if node != self.process.node() {
            self.freed_elsewhere.entry(node).or_default().push(key.0);
        } else if self.store.free(key) {
            self.freed.push(key.0);
        }
    }

    fn task_changed(&mut self, attempt: Attempt, change: Change<'_>) {
        let Attempt { task, number } = attempt;
        match change {
            Change::Ready => self.events.ready(task, number),
            Change::Retried { waits } => self.events.retried(task, number, waits),
            Change::Answered(peer) => self.events.answered(task, number, peer),
            Change::Failed { code, message } => {
                self.events.failed(task, number, code, message);
            }
        }
    }

    fn unhandled(&mut self, failure: Arc<Failure>) {
        self.logs.push(LogItem::Unhandled(failure));
    }

    fn object_ready(&mut self, key: ObjectKey) {
        self.ready.push(key);
    }

    fn create_actor(&mut self, actor: ActorId, constructor: frame::Task<'_>) {
        let Some(message) = self.placements.remove(&actor) else {
            return;
        };
        let has_large =
            constructor.values.iter().any(|v| matches!(v.body, frame::Body::Stored { .. }));
        let mut bytes = Vec::new();
        Frame::Task(constructor).encode(&mut bytes);
        if let Some(asked) = self.keep_at_once(actor, (message, bytes), has_large) {
            self.ask_for_actor(actor, asked);
        }
    }

    fn kill_actor(&mut self, actor: ActorId, reason: &str) {
        self.placements.remove(&actor);
        self.keeping.forget(actor);
        self.constructors.remove(&actor);
        self.named.remove(&actor);
        let (actor, reason) = (actor.0.to_vec(), reason.to_owned());
        let kill = control::Actor { actor, no_restart: true, reason };
        self.tell_node(to_node::Body::KillActor(kill));
    }

    fn release_name(&mut self, actor: ActorId) {
        if self.named.remove(&actor) {
            let actor = control::Actor { actor: actor.0.to_vec(), ..control::Actor::default() };
            self.tell_node(to_node::Body::ReleaseName(actor));
        }
    }
}
