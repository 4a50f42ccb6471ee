//! What must be kept of an actor that may outlive us, before it is asked for.
//!
//! - **P-1 (kept before asked)** an actor that is asked for as kept can be made by whoever hears of
//!   it: what it is made from was said before, over the same line.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_ids::ActorId;
use oxiray_wire::control::{CreateActor, to_node};

use crate::constructor::MOST_KEPT;
use crate::io::Io;

/// What is said of an actor to have it made, and its constructor.
pub(crate) type Asked = (CreateActor, Vec<u8>);

/// One with large arguments, which have to be read before they are kept.
pub(crate) struct Large {
    pub(crate) asked: Asked,
    pub(crate) class: Arc<[u8]>,
}

/// Actors whose constructors wait for their arguments.
#[derive(Default)]
pub(crate) struct Keeping {
    /// Their classes.
    classes: HashMap<ActorId, Arc<[u8]>, RandomState>,
    /// The one that is being submitted: the thread that does can read what is large.
    submitted: Option<ActorId>,
    large: Option<Large>,
}

impl Keeping {
    /// An actor that is to be kept is being submitted,
    pub(crate) fn begin(&mut self, actor: ActorId, class: Arc<[u8]>) {
        self.classes.insert(actor, class);
        self.submitted = Some(actor);
    }

    /// and was: what is left to do for it.
    pub(crate) fn end(&mut self) -> Option<Large> {
        self.submitted = None;
        self.large.take()
    }

    pub(crate) fn forget(&mut self, actor: ActorId) {
        self.classes.remove(&actor);
    }
}

impl Io {
    /// The arguments of a constructor are complete: what is to be kept of it is, and the actor is
    /// asked for (P-1). Gives back what is not: it is to be asked for as one that depends on us.
    pub(crate) fn keep_at_once(
        &mut self,
        actor: ActorId,
        asked: Asked,
        has_large: bool,
    ) -> Option<Asked> {
        let Some(class) = self.keeping.classes.remove(&actor) else {
            return Some(asked);
        };
        if has_large {
            if self.keeping.submitted != Some(actor) {
                return Some(asked);
            }
            self.keeping.large = Some(Large { asked, class });
            return None;
        }
        let (mut message, bytes) = asked;
        if bytes.len() + class.len() > MOST_KEPT {
            return Some((message, bytes));
        }
        self.keep(actor, &bytes, &class);
        message.kept = true;
        self.tell_node(to_node::Body::CreateActor(message));
        None
    }
}
