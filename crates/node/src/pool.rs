//! Workers: idle ones, those that start, and those that are too many.

use std::collections::BTreeMap;

use oxiray_ids::{JobId, ProcessId};
use oxiray_wire::control::{Empty, ProcessKind, from_node};

use crate::environments::EnvironmentId;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::{Process, Role};

const MILLISECOND: u64 = 1_000_000;
/// How long a worker beyond those to keep may be idle.
const IDLE_LIMIT: u64 = 1000 * MILLISECOND;
/// Wait after the first failed start; doubles with each that follows.
const FIRST_RETRY: u64 = 50 * MILLISECOND;
/// Failed starts in a row before the user is told.
const FAILURES_TO_WARN: u32 = 3;
/// And before nobody waits for the next: after some seconds.
const FAILURES_TO_GIVE_UP: u32 = 7;

/// What an idle worker is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkerFor {
    /// Tasks of a lease; then it is idle again.
    Tasks,
    /// An actor, with which it ends.
    Actor,
}

/// The workers without work, and those to come.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Most recently used last: it is the warmest, so it is taken first.
    pub(crate) idle: Vec<ProcessId>,
    /// Those to come, by what they are forked from.
    starts: BTreeMap<EnvironmentId, Starts>,
    /// The driver knows that the first workers are there.
    warm: bool,
    /// Since when somebody lacks a worker and none can come: see [`crate::full`].
    pub(crate) without_since: Option<u64>,
}

/// Workers of one environment that are to come.
#[derive(Debug, Default)]
struct Starts {
    /// Asked for, not yet here.
    asked: usize,
    failures: u32,
    /// Why the last one failed, and when.
    reason: String,
    failed_at: u64,
    /// No start before this.
    retry_at: Option<u64>,
}

/// How many workers of each environment could be used at once.
#[derive(Debug, Default)]
pub(crate) struct Lacking {
    /// For leases, and for actors.
    by_environment: BTreeMap<EnvironmentId, (usize, usize)>,
}

impl Lacking {
    pub(crate) fn add(&mut self, environment: EnvironmentId, for_actor: bool) {
        let (leases, actors) = self.by_environment.entry(environment).or_default();
        *if for_actor { actors } else { leases } += 1;
    }
}

impl Pool {
    pub(crate) fn arrived(&mut self, worker: ProcessId, environment: EnvironmentId) {
        let starts = self.starts.entry(environment).or_default();
        *starts = Starts { asked: starts.asked.saturating_sub(1), ..Starts::default() };
        self.idle.push(worker);
    }

    /// Workers to come.
    fn starting(&self) -> usize {
        self.starts.values().map(|starts| starts.asked).sum()
    }

    pub(crate) fn is_any_starting(&self) -> bool {
        self.starting() > 0
    }

    /// Why workers of the node's own environment cannot be started, after many tries, and when the
    /// last failed.
    pub(crate) fn hopeless(&self) -> Option<(&str, u64)> {
        let plain = self.starts.get(&EnvironmentId::PLAIN)?;
        (plain.failures >= FAILURES_TO_GIVE_UP).then_some((&*plain.reason, plain.failed_at))
    }

    pub(crate) fn is_starting(&self, environment: EnvironmentId) -> bool {
        self.starts.get(&environment).is_some_and(|starts| starts.asked > 0)
    }

    /// When a start may be tried again.
    pub(crate) fn next_retry(&self) -> Option<u64> {
        self.starts.values().filter_map(|starts| starts.retry_at).min()
    }

    /// No worker of an environment is to come.
    pub(crate) fn forget_starts(&mut self, environment: EnvironmentId) {
        self.starts.remove(&environment);
    }

    pub(crate) fn forget(&mut self, worker: ProcessId) {
        self.idle.retain(|&idle| idle != worker);
    }
}

impl Node {
    /// An idle worker of an environment for `user`, one it has a channel to if there is such.
    /// Never the user itself: a worker may still ask for others after its task ended. Nor one whose
    /// belongings would go with the actor that it is `to_be`.
    pub(crate) fn take_idle(
        &mut self,
        user: ProcessId,
        job: Option<JobId>,
        environment: EnvironmentId,
        to_be: WorkerFor,
    ) -> Option<ProcessId> {
        let channels = self.processes.get(&user).map(|process| &process.channels);
        let idle = &self.pool.idle;
        // Of the same job, whose modules and state it may have.
        let may = |worker: &ProcessId| {
            let Process { job: of, environment: from, is_held, .. } = self.processes[worker];
            let is_free = to_be == WorkerFor::Tasks || !(is_held || self.is_needed(*worker));
            let is_fit = from == environment && (of.is_none() || of == job);
            *worker != user && is_fit && is_free
        };
        let known = idle.iter().rposition(|worker| {
            channels.is_some_and(|channels| channels.contains_key(worker)) && may(worker)
        });
        let index = known.or_else(|| idle.iter().rposition(may))?;
        Some(self.pool.idle.remove(index))
    }

    /// Tells the driver, once, that the workers started in advance are there:
    /// what it times from then on is its tasks, not our start.
    pub(crate) fn tell_if_warm(&mut self, out: &mut impl Outbox) {
        let here = self.pool.idle.len() + self.leases.len();
        if self.pool.warm || here < self.setup.prestart_workers {
            return;
        }
        for (id, process) in &self.processes {
            if process.kind == ProcessKind::Driver {
                self.pool.warm = true;
                out.send(*id, from_node::Body::Warm(Empty {}));
            }
        }
    }

    /// A worker has no work any more.
    pub(crate) fn make_idle(&mut self, id: ProcessId, now: u64) {
        let Some(worker) = self.processes.get_mut(&id) else {
            return;
        };
        if worker.farewell.is_some() {
            worker.role = Role::Leaving;
            return;
        }
        worker.role = Role::Idle;
        worker.idle_since = now;
        worker.is_held = false;
        self.pool.idle.push(id);
    }

    /// Starts workers: as many as could be used now, and so many that the pool is whole.
    pub(crate) fn start_workers(&mut self, mut lacking: Lacking, now: u64, out: &mut impl Outbox) {
        let here = self.pool.idle.len() + self.leases.len();
        let to_keep = self.setup.prestart_workers.saturating_sub(here);
        let plain = lacking.by_environment.entry(EnvironmentId::PLAIN).or_default();
        plain.0 = plain.0.max(to_keep);
        let room = self.setup.max_processes.saturating_sub(self.bells.len());
        let most = self.setup.max_starting.min(room);
        for starts in self.pool.starts.values_mut() {
            starts.retry_at = starts.retry_at.filter(|at| now < *at);
        }
        if self.is_draining() {
            return;
        }
        for (environment, (for_leases, for_actors)) in lacking.by_environment {
            let mut all = self.pool.starting();
            let starts = self.pool.starts.entry(environment).or_default();
            if starts.retry_at.is_some() {
                continue;
            }
            while starts.asked < for_leases + for_actors && all < most {
                all += 1;
                starts.asked += 1;
                out.start_worker(environment.0);
            }
        }
    }

    pub(crate) fn on_start_failed(
        &mut self,
        environment: EnvironmentId,
        reason: &str,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let starts = self.pool.starts.entry(environment).or_default();
        starts.asked = starts.asked.saturating_sub(1);
        starts.failed_at = now;
        // Starts that fail together are one failure.
        if starts.retry_at.is_some_and(|at| now < at) {
            return;
        }
        let wait = FIRST_RETRY << starts.failures.min(6);
        starts.failures += 1;
        starts.reason = reason.to_owned();
        starts.retry_at = Some(now + wait);
        if starts.failures != FAILURES_TO_WARN {
            return;
        }
        match environment {
            EnvironmentId::PLAIN => {
                let text = format!("Workers cannot be started, so nothing runs: {reason}");
                self.warn(&text, out);
            }
            _ => self.fail_environment(environment, reason, out),
        }
    }

    /// Sends workers away that were idle for long and are more than are to be kept.
    pub(crate) fn retire_idle_workers(&mut self, now: u64, out: &mut impl Outbox) {
        let mut surplus = self.pool.idle.len().saturating_sub(self.setup.prestart_workers);
        let mut index = 0;
        while surplus > 0 && index < self.pool.idle.len() {
            let id = self.pool.idle[index];
            if now < self.processes[&id].idle_since + IDLE_LIMIT {
                break;
            }
            surplus -= 1;
            if self.is_needed(id) {
                index += 1;
                continue;
            }
            self.pool.idle.remove(index);
            if let Some(process) = self.processes.get_mut(&id) {
                process.role = Role::Leaving;
            }
            out.send(id, from_node::Body::Exit(Empty {}));
        }
    }

    /// Whether something of a worker's would go with it.
    fn is_needed(&self, id: ProcessId) -> bool {
        let process = &self.processes[&id];
        !process.actors.is_empty() || !process.leases.is_empty() || !process.pending.is_empty()
    }

    /// When the next idle worker is to be sent away.
    pub(crate) fn next_retirement(&self) -> Option<u64> {
        let surplus = self.pool.idle.len().saturating_sub(self.setup.prestart_workers);
        let candidates = self.pool.idle.iter().take(surplus).filter(|&&id| !self.is_needed(id));
        candidates.map(|id| self.processes[id].idle_since + IDLE_LIMIT).min()
    }
}
