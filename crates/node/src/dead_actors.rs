//! Why actors died, for those who ask later. Bounded in number and in bytes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use oxiray_ids::ActorId;
use oxiray_wire::cluster::{ActorInfo, ActorNews};
use oxiray_wire::control::{ActorPhase, ActorState};
use prost::Message;

const MOST: usize = 100_000;
const MOST_BYTES: usize = 32 << 20;

/// What is kept of an actor.
#[derive(Clone, Debug)]
pub(crate) struct DeadActor {
    /// Its reason reads on after "The actor died because".
    pub(crate) info: ActorInfo,
    pub(crate) creation_error: Vec<u8>,
}

impl DeadActor {
    /// One that was like this before it died.
    pub(crate) fn new(info: ActorInfo, reason: String, creation_error: Vec<u8>) -> Self {
        let phase = ActorPhase::Dead.into();
        Self { info: ActorInfo { phase, reason, expected: false, ..info }, creation_error }
    }

    /// One that never was, or was forgotten.
    pub(crate) fn unknown() -> Self {
        Self::new(ActorInfo::default(), "unknown actor".into(), Vec::new())
    }

    pub(crate) fn state(&self, id: ActorId) -> ActorState {
        ActorState {
            actor: id.0.to_vec(),
            phase: ActorPhase::Dead.into(),
            reason: self.info.reason.clone(),
            creation_error: self.creation_error.clone(),
            class_name: self.info.class_name.clone(),
            ..ActorState::default()
        }
    }

    /// What the control service hears of it.
    pub(crate) fn news(&self, id: ActorId) -> ActorNews {
        ActorNews {
            actor: id.0.to_vec(),
            phase: ActorPhase::Dead.into(),
            reason: self.info.reason.clone(),
            creation_error: self.creation_error.clone(),
            ..ActorNews::default()
        }
    }

    fn bytes(&self) -> usize {
        self.info.encoded_len() + self.creation_error.len()
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

    /// By their ids, from there on.
    pub(crate) fn after(
        &self,
        from: Bound<ActorId>,
    ) -> impl Iterator<Item = (&ActorId, &DeadActor)> {
        self.by_id.range((from, Bound::Unbounded))
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
