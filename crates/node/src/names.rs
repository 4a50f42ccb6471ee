//! Names of actors, of a node that is alone: in a cluster the control service has them.

use oxiray_control::Bearer;
use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::control::{ActorNames, NamedActor, from_node};

use crate::event::Outbox;
use crate::node::Node;

impl Node {
    /// Gives a name to an actor about to be made, if it is free; says whose it is.
    pub(crate) fn on_name_actor(
        &mut self,
        from: ProcessId,
        wanted: NamedActor,
        out: &mut impl Outbox,
    ) {
        let Some(actor) = ActorId::from_slice(&wanted.actor) else {
            return;
        };
        if self.dead_actors.get(&actor).is_none() {
            let name = (wanted.namespace.clone(), wanted.name.clone());
            let bearer = Bearer { actor, creator: from, about: wanted.about.clone() };
            self.names.take(name, bearer);
        }
        self.on_find_actor(from, wanted, out);
    }

    pub(crate) fn on_find_actor(&self, from: ProcessId, wanted: NamedActor, out: &mut impl Outbox) {
        out.send(from, from_node::Body::NamedActor(self.names.find(wanted)));
    }

    pub(crate) fn on_list_actors(
        &self,
        from: ProcessId,
        wanted: ActorNames,
        out: &mut impl Outbox,
    ) {
        out.send(from, from_node::Body::ActorNames(self.names.list(wanted)));
    }

    /// Nobody finds the actor by its name any more.
    pub(crate) fn release_name(&mut self, id: ActorId) {
        if let Some(name) = self.names.release(id)
            && let Some(actor) = self.actors.get_mut(&id)
        {
            actor.last_name = name;
        }
    }

    /// A process is gone: names for actors that it never made are free again.
    pub(crate) fn release_names_of(&mut self, process: ProcessId) {
        let actors = &self.actors;
        self.names.release_unmade(process, |actor| actors.contains_key(actor));
    }
}
