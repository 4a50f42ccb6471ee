//! Bundles: what the control service has this node reserve for placement groups, and what becomes
//! of those who are in one that goes.

use oxiray_ids::{ActorId, GroupId};
use oxiray_wire::cluster::{ReleaseBundles, Reserve, Reserved, between_nodes, to_control};
use oxiray_wire::control::unmade;
use oxiray_wire::frame::FailureCode;

use crate::actors::Stage;
use crate::cluster::tell;
use crate::demand::LeaseId;
use crate::event::Outbox;
use crate::node::Node;

impl Node {
    /// Reserves bundles, all of them or none, and says which.
    pub(crate) fn on_reserve(&mut self, asked: Reserve, out: &mut impl Outbox) {
        let Some(group) = GroupId::from_slice(&asked.group) else {
            return;
        };
        self.tell_load_again();
        let mut reserved = Vec::new();
        for bundle in &asked.bundles {
            let key = (group, bundle.index);
            if !self.ledger.reserve(key, &bundle.resources) {
                break;
            }
            reserved.push(key);
        }
        let refused = reserved.len() < asked.bundles.len();
        if refused {
            for key in reserved {
                self.ledger.release_bundle(key);
            }
        } else if asked.commit {
            self.ledger.commit(group);
        }
        if !refused {
            self.schedule.wanted_room = None;
        }
        let available = if refused { self.ledger.available() } else { Vec::new() };
        let answer = Reserved { group: asked.group, attempt: asked.attempt, refused, available };
        self.tell_control(to_control::Body::Reserved(answer), out);
    }

    /// What is reserved of a group may be used.
    pub(crate) fn on_commit_group(&mut self, group: &[u8]) {
        if let Some(group) = GroupId::from_slice(group) {
            self.ledger.commit(group);
        }
    }

    /// Gives bundles back. Whoever is in them ends.
    pub(crate) fn on_release_bundles(&mut self, said: ReleaseBundles, out: &mut impl Outbox) {
        let Some(group) = GroupId::from_slice(&said.group) else {
            return;
        };
        self.tell_load_again();
        let all = said.indexes.is_empty();
        let goes = |index: u32| all || said.indexes.contains(&index);
        let is_in = |bundle: Option<(GroupId, u32)>| {
            bundle.is_some_and(|(of, index)| of == group && goes(index))
        };
        let leases = self.leases.iter().filter(|(_, lease)| is_in(lease.allocation.bundle()));
        for id in leases.map(|(&id, _)| id).collect::<Vec<LeaseId>>() {
            let worker = self.end_lease(id);
            self.send_away(worker, &said.reason, out);
        }
        let actors = self.actors.iter().filter(|(_, actor)| match &actor.allocation {
            Some(allocation) => is_in(allocation.bundle()),
            None => all && actor.group().is_some_and(|of| of == group),
        });
        for id in actors.map(|(&id, _)| id).collect::<Vec<ActorId>>() {
            self.end_with_bundle(id, &said.reason, out);
        }
        for index in self.ledger.bundles_of(group).filter(|&index| goes(index)).collect::<Vec<_>>()
        {
            self.ledger.release_bundle((group, index));
        }
    }

    /// An actor's bundle goes, and it does with it.
    fn end_with_bundle(&mut self, id: ActorId, reason: &str, out: &mut impl Outbox) {
        let actor = self.actors.get(&id);
        let is_alive = actor.is_some_and(|actor| matches!(actor.stage, Stage::Alive(_)));
        let worker = actor.and_then(|actor| actor.worker());
        let error = match is_alive {
            true => Vec::new(),
            false => unmade(FailureCode::ActorGroupRemoved, reason),
        };
        self.bury(id, reason.into(), error, out);
        if let Some(worker) = worker {
            self.send_away(worker, reason, out);
        }
    }

    /// Nodes whose leases were declined in a group hear that something came free in it.
    pub(crate) fn tell_of_freed_bundles(&mut self, out: &mut impl Outbox) {
        for group in self.ledger.take_freed() {
            for node in self.groups.declined.remove(&group).unwrap_or_default() {
                tell(node, between_nodes::Body::BundleRoom(group.0.to_vec()), out);
            }
        }
    }
}
