//! Placement groups that processes of this node have to do with: where their bundles are, and who
//! is to hear how they fare. The control service knows; a node asks it once, and is told of every
//! change until the group is removed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{GroupId, ProcessId};
use oxiray_scheduler::{BundleKey, Choice, NodeNumber};
use oxiray_wire::cluster::{GroupInfo, HeldBundle, to_control};
use oxiray_wire::control::to_node::Body;
use oxiray_wire::control::{
    Bundle, CreateGroup, Group, GroupPhase, GroupState, Shape, Unschedulable, from_node,
};
use oxiray_wire::frame::FailureCode;

use crate::event::Outbox;
use crate::node::Node;
use crate::schedule::ShapeId;

/// What a removed group's tasks fail with, if nobody says more.
const REMOVED: &str = "it was removed, or was never there";

/// A group that is not removed.
#[derive(Debug, Default)]
pub(crate) struct KnownGroup {
    /// `None`: nothing was heard of it yet.
    phase: Option<GroupPhase>,
    bundles: Vec<Bundle>,
    /// Of each bundle; 0: nowhere yet.
    nodes: Vec<u32>,
    reason: String,
    /// Nodes that declined leases in it, until they say that something came free.
    full: BTreeSet<u32>,
    watchers: BTreeSet<ProcessId>,
}

/// What a node knows of groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    known: BTreeMap<GroupId, KnownGroup>,
    /// What the control service has not said that it knows.
    creating: BTreeMap<GroupId, (ProcessId, Body)>,
    removing: BTreeMap<GroupId, (ProcessId, Body)>,
    /// Nodes whose leases were declined in bundles here: they hear when something comes free.
    pub(crate) declined: BTreeMap<GroupId, BTreeSet<u32>>,
    /// Shapes of removed groups that something still referred to.
    stale_shapes: Vec<ShapeId>,
}

impl KnownGroup {
    /// The nodes with bundles that could take a shape, and how often each.
    fn candidates(&self, shape: &Shape, index: Option<u32>) -> BTreeMap<u32, u64> {
        let mut found = BTreeMap::new();
        for (at, (bundle, &node)) in self.bundles.iter().zip(&self.nodes).enumerate() {
            let is_meant = index.is_none_or(|index| index as usize == at);
            let times = times(bundle, shape);
            if is_meant && node != 0 && times > 0 {
                let sum = found.entry(node).or_insert(0u64);
                *sum = sum.saturating_add(times);
            }
        }
        found
    }
}

/// How often a shape goes into a bundle.
fn times(bundle: &Bundle, shape: &Shape) -> u64 {
    let needs = shape.resources.iter().filter(|need| need.amount > 0);
    let often = needs.map(|need| {
        let has = bundle.resources.iter().find(|amount| amount.name == need.name);
        has.map_or(0, |has| has.amount / need.amount)
    });
    often.min().unwrap_or(u64::MAX)
}

impl Node {
    /// A process of ours makes a group: the control service is asked for it.
    pub(crate) fn on_create_group(&mut self, from: ProcessId, create: &CreateGroup, body: &Body) {
        if let Some(id) = GroupId::from_slice(&create.group) {
            self.groups.creating.insert(id, (from, body.clone()));
            let known = self.groups.known.entry(id).or_default();
            known.phase.get_or_insert(GroupPhase::Pending);
            known.watchers.insert(from);
        }
    }

    pub(crate) fn on_remove_group(&mut self, from: ProcessId, group: &Group, body: &Body) {
        if let Some(id) = GroupId::from_slice(&group.group) {
            self.groups.removing.insert(id, (from, body.clone()));
            // Whoever asks for it now is to hear that it is gone.
            if let Some(known) = self.groups.known.get_mut(&id) {
                known.phase = None;
            }
        }
    }

    /// A process of ours wants to hear how a group fares.
    pub(crate) fn on_watch_group(&mut self, from: ProcessId, group: &Group, out: &mut impl Outbox) {
        let Some(id) = GroupId::from_slice(&group.group) else {
            return;
        };
        self.get_to_know_group(id, out);
        let known = self.groups.known.get_mut(&id).expect("is known now");
        known.watchers.insert(from);
        if let Some(phase) = known.phase {
            out.send(from, state_of(id, phase, &known.reason));
        }
    }

    /// Asks for news of a group, unless they come anyhow.
    pub(crate) fn get_to_know_group(&mut self, id: GroupId, out: &mut impl Outbox) {
        if let Entry::Vacant(entry) = self.groups.known.entry(id) {
            entry.insert(KnownGroup::default());
            self.tell_control(to_control::Body::WatchGroup(id.0.to_vec()), out);
        }
    }

    /// The control service says how a group fares.
    pub(crate) fn on_group_news(&mut self, info: GroupInfo, out: &mut impl Outbox) {
        let Some(id) = GroupId::from_slice(&info.group) else {
            return;
        };
        let phase = info.phase();
        self.groups.creating.remove(&id);
        self.member.view_changes += 1;
        if phase == GroupPhase::Removed {
            return self.on_group_removed(id, info.reason, out);
        }
        let Some(known) = self.groups.known.get_mut(&id) else {
            return;
        };
        let changed = known.phase != Some(phase);
        let watchers = known.watchers.clone();
        *known = KnownGroup {
            phase: Some(phase),
            bundles: info.bundles,
            nodes: info.nodes,
            reason: info.reason,
            full: BTreeSet::new(),
            watchers,
        };
        if changed {
            for &watcher in &known.watchers {
                out.send(watcher, state_of(id, phase, &known.reason));
            }
        }
    }

    /// A group is gone: what waits to be in it fails.
    fn on_group_removed(&mut self, id: GroupId, reason: String, out: &mut impl Outbox) {
        self.groups.removing.remove(&id);
        self.groups.declined.remove(&id);
        let known = self.groups.known.remove(&id).unwrap_or_default();
        for watcher in known.watchers {
            out.send(watcher, state_of(id, GroupPhase::Removed, &reason));
        }
        let is_its = |shape: &ShapeId| {
            let place = self.schedule.shapes[shape.0].wanted.place;
            place.is_some_and(|(group, _)| group == id)
        };
        let shapes = (0..self.schedule.shapes.len()).map(ShapeId).filter(is_its);
        let shapes: BTreeSet<ShapeId> = shapes.collect();
        let mut ended = Vec::new();
        for (&process, state) in &self.processes {
            let its = state.demands.iter().filter(|(_, demand)| shapes.contains(&demand.shape));
            ended.extend(its.map(|(&key, _)| (process, key)));
        }
        let reason = if reason.is_empty() { REMOVED.to_owned() } else { reason };
        for (process, shape_key) in ended {
            self.end_demand(process, shape_key, out);
            if !self.is_elsewhere(process) {
                let reason = format!("its placement group {id} is not there: {reason}");
                let failure = FailureCode::TaskGroupRemoved as u32;
                let failed = Unschedulable { shape_key, reason, failure };
                out.send(process, from_node::Body::Unschedulable(failed));
            }
        }
        self.groups.stale_shapes.extend(shapes);
        self.forget_stale_shapes();
    }

    /// Shapes of groups that are gone make room for others, once nothing refers to them.
    fn forget_stale_shapes(&mut self) {
        let stale = std::mem::take(&mut self.groups.stale_shapes);
        let mut used: BTreeSet<ShapeId> = self.leases.values().map(|lease| lease.shape).collect();
        used.extend(self.member.leased.values().copied());
        used.extend(self.schedule.shapes_of_actors());
        let demands = self.processes.values().flat_map(|process| process.demands.values());
        used.extend(demands.map(|demand| demand.shape));
        let (used, unused): (Vec<_>, Vec<_>) =
            stale.into_iter().partition(|shape| used.contains(shape));
        for shape in unused {
            self.schedule.forget(shape, &mut self.environments);
        }
        self.groups.stale_shapes = used;
    }

    /// A process is gone, and hears nothing more.
    pub(crate) fn forget_group_watcher(&mut self, process: ProcessId) {
        let groups = &mut self.groups;
        groups.creating.retain(|_, (creator, _)| *creator != process);
        groups.removing.retain(|_, (remover, _)| *remover != process);
        for known in groups.known.values_mut() {
            known.watchers.remove(&process);
        }
    }

    /// The control service is there again: it may have missed what was asked of it.
    pub(crate) fn say_groups_again(&mut self, out: &mut impl Outbox) {
        let groups = &self.groups;
        let again = groups.creating.values().chain(groups.removing.values()).cloned();
        let again: Vec<_> = again.collect();
        let known: Vec<GroupId> = groups.known.keys().copied().collect();
        for (process, body) in again {
            self.tell_control_of(process, body, out);
        }
        for id in known {
            self.tell_control(to_control::Body::WatchGroup(id.0.to_vec()), out);
        }
    }

    /// What is reserved here, for a control service that was away.
    pub(crate) fn bundles_here(&self) -> Vec<HeldBundle> {
        let held = |(group, index): BundleKey| HeldBundle { group: group.0.to_vec(), index };
        self.ledger.bundles().map(held).collect()
    }

    /// The bundles that are reserved here.
    pub fn bundles(&self) -> Vec<BundleKey> {
        self.ledger.bundles().collect()
    }

    /// Where a unit goes that is to be in a group; `asked`: how many each node was asked for.
    /// Where bundles are full, it waits there if there is but one node, or here.
    pub(crate) fn choose_in_group(
        &self,
        id: ShapeId,
        (group, index): (GroupId, Option<u32>),
        asked: impl Fn(u32) -> u64,
    ) -> Choice {
        let Some(known) = self.groups.known.get(&group) else {
            return Choice::Infeasible; // It is asked for.
        };
        let shape = &self.schedule.shapes[id.0].shape;
        let mut candidates = known.candidates(shape, index);
        // A node that has left answers nothing, and where its bundles go is not known yet.
        candidates.retain(|node, _| self.member.infos.contains_key(node));
        let placed = self.member.placed_here.iter().filter(|placed| **placed == id).count() as u64;
        let has_room = |&(&node, &times): &(&u32, &u64)| match node == self.number {
            true => self.ledger.fits(shape) && placed < times,
            false => {
                let away = self.member.unreachable.contains(&node) || known.full.contains(&node);
                !away && asked(node) < times
            }
        };
        let turn = self.member.turn;
        let rank = |node: u32| {
            let near = [self.number, shape.near].contains(&node);
            (!near, asked(node), u64::from(node).wrapping_add(turn) % candidates.len() as u64)
        };
        let best =
            candidates.iter().filter(has_room).map(|(&node, _)| node).min_by_key(|n| rank(*n));
        if let Some(node) = best {
            return Choice::Now(NodeNumber(node));
        }
        match candidates.keys().next() {
            Some(&only) if candidates.len() == 1 => Choice::Queue(NodeNumber(only)),
            Some(_) if candidates.contains_key(&self.number) => {
                Choice::Queue(NodeNumber(self.number))
            }
            _ => Choice::Infeasible,
        }
    }

    /// A node has no room in its bundles of a group, until it says otherwise.
    pub(crate) fn note_full(&mut self, group: GroupId, node: u32, is_full: bool) {
        if let Some(known) = self.groups.known.get_mut(&group) {
            match is_full {
                true => known.full.insert(node),
                false => known.full.remove(&node),
            };
            self.member.view_changes += u64::from(!is_full);
        }
    }

    /// Nothing is known any more of how full a node is.
    pub(crate) fn forget_full(&mut self, node: u32) {
        for known in self.groups.known.values_mut() {
            known.full.remove(&node);
        }
        for told in self.groups.declined.values_mut() {
            told.remove(&node);
        }
    }

    /// Whether other nodes have bundles that could take a shape.
    pub(crate) fn is_in_group_elsewhere(
        &self,
        shape: &Shape,
        (group, index): (GroupId, Option<u32>),
    ) -> bool {
        let known = self.groups.known.get(&group);
        let candidates = known.map(|known| known.candidates(shape, index)).unwrap_or_default();
        candidates.keys().any(|node| *node != self.number)
    }

    /// Why a shape that is to be in a group is not served now.
    pub(crate) fn why_in_group(
        &self,
        shape: &Shape,
        (group, index): (GroupId, Option<u32>),
    ) -> String {
        let called = format!("placement group {group}");
        let Some(known) = self.groups.known.get(&group).filter(|known| known.phase.is_some())
        else {
            return format!("nothing was heard of its {called} yet");
        };
        let candidates = known.candidates(shape, index);
        let needs = oxiray_scheduler::show_amounts(&shape.resources);
        let which = index.map_or("no bundle".to_owned(), |index| format!("bundle {index}"));
        match known.phase {
            Some(GroupPhase::Created) if candidates.is_empty() => match index {
                Some(_) => format!("needs {needs}, and {which} of its {called} is smaller"),
                None => format!("needs {needs}, and {which} of its {called} is so large"),
            },
            Some(GroupPhase::Created) if self.ledger.fits(shape) => {
                format!("needs {needs} in its {called}; a worker is being started")
            }
            Some(GroupPhase::Created) => match index {
                Some(_) => format!("needs {needs}, which others have in {which} of its {called}"),
                None => format!("needs {needs}, which others have in every bundle of its {called}"),
            },
            _ => {
                let reason = if known.reason.is_empty() { "it is new" } else { &known.reason };
                format!("its {called} is not there yet: {reason}")
            }
        }
    }
}

fn state_of(id: GroupId, phase: GroupPhase, reason: &str) -> from_node::Body {
    let (group, phase, reason) = (id.0.to_vec(), phase as i32, reason.to_owned());
    from_node::Body::GroupState(GroupState { group, phase, reason })
}
