//! How groups end, and how they lose bundles.

use std::collections::BTreeSet;

use oxiray_ids::{ActorId, GroupId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{HeldBundle, ReleaseBundles, from_control};
use oxiray_wire::control::GroupPhase;
use oxiray_wire::frame::FailureCode;

use crate::control::Control;
use crate::event::Outbox;
use crate::reserving::of;

/// What those hear that were in a group that somebody removed.
const REMOVED: &str = "its placement group was removed";

impl Control {
    /// Somebody removes a group. Twice is once.
    pub(crate) fn on_remove_group(&mut self, group: &[u8], out: &mut impl Outbox) {
        if let Some(id) = GroupId::from_slice(group) {
            self.remove_group(id, "it was removed by remove_placement_group()", out);
            self.place_groups(out);
        }
    }

    fn remove_group(&mut self, id: GroupId, reason: &str, out: &mut impl Outbox) {
        let Some(mut group) = self.groups.take(id) else {
            return;
        };
        let attempt = group.attempt.take();
        let planned = attempt.into_iter().flat_map(|attempt| attempt.plan);
        let placed = group.record.nodes.iter().enumerate();
        let placed = placed.map(|(index, node)| (index as u32, *node));
        let mut nodes = BTreeSet::new();
        for (index, node) in placed.chain(planned).filter(|(_, node)| *node != 0) {
            let resources = &group.create().bundles[index as usize].resources;
            self.room.give_back(NodeNumber(node), &of(resources));
            nodes.insert(node);
        }
        for &node in &nodes {
            self.release_all_at(id, node, REMOVED, out);
        }
        reason.clone_into(&mut group.record.reason);
        group.record.removed_ms = self.now.wall_ms.max(1);
        self.groups.remember(id, group.record, out);
        self.tell_of_removed(id, &group.watchers, out);
        for actor in self.groups.actors.remove(&id).unwrap_or_default().into_keys() {
            if self.waiting.contains(&actor) {
                self.bury_with_group(actor, out);
            }
        }
    }

    /// An actor that has no node will never be made: its group is gone.
    pub(crate) fn bury_with_group(&mut self, actor: ActorId, out: &mut impl Outbox) {
        self.bury_as(actor, FailureCode::ActorGroupRemoved, REMOVED.into(), out);
    }

    /// Has a node give back all that it has of a group, and end whoever is in it.
    fn release_all_at(&self, id: GroupId, node: u32, reason: &str, out: &mut impl Outbox) {
        let (group, reason) = (id.0.to_vec(), reason.to_owned());
        let said = ReleaseBundles { group, indexes: Vec::new(), reason };
        self.send(node, from_control::Body::ReleaseBundles(said), out);
    }

    /// A process is gone, and with it the groups of its program.
    pub(crate) fn end_groups_of(&mut self, process: ProcessId, out: &mut impl Outbox) {
        for (id, nodes) in self.groups.forget_expected(process) {
            self.tell_of_removed(id, &nodes, out);
        }
        let ended = self.groups.live.iter().filter(|(_, group)| {
            group.record.driver == process.0 && !self.is_made_by_living(&group.create().actor)
        });
        let ended: Vec<GroupId> = ended.map(|(id, _)| *id).collect();
        for &id in &ended {
            self.remove_group(id, "the program that made it has ended", out);
        }
        if !ended.is_empty() {
            self.place_groups(out);
        }
    }

    /// An actor is dead, and with it the groups that it made: of one that outlives its program at
    /// once, of others when that has ended.
    pub(crate) fn end_groups_of_actor(&mut self, actor: ActorId, out: &mut impl Outbox) {
        let ended = self.groups.live.iter().filter(|(_, group)| {
            let create = group.create();
            let driver = group.record.driver;
            create.actor == actor.0
                && !create.detached
                && (driver == 0 || !self.is_alive(ProcessId(driver)))
        });
        let ended: Vec<GroupId> = ended.map(|(id, _)| *id).collect();
        for &id in &ended {
            self.remove_group(id, "the actor that made it has ended", out);
        }
        if !ended.is_empty() {
            self.place_groups(out);
        }
    }

    fn is_made_by_living(&self, actor: &[u8]) -> bool {
        ActorId::from_slice(actor).is_some_and(|actor| self.actors.contains_key(&actor))
    }

    /// A node is gone, and the bundles there with it: they wait for room elsewhere.
    pub(crate) fn lose_bundles(&mut self, number: u32, why: &str, out: &mut impl Outbox) {
        self.give_up_attempts_at(number, out);
        let lost =
            self.groups.live.iter().filter(|(_, group)| group.record.nodes.contains(&number));
        for id in lost.map(|(id, _)| *id).collect::<Vec<GroupId>>() {
            self.lose(id, |_, node| node == number, why, out);
        }
    }

    fn lose(
        &mut self,
        id: GroupId,
        is_lost: impl Fn(u32, u32) -> bool,
        why: &str,
        out: &mut impl Outbox,
    ) {
        // What is being reserved was chosen beside what is lost now.
        self.give_up_attempt(id, 0, out);
        let group = self.groups.live.get_mut(&id).expect("lives");
        for (index, node) in group.record.nodes.iter_mut().enumerate() {
            if is_lost(index as u32, *node) {
                *node = 0;
            }
        }
        group.record.set_phase(GroupPhase::Rescheduling);
        why.clone_into(&mut group.record.reason);
        (group.refusals, group.not_before) = (0, 0);
        self.groups.queue(id);
        self.write_group(id, out);
        self.warn_of_group_later(id);
        self.tell_of_group(id, out);
    }

    /// Attempts that a node has a part in are given up: it is away, or gone.
    pub(crate) fn give_up_attempts_at(&mut self, number: u32, out: &mut impl Outbox) {
        let is_in = |plan: &[(u32, u32)]| plan.iter().any(|(_, node)| *node == number);
        let live = self.groups.live.iter();
        let asked = live.filter(|(_, g)| g.attempt.as_ref().is_some_and(|a| is_in(&a.plan)));
        for id in asked.map(|(id, _)| *id).collect::<Vec<GroupId>>() {
            self.give_up_attempt(id, number, out);
        }
    }

    /// A node says what it has reserved: what should not be there goes, what is not there is lost.
    pub(crate) fn reconcile_bundles(
        &mut self,
        number: u32,
        held: &[HeldBundle],
        out: &mut impl Outbox,
    ) {
        self.give_up_attempts_at(number, out);
        let held = held.iter().filter_map(|b| Some((GroupId::from_slice(&b.group)?, b.index)));
        let held: BTreeSet<(GroupId, u32)> = held.collect();
        for &(id, index) in &held {
            let Some(group) = self.groups.live.get(&id) else {
                self.release_all_at(id, number, REMOVED, out);
                continue;
            };
            let group_bytes = id.0.to_vec();
            if group.record.nodes.get(index as usize) == Some(&number) {
                self.send(number, from_control::Body::CommitGroup(group_bytes), out);
                continue;
            }
            let (indexes, reason) = (vec![index], "its bundle is elsewhere by now".to_owned());
            let said = ReleaseBundles { group: group_bytes, indexes, reason };
            self.send(number, from_control::Body::ReleaseBundles(said), out);
        }
        let missing = self.groups.live.iter().filter(|(id, group)| {
            let nodes = group.record.nodes.iter().enumerate();
            nodes
                .into_iter()
                .any(|(index, node)| *node == number && !held.contains(&(**id, index as u32)))
        });
        for id in missing.map(|(id, _)| *id).collect::<Vec<GroupId>>() {
            let is_lost = |index: u32, node: u32| node == number && !held.contains(&(id, index));
            self.lose(id, is_lost, "its node lost it while the control service was away", out);
        }
    }
}
