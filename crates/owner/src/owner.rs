//! The state that objects, tasks, leases and actors share.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use oxiray_ids::{ActorId, ObjectId, Origin, ProcessId, ProcessSet, TaskId};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{self, Frame};
use slab::Slab;

use crate::actor::Actor;
use crate::change::{Attempt, Change};
use crate::lease::{Duration, Lease, Shape};
use crate::lineage::Lineage;
use crate::memory::MemoryRetries;
use crate::object::{Failure, Object, ObjectKey};
use crate::stream::Stream;
use crate::task::{Place, Target, Task, TaskKey};

/// What the owner wants done. Calls are made in the order in which they must take effect.
pub trait Outbox {
    /// Sends a task; if `claimable`, under a number that [`Self::take_back`] understands.
    fn push_task(&mut self, peer: ProcessId, task: frame::Task<'_>, claimable: bool) -> u64;
    /// Takes a pushed task back; `false`: its worker has begun it, or is at another
    /// node and was asked: [`Owner::on_taken_back`] follows if it has not.
    fn take_back(&mut self, peer: ProcessId, number: u64) -> bool;
    /// Sends anything else to another process. To one that is gone: nothing.
    fn send(&mut self, peer: ProcessId, frame: &Frame<'_>);
    /// Tells the node how many leases of a shape have been asked for in all, and the names of the
    /// tasks that wait for them, the first ones.
    fn set_demand(&mut self, shape: u32, requested_total: u64, tasks: &str);
    /// Gives a lease back to the node.
    fn return_lease(&mut self, lease: u64);
    /// The number of a shape for tasks whose large arguments are at `node`: the
    /// next one that [`Owner::shape`] gives.
    fn near_shape(&mut self, shape: u32, node: u32);
    /// An object of the store that another process made belongs to us from now on.
    fn take_stored(&mut self, origin: Origin);
    /// An object of the store that belongs to us is not needed any more.
    fn free_stored(&mut self, origin: Origin);
    /// Something happened to a task that is recorded.
    fn task_changed(&mut self, attempt: Attempt, change: Change<'_>);
    /// A watched object is complete.
    fn object_ready(&mut self, key: ObjectKey);
    /// An error of a task of ours went with its last reference, and nobody has looked at it.
    fn unhandled(&mut self, failure: Arc<Failure>);
    /// Asks the control service to make an actor.
    fn create_actor(&mut self, actor: ActorId, constructor: frame::Task<'_>);
    /// Asks the control service to end an actor, for this reason.
    fn kill_actor(&mut self, actor: ActorId, reason: &str);
    /// An actor of ours is about to end: nobody is to find it by name.
    fn release_name(&mut self, actor: ActorId);
}

/// By process, the token of a task, and which item that it yielded; 0: none.
pub(crate) type Held<T> = HashMap<(ProcessId, u64, u32), T, FixedState>;

/// Everything that one process owns, borrows and has under way.
pub struct Owner {
    pub(crate) process: ProcessId,
    pub(crate) now: u64,
    pub(crate) objects: Slab<Object>,
    pub(crate) by_id: HashMap<ObjectId, ObjectKey, FixedState>,
    pub(crate) stamp: u64,
    pub(crate) failures: u64,
    pub(crate) tasks: Slab<Task>,
    pub(crate) attempts: u32,
    /// Tasks whose arguments could not be read where they are said to be.
    pub(crate) aside: Vec<TaskKey>,
    pub(crate) alarm: bool,
    pub(crate) memory_retries: MemoryRetries,
    /// What tasks yield, as far as somebody reads it or it is still made.
    pub(crate) streams: HashMap<TaskId, Stream, FixedState>,
    /// How objects were made.
    pub(crate) lineage: Lineage,
    pub(crate) functions: Vec<Duration>,
    pub(crate) shapes: Vec<Shape>,
    /// Some shape's is not 0.
    pub(crate) has_priorities: bool,
    /// Shapes for tasks whose large arguments are elsewhere, by shape and node.
    pub(crate) near_shapes: HashMap<(u32, u32), u32, FixedState>,
    pub(crate) leases: Slab<Lease>,
    pub(crate) actors: HashMap<ActorId, Actor, FixedState>,
    /// Actors that we made and that do not end with their last handle.
    pub(crate) detached: HashSet<ActorId, FixedState>,
    /// References that we hold for a worker until it has registered with their owners.
    pub(crate) held_for_args: Held<Vec<ObjectKey>>,
    /// References that we returned, until the submitter has registered with their owners.
    pub(crate) handed_over: Held<Vec<ObjectKey>>,
    /// Registrations under way for arguments that we retained.
    pub(crate) settling_args: Held<u32>,
    /// Registrations under way for returns that we received.
    pub(crate) settling_returns: Held<u32>,
    /// References that were returned to the dead, until the next tick.
    pub(crate) orphans: Vec<ObjectKey>,
    /// Processes that are gone, or cannot be reached: see [`Self::on_channel`].
    pub(crate) dead: ProcessSet,
    /// Tasks one of whose arguments became complete, while `waking` sees to them.
    pub(crate) woken: VecDeque<TaskKey>,
    pub(crate) waking: bool,
}

impl Owner {
    /// An empty state for process `process`.
    pub fn new(process: ProcessId) -> Self {
        Self {
            process,
            now: 0,
            objects: Slab::new(),
            by_id: HashMap::default(),
            stamp: 0,
            failures: 0,
            tasks: Slab::new(),
            attempts: 0,
            aside: Vec::new(),
            alarm: false,
            memory_retries: MemoryRetries::default(),
            streams: HashMap::default(),
            lineage: Lineage::default(),
            functions: Vec::new(),
            shapes: Vec::new(),
            has_priorities: false,
            near_shapes: HashMap::default(),
            leases: Slab::new(),
            actors: HashMap::default(),
            detached: HashSet::default(),
            held_for_args: HashMap::default(),
            handed_over: HashMap::default(),
            settling_args: HashMap::default(),
            settling_returns: HashMap::default(),
            orphans: Vec::new(),
            dead: ProcessSet::default(),
            woken: VecDeque::new(),
            waking: false,
        }
    }

    /// The time, in nanoseconds, for whatever is called next.
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// A process is gone, and everything it had sent has been read.
    pub fn on_process_died(
        &mut self,
        peer: ProcessId,
        memory: MemoryEnd,
        message: &str,
        out: &mut impl Outbox,
    ) {
        self.dead.insert(peer);
        let failure = Self::crash(memory, message);
        self.end_leases_at(peer, memory, &failure, out);
        self.forget_borrower(peer, out);
    }

    /// There is a channel with a process. If that was thought to be gone, because the connection
    /// of its node and ours broke, it is back, as one that nothing is known of.
    pub fn on_channel(&mut self, peer: ProcessId) {
        if self.dead.contains(&peer) {
            self.dead.remove(&peer);
            self.lose_sight_of_actors(peer);
        }
    }

    /// Whether no reference is on its way from us to a process that has yet to
    /// tell the reference's owner.
    pub fn owes_nothing(&self) -> bool {
        self.handed_over.is_empty() && self.held_for_args.is_empty()
    }

    /// Whether others may count on this process to live on: the names of objects that it owns have
    /// left it, it passes references on, or what it submitted is under way.
    pub fn is_counted_on(&self) -> bool {
        let is_out = |object: &Object| object.owner.is_none() && object.named && object.is_held();
        !self.owes_nothing()
            || !self.tasks.is_empty()
            || self.by_id.values().any(|key| is_out(&self.objects[key.index()]))
    }

    /// How many objects and tasks there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.objects.len(), self.tasks.len())
    }

    /// How many tasks and calls are not done. Looks at every actor.
    pub fn pending(&self) -> usize {
        // The constructor of an actor that may be started again is kept as long as that lives.
        let kept = self.actors.values().filter(|actor| actor.constructed).count();
        self.tasks.len().saturating_sub(kept)
    }

    /// Whether anything is under way that an answer may come for.
    pub fn has_leases(&self) -> bool {
        !self.leases.is_empty()
    }

    /// How often a task is told of an argument of its own.
    fn listed(&self, key: TaskKey) -> usize {
        let mut arguments = self.tasks[key.0 as usize].spec.refs.clone();
        arguments.sort_unstable();
        arguments.dedup();
        let dependents =
            arguments.iter().map(|argument| &self.objects[argument.index()].dependents);
        dependents.flatten().filter(|other| **other == key).count()
    }

    /// Checks the invariants of this crate; for tests and debug builds.
    pub fn validate(&self) {
        let mut seen = vec![0u32; self.tasks.capacity().max(1)];
        for shape in &self.shapes {
            for key in &shape.ready {
                assert_eq!(self.tasks[key.0 as usize].place, Place::Ready, "O-2");
                seen[key.0 as usize] += 1;
            }
            for index in &shape.leases {
                assert!(self.leases.contains(*index), "O-4: a shape lists a lease that is gone");
            }
        }
        for (index, lease) in &self.leases {
            assert!(self.shapes[lease.shape as usize].leases.contains(&index), "O-4");
            for flight in &lease.in_flight {
                assert_eq!(self.tasks[flight.task.0 as usize].place, Place::Leased(index), "O-4");
                seen[flight.task.0 as usize] += 1;
            }
        }
        for actor in self.actors.values() {
            for key in &actor.queue {
                let place = self.tasks[key.0 as usize].place;
                let is_here = matches!(place, Place::Ready | Place::Waiting(_) | Place::Aside(_));
                assert!(is_here, "O-2");
                seen[key.0 as usize] += 1;
            }
            for key in &actor.at_actor {
                assert_eq!(self.tasks[key.0 as usize].place, Place::AtActor, "O-2");
                seen[key.0 as usize] += 1;
            }
        }
        for key in &self.aside {
            let task = &self.tasks[key.0 as usize];
            assert!(matches!(task.place, Place::Aside(_)), "O-2");
            seen[key.0 as usize] += u32::from(matches!(task.spec.target, Target::Function { .. }));
        }
        for (index, task) in &self.tasks {
            let missing = task.spec.refs.iter().filter(|key| self.content(**key).is_none()).count();
            match task.place {
                Place::Waiting(counted) => {
                    assert!(counted > 0 && seen[index] <= 1, "O-2");
                    assert_eq!(counted as usize, missing, "O-7");
                    assert_eq!(counted as usize, self.listed(TaskKey(index as u32)), "O-7");
                }
                Place::Ready => assert_eq!((seen[index], missing), (1, 0), "O-2, O-7"),
                Place::AtActor => assert!(seen[index] <= 1, "O-2"),
                Place::Leased(_) | Place::Aside(_) => assert_eq!(seen[index], 1, "O-2"),
            }
        }
        for (index, object) in &self.objects {
            let taken = object.rare.as_ref().is_some_and(|rare| rare.recipes > 0);
            assert!(object.is_held() || taken, "O-3: object {index} is held by nothing");
            if object.named {
                assert_eq!(self.by_id.get(&object.id), Some(&ObjectKey(index as u32)));
            }
        }
        self.validate_streams();
        self.lineage.validate(self);
    }
}
