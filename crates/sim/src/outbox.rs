//! What a process's owner wants done, as `crates/worker/src/io.rs` does it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use oxiray_ids::{ActorId, Origin, ProcessId};
use oxiray_owner::{Attempt, Change, Failure, ObjectKey, Outbox};
use oxiray_store::Table;
use oxiray_wire::control::{self, CreateActor, Shape, to_node};
use oxiray_wire::frame::{self, Frame};

use crate::program::KINDS;
use crate::rings::{Rings, Way, encoded};
use crate::shapes::shape_of_kind;

/// What a process knows of another.
#[derive(Debug)]
pub(crate) enum Peer {
    /// Asked for; these wait.
    Asked(VecDeque<Vec<u8>>),
    Open,
    Dead,
}

/// A shape of tasks, and since when leases of it are waited for.
pub(crate) struct Wanted {
    pub(crate) shape: Shape,
    requested: u64,
    granted: u64,
    pub(crate) since: Option<u64>,
}

/// The channels and the connection with the node service of a process.
pub(crate) struct Io {
    pub(crate) process: ProcessId,
    pub(crate) now: u64,
    pub(crate) table: Table,
    pub(crate) peers: BTreeMap<ProcessId, Peer>,
    pub(crate) to_node: Vec<to_node::Body>,
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) constructors: BTreeMap<ActorId, (Vec<u8>, bool)>,
    pub(crate) placements: BTreeMap<ActorId, CreateActor>,
    pub(crate) named: BTreeSet<ActorId>,
    pub(crate) retries: u64,
}

impl Io {
    pub(crate) fn new(process: ProcessId, table: Table) -> Self {
        let mut io = Self {
            process,
            now: 0,
            table,
            peers: BTreeMap::new(),
            to_node: Vec::new(),
            wanted: Vec::new(),
            constructors: BTreeMap::new(),
            placements: BTreeMap::new(),
            named: BTreeSet::new(),
            retries: 0,
        };
        (0..KINDS).for_each(|kind| io.add_shape(shape_of_kind(kind)));
        // What a process says to itself needs nobody.
        io.peers.insert(process, Peer::Open);
        io
    }

    fn add_shape(&mut self, shape: Shape) {
        self.wanted.push(Wanted { shape, requested: 0, granted: 0, since: None });
    }

    pub(crate) fn on_granted(&mut self, shape: u64) {
        let now = self.now;
        let wanted = &mut self.wanted[shape as usize];
        wanted.granted += 1;
        wanted.since = (wanted.requested > wanted.granted).then_some(now);
    }

    pub(crate) fn tell_node(&mut self, body: to_node::Body) {
        self.to_node.push(body);
    }

    pub(crate) fn way_to(&self, peer: ProcessId) -> Way {
        Way { node: self.process.node(), from: self.process, to: peer }
    }

    pub(crate) fn way_from(&self, peer: ProcessId) -> Way {
        Way { node: self.process.node(), from: peer, to: self.process }
    }
}

/// A process's outbox, while something happens to it.
pub(crate) struct Side<'a> {
    pub(crate) io: &'a mut Io,
    pub(crate) rings: &'a mut Rings,
}

impl Side<'_> {
    /// A channel is there: what waited for it goes.
    pub(crate) fn open(&mut self, peer: ProcessId) {
        let way = self.io.way_to(peer);
        match self.io.peers.get_mut(&peer) {
            Some(Peer::Open) => {}
            known => {
                if let Some(Peer::Asked(waiting)) = known {
                    waiting.drain(..).for_each(|frame| self.rings.push(way, frame));
                }
                self.io.peers.insert(peer, Peer::Open);
            }
        }
    }

    fn push(&mut self, peer: ProcessId, frame: Vec<u8>) {
        let way = self.io.way_to(peer);
        match self.io.peers.get_mut(&peer) {
            Some(Peer::Open) => self.rings.push(way, frame),
            Some(Peer::Asked(waiting)) => waiting.push_back(frame),
            Some(Peer::Dead) => {}
            None => {
                self.io.peers.insert(peer, Peer::Asked([frame].into()));
                self.io.tell_node(to_node::Body::Connect(control::Peer { process: peer.0 }));
            }
        }
    }

    pub(crate) fn send_constructor(&mut self, peer: ProcessId, actor: ActorId) {
        let Some((task, again)) = self.io.constructors.remove(&actor) else {
            return self.kill_actor(actor, "all handles of the actor are gone");
        };
        self.send(peer, &Frame::Constructor(actor, &task));
        if again {
            self.io.constructors.insert(actor, (task, again));
        }
    }
}

impl Outbox for Side<'_> {
    fn push_task(&mut self, peer: ProcessId, mut task: frame::Task<'_>, claimable: bool) -> u64 {
        if claimable && matches!(self.io.peers.get(&peer), Some(Peer::Open)) {
            task.number = self.rings.offer(self.io.way_to(peer));
        }
        let number = task.number;
        self.push(peer, encoded(&Frame::Task(task)));
        number
    }

    fn take_back(&mut self, peer: ProcessId, number: u64) -> bool {
        let taken = self.rings.claim(self.io.way_to(peer), number);
        if !taken && peer.node() != self.io.process.node() {
            self.send(peer, &Frame::TakeBack(number));
        }
        taken
    }

    fn send(&mut self, peer: ProcessId, frame: &Frame<'_>) {
        self.push(peer, encoded(frame));
    }

    fn set_demand(&mut self, shape: u32, requested_total: u64, tasks: &str) {
        let now = self.io.now;
        let wanted = &mut self.io.wanted[shape as usize];
        wanted.requested = requested_total;
        match requested_total > wanted.granted {
            true => _ = wanted.since.get_or_insert(now),
            false => wanted.since = None,
        }
        let demand = control::SetDemand {
            shape_key: u64::from(shape),
            shape: Some(wanted.shape.clone()),
            requested_total,
            tasks: tasks.to_owned(),
        };
        self.io.tell_node(to_node::Body::SetDemand(demand));
    }

    fn return_lease(&mut self, lease: u64) {
        self.io.tell_node(to_node::Body::ReturnLease(control::Lease { lease }));
    }

    fn near_shape(&mut self, shape: u32, node: u32) {
        let near = Shape { near: node, ..self.io.wanted[shape as usize].shape.clone() };
        self.io.add_shape(near);
    }

    fn take_stored(&mut self, origin: Origin) {
        let Origin { node, key } = origin;
        match node == self.io.process.node() {
            true => _ = self.io.table.own(key),
            false => {
                let at = control::StoredAt { node, keys: vec![key.0] };
                self.io.tell_node(to_node::Body::OwnAt(at));
            }
        }
    }

    fn free_stored(&mut self, origin: Origin) {
        let Origin { node, key } = origin;
        if node != self.io.process.node() {
            let at = control::StoredAt { node, keys: vec![key.0] };
            self.io.tell_node(to_node::Body::FreeAt(at));
        } else if self.io.table.doom(key).is_some() {
            self.io.tell_node(to_node::Body::Free(control::Stored { keys: vec![key.0] }));
        }
    }

    fn task_changed(&mut self, _attempt: Attempt, change: Change<'_>) {
        self.io.retries += u64::from(matches!(change, Change::Retried { .. }));
    }

    fn object_ready(&mut self, _key: ObjectKey) {}

    fn unhandled(&mut self, _failure: Arc<Failure>) {}

    fn create_actor(&mut self, actor: ActorId, constructor: frame::Task<'_>) {
        let Some(message) = self.io.placements.remove(&actor) else { return };
        let again = message.max_restarts != 0;
        self.io.constructors.insert(actor, (encoded(&Frame::Task(constructor)), again));
        self.io.tell_node(to_node::Body::CreateActor(message));
    }

    fn kill_actor(&mut self, actor: ActorId, reason: &str) {
        self.io.placements.remove(&actor);
        self.io.constructors.remove(&actor);
        self.io.named.remove(&actor);
        let (actor, reason) = (actor.0.to_vec(), reason.to_owned());
        let kill = control::Actor { actor, no_restart: true, reason };
        self.io.tell_node(to_node::Body::KillActor(kill));
    }

    fn release_name(&mut self, actor: ActorId) {
        if self.io.named.remove(&actor) {
            let actor = control::Actor { actor: actor.0.to_vec(), ..control::Actor::default() };
            self.io.tell_node(to_node::Body::ReleaseName(actor));
        }
    }
}
