//! Names of actors. Within a namespace a name is one actor's, from before it is
//! made until it is dead for good.

use std::collections::BTreeMap;
use std::ops::Bound;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::control::{ActorNames, NamedActor, from_node};

use crate::event::Outbox;
use crate::node::Node;

/// Bytes of names in one answer.
const MOST_LISTED: usize = 64 << 10;

/// Namespace, then name.
type Name = (String, String);

#[derive(Debug)]
struct Bearer {
    actor: ActorId,
    creator: ProcessId,
    about: Vec<u8>,
}

/// Every name that is taken.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_name: BTreeMap<Name, Bearer>,
    by_actor: BTreeMap<ActorId, Name>,
}

impl Names {
    pub(crate) fn release(&mut self, actor: ActorId) {
        if let Some(name) = self.by_actor.remove(&actor) {
            self.by_name.remove(&name);
        }
    }

    /// Takes back names of `creator` whose actors were never made.
    fn release_unmade(&mut self, creator: ProcessId, is_made: impl Fn(&ActorId) -> bool) {
        let unmade = self.by_name.values().filter(|bearer| bearer.creator == creator);
        let unmade: Vec<ActorId> =
            unmade.map(|bearer| bearer.actor).filter(|actor| !is_made(actor)).collect();
        unmade.into_iter().for_each(|actor| self.release(actor));
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.by_actor.is_empty()
    }
}

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
        let name = (wanted.namespace.clone(), wanted.name.clone());
        let used =
            self.names.by_actor.contains_key(&actor) || self.dead_actors.get(&actor).is_some();
        if !used && !self.names.by_name.contains_key(&name) {
            let bearer = Bearer { actor, creator: from, about: wanted.about.clone() };
            self.names.by_name.insert(name.clone(), bearer);
            self.names.by_actor.insert(actor, name);
        }
        self.on_find_actor(from, wanted, out);
    }

    pub(crate) fn on_find_actor(&self, from: ProcessId, wanted: NamedActor, out: &mut impl Outbox) {
        let NamedActor { request, name, namespace, .. } = wanted;
        let found = self.names.by_name.get(&(namespace, name));
        let answer = found.map_or_else(NamedActor::default, |bearer| NamedActor {
            actor: bearer.actor.0.to_vec(),
            about: bearer.about.clone(),
            creator: bearer.creator.0,
            ..NamedActor::default()
        });
        out.send(from, from_node::Body::NamedActor(NamedActor { request, ..answer }));
    }

    pub(crate) fn on_list_actors(
        &self,
        from: ProcessId,
        wanted: ActorNames,
        out: &mut impl Outbox,
    ) {
        let ActorNames { request, namespace, names: after } = wanted;
        let after = match <[String; 2]>::try_from(after) {
            Ok([namespace, name]) => Bound::Excluded((namespace, name)),
            Err(_) => Bound::Unbounded,
        };
        let rest = self.names.by_name.range((after, Bound::Unbounded)).map(|(name, _)| name);
        let mut names = Vec::new();
        let mut bytes = 0;
        for (of, name) in rest.filter(|(of, _)| namespace.is_empty() || *of == namespace) {
            bytes += of.len() + name.len();
            if bytes > MOST_LISTED && !names.is_empty() {
                break;
            }
            names.extend([of.clone(), name.clone()]);
        }
        let names = ActorNames { request, namespace: String::new(), names };
        out.send(from, from_node::Body::ActorNames(names));
    }

    /// A process is gone: names for actors that it never made are free again.
    pub(crate) fn release_names_of(&mut self, process: ProcessId) {
        let actors = &self.actors;
        self.names.release_unmade(process, |actor| actors.contains_key(actor));
    }
}
