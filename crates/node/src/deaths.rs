//! How actors of this node died, until the control service knows: it may have been away, or
//! have asked for the actor before it heard.
//!
//! - **D-1** a death is remembered until the control service says that it is kept there, and
//!   nobody asks for that actor here afterwards.

use std::collections::BTreeMap;

use oxiray_ids::ActorId;
use oxiray_wire::cluster::ActorNews;
use oxiray_wire::control::{ActorPhase, ActorState};

/// The end of an actor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Death {
    pub(crate) class_name: String,
    /// Reads on after "The actor died because".
    pub(crate) reason: String,
    pub(crate) creation_error: Vec<u8>,
    /// Which incarnation was the last, as in [`ActorState`].
    pub(crate) stay: u32,
    pub(crate) restarts: u64,
}

/// Those that the control service may not know of.
pub(crate) type Deaths = BTreeMap<ActorId, Death>;

impl Death {
    /// It is of this incarnation, unless the last was a later one.
    pub(crate) fn be_of(&mut self, stay: u32, restarts: u64) {
        (self.stay, self.restarts) = (self.stay, self.restarts).max((stay, restarts));
    }

    /// What those hear who watch the actor.
    pub(crate) fn state(&self, id: ActorId) -> ActorState {
        ActorState {
            actor: id.0.to_vec(),
            phase: ActorPhase::Dead.into(),
            reason: self.reason.clone(),
            creation_error: self.creation_error.clone(),
            class_name: self.class_name.clone(),
            restarts: self.restarts,
            stay: self.stay,
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
            restarts: self.restarts,
            stay: self.stay,
            ..ActorNews::default()
        }
    }
}
