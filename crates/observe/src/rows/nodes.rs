//! Nodes.

use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::ClusterView;
use serde_json::{Value, json};

use super::{amounts, hex, ip, optional_number};
use crate::machine::Figures;

/// `view` and `figures` are what the node itself says, if it was asked.
pub(crate) fn row(node: &NodeInfo, view: Option<&ClusterView>, figures: Option<&Figures>) -> Value {
    let alive = node.left.is_empty();
    let available = view.map_or(&node.available, |view| &view.available);
    json!({
        "node_id": hex(&node.id),
        "node_number": node.number,
        "node_ip": ip(node),
        "node_name": node.host,
        "is_head_node": node.is_head,
        "state": if alive { "ALIVE" } else { "DEAD" },
        "state_message": if alive { Value::Null } else { node.left.as_str().into() },
        "resources_total": amounts(&node.total),
        "resources_available": if alive { amounts(available) } else { json!({}) },
        "labels": node.labels,
        "start_time_ms": optional_number(node.started_ms),
        "end_time_ms": optional_number(node.left_ms),
        "store_size": node.store_size,
        "store_used": view.map_or(node.store_used, |view| view.store_used),
        "store_objects": view.map(|view| view.store_objects),
        "disk_bytes": view.map(|view| view.on_disk),
        "spilled_bytes": view.map(|view| view.spilled),
        "restored_bytes": view.map(|view| view.restored),
        "waiting": view.map_or(&node.waiting_for, |view| &view.waiting),
        "workers": view.map(|view| view.workers),
        "pid": node.pid,
        "cpu_percent": figures.and_then(|figures| figures.cpu_percent),
        "memory_used": figures.map(|figures| figures.memory_used),
        "memory_total": figures.map(|figures| figures.memory_total),
    })
}
