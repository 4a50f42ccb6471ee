//! Actors in placement groups: which node one goes to follows from where the bundles are.

use oxiray_ids::{ActorId, GroupId};
use oxiray_wire::control::{Amount, Bundle, Shape};

use crate::control::Control;
use crate::event::Outbox;
use crate::groups::Whereabouts;
use crate::placement::Placement;
use crate::record::ActorRecord;

impl Control {
    /// The node of a bundle that is believed to have room for an actor. What others than actors
    /// have in it is not known here: the actor waits there then.
    pub(crate) fn find_in_group(
        &mut self,
        (id, index): (GroupId, Option<u32>),
        record: &ActorRecord,
    ) -> Placement {
        let Some(create) = &record.create else {
            return Placement::Nowhere("its request is damaged".into());
        };
        let Some(actor) = ActorId::from_slice(&create.actor) else {
            return Placement::Nowhere("its request is damaged".into());
        };
        match self.whereabouts(id) {
            Whereabouts::Live => {}
            Whereabouts::Expected => {
                self.groups.actors.entry(id).or_default().insert(actor, None);
                return Placement::NotYet(format!("its placement group {id} is not known yet"));
            }
            Whereabouts::Removed => {
                return Placement::GroupRemoved;
            }
        }
        let empty = Shape::default();
        let needs = create.placement.as_ref().unwrap_or(&empty);
        let held = create.held.as_ref().unwrap_or(&empty);
        let group = &self.groups.live[&id];
        let bundles = group.create().bundles.iter().zip(&group.record.nodes).enumerate();
        let bundles = bundles.map(|(at, (bundle, node))| (at as u32, bundle, *node));
        let large: Vec<(u32, &Bundle, u32)> = bundles
            .filter(|(at, bundle, _)| {
                index.is_none_or(|index| index == *at) && fits(&needs.resources, &bundle.resources)
            })
            .collect();
        let there = large.iter().filter(|(_, _, node)| *node != 0);
        let free = |at: u32, bundle: &Bundle| self.left_by_actors(id, actor, at, bundle);
        // Another may need what a bundle has beside, and all of it in one.
        let best = there.min_by_key(|(at, bundle, _)| {
            let beside = kinds_beside(&needs.resources, &bundle.resources);
            (!fits(&held.resources, &free(*at, bundle)), beside, self.actors_in(id, *at))
        });
        let (placement, bundle) = match best {
            Some(&(at, _, node)) => (Placement::At(node), Some(at)),
            None if large.is_empty() => {
                let why = format!("no bundle of its placement group {id} is large enough for it");
                (Placement::NotYet(why), None)
            }
            None => {
                let why = format!("its placement group {id} waits: {}", self.show_group(id).reason);
                (Placement::NotYet(why), None)
            }
        };
        self.groups.actors.entry(id).or_default().insert(actor, bundle);
        placement
    }

    /// How many actors are believed to be in a bundle.
    fn actors_in(&self, id: GroupId, at: u32) -> usize {
        let actors = self.groups.actors.get(&id);
        actors.map_or(0, |actors| actors.values().filter(|of| **of == Some(at)).count())
    }

    /// What actors other than this one are believed to leave of a bundle.
    fn left_by_actors(&self, id: GroupId, but: ActorId, at: u32, bundle: &Bundle) -> Vec<Amount> {
        let mut left = bundle.resources.clone();
        let actors = self.groups.actors.get(&id).into_iter().flatten();
        let others = actors.filter(|(actor, of)| **actor != but && **of == Some(at));
        for (actor, _) in others {
            let create = self.actors.get(actor).and_then(|actor| actor.record.create.as_ref());
            let held = create.and_then(|create| create.held.as_ref());
            for need in held.map_or(&[][..], |held| &held.resources) {
                if let Some(amount) = left.iter_mut().find(|amount| amount.name == need.name) {
                    amount.amount = amount.amount.saturating_sub(need.amount);
                }
            }
        }
        left
    }

    /// A group is created: what waits for it is placed.
    pub(crate) fn place_actors_of(&mut self, id: GroupId, out: &mut impl Outbox) {
        let actors = self.groups.actors.get(&id).into_iter().flatten();
        let waiting: Vec<ActorId> =
            actors.map(|(actor, _)| *actor).filter(|actor| self.waiting.contains(actor)).collect();
        for actor in waiting {
            self.place(actor, false, out);
        }
    }

    /// An actor is dead.
    pub(crate) fn leave_group(&mut self, actor: ActorId, record: &ActorRecord) {
        let placement = record.create.as_ref().and_then(|create| create.placement.as_ref());
        let Some((id, _)) = placement.and_then(Shape::place) else {
            return;
        };
        if let Some(actors) = self.groups.actors.get_mut(&id) {
            actors.remove(&actor);
            if actors.is_empty() {
                self.groups.actors.remove(&id);
            }
        }
    }
}

/// How many resources of a bundle are not needed.
fn kinds_beside(needs: &[Amount], bundle: &[Amount]) -> usize {
    let is_needed = |name: &str| needs.iter().any(|need| need.amount > 0 && need.name == name);
    bundle.iter().filter(|amount| !is_needed(&amount.name)).count()
}

fn fits(needs: &[Amount], room: &[Amount]) -> bool {
    needs.iter().all(|need| {
        let there = room.iter().find(|amount| amount.name == need.name);
        there.map_or(0, |there| there.amount) >= need.amount
    })
}
