//! Actors that wait for a worker at a node that drains. It gives out none, and leaves when what
//! it has is over; but that may be waiting for the very actor. So the control service gets it back.
//!
//! - **R-3** an actor that waits here is offered back until the control service says that it is not
//!   ours any more; who asks for it meanwhile is named in another offer. One that must be in a
//!   bundle that is here stays: it can go nowhere else before the bundle does.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{ReturnActor, to_control};

use crate::actors::Stage;
use crate::event::Outbox;
use crate::node::Node;

impl Node {
    /// Offers what waits here, and was not offered yet, to the control service.
    pub(super) fn return_actors(&mut self, out: &mut impl Outbox) {
        let Some(draining) = &mut self.draining else {
            return;
        };
        let waiting = self.schedule.waiting_actors.values();
        let waiting = waiting.filter(|id| self.actors[id].group().is_none());
        let new: Vec<ActorId> =
            waiting.copied().filter(|id| draining.returned.insert(*id)).collect();
        for id in new {
            let actor = &self.actors[&id];
            let watchers = actor.watchers.iter().map(|watcher| self.about(*watcher)).collect();
            let returned = ReturnActor { actor: id.0.to_vec(), restarts: actor.restarts, watchers };
            self.tell_control(to_control::Body::ReturnActor(returned), out);
        }
    }

    /// The control service may not have heard what was offered, or not all of it.
    pub(crate) fn return_again(&mut self, id: Option<ActorId>) {
        if let Some(draining) = &mut self.draining {
            match id {
                Some(id) => _ = draining.returned.remove(&id),
                None => draining.returned.clear(),
            }
            draining.looked_at = 0;
        }
    }

    /// An actor is not ours any more. Who watches it is told by its next node.
    pub(super) fn on_actor_taken(&mut self, id: &[u8]) {
        let Some(id) = ActorId::from_slice(id) else {
            return;
        };
        let is_waiting = |actor: &crate::actors::Actor| matches!(actor.stage, Stage::Waiting(..));
        let Some(actor) = self.actors.get(&id).filter(|actor| is_waiting(actor)) else {
            return;
        };
        let involved: Vec<ProcessId> =
            actor.watchers.iter().copied().chain([actor.creator]).collect();
        if let Stage::Waiting(shape, order) = actor.stage {
            self.schedule.waiting_actors.remove(&(shape, order));
        }
        self.actors.remove(&id);
        for process in involved {
            if let Some(process) = self.processes.get_mut(&process) {
                process.watching.remove(&id);
                process.actors.remove(&id);
            }
        }
        self.return_again(Some(id));
    }
}
