//! Whose turn it is. Processes, and the queue of actors, take turns, so that
//! the large backlog of one does not starve another.
//!
//! Small shapes would take every piece that comes free before there is enough
//! for a large one. So what has waited for long becomes the *elder*: for a
//! while nothing is given out that it needs. Only for a while, because what
//! it waits for may be held by a very long task, and then others had better run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_scheduler::{Allocation, Wanted};
use oxiray_wire::control::Shape;
use smallvec::SmallVec;

use crate::environments::{EnvironmentId, Environments};
use crate::event::Outbox;
use crate::node::Node;
use crate::pool::{Lacking, WorkerFor};

/// Not served for so long, a shape becomes the elder,
const ELDER_AFTER: u64 = 200_000_000;
/// for so long at a time,
const ELDER_FOR: u64 = 1_000_000_000;
/// once in so many times that.
const ELDER_PERIOD: u64 = 4;

/// A shape's place in [`Schedule::shapes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ShapeId(pub(crate) usize);

/// Who takes turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// All actors that wait for a place, whoever made them.
    Actors,
    /// The demands of one process.
    Process(ProcessId),
}

/// A shape that somebody asked for; a session sees few.
#[derive(Debug)]
pub(crate) struct KnownShape {
    pub(crate) shape: Shape,
    /// What its workers must be forked from.
    pub(crate) environment: EnvironmentId,
    /// The pass in which it did not fit. Within a pass resources only shrink,
    /// so it need not be tried again.
    pub(crate) failed_in: u64,
    /// Since when somebody waits for it without anyone being served.
    pub(crate) waiting_since: Option<u64>,
    pub(crate) warned: bool,
    /// What it asks of nodes.
    pub(crate) wanted: Wanted,
    /// What was known of the cluster when no other node would do.
    pub(crate) nothing_elsewhere_at: Option<u64>,
}

impl KnownShape {
    fn new(shape: Shape, environments: &mut Environments) -> Self {
        Self {
            wanted: Wanted::of(&shape),
            environment: environments.intern(&shape.environment),
            shape,
            failed_in: 0,
            waiting_since: None,
            warned: false,
            nothing_elsewhere_at: None,
        }
    }
}

/// Who waits for what.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) turns: VecDeque<Turn>,
    pub(crate) shapes: Vec<KnownShape>,
    /// Of those, what nobody asks for any more.
    vacant: Vec<ShapeId>,
    /// Actors without a worker, by shape and then in the order they came.
    pub(crate) waiting_actors: BTreeMap<(ShapeId, u64), ActorId>,
    pub(crate) last_waiting: u64,
    pub(crate) pass: u64,
    /// See the module documentation; as the last pass left it.
    pub(crate) elder: Option<ShapeId>,
    pub(crate) passed_at: u64,
    pub(crate) pressed: bool,
    pub(crate) reviewed_at: Option<u64>,
    /// What a placement group waits for here.
    pub(crate) wanted_room: Option<WantedRoom>,
}

/// Room that is to be made for a placement group: others are held back as by an elder.
#[derive(Debug)]
pub(crate) struct WantedRoom {
    pub(crate) shape: Shape,
    pub(crate) since: u64,
    /// Unless it is said again.
    pub(crate) until: u64,
}

/// Whether what has waited for so long is the elder now.
fn is_elder_after(waited: u64) -> bool {
    waited >= ELDER_AFTER && ((waited - ELDER_AFTER) / ELDER_FOR).is_multiple_of(ELDER_PERIOD)
}

impl Schedule {
    /// The id of a shape; equal shapes share one.
    pub(crate) fn intern(&mut self, shape: Shape, environments: &mut Environments) -> ShapeId {
        if let Some(index) = self.shapes.iter().position(|known| known.shape == shape) {
            return ShapeId(index);
        }
        let known = KnownShape::new(shape, environments);
        if let Some(id) = self.vacant.pop() {
            self.shapes[id.0] = known;
            return id;
        }
        self.shapes.push(known);
        ShapeId(self.shapes.len() - 1)
    }

    /// A shape that nobody will ask for again makes room for another.
    pub(crate) fn forget(&mut self, id: ShapeId, environments: &mut Environments) {
        // Of no node: nobody asks for the like.
        let nobodys = Shape { near: u32::MAX, ..Shape::default() };
        self.shapes[id.0] = KnownShape::new(nobodys, environments);
        self.vacant.push(id);
    }

    /// The shapes that actors wait for, without a look at each of the actors.
    pub(crate) fn shapes_of_actors(&self) -> impl Iterator<Item = ShapeId> {
        let first_from = |shape: ShapeId| {
            let next = self.waiting_actors.range((shape, 0)..).next();
            next.map(|(&(shape, _), _)| shape)
        };
        std::iter::successors(first_from(ShapeId(0)), move |last| first_from(ShapeId(last.0 + 1)))
    }

    /// The first waiting actor of each shape beyond those in `skip`, oldest first.
    fn heads(&self, skip: &[Tentative]) -> Vec<(u64, ShapeId)> {
        let mut heads = Vec::new();
        for shape in self.shapes_of_actors() {
            let skipped = skip.iter().filter(|(_, of)| *of == Claim::Actor(shape)).count();
            let mut of_shape = self.waiting_actors.range((shape, 0)..=(shape, u64::MAX));
            if let Some((&(_, order), _)) = of_shape.nth(skipped) {
                heads.push((order, shape));
            }
        }
        heads.sort_unstable();
        heads
    }
}

/// What a tentative allocation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    Actor(ShapeId),
    Demand(ProcessId, u64),
}

/// Resources set aside within one pass for somebody who lacks only a worker.
type Tentative = (Allocation, Claim);

/// How a turn went.
enum Outcome {
    /// Somebody got something, or would with a worker.
    Served,
    /// Nothing fits.
    Unserved,
    /// Nobody waits: no more turns.
    Gone,
}

impl Node {
    /// The id of a shape; equal shapes share one.
    pub(crate) fn intern(&mut self, shape: Shape) -> ShapeId {
        self.schedule.intern(shape, &mut self.environments)
    }

    /// Gives out what can be given, starts workers, and reviews who still waits.
    pub(crate) fn schedule(&mut self, now: u64, out: &mut impl Outbox) {
        self.schedule.wanted_room.take_if(|room| now >= room.until);
        self.schedule.elder = self.find_elder(now);
        self.schedule.passed_at = now;
        self.schedule.pass += 1;
        let mut tentative: Vec<Tentative> = Vec::new();
        let mut unserved = 0;
        while unserved < self.schedule.turns.len()
            && !self.is_draining()
            && tentative.len() < self.setup.max_starting
            && let Some(turn) = self.next_turn(unserved)
        {
            let outcome = match turn {
                Turn::Actors => self.serve_actors(&mut tentative, now, out),
                Turn::Process(process) => self.serve_process(process, &mut tentative, now, out),
            };
            match outcome {
                Outcome::Served => unserved = 0,
                Outcome::Unserved => unserved += 1,
                Outcome::Gone => continue,
            }
            self.schedule.turns.push_back(turn);
        }
        self.tell_of_freed_bundles(out);
        // While what lacks only a worker has its resources set aside.
        self.place_elsewhere(out);
        let mut lacking = Lacking::default();
        let mut claims = SmallVec::<[Claim; 8]>::new();
        for (allocation, claim) in tentative {
            claims.push(claim);
            self.ledger.release(allocation);
            let shape = match claim {
                Claim::Actor(shape) => shape,
                Claim::Demand(process, key) => {
                    let process = self.processes.get_mut(&process).expect("is pending");
                    let demand = process.demands.get_mut(&key).expect("is pending");
                    demand.tentative = 0;
                    demand.shape
                }
            };
            let environment = self.schedule.shapes[shape.0].environment;
            lacking.add(environment, matches!(claim, Claim::Actor(_)));
        }
        self.start_workers(lacking, now, out);
        self.fail_without_workers(&claims, now, out);
        self.review(now, out);
    }

    /// Whose turn it is: of those not tried in vain since the last grant, the
    /// job that has least; within a job, what is most urgent; else who waited longest.
    fn next_turn(&mut self, unserved: usize) -> Option<Turn> {
        let untried = self.schedule.turns.len() - unserved;
        // Of one job, and nothing more urgent than the rest: then in order.
        if self.jobs.len() <= 1 && self.schedule.shapes.iter().all(|s| s.shape.priority == 0) {
            return self.schedule.turns.pop_front();
        }
        let mut held: BTreeMap<Option<JobId>, usize> = BTreeMap::new();
        if untried > 1 {
            for lease in self.leases.values() {
                let holder = self.processes.get(&lease.holder);
                *held.entry(holder.and_then(|process| process.job)).or_default() += 1;
            }
        }
        let rank = |turn: &Turn| {
            let Turn::Process(id) = turn else {
                return (0, Reverse(0));
            };
            let Some(process) = self.processes.get(id) else {
                return (0, Reverse(0));
            };
            let of_shape = |key| self.schedule.shapes[process.demands[key].shape.0].shape.priority;
            let urgency = process.pending.iter().map(of_shape).max().unwrap_or(0);
            (held.get(&process.job).copied().unwrap_or(0), Reverse(urgency))
        };
        let best = self.schedule.turns.iter().take(untried).enumerate();
        let (best, _) = best.min_by_key(|(at, turn)| (rank(turn), *at))?;
        self.schedule.turns.remove(best)
    }

    /// The demands of a process that wait here, the most urgent first.
    fn by_urgency(&self, id: ProcessId) -> SmallVec<[u64; 8]> {
        let process = &self.processes[&id];
        let mut keys: SmallVec<[u64; 8]> = process.pending.iter().copied().collect();
        let of_shape = |key: &u64| &self.schedule.shapes[process.demands[key].shape.0].shape;
        if keys.iter().any(|key| of_shape(key).priority != 0) {
            keys.sort_by_key(|key| Reverse(of_shape(key).priority));
        }
        keys
    }

    fn serve_process(
        &mut self,
        id: ProcessId,
        tentative: &mut Vec<Tentative>,
        now: u64,
        out: &mut impl Outbox,
    ) -> Outcome {
        let Some(process) = self.processes.get_mut(&id) else {
            return Outcome::Gone;
        };
        if process.pending.is_empty() {
            process.has_turn = false;
            return Outcome::Gone;
        }
        for key in self.by_urgency(id) {
            let demand = &self.processes[&id].demands[&key];
            let shape = demand.shape;
            if demand.tentative == demand.here {
                continue;
            }
            let environment = self.schedule.shapes[shape.0].environment;
            if !self.has_template(environment, out) {
                continue;
            }
            let Some(allocation) = self.try_acquire(shape) else {
                continue;
            };
            let job = self.processes[&id].job;
            match self.take_idle(id, job, environment, WorkerFor::Tasks) {
                Some(worker) => {
                    self.schedule.shapes[shape.0].waiting_since = Some(now);
                    self.grant(id, key, worker, allocation, out);
                }
                None => {
                    let process = self.processes.get_mut(&id).expect("is pending");
                    process.demands.get_mut(&key).expect("is pending").tentative += 1;
                    tentative.push((allocation, Claim::Demand(id, key)));
                }
            }
            return Outcome::Served;
        }
        Outcome::Unserved
    }

    fn serve_actors(
        &mut self,
        tentative: &mut Vec<Tentative>,
        now: u64,
        out: &mut impl Outbox,
    ) -> Outcome {
        if self.schedule.waiting_actors.is_empty() {
            return Outcome::Gone;
        }
        if self.is_fenced() {
            return Outcome::Unserved;
        }
        for (order, shape) in self.schedule.heads(tentative) {
            let environment = self.schedule.shapes[shape.0].environment;
            if !self.has_template(environment, out) {
                continue;
            }
            let Some(allocation) = self.try_acquire(shape) else {
                continue;
            };
            let actor = self.schedule.waiting_actors[&(shape, order)];
            let (creator, job) = (self.actors[&actor].creator, self.actors[&actor].job);
            match self.take_idle(creator, job, environment, WorkerFor::Actor) {
                Some(worker) => {
                    self.schedule.shapes[shape.0].waiting_since = Some(now);
                    self.schedule.waiting_actors.remove(&(shape, order));
                    self.place_actor(actor, worker, allocation, out);
                }
                None => tentative.push((allocation, Claim::Actor(shape))),
            }
            return Outcome::Served;
        }
        Outcome::Unserved
    }

    fn try_acquire(&mut self, id: ShapeId) -> Option<Allocation> {
        let known = &self.schedule.shapes[id.0];
        if known.failed_in == self.schedule.pass {
            return None;
        }
        // What has waited longest holds back others, but not what is more urgent.
        if let Some(elder) = self.schedule.elder.filter(|&elder| elder != id)
            && let elder = &self.schedule.shapes[elder.0].shape
            && known.shape.priority <= elder.priority
            && self.ledger.would_starve(&known.shape, elder)
        {
            return None;
        }
        let now = self.schedule.passed_at;
        if let Some(WantedRoom { shape, since, .. }) = &self.schedule.wanted_room
            && is_elder_after(now.saturating_sub(*since))
            && self.ledger.would_starve(&known.shape, shape)
            && (self.ledger.fits(shape) || self.is_held_by_leases(shape))
        {
            return None; // Until it is reserved, or its time is over.
        }
        let allocation = self.ledger.acquire(&known.shape);
        match allocation {
            Some(_) if self.schedule.elder == Some(id) => self.schedule.elder = None,
            Some(_) => {}
            None => self.schedule.shapes[id.0].failed_in = self.schedule.pass,
        }
        allocation
    }

    /// The shape that has waited longest for what leases will give back.
    fn find_elder(&self, now: u64) -> Option<ShapeId> {
        let is_elder = |&index: &usize| {
            let known = &self.schedule.shapes[index];
            let waited = known.waiting_since.map_or(0, |since| now.saturating_sub(since));
            // It did not fit in the last pass, and somebody is being asked to give way.
            known.failed_in == self.schedule.pass
                && is_elder_after(waited)
                && self.ledger.can_ever_fit(&known.shape)
                && self.is_held_by_leases(&known.shape)
        };
        let elders = (0..self.schedule.shapes.len()).filter(is_elder);
        elders.min_by_key(|&index| self.schedule.shapes[index].waiting_since).map(ShapeId)
    }

    /// Whether some lease holds what a shape needs and lacks.
    pub(crate) fn is_held_by_leases(&self, shape: &Shape) -> bool {
        self.leases.values().any(|lease| self.ledger.stands_in_the_way(&lease.allocation, shape))
    }
}
