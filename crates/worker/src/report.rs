//! Tells the node service what this process holds, when somebody asks.

use hashbrown::HashSet;
use oxiray_ids::{ObjectId, TaskId};
use oxiray_owner::Content;
use oxiray_owner::report::Holding;
use oxiray_owner::why::{Reason, Wait};
use oxiray_store::State as StoreState;
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::control::{
    HeldObject, ObjectReport, Query, TaskReason, TaskReport, Topic, WaitKind, WhereHeld, to_node,
};
use oxiray_wire::frame::Cancelling;

use crate::runtime::Runtime;
use crate::store::Store;

/// So many objects go into one packet.
const IN_ONE_PACKET: usize = 300;
/// Bytes that may be said of where an object was created.
const LONGEST_CALL_SITE: usize = 200;

/// Tasks that one process says something of.
const MOST_TASKS: usize = 20;

impl Runtime {
    /// Answers why tasks of this process are not done.
    pub(crate) fn report_tasks(&self, query: &Query) {
        let about = query.about.as_str();
        let id = |word: &str| {
            let object = ObjectId::from_hex(word).map(|object| object.task());
            TaskId::from_hex(word).or(object)
        };
        // Ids, or one name.
        let ids: Option<Vec<TaskId>> = about.split_whitespace().map(id).collect();
        let ids = ids.unwrap_or_default();
        let wanted = |id: TaskId, name: &str| match ids.is_empty() {
            false => ids.contains(&id),
            true => name == about,
        };
        let state = &mut *self.lock();
        let reasons = state.owner.reasons(MOST_TASKS, wanted);
        let report = TaskReport {
            request: query.request,
            tasks: reasons.into_iter().map(told).collect(),
            running: state.executor.running_tasks().map(|id| id.0.to_vec()).collect(),
            awaited: state.awaited(),
            blocked: state.blocked(),
            ..TaskReport::default()
        };
        state.io.tell_node(to_node::Body::TaskReport(report));
        if query.topic() == Topic::Cancel {
            let how = Cancelling { force: query.force, recursive: true };
            state.set_now(monotonic_ns());
            ids.iter().for_each(|id| state.owner.cancel_by_id(*id, how, &mut state.io));
            state.collect_watched();
            state.io.wake_peers();
            // Other threads may wait for what has ended by it.
            self.bell().ring();
        }
    }

    /// Answers question `request` with everything that this process holds.
    pub(crate) fn report_objects(&self, request: u64) {
        let state = &mut *self.lock();
        let mut held: Vec<HeldObject> = Vec::new();
        let mut named = HashSet::new();
        for holding in state.owner.report() {
            if let Some(Content::Stored { origin, .. }) = holding.content
                && origin.node == self.identity.process.node()
            {
                named.insert(origin.key.slot());
            }
            held.push(described(&holding, &self.store));
        }
        // What is only looked at, by values whose references are gone.
        for (slot, len) in self.store.looked_at() {
            if !named.contains(&slot) {
                let key = Some(self.store.key_at(slot).0);
                let mut object =
                    HeldObject { size: len, pinned: true, key, ..HeldObject::default() };
                object.set_place(WhereHeld::Memory);
                held.push(object);
            }
        }
        let packets = held.len().div_ceil(IN_ONE_PACKET).max(1);
        for number in 1..=packets {
            let rest = held.split_off(held.len().min(IN_ONE_PACKET));
            let objects = std::mem::replace(&mut held, rest);
            let last = number == packets;
            let report = ObjectReport { request, objects, last, ..ObjectReport::default() };
            state.io.tell_node(to_node::Body::ObjectReport(report));
        }
    }
}

fn told(reason: Reason) -> TaskReason {
    let mut told = TaskReason {
        id: reason.id.0.to_vec(),
        name: shortened(&reason.name),
        ..TaskReason::default()
    };
    let kind = match reason.wait {
        Wait::Nothing => WaitKind::Nothing,
        Wait::Running(process) => {
            told.process = Some(process.0);
            WaitKind::Running
        }
        Wait::Turn(process) => {
            told.process = Some(process.0);
            WaitKind::Turn
        }
        Wait::Argument { object, owner } => {
            told.object = object.0.to_vec();
            told.process = owner.map(|owner| owner.0);
            WaitKind::Argument
        }
        Wait::News => WaitKind::News,
        Wait::Memory => WaitKind::Memory,
        Wait::Worker(shape) => {
            told.shape_key = Some(shape.into());
            WaitKind::Worker
        }
        Wait::Actor(actor) => {
            told.actor = actor.0.to_vec();
            WaitKind::Actor
        }
        Wait::AtActor(actor, process) => {
            told.actor = actor.0.to_vec();
            told.process = Some(process.0);
            WaitKind::AtActor
        }
        Wait::Construction(actor) => {
            told.actor = actor.0.to_vec();
            WaitKind::Construction
        }
    };
    told.set_wait(kind);
    told
}

fn described(holding: &Holding<'_>, store: &Store) -> HeldObject {
    let call_site = holding.call_site.unwrap_or_default();
    let mut object = HeldObject {
        id: holding.id.0.to_vec(),
        owner: holding.owner.map_or(0, |owner| owner.0),
        local: holding.local,
        tasks: holding.tasks,
        captured: holding.captured,
        in_flight: holding.in_flight,
        borrowers: holding.borrowers,
        call_site: call_site[..call_site.floor_char_boundary(LONGEST_CALL_SITE)].to_owned(),
        ..HeldObject::default()
    };
    match holding.content {
        None => object.set_place(WhereHeld::Pending),
        Some(Content::Failed(_)) => object.set_place(WhereHeld::Failed),
        Some(Content::Inline(bytes)) => {
            object.set_place(WhereHeld::Process);
            object.size = bytes.len() as u64;
        }
        Some(Content::Stored { origin, len }) if origin.node != store.node() => {
            object.size = *len;
            object.set_place(WhereHeld::Memory);
        }
        Some(Content::Stored { origin, len }) => {
            let key = &origin.key;
            object.size = *len;
            object.key = Some(key.0);
            object.pinned = store.is_looked_at(key.slot());
            object.set_place(match store.state(*key) {
                Some(StoreState::Away | StoreState::Leaving) => WhereHeld::Disk,
                Some(_) => WhereHeld::Memory,
                None => WhereHeld::Failed,
            });
        }
    }
    object
}

/// Words that leave room in a packet for others.
fn shortened(text: &str) -> String {
    const MOST: usize = 2000;
    text[..text.floor_char_boundary(MOST)].to_owned()
}
