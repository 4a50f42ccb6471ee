//! How the bundles of a group are reserved at nodes: all of them, or none.
//!
//! Nodes are chosen by what is believed to be free, and each is asked to reserve its part, which it
//! does at once or not at all. When all have, the group is created and they are told so; when one
//! refuses, the others give back what they have, and the group waits. So nobody waits while it
//! holds something, and no two groups can hold half of what each needs.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{GroupId, NodeId};
use oxiray_scheduler::{
    BundleWanted, GroupWanted, NodeNumber, Packing, pack, pack_when_free, show_amounts,
};
use oxiray_wire::cluster::{NumberedBundle, ReleaseBundles, Reserve, Reserved, from_control};
use oxiray_wire::control::{Amount, CreateGroup, GroupPhase, Shape, Text, from_node};

use crate::control::Control;
use crate::event::{Now, Outbox};
use crate::groups::Group;

/// After a refusal nobody is asked for so long, and twice as long after the next,
const PAUSE: u64 = 10_000_000;
/// up to this.
const LONGEST_PAUSE: u64 = 1_000_000_000;
/// Nodes are asked this often to make room for a group that waits.
const PRESS_EVERY: u64 = 500_000_000;
/// A group waits for so long before somebody hears that it can never be created.
const WARN_AFTER: u64 = 1_000_000_000;

/// Nodes that were asked to reserve bundles.
#[derive(Debug)]
pub(crate) struct Attempt {
    number: u64,
    /// Bundle and node.
    pub(crate) plan: Vec<(u32, u32)>,
    /// Who has yet to answer.
    awaited: BTreeSet<u32>,
}

impl Attempt {
    pub(crate) fn nodes(&self) -> BTreeSet<u32> {
        self.plan.iter().map(|(_, node)| *node).collect()
    }
}

impl Control {
    /// What of a group needs nodes.
    pub(crate) fn wanted_by<'a>(&self, group: &'a Group) -> GroupWanted<'a> {
        let (create, nodes) = (group.create(), &group.record.nodes);
        let lacking = create.bundles.iter().zip(nodes).filter(|(_, node)| **node == 0);
        let prefer = NodeId::from_slice(&create.prefer);
        GroupWanted {
            bundles: lacking.map(|(bundle, _)| BundleWanted::of(bundle)).collect(),
            strategy: create.strategy(),
            placed: nodes.iter().filter(|node| **node != 0).map(|node| NodeNumber(*node)).collect(),
            prefer: prefer.and_then(|id| self.room.number_of(&id)),
        }
    }

    /// Looks for room for all groups that wait, in their order.
    pub(crate) fn place_groups(&mut self, out: &mut impl Outbox) {
        self.groups.retry_at = None;
        // What did not fit in this pass need not be tried again: room only shrinks.
        let mut failed: Vec<CreateGroup> = Vec::new();
        let waiting: Vec<GroupId> = self.groups.waiting.iter().map(|&(_, _, id)| id).collect();
        for id in waiting {
            let Some(group) = self.groups.live.get(&id) else {
                continue;
            };
            if group.not_before > self.now.ns {
                let at = group.not_before;
                self.groups.look_again(at);
                continue;
            }
            let create = group.create();
            let is_whole = group.record.nodes.iter().all(|node| *node == 0);
            let is_like = |other: &CreateGroup| {
                is_whole && other.strategy == create.strategy && other.bundles == create.bundles
            };
            if failed.iter().any(is_like) {
                continue;
            }
            let create = create.clone();
            if !self.place_group(id, out) && is_whole {
                failed.push(create);
            }
        }
        self.press(out);
    }

    /// The first group that waits for what others have: its nodes are to make room for it.
    fn press(&mut self, out: &mut impl Outbox) {
        let groups = &self.groups;
        let mut waiting = groups.waiting.iter().map(|(_, _, id)| &groups.live[id]);
        let nodes = waiting.find_map(|group| {
            let wanted = self.wanted_by(group);
            let nodes = pack_when_free(&self.room, &wanted)?;
            let mut sums: BTreeMap<u32, Vec<Amount>> = BTreeMap::new();
            for (bundle, node) in wanted.bundles.iter().zip(nodes) {
                add(sums.entry(node.0).or_default(), &bundle.bundle.resources);
            }
            Some(sums)
        });
        let Some(nodes) = nodes else {
            return;
        };
        self.groups.look_again(self.now.ns + PRESS_EVERY);
        if self.now.ns < self.groups.pressed_at + PRESS_EVERY {
            return;
        }
        self.groups.pressed_at = self.now.ns;
        for (node, resources) in nodes {
            self.send(node, from_control::Body::WantRoom(of(&resources)), out);
        }
    }

    /// The time has come to look at what waits.
    pub(crate) fn retry_groups(&mut self, now: Now, out: &mut impl Outbox) {
        if self.groups.retry_at.is_some_and(|at| now.ns >= at) {
            self.place_groups(out);
        }
    }

    /// Asks nodes to reserve what a group lacks; false: it must wait.
    pub(crate) fn place_group(&mut self, id: GroupId, out: &mut impl Outbox) -> bool {
        let group = &self.groups.live[&id];
        let Packing::Now(nodes) = pack(&self.room, &self.wanted_by(group)) else {
            return false;
        };
        let lacking = group.record.nodes.iter().enumerate().filter(|(_, node)| **node == 0);
        let lacking = lacking.map(|(index, _)| index as u32);
        let plan: Vec<(u32, u32)> = lacking.zip(nodes.iter().map(|node| node.0)).collect();
        self.groups.last_attempt += 1;
        let number = self.groups.last_attempt;
        let mut parts: BTreeMap<u32, Vec<NumberedBundle>> = BTreeMap::new();
        let group = self.groups.live.get_mut(&id).expect("lives");
        for &(index, node) in &plan {
            let resources = group.create().bundles[index as usize].resources.clone();
            self.room.take(NodeNumber(node), &of(&resources));
            parts.entry(node).or_default().push(NumberedBundle { index, resources });
        }
        let awaited = parts.keys().copied().collect();
        group.attempt = Some(Attempt { number, plan, awaited });
        group.attempts += 1;
        self.groups.queue(id);
        let commit = parts.len() == 1;
        for (node, bundles) in parts {
            let group = id.0.to_vec();
            let asked = Reserve { group, attempt: number, bundles, commit };
            self.send(node, from_control::Body::Reserve(asked), out);
        }
        true
    }

    /// A node has reserved bundles, or has not.
    pub(crate) fn on_reserved(&mut self, number: u32, answer: Reserved, out: &mut impl Outbox) {
        let Some(id) = GroupId::from_slice(&answer.group) else {
            return;
        };
        let group = self.groups.live.get_mut(&id);
        let is_current = |attempt: &&mut Attempt| attempt.number == answer.attempt;
        let attempt = group.and_then(|group| group.attempt.as_mut()).filter(is_current);
        // Of an attempt that was given up: what it has it was told to give back.
        let Some(attempt) = attempt else {
            return;
        };
        if !attempt.awaited.remove(&number) {
            return;
        }
        if answer.refused {
            let waiting = self.room.waiting(NodeNumber(number));
            self.room.report(NodeNumber(number), &answer.available, waiting);
            return self.on_refused(id, number, out);
        }
        if attempt.awaited.is_empty() {
            self.on_all_reserved(id, out);
        }
    }

    fn on_refused(&mut self, id: GroupId, by: u32, out: &mut impl Outbox) {
        self.give_up_attempt(id, by, out);
        let group = self.groups.live.get_mut(&id).expect("lives");
        let pause = (PAUSE << group.refusals.min(7)).min(LONGEST_PAUSE);
        group.refusals += 1;
        group.not_before = self.now.ns + pause;
        let at = group.not_before;
        self.groups.look_again(at);
        // Others may have waited for what this one gives back.
        self.place_groups(out);
    }

    /// Who has reserved bundles in the attempt of a group gives them back. One node has said what
    /// it has free: it is told all the same, lest its answer was to an earlier question.
    pub(crate) fn give_up_attempt(&mut self, id: GroupId, told: u32, out: &mut impl Outbox) {
        let Some(group) = self.groups.live.get_mut(&id) else {
            return;
        };
        let Some(attempt) = group.attempt.take() else {
            return;
        };
        for node in attempt.nodes() {
            let its = attempt.plan.iter().filter(|(_, at)| *at == node);
            let indexes: Vec<u32> = its.map(|(index, _)| *index).collect();
            for &index in indexes.iter().filter(|_| node != told) {
                let bundles = &self.groups.live[&id].create().bundles;
                self.room.give_back(NodeNumber(node), &of(&bundles[index as usize].resources));
            }
            let reason = "its placement group is not there yet".to_owned();
            let said = ReleaseBundles { group: id.0.to_vec(), indexes, reason };
            self.send(node, from_control::Body::ReleaseBundles(said), out);
        }
        self.groups.queue(id);
    }

    fn on_all_reserved(&mut self, id: GroupId, out: &mut impl Outbox) {
        let group = self.groups.live.get_mut(&id).expect("lives");
        let attempt = group.attempt.take().expect("was answered");
        let record = &mut group.record;
        // It leaves the queue as what it was.
        for &(index, node) in &attempt.plan {
            record.nodes[index as usize] = node;
        }
        group.refusals = 0;
        record.set_phase(GroupPhase::Created);
        record.reason.clear();
        if record.created_ms == 0 {
            record.created_ms = self.now.wall_ms.max(1);
            record.waited_us = match group.asked_at {
                0 => record.created_ms.saturating_sub(record.asked_ms) * 1000,
                at => (self.now.ns.saturating_sub(at) / 1000).max(1),
            };
        }
        self.groups.queue(id);
        self.write_group(id, out);
        let nodes = attempt.nodes();
        if nodes.len() > 1 {
            for &node in &nodes {
                self.send(node, from_control::Body::CommitGroup(id.0.to_vec()), out);
            }
        }
        self.tell_of_group(id, out);
        self.place_actors_of(id, out);
    }

    /// A group begins to wait for room.
    pub(crate) fn warn_of_group_later(&mut self, id: GroupId) {
        self.groups.to_warn_of.push_back((self.now.ns + WARN_AFTER, id));
    }

    /// Programs hear of groups that can never be created, once.
    pub(crate) fn warn_of_groups(&mut self, now: Now, out: &mut impl Outbox) {
        while let Some(&(_, id)) = self.groups.to_warn_of.front().filter(|&&(at, _)| now.ns >= at) {
            self.groups.to_warn_of.pop_front();
            let Some(group) = self.groups.live.get(&id).filter(|group| group.lacks_room()) else {
                continue;
            };
            if pack(&self.room, &self.wanted_by(group)) != Packing::Never {
                continue; // Others have what it needs, and will give it back.
            }
            let info = self.show_group(id);
            let called = match info.name.is_empty() {
                true => id.to_string(),
                false => format!("{:?} ({id})", info.name),
            };
            let bundles = info.bundles.iter().take(4).map(|b| show_amounts(&b.resources));
            let mut bundles = bundles.collect::<Vec<_>>().join(", ");
            if info.bundles.len() > 4 {
                bundles.push_str(", …");
            }
            let text = format!(
                "The placement group {called} with bundles [{bundles}] ({}) cannot be created: {}. \
                 It is created when that changes; `oxiray status` shows what waits.",
                info.strategy().name(),
                info.reason
            );
            let driver = match group.record.driver {
                0 => id.creator(),
                driver => oxiray_ids::ProcessId(driver),
            };
            if self.warned.insert((driver, text.clone())) {
                self.tell(driver, from_node::Body::Warning(Text { text }), out);
            }
        }
    }
}

fn add(sums: &mut Vec<Amount>, more: &[Amount]) {
    for amount in more {
        match sums.iter_mut().find(|sum| sum.name == amount.name) {
            Some(sum) => sum.amount = sum.amount.saturating_add(amount.amount),
            None => sums.push(amount.clone()),
        }
    }
}

/// A shape that needs so much, wherever.
pub(crate) fn of(resources: &[Amount]) -> Shape {
    Shape { resources: resources.to_vec(), ..Shape::default() }
}
