//! Drivers and workers.

use oxiray_ids::ProcessId;
use oxiray_wire::control::{ProcessInfo, ProcessKind};

use super::{Nodes, ProcessType, if_said, if_set, optional_id};
use crate::machine::Used;
use crate::row::{row, words};

words! {
    /// What a process is for at the moment.
    Activity {
        /// It is somebody's program.
        Driver = "driver",
        /// It waits for work.
        Idle = "idle",
        /// It is leased, and runs tasks.
        Task = "task",
        /// It is an actor.
        Actor = "actor",
        /// It is gone.
        Ended = "ended",
    }
}

/// A process, and what it takes of its machine, if that is known.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) process: &'a ProcessInfo,
    pub(crate) used: Option<Used>,
}

impl Seen<'_> {
    fn id(&self) -> ProcessId {
        ProcessId(self.process.process)
    }

    fn is_alive(&self) -> bool {
        self.process.ended_ms == 0
    }

    fn activity(&self) -> Activity {
        match (self.process.actor.is_empty(), self.process.leased) {
            _ if !self.is_alive() => Activity::Ended,
            _ if self.process.kind() == ProcessKind::Driver => Activity::Driver,
            (false, _) => Activity::Actor,
            (true, true) => Activity::Task,
            (true, false) => Activity::Idle,
        }
    }
}

row! {
    /// A driver or worker, alive or gone.
    WorkerRow of seen: Seen<'_>, nodes: &Nodes;
    /// The process, in the cluster.
    worker_id: Option<String> [Id, Searched, Table] = nodes.worker_id(seen.id());
    /// The process, on its machine.
    pid: u32 [Searched, Table] = seen.process.pid;
    /// Where its node is reached.
    ip: Option<String> [Table] = nodes.ip(seen.id().node());
    /// Its node.
    node_id: Option<String> = nodes.id(seen.id().node());
    /// Which of the two it is.
    worker_type: ProcessType [Table] = seen.process.kind().into();
    /// Whether it is there.
    is_alive: bool [Table] = seen.is_alive();
    /// What it is for at the moment.
    activity: Activity [Table, State] = seen.activity();
    /// The program that it works for.
    job_id: Option<String> [Table] = optional_id(&seen.process.job);
    /// The actor that it is.
    actor_id: Option<String> [Searched] = optional_id(&seen.process.actor);
    /// When it began.
    start_time_ms: Option<u64> = if_set(seen.process.started_ms);
    /// When it ended.
    end_time_ms: Option<u64> = if_set(seen.process.ended_ms);
    /// Bytes of memory that it takes.
    rss: Option<u64> [Table] = seen.used.filter(|_| seen.is_alive()).map(|used| used.bytes);
    /// Processor time that it took.
    cpu_ms: Option<u64> = seen.used.filter(|_| seen.is_alive()).map(|used| used.processor_ms);
    /// Why it ended.
    exit_detail: Option<String> [Searched, Table] = if_said(&seen.process.reason);
}
