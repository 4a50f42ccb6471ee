//! Objects, as each process holds them.

use std::collections::BTreeMap;

use oxiray_ids::{ObjectId, PUT_INDEX};
use oxiray_wire::control::{HeldObject, ProcessKind, WhereHeld};
use serde_json::{Value, json};

use super::{Nodes, hex, optional_text};

/// An object, as one process holds it.
#[derive(Clone, Debug)]
pub struct Held {
    /// Number of the process's node.
    pub node: u32,
    /// Process number.
    pub process: u64,
    /// Operating-system process id.
    pub pid: u32,
    /// Whether the process is a driver.
    pub is_driver: bool,
    /// Process id of whom the object belongs to, if that is known.
    pub owner: Option<u32>,
    /// What is held.
    pub object: HeldObject,
}

impl Held {
    pub(crate) fn new(
        node: u32,
        process: u64,
        pid: u32,
        kind: ProcessKind,
        object: HeldObject,
    ) -> Self {
        let is_driver = kind == ProcessKind::Driver;
        Self { node, process, pid, is_driver, owner: None, object }
    }

    /// Where the object is: in the word that everything has for it which shows objects.
    pub fn place(&self) -> &'static str {
        match self.object.place() {
            WhereHeld::Pending => "pending",
            WhereHeld::Process => "process",
            WhereHeld::Memory => "memory",
            WhereHeld::Disk => "disk",
            WhereHeld::Failed => "failed",
        }
    }

    /// Its bytes; nothing while nobody knows.
    pub fn size(&self) -> Option<u64> {
        Some(self.object.size).filter(|size| *size > 0)
    }
}

/// Says of each whose the object is. Values may look at an object without a reference to
/// it: then its owner's row has its name.
pub(crate) fn name_owners(held: &mut [Held]) {
    let pids: BTreeMap<u64, u32> = held.iter().map(|held| (held.process, held.pid)).collect();
    let owned = held.iter().filter(|held| held.object.owner == 0 && !held.object.id.is_empty());
    let stored = owned.filter_map(|held| {
        Some(((held.node, held.object.key?), (held.object.id.clone(), held.pid)))
    });
    let stored: BTreeMap<(u32, u64), (Vec<u8>, u32)> = stored.collect();
    for held in held {
        held.owner = match held.object.owner {
            0 if !held.object.id.is_empty() => Some(held.pid),
            0 => held.object.key.and_then(|key| stored.get(&(held.node, key))).map(|(id, pid)| {
                held.object.id.clone_from(id);
                *pid
            }),
            other => pids.get(&other).copied(),
        };
    }
}

/// What keeps it, by Ray's words; the strongest reason first.
fn reference_type(object: &HeldObject, id: Option<ObjectId>) -> &'static str {
    // An actor's handle is an object whose index is zero.
    if id.is_some_and(|id| id.index() == 0) {
        return "ACTOR_HANDLE";
    }
    match object {
        object if object.tasks > 0 => "USED_BY_PENDING_TASK",
        object if object.local > 0 => "LOCAL_REFERENCE",
        object if object.captured > 0 => "CAPTURED_IN_OBJECT",
        object if object.pinned => "PINNED_IN_MEMORY",
        _ => "UNKNOWN_STATUS",
    }
}

pub(crate) fn row(held: &Held, nodes: &Nodes) -> Value {
    let object = &held.object;
    let id = ObjectId::from_slice(&object.id);
    let of_task = id.is_some_and(|id| (1..PUT_INDEX).contains(&id.index()));
    let task_status = match (object.owner, of_task, object.place()) {
        (0, true, WhereHeld::Pending) => "PENDING",
        (0, true, WhereHeld::Failed) => "FAILED",
        (0, true, _) => "FINISHED",
        _ => "NIL",
    };
    json!({
        "object_id": if object.id.is_empty() { Value::Null } else { hex(&object.id).into() },
        "object_size": held.size(),
        "task_status": task_status,
        "reference_type": reference_type(object, id),
        "call_site": optional_text(&object.call_site),
        "type": if held.is_driver { "DRIVER" } else { "WORKER" },
        "pid": held.pid,
        "ip": nodes.ip(held.node),
        "node_id": nodes.id(held.node),
        "place": held.place(),
        "references": {
            "local": object.local,
            "tasks": object.tasks,
            "captured": object.captured,
            "in_flight": object.in_flight,
        },
        "borrowers": object.borrowers,
        "pinned": object.pinned,
    })
}
