//! Why actors died, for those who ask later. Bounded in number and in bytes.

use std::collections::{BTreeMap, VecDeque};

use oxiray_ids::ActorId;
use oxiray_wire::cluster::ActorNews;
use oxiray_wire::control::{ActorPhase, ActorState};

const MOST: usize = 100_000;
const MOST_BYTES: usize = 32 << 20;

/// What is kept of an actor.
#[derive(Clone, Debug)]
pub(crate) struct DeadActor {
    pub(crate) class_name: String,
    /// Reads on after "The actor died because".
    pub(crate) reason: String,
    pub(crate) creation_error: Vec<u8>,
}

impl DeadActor {
    /// One that never was, or was forgotten.
    pub(crate) fn unknown() -> Self {
        let reason = "unknown actor".into();
        Self { class_name: String::new(), reason, creation_error: Vec::new() }
    }

    pub(crate) fn state(&self, id: ActorId) -> ActorState {
        ActorState {
            actor: id.0.to_vec(),
            phase: ActorPhase::Dead.into(),
            reason: self.reason.clone(),
            creation_error: self.creation_error.clone(),
            class_name: self.class_name.clone(),
            ..ActorState::default()
        }
    }

    /// What the control service hears of it.
    pub(crate) fn news(&self, id: ActorId) -> ActorNews {
        ActorNews {
            actor: id.0.to_vec(),
            phase: ActorPhase::Dead.into(),
            reason: self.reason.clone(),
            creation_error: self.creation_error.clone(),
            ..ActorNews::default()
        }
    }

    fn bytes(&self) -> usize {
        self.class_name.len() + self.reason.len() + self.creation_error.len()
    }
}

/// The last actors that died.
#[derive(Debug, Default)]
pub(crate) struct DeadActors {
    by_id: BTreeMap<ActorId, DeadActor>,
    order: VecDeque<ActorId>,
    bytes: usize,
}

impl DeadActors {
    pub(crate) fn get(&self, id: &ActorId) -> Option<&DeadActor> {
        self.by_id.get(id)
    }

    /// Keeps one more, and forgets the oldest beyond the bounds. An id dies once.
    pub(crate) fn remember(&mut self, id: ActorId, dead: DeadActor) {
        self.bytes += dead.bytes();
        self.by_id.insert(id, dead);
        self.order.push_back(id);
        while self.order.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(dead) = self.by_id.remove(&oldest) {
                self.bytes -= dead.bytes();
            }
        }
    }
}
