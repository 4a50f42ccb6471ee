//! Messages about names of actors.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::control::{NamedActor, from_node};

use crate::control::Control;
use crate::event::{Change, Outbox, Table};
use crate::names::Bearer;
use crate::record;

impl Control {
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
        let name = (wanted.namespace.clone(), wanted.name.clone());
        let bearer = Bearer { actor, creator: from, about: wanted.about.clone() };
        let may = self.dead.get(&actor).is_none() && self.is_alive(from);
        if may && self.names.take(name.clone(), bearer) {
            let value = record::name_value(&name, from, &wanted.about);
            out.persist(Change::put(Table::Name, record::name_key(actor), value));
        }
        self.tell(from, from_node::Body::NamedActor(self.names.find(wanted)), out);
    }

    pub(crate) fn release_name(&mut self, actor: ActorId, out: &mut impl Outbox) {
        let Some(name) = self.names.release(actor) else {
            return;
        };
        out.persist(Change::delete(Table::Name, record::name_key(actor)));
        if let Some(actor) = self.actors.get_mut(&actor) {
            actor.last_name = name;
        }
    }
}
