//! Names of actors. Within a namespace a name is one actor's, from before it is
//! made until it is dead for good.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::control::{ActorNames, NamedActor};

/// Bytes of names in one answer.
const MOST_LISTED: usize = 64 << 10;

/// Namespace, then name.
pub(crate) type Name = (String, String);

/// Whose a name is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bearer {
    /// The actor.
    pub(crate) actor: ActorId,
    /// The process that makes, or made, the actor.
    pub(crate) creator: ProcessId,
    /// What a handle needs to know of the class.
    pub(crate) about: Vec<u8>,
}

/// Every name that is taken.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_name: BTreeMap<Name, Bearer>,
    by_actor: BTreeMap<ActorId, Name>,
    by_creator: BTreeSet<(ProcessId, ActorId)>,
}

impl Names {
    /// Gives a name to an actor about to be made, if the name is free and the
    /// actor has none. True when it was given.
    pub(crate) fn take(&mut self, name: Name, bearer: Bearer) -> bool {
        if self.by_actor.contains_key(&bearer.actor) || self.by_name.contains_key(&name) {
            return false;
        }
        self.by_creator.insert((bearer.creator, bearer.actor));
        self.by_actor.insert(bearer.actor, name.clone());
        self.by_name.insert(name, bearer);
        true
    }

    /// The actor's name is another's to have. `None`: it had none.
    pub(crate) fn release(&mut self, actor: ActorId) -> Option<Name> {
        let name = self.by_actor.remove(&actor)?;
        if let Some(bearer) = self.by_name.remove(&name) {
            self.by_creator.remove(&(bearer.creator, actor));
        }
        Some(name)
    }

    /// Takes back names of `creator` whose actors were never made; says whose.
    pub(crate) fn release_unmade(
        &mut self,
        creator: ProcessId,
        is_made: impl Fn(&ActorId) -> bool,
    ) -> Vec<ActorId> {
        let all = (creator, ActorId([0; 16]))..=(creator, ActorId::NIL);
        let unmade = self.by_creator.range(all).map(|&(_, actor)| actor);
        let unmade: Vec<ActorId> = unmade.filter(|actor| !is_made(actor)).collect();
        for &actor in &unmade {
            self.release(actor);
        }
        unmade
    }

    /// Whose a name is.
    pub(crate) fn get(&self, name: &Name) -> Option<&Bearer> {
        self.by_name.get(name)
    }

    /// What an actor is called.
    pub(crate) fn of(&self, actor: &ActorId) -> Option<&Name> {
        self.by_actor.get(actor)
    }

    /// The processes that gave names.
    pub(crate) fn creators(&self) -> impl Iterator<Item = ProcessId> {
        self.by_creator.iter().map(|&(creator, _)| creator)
    }

    /// Every name, with its bearer.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &Bearer)> {
        self.by_name.iter()
    }

    /// Answer to a question for the actor of a name.
    pub(crate) fn find(&self, wanted: NamedActor) -> NamedActor {
        let NamedActor { request, name, namespace, .. } = wanted;
        let answer =
            self.get(&(namespace, name)).map_or_else(NamedActor::default, |bearer| NamedActor {
                actor: bearer.actor.0.to_vec(),
                about: bearer.about.clone(),
                creator: bearer.creator.0,
                ..NamedActor::default()
            });
        NamedActor { request, ..answer }
    }

    /// Answer to a question for the names there are, as many as fit.
    pub(crate) fn list(&self, wanted: ActorNames) -> ActorNames {
        let ActorNames { request, namespace, names: after } = wanted;
        let after = match <[String; 2]>::try_from(after) {
            Ok([namespace, name]) => Bound::Excluded((namespace, name)),
            Err(_) => Bound::Unbounded,
        };
        let rest = self.by_name.range((after, Bound::Unbounded)).map(|(name, _)| name);
        let mut names = Vec::new();
        let mut bytes = 0;
        for (of, name) in rest.filter(|(of, _)| namespace.is_empty() || *of == namespace) {
            bytes += of.len() + name.len();
            if bytes > MOST_LISTED && !names.is_empty() {
                break;
            }
            names.extend([of.clone(), name.clone()]);
        }
        ActorNames { request, namespace: String::new(), names }
    }

    /// Panics unless a name has one bearer and a bearer one name (C-4).
    pub(crate) fn validate(&self) {
        assert_eq!(self.by_name.len(), self.by_actor.len(), "C-4");
        assert_eq!(self.by_name.len(), self.by_creator.len(), "C-4");
        for (name, bearer) in &self.by_name {
            assert_eq!(self.by_actor.get(&bearer.actor), Some(name), "C-4: {name:?}");
            assert!(self.by_creator.contains(&(bearer.creator, bearer.actor)), "C-4: {name:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(actor: u8, creator: u64) -> Bearer {
        Bearer { actor: ActorId([actor; 16]), creator: ProcessId(creator), about: vec![actor] }
    }

    fn name(text: &str) -> Name {
        ("n".into(), text.into())
    }

    #[test]
    fn a_name_has_one_bearer_and_a_bearer_one_name() {
        let mut names = Names::default();
        assert!(names.take(name("a"), bearer(1, 7)));
        assert!(!names.take(name("a"), bearer(2, 7)), "it is taken");
        assert!(!names.take(name("b"), bearer(1, 7)), "it has one");
        names.validate();
        assert_eq!(names.release(ActorId([1; 16])), Some(name("a")));
        assert!(names.take(name("a"), bearer(2, 7)));
        names.validate();
    }

    #[test]
    fn names_of_actors_never_made_are_free_again() {
        let mut names = Names::default();
        assert!(names.take(name("made"), bearer(1, 7)));
        assert!(names.take(name("unmade"), bearer(2, 7)));
        assert!(names.take(name("other"), bearer(3, 8)));
        let released = names.release_unmade(ProcessId(7), |actor| *actor == ActorId([1; 16]));
        assert_eq!(released, [ActorId([2; 16])]);
        names.validate();
        assert!(names.get(&name("made")).is_some() && names.get(&name("other")).is_some());
        assert!(names.get(&name("unmade")).is_none());
    }

    #[test]
    fn names_are_listed_in_parts() {
        let mut names = Names::default();
        for index in 0..100u8 {
            let long = format!("{index:03}{}", "x".repeat(2000));
            assert!(names.take((format!("n{}", index % 2), long), bearer(index, 1)));
        }
        let mut seen = Vec::new();
        let mut question = ActorNames { request: 4, namespace: "n1".into(), names: vec![] };
        loop {
            let answer = names.list(question.clone());
            assert_eq!(answer.request, 4);
            if answer.names.is_empty() {
                break;
            }
            question.names = answer.names[answer.names.len() - 2..].to_vec();
            seen.extend(answer.names.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())));
        }
        assert_eq!(seen.len(), 50);
        assert!(seen.is_sorted() && seen.iter().all(|(namespace, _)| namespace == "n1"));
    }
}
