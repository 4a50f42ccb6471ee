//! Programs.

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::Job;
use serde_json::{Value, json};

use super::{Nodes, hex, optional_number, optional_text};

pub(crate) fn row(job: &Job, nodes: &Nodes) -> Value {
    let status = match (job.ended_ms, job.failure.is_empty()) {
        (0, _) => "RUNNING",
        (_, true) => "SUCCEEDED",
        (_, false) => "FAILED",
    };
    json!({
        "job_id": hex(&job.id),
        "status": status,
        "entrypoint": job.entrypoint,
        "driver_pid": job.pid,
        "driver_node_id": nodes.id(ProcessId(job.driver).node()),
        "namespace": job.namespace,
        "start_time_ms": optional_number(job.started_ms),
        "end_time_ms": optional_number(job.ended_ms),
        "message": optional_text(&job.failure),
    })
}
