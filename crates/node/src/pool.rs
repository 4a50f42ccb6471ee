//! Workers: idle ones, those that start, and those that are too many.

use oxiray_ids::{JobId, ProcessId};
use oxiray_wire::control::{Empty, ProcessKind, from_node};

use crate::event::Outbox;
use crate::node::Node;
use crate::process::Role;

const MILLISECOND: u64 = 1_000_000;
/// How long a worker beyond those to keep may be idle.
const IDLE_LIMIT: u64 = 1000 * MILLISECOND;
/// Wait after the first failed start; doubles with each that follows.
const FIRST_RETRY: u64 = 50 * MILLISECOND;
/// Failed starts in a row before the user is told.
const FAILURES_TO_WARN: u32 = 3;

/// The workers without work, and those to come.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Most recently used last: it is the warmest, so it is taken first.
    pub(crate) idle: Vec<ProcessId>,
    /// Asked for, not yet here.
    pub(crate) starting: usize,
    failures: u32,
    /// The driver knows that the first workers are there.
    warm: bool,
    /// No start before this.
    pub(crate) retry_at: Option<u64>,
}

impl Pool {
    pub(crate) fn arrived(&mut self, worker: ProcessId) {
        self.starting = self.starting.saturating_sub(1);
        self.failures = 0;
        self.retry_at = None;
        self.idle.push(worker);
    }

    pub(crate) fn forget(&mut self, worker: ProcessId) {
        self.idle.retain(|&idle| idle != worker);
    }
}

impl Node {
    /// An idle worker for `user`, one it has a channel to if there is such. Never
    /// the user itself: a worker may still ask for others after its task ended.
    pub(crate) fn take_idle(&mut self, user: ProcessId, job: Option<JobId>) -> Option<ProcessId> {
        let channels = self.processes.get(&user).map(|process| &process.channels);
        let idle = &self.pool.idle;
        // Of the same job, whose modules and state it may have.
        let may = |worker: &ProcessId| {
            let of = self.processes[worker].job;
            *worker != user && (of.is_none() || of == job)
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
        self.pool.idle.push(id);
    }

    /// Starts workers: as many as could be used now, and so many that the pool is whole.
    pub(crate) fn start_workers(
        &mut self,
        for_leases: usize,
        for_actors: usize,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let here = self.pool.idle.len() + self.leases.len();
        let to_keep = self.setup.prestart_workers.saturating_sub(here);
        let target = (for_actors + for_leases.max(to_keep))
            .min(self.setup.max_starting)
            .min(self.setup.max_processes.saturating_sub(self.bells.len()));
        match self.pool.retry_at {
            Some(at) if now < at => return,
            _ => self.pool.retry_at = None,
        }
        while self.pool.starting < target {
            self.pool.starting += 1;
            out.start_worker();
        }
    }

    pub(crate) fn on_start_failed(&mut self, reason: &str, now: u64, out: &mut impl Outbox) {
        self.pool.starting = self.pool.starting.saturating_sub(1);
        // Starts that fail together are one failure.
        if self.pool.retry_at.is_some_and(|at| now < at) {
            return;
        }
        let wait = FIRST_RETRY << self.pool.failures.min(6);
        self.pool.failures += 1;
        self.pool.retry_at = Some(now + wait);
        if self.pool.failures == FAILURES_TO_WARN {
            let text = format!("Workers cannot be started, so nothing runs: {reason}");
            self.warn(&text, out);
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
