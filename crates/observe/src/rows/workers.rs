//! Drivers and workers.

use oxiray_ids::ProcessId;
use oxiray_wire::control::{ProcessInfo, ProcessKind};
use serde_json::{Value, json};

use super::{Nodes, optional_id, optional_number, optional_text};
use crate::machine::Used;

/// `used` is what the process takes of its machine, if it lives.
pub(crate) fn row(process: &ProcessInfo, nodes: &Nodes, used: Option<Used>) -> Value {
    let id = ProcessId(process.process);
    let alive = process.ended_ms == 0;
    let activity = match (process.actor.is_empty(), process.leased) {
        _ if !alive => "ended",
        _ if process.kind() == ProcessKind::Driver => "driver",
        (false, _) => "actor",
        (true, true) => "task",
        (true, false) => "idle",
    };
    json!({
        "worker_id": nodes.worker_id(id),
        "pid": process.pid,
        "node_id": nodes.id(id.node()),
        "worker_type": if process.kind() == ProcessKind::Driver { "DRIVER" } else { "WORKER" },
        "is_alive": alive,
        "activity": activity,
        "job_id": optional_id(&process.job),
        "actor_id": optional_id(&process.actor),
        "start_time_ms": optional_number(process.started_ms),
        "end_time_ms": optional_number(process.ended_ms),
        "exit_detail": optional_text(&process.reason),
        "rss": used.filter(|_| alive).map(|used| used.bytes),
        "cpu_ms": used.filter(|_| alive).map(|used| used.processor_ms),
        "ip": nodes.ip(id.node()),
    })
}
