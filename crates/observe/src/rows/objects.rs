//! Objects, as each process holds them.

use std::collections::BTreeMap;

use oxiray_ids::{ObjectId, PUT_INDEX};
use oxiray_wire::control::{HeldObject, ProcessKind, WhereHeld};

use super::{Nodes, ProcessType, if_said, optional_id};
use crate::row::{row, words};

words! {
    /// Where an object is.
    ObjectPlace {
        /// It is not there yet.
        Pending = "pending",
        /// In its owner.
        Process = "process",
        /// In the store.
        Memory = "memory",
        /// On disk.
        Disk = "disk",
        /// It has no value: why is what it has instead.
        Failed = "failed",
    }
}

words! {
    /// How the task fares that makes an object, by Ray's words.
    TaskStatus {
        /// No task makes it, or whoever tells of it does not know.
        Nil = "NIL",
        /// It is to come.
        Pending = "PENDING",
        /// It was made.
        Finished = "FINISHED",
        /// It will not come.
        Failed = "FAILED",
    }
}

words! {
    /// What keeps an object, by Ray's words.
    ReferenceType {
        /// It is an actor's handle.
        ActorHandle = "ACTOR_HANDLE",
        /// A task that is not done needs it.
        PendingTask = "USED_BY_PENDING_TASK",
        /// A variable of the program names it.
        Local = "LOCAL_REFERENCE",
        /// Another object contains it.
        Captured = "CAPTURED_IN_OBJECT",
        /// A value looks at its memory.
        Pinned = "PINNED_IN_MEMORY",
        /// Something else.
        Unknown = "UNKNOWN_STATUS",
    }
}

row! {
    /// An object, as one process holds it.
    ObjectRow of held: &Held, nodes: &Nodes;
    /// The object; none: somebody looks at its memory, and its owner is gone.
    object_id: Option<String> [Id, Searched, Table] = optional_id(&held.object.id);
    /// Bytes; none while nobody knows.
    object_size: Option<u64> [Table] = held.size();
    /// Where it is.
    place: ObjectPlace [Table, State] = held.place();
    /// How the task fares that makes it.
    task_status: TaskStatus = task_status(&held.object);
    /// What keeps it here; the strongest reason.
    reference_type: ReferenceType [Searched, Table] = reference_type(&held.object);
    /// Where it was made, if that is recorded.
    call_site: Option<String> [Searched] = if_said(&held.object.call_site);
    /// Which kind of process holds it.
    process_type as "type": ProcessType [Table] =
        if held.is_driver { ProcessType::Driver } else { ProcessType::Worker };
    /// The process that holds it.
    pid: u32 [Table] = held.pid;
    /// Where that process's node is reached.
    ip: Option<String> [Table] = nodes.ip(held.node);
    /// That process's node.
    node_id: Option<String> = nodes.id(held.node);
    /// What keeps it here, counted.
    references: References = References::of(&held.object);
    /// Processes that hold it beside its owner.
    borrowers: u32 = held.object.borrowers;
    /// A value looks at its memory.
    pinned: bool = held.object.pinned;
}

row! {
    /// What keeps an object, counted.
    References of object: &HeldObject;
    /// Variables of the program.
    local: u32 = object.local;
    /// Tasks that are not done.
    tasks: u32 = object.tasks;
    /// Objects that contain it.
    captured: u32 = object.captured;
    /// Messages that it is in.
    in_flight: u32 = object.in_flight;
}

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

    /// Where the object is.
    pub fn place(&self) -> ObjectPlace {
        match self.object.place() {
            WhereHeld::Pending => ObjectPlace::Pending,
            WhereHeld::Process => ObjectPlace::Process,
            WhereHeld::Memory => ObjectPlace::Memory,
            WhereHeld::Disk => ObjectPlace::Disk,
            WhereHeld::Failed => ObjectPlace::Failed,
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

/// What keeps it; the strongest reason first.
fn reference_type(object: &HeldObject) -> ReferenceType {
    // An actor's handle is an object whose index is zero.
    if ObjectId::from_slice(&object.id).is_some_and(|id| id.index() == 0) {
        return ReferenceType::ActorHandle;
    }
    match object {
        object if object.tasks > 0 => ReferenceType::PendingTask,
        object if object.local > 0 => ReferenceType::Local,
        object if object.captured > 0 => ReferenceType::Captured,
        object if object.pinned => ReferenceType::Pinned,
        _ => ReferenceType::Unknown,
    }
}

fn task_status(object: &HeldObject) -> TaskStatus {
    let id = ObjectId::from_slice(&object.id);
    let of_task = id.is_some_and(|id| (1..PUT_INDEX).contains(&id.index()));
    match (object.owner, of_task, object.place()) {
        (0, true, WhereHeld::Pending) => TaskStatus::Pending,
        (0, true, WhereHeld::Failed) => TaskStatus::Failed,
        (0, true, _) => TaskStatus::Finished,
        _ => TaskStatus::Nil,
    }
}
