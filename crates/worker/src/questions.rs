//! Questions to the node service, whose answers the asking thread sleeps for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use oxiray_ids::{Origin, ProcessId, StoreKey};
use oxiray_store::Miss;
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{GroupInfo, Kv};
use oxiray_wire::control::{
    ActorNames, Allocate, ClusterView, CreateGroup, Fetch, FindGroups, Groups, NamedActor,
    PullObject, Query, Refused, Slab, Topic, Withdraw, to_node,
};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::runtime::Runtime;
use crate::store::{Look, Room};

/// What the node service answered.
pub(crate) enum Reply {
    Room(Result<Room, Refused>),
    Fetched(Result<(), Refused>),
    Slab,
    View(Box<ClusterView>),
    Named(NamedActor),
    Names(Vec<String>),
    Copied(Result<StoreKey, Refused>),
    Kv(Kv),
    /// Why there is no worker.
    Reason(String),
    Groups(Groups),
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
    TimedOut,
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
    /// The time was up.
    TimedOut,
}

impl From<Unanswered> for Unseen {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Ended => Unseen::Ended,
            Unanswered::Interrupted => Unseen::Interrupted,
            Unanswered::TimedOut => Unseen::TimedOut,
        }
    }
}

/// Smaller objects are not in the store: they travel inside messages.
pub const SMALLEST_STORED: u64 = 100 << 10;

/// How often a caller that waits for the node service looks at signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Replies {
    /// Takes in an answer. One that nobody waits for any more is dropped; room
    /// that is in it then goes back.
    pub(crate) fn put(&self, request: u64, reply: Reply) {
        let mut arrived = self.arrived.lock();
        if !arrived.abandoned.remove(&request) {
            arrived.replies.insert(request, reply);
            self.changed.notify_all();
        }
    }

    /// Takes in a part of a view; the last one is the answer.
    pub(crate) fn add_view(&self, part: ClusterView) {
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

    pub(crate) fn close(&self) {
        self.arrived.lock().closed = true;
        self.changed.notify_all();
    }

    fn take(
        &self,
        request: u64,
        deadline: Option<u64>,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Reply, Unanswered> {
        let mut arrived = self.arrived.lock();
        let mut looked = Instant::now();
        let why = loop {
            if let Some(reply) = arrived.replies.remove(&request) {
                return Ok(reply);
            }
            if arrived.closed {
                return Err(Unanswered::Ended);
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(monotonic_ns()));
            if left == Some(0) {
                break Unanswered::TimedOut;
            }
            let left = left.map_or(LOOK_EVERY, |left| LOOK_EVERY.min(Duration::from_nanos(left)));
            self.changed.wait_for(&mut arrived, left);
            // By the clock: others' replies wake us, too.
            if looked.elapsed() < LOOK_EVERY {
                continue;
            }
            looked = Instant::now();
            if MutexGuard::unlocked(&mut arrived, &mut interrupted) {
                break Unanswered::Interrupted;
            }
        };
        // It may have come while nobody held the lock.
        let late = arrived.replies.remove(&request);
        if late.is_none() {
            arrived.abandoned.insert(request);
        }
        drop(arrived);
        drop(late); // room in it goes back
        Err(why)
    }
}

impl Runtime {
    /// Asks the node service, and sleeps until it has answered.
    fn ask(
        &self,
        question: impl FnOnce(u64) -> to_node::Body,
        interrupted: impl FnMut() -> bool,
    ) -> Result<Reply, Unanswered> {
        self.ask_until(None, question, interrupted)
    }

    /// Likewise, at most until `deadline`, in nanoseconds of the monotonic clock.
    fn ask_until(
        &self,
        deadline: Option<u64>,
        question: impl FnOnce(u64) -> to_node::Body,
        interrupted: impl FnMut() -> bool,
    ) -> Result<Reply, Unanswered> {
        let request = self.replies.next.fetch_add(1, Ordering::Relaxed) + 1;
        {
            let state = &mut *self.lock();
            state.io.tell_node(question(request));
        }
        let reply = self.replies.take(request, deadline, interrupted);
        if let Err(Unanswered::Interrupted | Unanswered::TimedOut) = reply {
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
                Err(Unanswered::Interrupted) => return Err(NoRoom::Interrupted),
                Err(_) => return Err(NoRoom::Ended),
            }
            if let Some(room) = self.store.carve(size, owner) {
                return Ok(room);
            }
        }
        let owner = owner.0;
        let question = |request| to_node::Body::Allocate(Allocate { request, size, owner });
        match self.ask(question, interrupted) {
            Ok(Reply::Room(Ok(room))) if room.len() >= size => Ok(room),
            Ok(Reply::Room(Err(refused))) => Err(NoRoom::Refused(refused)),
            Err(Unanswered::Interrupted) => Err(NoRoom::Interrupted),
            Ok(_) | Err(_) => Err(NoRoom::Ended),
        }
    }

    /// Looks at an object, wherever it is: brings it from another node if it is there. Waits at
    /// most until `deadline`, in nanoseconds of the monotonic clock.
    pub fn look_at(
        &self,
        origin: Origin,
        len: u64,
        deadline: Option<u64>,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Look, Unseen> {
        if origin.node == self.store.node() {
            return self.look_here(origin.key, deadline, interrupted);
        }
        loop {
            if let Some(Ok(look)) = self.store.copy_of(origin).map(|key| self.store.look(key)) {
                return Ok(look);
            }
            let Origin { node, key } = origin;
            let wanted = PullObject { node, key: key.0, len, ..PullObject::default() };
            let question = |request| to_node::Body::Pull(PullObject { request, ..wanted });
            match self.ask_until(deadline, question, &mut interrupted)? {
                Reply::Copied(Ok(key)) => self.store.copied(origin, key),
                Reply::Copied(Err(refused)) => return Err(Unseen::Refused(refused)),
                _ => return Err(Unseen::Ended),
            }
        }
    }

    /// Looks at an object of this node's store; brings it back from disk if it is there.
    fn look_here(
        &self,
        key: StoreKey,
        deadline: Option<u64>,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Look, Unseen> {
        loop {
            match self.store.look(key) {
                Ok(look) => return Ok(look),
                Err(Miss::Gone) => return Err(Unseen::Gone),
                Err(Miss::Away) => {}
            }
            let question = |request| to_node::Body::Fetch(Fetch { request, key: key.0 });
            match self.ask_until(deadline, question, &mut interrupted)? {
                Reply::Fetched(Ok(())) => {}
                Reply::Fetched(Err(refused)) => return Err(Unseen::Refused(refused)),
                _ => return Err(Unseen::Ended),
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

    /// Makes a placement group that has a name: whoever has that then. `create` is called under
    /// the lock of the state.
    pub(crate) fn ask_for_group(
        &self,
        create: impl FnOnce() -> CreateGroup,
        interrupted: impl FnMut() -> bool,
    ) -> Option<Groups> {
        let question = |request| to_node::Body::CreateGroup(CreateGroup { request, ..create() });
        match self.ask(question, interrupted) {
            Ok(Reply::Groups(found)) => Some(found),
            _ => None,
        }
    }

    /// Placement groups: of an id, of a name, or all; `None` if the session ended or `interrupted`
    /// said so.
    pub fn find_groups(
        &self,
        wanted: &FindGroups,
        mut interrupted: impl FnMut() -> bool,
    ) -> Option<Vec<GroupInfo>> {
        let mut all = Vec::new();
        let mut after = Vec::new();
        loop {
            let wanted = FindGroups { after, ..wanted.clone() };
            let question = |request| to_node::Body::FindGroups(FindGroups { request, ..wanted });
            let Ok(Reply::Groups(found)) = self.ask(question, &mut interrupted) else {
                return None;
            };
            all.extend(found.groups);
            if found.next.is_empty() {
                return Some(all);
            }
            after = found.next;
        }
    }

    /// Why the node has no worker of a shape for this process, if it says so soon.
    pub fn why_no_worker(&self, shape: u32) -> Option<String> {
        let topic = Topic::Worker as i32;
        let about = shape.to_string();
        // One look at the clock is patience enough: the node answers from what it knows.
        match self.ask(
            |request| to_node::Body::Query(Query { request, topic, about, ..Query::default() }),
            || true,
        ) {
            Ok(Reply::Reason(text)) => Some(text),
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
