//! Why actors died, for those who ask later. Bounded in number and in bytes; a
//! shorter memory of them is kept over restarts.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use oxiray_ids::ActorId;
use oxiray_wire::control::{ActorPhase, ActorState};
use prost::Message;

use crate::event::{Change, Outbox, Table};
use crate::record::DeadRecord;

/// A dead actor takes half a kilobyte: these are a few megabytes.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 8 << 20;
/// So many outlive a restart.
const MOST_KEPT: usize = 1_000;
/// A record larger than this is kept without its constructor's error.
const LARGEST_KEPT: usize = 64 << 10;

/// State of a dead actor, for those who watch it.
pub(crate) fn state_of(id: ActorId, dead: &DeadRecord) -> ActorState {
    ActorState {
        actor: id.0.to_vec(),
        phase: ActorPhase::Dead.into(),
        reason: dead.reason.clone(),
        creation_error: dead.creation_error.clone(),
        class_name: dead.class_name.clone(),
        restarts: dead.restarts,
        stay: dead.stay,
        failure: dead.failure,
        ..ActorState::default()
    }
}

fn bytes(dead: &DeadRecord) -> usize {
    let info = dead.info.as_ref().map_or(0, Message::encoded_len);
    dead.class_name.len() + dead.reason.len() + dead.creation_error.len() + info
}

fn kept(dead: &DeadRecord) -> Vec<u8> {
    let kept = dead.encode_to_vec();
    if kept.len() <= LARGEST_KEPT {
        return kept;
    }
    DeadRecord { creation_error: Vec::new(), ..dead.clone() }.encode_to_vec()
}

/// The last actors that died.
#[derive(Debug, Default)]
pub(crate) struct DeadActors {
    by_id: BTreeMap<ActorId, DeadRecord>,
    /// The oldest first.
    order: VecDeque<ActorId>,
    bytes: usize,
    last: u64,
}

impl DeadActors {
    pub(crate) fn get(&self, id: &ActorId) -> Option<&DeadRecord> {
        self.by_id.get(id)
    }

    /// Keeps one more, and forgets the oldest beyond the bounds. An id dies once.
    pub(crate) fn remember(&mut self, id: ActorId, mut dead: DeadRecord, out: &mut impl Outbox) {
        self.last += 1;
        dead.order = self.last;
        out.persist(Change::put(Table::Dead, id.0, kept(&dead)));
        self.insert(id, dead);
        if let Some(beyond) = self.order.len().checked_sub(MOST_KEPT + 1) {
            out.persist(Change::delete(Table::Dead, self.order[beyond].0));
        }
        while self.order.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(dead) = self.by_id.remove(&oldest) {
                self.bytes -= bytes(&dead);
            }
            if self.order.len() < MOST_KEPT {
                out.persist(Change::delete(Table::Dead, oldest.0));
            }
        }
    }

    /// Begins again with what was kept.
    pub(crate) fn restore(mut kept: Vec<(ActorId, DeadRecord)>) -> Self {
        // Numbers of their own, unless the store is not ours: then in one order all the same.
        kept.sort_by_key(|(id, dead)| (dead.order, *id));
        let mut dead = Self::default();
        for (id, record) in kept {
            dead.last = record.order;
            dead.insert(id, record);
        }
        dead
    }

    fn insert(&mut self, id: ActorId, dead: DeadRecord) {
        self.bytes += bytes(&dead);
        self.by_id.insert(id, dead);
        self.order.push_back(id);
    }

    /// By their ids, from there on.
    pub(crate) fn after(
        &self,
        from: Bound<ActorId>,
    ) -> impl Iterator<Item = (&ActorId, &DeadRecord)> {
        self.by_id.range((from, Bound::Unbounded))
    }

    /// The last that died, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = (ActorId, &DeadRecord)> {
        self.order.iter().rev().filter_map(|id| Some((*id, self.by_id.get(id)?)))
    }

    /// What is kept over restarts.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (ActorId, Vec<u8>)> {
        self.latest().take(MOST_KEPT).map(|(id, dead)| (id, kept(dead)))
    }
}
