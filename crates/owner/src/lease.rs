//! Which worker gets which task, and when to ask for more workers.
//!
//! Tasks of one shape share a queue and leases. How many tasks are in flight on
//! a lease follows from how long such functions have taken: about
//! [`IN_FLIGHT_NS`] of work, and only one of a function never seen. What is in
//! flight but not begun is taken back when its worker blocks or makes no
//! progress: a task never waits behind a blocked or a long one.

use oxiray_ids::ProcessId;
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::FailureCode;
use oxiray_words::listed;
use smallvec::SmallVec;
use std::collections::VecDeque;

use crate::change::Change;
use crate::object::Content;
use crate::owner::{Outbox, Owner};
use crate::task::{Place, Target, TaskKey};

/// Work to keep in flight on a lease: long enough to hide the way there and
/// back, short enough that nobody notices it waiting.
pub const IN_FLIGHT_NS: u64 = 1_000_000;

/// Most tasks in flight on a lease: what the claims of a channel hold.
const MAX_IN_FLIGHT: usize = 500;

/// An idle lease is kept this long for the next task.
const IDLE_NS: u64 = 20_000_000;

/// A lease that has answered nothing for so long is doing something long.
const STUCK_NS: u64 = 3_000_000;

/// Tasks whose names the node is told: the different ones among the first.
const MOST_LOOKED_AT: usize = 20;
const MOST_NAMES: usize = 3;

/// Arguments at another node that are worth going there for, in bytes.
const WORTH_GOING_THERE: u64 = 1 << 20;

/// What a worker says of longer runs is not believed; nor does it matter.
const LONGEST_NS: u64 = 1 << 50;

/// How long a function takes, as far as known.
#[derive(Default)]
pub(crate) struct Duration {
    average_ns: Option<u64>,
}

impl Duration {
    fn observe(&mut self, ran_ns: u64) {
        let ran_ns = ran_ns.clamp(500, LONGEST_NS);
        self.average_ns = Some(match self.average_ns {
            // Longer counts at once, shorter little by little: to wait behind
            // a long task is worse than a worker idle for a moment.
            Some(average) if ran_ns > average => average + (ran_ns - average) / 2,
            Some(average) => average - (average - ran_ns) / 8,
            None => ran_ns,
        });
    }
}

#[derive(Default)]
pub(crate) struct Shape {
    /// A lease serves one task: the next one may be to go elsewhere.
    once: bool,
    /// Tasks of a shape that has more of it go first.
    priority: i32,
    pub(crate) ready: VecDeque<TaskKey>,
    pub(crate) leases: Vec<usize>,
    pub(crate) requested: u64,
    pub(crate) granted: u64,
}

pub(crate) struct InFlight {
    pub(crate) task: TaskKey,
    pub(crate) number: u64,
    estimate_ns: u64,
}

pub(crate) struct Lease {
    pub(crate) id: u64,
    pub(crate) peer: ProcessId,
    pub(crate) shape: u32,
    devices: Vec<u32>,
    pub(crate) in_flight: VecDeque<InFlight>,
    load_ns: u64,
    /// When it last became idle, got its first task, or answered.
    progressed: u64,
    /// Its running task sleeps.
    blocked: bool,
    /// Others wait for it: nothing more is pushed, and it goes back when it is idle.
    pub(crate) retiring: bool,
    /// It was granted though something more urgent waited, which so has no use for it.
    in_spite: bool,
}

impl Owner {
    /// The next number for a shape that has not been used in this process.
    pub fn shape(&mut self) -> u32 {
        self.shapes.push(Shape::default());
        self.shapes.len() as u32 - 1
    }

    /// Like [`Self::shape`], of tasks that are to be spread: each has a lease of its own.
    pub fn spread_shape(&mut self) -> u32 {
        let shape = self.shape();
        self.shapes[shape as usize].once = true;
        shape
    }

    /// Tasks of a shape go before those of shapes with a lower number here; all begin with 0.
    pub fn set_priority(&mut self, shape: u32, priority: i32) {
        self.shapes[shape as usize].priority = priority;
        self.has_priorities |= priority != 0;
    }

    /// Whether tasks wait that are to go before those of a shape.
    fn more_urgent_waits(&self, shape: u32) -> bool {
        let priority = self.shapes[shape as usize].priority;
        self.has_priorities
            && self.shapes.iter().any(|s| s.priority > priority && !s.ready.is_empty())
    }

    /// The next number for a function that has not been used in this process.
    pub fn function(&mut self) -> u32 {
        self.functions.push(Duration::default());
        self.functions.len() as u32 - 1
    }

    /// Puts a task whose arguments are complete at the end of its shape's queue.
    pub(crate) fn enqueue(&mut self, key: TaskKey, shape: u32, out: &mut impl Outbox) {
        if let Some(failure) = self.failed_by_argument(key) {
            return self.fail(key, failure, out);
        }
        let shape = self.nearest(key, shape, out);
        self.shapes[shape as usize].ready.push_back(key);
        self.dispatch(shape, out);
    }

    /// The shape by which a task goes where most of its large arguments are.
    fn nearest(&mut self, key: TaskKey, shape: u32, out: &mut impl Outbox) -> u32 {
        if self.shapes[shape as usize].once {
            return shape;
        }
        let mut by_node: SmallVec<[(u32, u64); 4]> = SmallVec::new();
        for argument in &self.tasks[key.0 as usize].spec.refs {
            if let Some(Content::Stored { origin, len }) = self.content(*argument) {
                match by_node.iter_mut().find(|(node, _)| *node == origin.node) {
                    Some((_, bytes)) => *bytes += len,
                    None => by_node.push((origin.node, *len)),
                }
            }
        }
        let most = by_node.into_iter().max_by_key(|(_, bytes)| *bytes);
        let Some((node, _)) = most
            .filter(|(node, bytes)| *node != self.process.node() && *bytes >= WORTH_GOING_THERE)
        else {
            return shape;
        };
        let near = match self.near_shapes.get(&(shape, node)) {
            Some(near) => *near,
            None => {
                let near = self.shape();
                self.set_priority(near, self.shapes[shape as usize].priority);
                out.near_shape(shape, node);
                self.near_shapes.insert((shape, node), near);
                near
            }
        };
        if let Target::Function { shape, .. } = &mut self.tasks[key.0 as usize].spec.target {
            *shape = near;
        }
        near
    }

    /// A task that was asked back of another node's worker will not begin there.
    pub fn on_taken_back(&mut self, peer: ProcessId, number: u64, out: &mut impl Outbox) {
        for index in self.leases_at(peer) {
            let lease = &mut self.leases[index];
            let found = lease.in_flight.iter().position(|flight| flight.number == number);
            if let Some(flight) = found.and_then(|at| lease.in_flight.remove(at)) {
                lease.load_ns -= flight.estimate_ns;
                let shape = lease.shape;
                self.put_back(flight.task, shape, out);
                return self.dispatch_to(index, out);
            }
        }
    }

    /// Tasks of a shape will never have a worker, which is why they fail with `code`.
    pub fn on_unschedulable(
        &mut self,
        shape: u32,
        code: FailureCode,
        reason: &str,
        out: &mut impl Outbox,
    ) {
        let Some(state) = self.shapes.get_mut(shape as usize) else {
            return;
        };
        state.requested = state.granted;
        let failure = Content::failed(code, reason);
        for key in std::mem::take(&mut state.ready) {
            self.fail(key, failure.clone(), out);
        }
    }

    /// Another attempt of a task that was pushed before: at the front of its shape's queue, once
    /// its arguments are there.
    pub(crate) fn try_again(&mut self, key: TaskKey, shape: u32, out: &mut impl Outbox) {
        let is_ready = self.await_arguments(key, out);
        self.next_attempt(key, out);
        if is_ready {
            self.shapes[shape as usize].ready.push_front(key);
        }
    }

    /// Likewise, the same attempt: it had not begun.
    pub(crate) fn put_back(&mut self, key: TaskKey, shape: u32, out: &mut impl Outbox) {
        if self.tasks[key.0 as usize].cancelled {
            return self.end_cancelled(key, out);
        }
        if self.await_arguments(key, out) {
            self.note(key, Change::Ready, out);
            self.shapes[shape as usize].ready.push_front(key);
        }
    }

    /// Pushes ready tasks to leases with room, and asks for leases for the rest.
    pub(crate) fn dispatch(&mut self, shape: u32, out: &mut impl Outbox) {
        let once = self.shapes[shape as usize].once;
        while let Some(key) = self.shapes[shape as usize].ready.front().copied() {
            let estimate = self.estimate(key);
            let Some(lease) = self.lease_with_room(shape, estimate) else {
                break;
            };
            self.shapes[shape as usize].ready.pop_front();
            // An argument may have been lost or freed since it was complete.
            if self.failures > 0
                && let Some(failure) = self.failed_by_argument(key)
            {
                self.fail(key, failure, out);
                continue;
            }
            let Lease { peer, ref devices, .. } = self.leases[lease];
            let devices = devices.clone();
            self.tasks[key.0 as usize].place = Place::Leased(lease);
            let number = self.push(key, peer, 0, devices, true, out);
            let now = self.now;
            let lease = &mut self.leases[lease];
            if lease.in_flight.is_empty() {
                lease.progressed = now;
            }
            // Goes back when this one is done.
            lease.retiring |= once;
            let estimate_ns = estimate.unwrap_or(IN_FLIGHT_NS);
            lease.load_ns += estimate_ns;
            lease.in_flight.push_back(InFlight { task: key, number, estimate_ns });
        }
        self.update_demand(shape, false, out);
    }

    fn estimate(&self, key: TaskKey) -> Option<u64> {
        match self.tasks[key.0 as usize].spec.target {
            Target::Function { stats, .. } => self.functions[stats as usize].average_ns,
            _ => None,
        }
    }

    /// An idle lease, or the least loaded one with room for a task that short.
    fn lease_with_room(&self, shape: u32, estimate: Option<u64>) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        for &index in &self.shapes[shape as usize].leases {
            let lease = &self.leases[index];
            if lease.blocked || lease.retiring {
                continue;
            }
            if lease.in_flight.is_empty() {
                return Some(index);
            }
            let fits = lease.in_flight.len() < MAX_IN_FLIGHT
                && estimate.is_some_and(|estimate| lease.load_ns + estimate <= IN_FLIGHT_NS);
            if fits && best.is_none_or(|(load, _)| lease.load_ns < load) {
                best = Some((lease.load_ns, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Says how many leases are wanted, if that changed much: in a burst of
    /// submissions the demand doubles a few times rather than grow by one.
    fn update_demand(&mut self, index: u32, exactly: bool, out: &mut impl Outbox) {
        let waiting = self.shapes[index as usize].ready.len() as u64;
        let outstanding = {
            let shape = &self.shapes[index as usize];
            shape.requested.saturating_sub(shape.granted)
        };
        if waiting == 0 && outstanding == 0 {
            return;
        }
        let front = self.shapes[index as usize].ready.front().copied();
        let wanted = match front.map(|key| self.estimate(key)) {
            None => 0,
            Some(None) => waiting,
            Some(_) if self.shapes[index as usize].once => waiting,
            Some(Some(each)) => (waiting.saturating_mul(each) / IN_FLIGHT_NS).clamp(1, waiting),
        };
        let shape = &mut self.shapes[index as usize];
        let more =
            wanted > outstanding && (exactly || outstanding == 0 || wanted >= 2 * outstanding);
        if more || (wanted == 0 && outstanding > 0) {
            shape.requested = shape.granted + wanted;
            let requested = shape.requested;
            out.set_demand(index, requested, &self.names_of_ready(index));
        }
    }

    /// Names of the first tasks in a shape's queue, for people.
    fn names_of_ready(&self, shape: u32) -> String {
        let ready = self.shapes[shape as usize].ready.iter().take(MOST_LOOKED_AT);
        let mut names: SmallVec<[&str; 4]> = SmallVec::new();
        for key in ready {
            let name = &*self.tasks[key.0 as usize].spec.name;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        listed(&names, MOST_NAMES)
    }

    /// The node granted a lease.
    pub fn on_granted(
        &mut self,
        shape: u32,
        id: u64,
        peer: ProcessId,
        devices: Vec<u32>,
        out: &mut impl Outbox,
    ) {
        let Some(state) = self.shapes.get_mut(shape as usize) else {
            return out.return_lease(id);
        };
        self.lineage.is_spread |= peer.node() != self.process.node();
        state.granted += 1;
        state.requested = state.requested.max(state.granted);
        if state.ready.is_empty() {
            // Withdrawn while the grant was on its way.
            return out.return_lease(id);
        }
        let in_spite = self.more_urgent_waits(shape);
        let lease = self.leases.insert(Lease {
            id,
            peer,
            shape,
            devices,
            in_flight: VecDeque::new(),
            load_ns: 0,
            progressed: self.now,
            blocked: false,
            retiring: false,
            in_spite,
        });
        self.shapes[shape as usize].leases.push(lease);
        self.dispatch(shape, out);
    }

    /// Takes a task off the lease or actor it is at. `ran_ns`: how long it ran, if it ended.
    pub(crate) fn leave_place(&mut self, key: TaskKey, place: Place, ran_ns: Option<u64>) {
        match place {
            Place::Leased(index) => {
                if let (Some(ran), Target::Function { stats, .. }) =
                    (ran_ns, &self.tasks[key.0 as usize].spec.target)
                {
                    self.functions[*stats as usize].observe(ran);
                }
                let lease = &mut self.leases[index];
                lease.progressed = self.now;
                lease.blocked = false;
                // Answers mostly come in the order of pushing.
                let flight = match lease.in_flight.front() {
                    Some(flight) if flight.task == key => lease.in_flight.pop_front(),
                    _ => {
                        let found = lease.in_flight.iter().position(|flight| flight.task == key);
                        found.and_then(|at| lease.in_flight.remove(at))
                    }
                };
                if let Some(flight) = flight {
                    lease.load_ns -= flight.estimate_ns;
                }
            }
            Place::AtActor => self.leave_actor(key),
            Place::Waiting(_) | Place::Ready | Place::Aside(_) => {}
        }
    }

    /// A lease has room again.
    pub(crate) fn dispatch_to(&mut self, index: usize, out: &mut impl Outbox) {
        let Some(lease) = self.leases.get(index) else {
            return;
        };
        let shape = lease.shape;
        // What is more urgent has another shape, so that only the node can give it this worker.
        let yields = lease.retiring || (!lease.in_spite && self.more_urgent_waits(shape));
        if yields && lease.in_flight.is_empty() {
            self.end_lease(index, out);
        }
        self.dispatch(shape, out);
    }

    /// This process is about to exit. Workers that do nothing for it go back first: those that it
    /// still has would end with it.
    pub fn end_idle_leases(&mut self, out: &mut impl Outbox) {
        let idle = self.leases.iter().filter(|(_, lease)| lease.in_flight.is_empty());
        let idle: Vec<usize> = idle.map(|(index, _)| index).collect();
        idle.into_iter().for_each(|index| self.end_lease(index, out));
    }

    pub(crate) fn end_lease(&mut self, index: usize, out: &mut impl Outbox) {
        let lease = self.remove_lease(index);
        out.return_lease(lease.id);
    }

    fn remove_lease(&mut self, index: usize) -> Lease {
        let lease = self.leases.remove(index);
        self.shapes[lease.shape as usize].leases.retain(|other| *other != index);
        lease
    }

    fn leases_at(&self, peer: ProcessId) -> Vec<usize> {
        self.leases.iter().filter(|(_, lease)| lease.peer == peer).map(|(index, _)| index).collect()
    }

    /// Takes back what the worker of a lease has not begun, but for as many of the first as are to be
    /// kept there.
    pub(crate) fn take_back_queued(&mut self, index: usize, kept: usize, out: &mut impl Outbox) {
        let lease = &mut self.leases[index];
        let (peer, shape) = (lease.peer, lease.shape);
        let flights = std::mem::take(&mut lease.in_flight);
        let mut returned = Vec::new();
        for (place, flight) in flights.into_iter().enumerate() {
            if place >= kept && out.take_back(peer, flight.number) {
                lease.load_ns -= flight.estimate_ns;
                returned.push(flight.task);
            } else {
                lease.in_flight.push_back(flight);
            }
        }
        for key in returned.iter().rev() {
            self.put_back(*key, shape, out);
        }
    }

    /// The running task of a worker sleeps in `get` or `wait`.
    pub fn on_blocked(&mut self, peer: ProcessId, out: &mut impl Outbox) {
        for index in self.leases_at(peer) {
            self.leases[index].blocked = true;
            self.take_back_queued(index, 0, out);
            self.dispatch(self.leases[index].shape, out);
        }
    }

    /// It runs again.
    pub fn on_unblocked(&mut self, peer: ProcessId, out: &mut impl Outbox) {
        for index in self.leases_at(peer) {
            let now = self.now;
            let lease = &mut self.leases[index];
            lease.blocked = false;
            lease.progressed = now;
            self.dispatch_to(index, out);
        }
    }

    /// Others wait for resources: gives idle leases back, and of each shape one
    /// busy lease as soon as it is idle.
    pub fn on_reclaim(&mut self, out: &mut impl Outbox) {
        for shape in 0..self.shapes.len() {
            for index in self.shapes[shape].leases.clone() {
                if self.leases[index].in_flight.is_empty() {
                    self.end_lease(index, out);
                }
            }
            let leases = &self.shapes[shape].leases;
            if leases.iter().any(|index| self.leases[*index].retiring) {
                continue;
            }
            let lightest = leases.iter().copied().min_by_key(|index| self.leases[*index].load_ns);
            if let Some(index) = lightest {
                self.leases[index].retiring = true;
                // A lease that was granted just now is for its first task: given back unused, it
                // would go to whoever is next, however urgent that task is.
                self.take_back_queued(index, 1, out);
                self.dispatch_to(index, out);
            }
        }
    }

    /// Time has passed: idle leases go back, and tasks queued behind a long one
    /// are taken back. Says when to call again, if at all.
    pub fn on_tick(&mut self, out: &mut impl Outbox) -> Option<u64> {
        for key in std::mem::take(&mut self.orphans) {
            self.drop_ref(key, out);
        }
        let mut next = self.end_waits_aside(out);
        let mut again_at = |at: u64| next = Some(next.map_or(at, |next: u64| next.min(at)));
        let indices: Vec<usize> = self.leases.iter().map(|(index, _)| index).collect();
        for index in indices {
            let lease = &self.leases[index];
            let limit = match lease.in_flight.len() {
                0 => IDLE_NS,
                1 => continue,
                _ => STUCK_NS,
            };
            let due = lease.progressed + limit;
            if due > self.now {
                again_at(due);
            } else if lease.in_flight.is_empty() {
                self.end_lease(index, out);
            } else {
                let (shape, front) = (lease.shape, lease.in_flight[0].task);
                let running_ns = self.now - lease.progressed;
                if let Target::Function { stats, .. } = self.tasks[front.0 as usize].spec.target {
                    self.functions[stats as usize].observe(running_ns);
                }
                // Full, whatever was thought of the running task: nothing goes behind it.
                let lease = &mut self.leases[index];
                let more = IN_FLIGHT_NS.saturating_sub(lease.in_flight[0].estimate_ns);
                lease.in_flight[0].estimate_ns += more;
                lease.load_ns += more;
                self.take_back_queued(index, 0, out);
                self.dispatch(shape, out);
            }
        }
        for shape in 0..self.shapes.len() as u32 {
            self.update_demand(shape, true, out);
        }
        next
    }

    /// A worker is gone, and everything it had answered has been read.
    pub(crate) fn end_leases_at(
        &mut self,
        peer: ProcessId,
        memory: MemoryEnd,
        failure: &Content,
        out: &mut impl Outbox,
    ) {
        for index in self.leases_at(peer) {
            let lease = self.remove_lease(index);
            for flight in lease.in_flight.iter().rev() {
                let started = !out.take_back(peer, flight.number);
                self.on_lost(flight.task, started, memory, failure, out);
            }
            self.dispatch(lease.shape, out);
        }
    }
}
