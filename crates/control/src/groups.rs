//! Placement groups: what is known of each, by its id and by its name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use oxiray_ids::{ActorId, GroupId, ProcessId};
use oxiray_scheduler::{Packing, explain_group, pack};
use oxiray_wire::cluster::{GroupInfo, GroupPlace, Introduce, from_control};
use oxiray_wire::control::{
    CreateGroup, FindGroups, GroupPhase, GroupScheduling, Groups as Found, from_node,
};
use prost::Message;

use crate::control::Control;
use crate::event::{Change, Now, Outbox, Table};
use crate::listing::{gone, living, part_of, places, shortened};
use crate::members::Member;
use crate::names::Name;
use crate::record::GroupRecord;
use crate::reserving::Attempt;

/// Nodes are asked to make room for a group that has waited for so long.
const PRESS_AFTER: u64 = 20_000_000;

/// Groups that were removed and are remembered, over restarts too.
const MOST_REMOVED: usize = 1_000;

/// A group that is not removed.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) record: GroupRecord,
    /// Nodes that want to hear how it fares.
    pub(crate) watchers: BTreeSet<u32>,
    /// Bundles that nodes were asked to reserve.
    pub(crate) attempt: Option<Attempt>,
    /// How often nodes were asked, and how often in a row in vain.
    pub(crate) attempts: u32,
    pub(crate) refusals: u32,
    /// Nobody is asked before.
    pub(crate) not_before: u64,
    /// When it was asked for; 0: before this service was started.
    pub(crate) asked_at: u64,
}

impl Group {
    pub(crate) fn create(&self) -> &CreateGroup {
        self.record.create.as_ref().expect("every record has it")
    }

    /// Whether bundles have no node.
    pub(crate) fn lacks_room(&self) -> bool {
        self.record.nodes.contains(&0)
    }

    fn name(&self) -> Option<Name> {
        let create = self.create();
        (!create.name.is_empty()).then(|| (create.namespace.clone(), create.name.clone()))
    }
}

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) live: BTreeMap<GroupId, Group>,
    names: BTreeMap<Name, GroupId>,
    /// Those that wait for room, in the order in which they are served: what lost bundles first.
    pub(crate) waiting: BTreeSet<(bool, u64, GroupId)>,
    removed: BTreeMap<GroupId, GroupRecord>,
    /// Of those, the first that was removed first.
    removed_order: VecDeque<GroupId>,
    last_order: u64,
    /// The last that a process asked for: ids count upwards.
    last_of: BTreeMap<ProcessId, u32>,
    /// Nodes that wait for groups which their creators have not asked for yet.
    expected: BTreeMap<(ProcessId, GroupId), BTreeSet<u32>>,
    /// Actors that are to be in a group, and the bundle that each is believed to be in.
    pub(crate) actors: BTreeMap<GroupId, BTreeMap<ActorId, Option<u32>>>,
    pub(crate) last_attempt: u64,
    /// When to look at those that wait.
    pub(crate) retry_at: Option<u64>,
    /// When nodes were last asked to make room for one of them.
    pub(crate) pressed_at: u64,
    /// Those that began to wait, and when somebody is to hear of it.
    pub(crate) to_warn_of: VecDeque<(u64, GroupId)>,
}

/// What became of a group that is asked for.
pub(crate) enum Whereabouts {
    Live,
    Expected,
    Removed,
}

impl Groups {
    /// None yet. Attempts have numbers that none had of a service before this one.
    pub(crate) fn from(now: Now) -> Self {
        Self { last_attempt: now.wall_ms << 16, ..Self::default() }
    }

    /// The processes that groups may end with, and those that are to make some.
    pub(crate) fn drivers(&self) -> impl Iterator<Item = ProcessId> {
        let drivers = self.live.values().map(|group| ProcessId(group.record.driver));
        drivers.chain(self.expected.keys().map(|&(creator, _)| creator))
    }

    /// Looks at groups that wait at this time, if there are any.
    pub(crate) fn look_again(&mut self, at: u64) {
        if !self.waiting.is_empty() {
            self.retry_at = Some(self.retry_at.map_or(at, |earlier| earlier.min(at)));
        }
    }

    pub(crate) fn next_warning(&self) -> Option<u64> {
        self.to_warn_of.front().map(|&(at, _)| at)
    }

    /// A group is in the queue for room if it lacks some and nobody is being asked for it.
    pub(crate) fn queue(&mut self, id: GroupId) {
        let group = &self.live[&id];
        let is_new = group.record.phase() == GroupPhase::Pending;
        let entry = (is_new, group.record.order, id);
        match group.lacks_room() && group.attempt.is_none() {
            true => self.waiting.insert(entry),
            false => self.waiting.remove(&entry),
        };
    }

    /// Takes a group out of everything but what is remembered of it.
    pub(crate) fn take(&mut self, id: GroupId) -> Option<Group> {
        let group = self.live.remove(&id)?;
        let is_new = group.record.phase() == GroupPhase::Pending;
        self.waiting.remove(&(is_new, group.record.order, id));
        if let Some(name) = group.name() {
            self.names.remove(&name);
        }
        Some(group)
    }

    pub(crate) fn remember(&mut self, id: GroupId, mut record: GroupRecord, out: &mut impl Outbox) {
        self.last_order += 1;
        record.order = self.last_order;
        record.set_phase(GroupPhase::Removed);
        record.nodes = vec![0; record.nodes.len()];
        out.persist(Change::put(Table::Group, id.0, record.encode_to_vec()));
        self.removed.insert(id, record);
        self.removed_order.push_back(id);
        if self.removed_order.len() > MOST_REMOVED
            && let Some(oldest) = self.removed_order.pop_front()
        {
            self.removed.remove(&oldest);
            out.persist(Change::delete(Table::Group, oldest.0));
        }
    }

    /// Nodes that wait for groups of a process, which is gone.
    pub(crate) fn forget_expected(&mut self, creator: ProcessId) -> Vec<(GroupId, BTreeSet<u32>)> {
        self.last_of.remove(&creator);
        let all = (creator, GroupId([0; 18]))..=(creator, GroupId::NIL);
        let ids: Vec<GroupId> = self.expected.range(all).map(|(&(_, id), _)| id).collect();
        let taken = |id: GroupId| Some((id, self.expected.remove(&(creator, id))?));
        ids.into_iter().filter_map(taken).collect()
    }

    /// Takes in what was kept; false: it contradicts what is there.
    pub(crate) fn restore(&mut self, id: GroupId, record: GroupRecord) -> bool {
        self.last_order = self.last_order.max(record.order);
        let last = self.last_of.entry(id.creator()).or_default();
        *last = (*last).max(id.counter());
        if record.phase() == GroupPhase::Removed {
            self.removed.insert(id, record);
            return true;
        }
        let group = Group { record, ..Group::default() };
        if let Some(name) = group.name()
            && self.names.insert(name, id).is_some()
        {
            return false;
        }
        self.live.insert(id, group);
        self.queue(id);
        true
    }

    /// Panics when C-9 does not hold.
    pub(crate) fn validate(&self, members: &BTreeMap<u32, Member>) {
        for (id, group) in &self.live {
            let record = &group.record;
            let is_at = |node: &u32| *node == 0 || members.contains_key(node);
            assert!(record.nodes.iter().all(is_at), "C-9: {id} is at a node that left");
            let is_new = record.phase() == GroupPhase::Pending;
            let waits = self.waiting.contains(&(is_new, record.order, *id));
            assert_eq!(waits, group.lacks_room() && group.attempt.is_none(), "C-9: {id} waits");
            assert_eq!(
                record.phase() == GroupPhase::Created,
                !group.lacks_room(),
                "C-9: {id} has all its bundles"
            );
            if is_new {
                assert!(record.nodes.iter().all(|node| *node == 0), "C-9: {id} has a part");
            }
            assert!(!self.removed.contains_key(id), "C-9: {id} was removed");
        }
        assert!(self.waiting.iter().all(|(_, _, id)| self.live.contains_key(id)), "C-9");
        assert!(self.names.values().all(|id| self.live.contains_key(id)), "C-9: names");
        assert_eq!(self.removed.len(), self.removed_order.len());
    }

    /// All records can be read; together they must say nothing that cannot be. The one that does.
    pub(crate) fn settle_restored(&mut self, members: &BTreeMap<u32, Member>) -> Option<GroupId> {
        let mut removed: Vec<(u64, GroupId)> =
            self.removed.iter().map(|(id, record)| (record.order, *id)).collect();
        removed.sort_unstable();
        self.removed_order = removed.into_iter().map(|(_, id)| id).collect();
        let is_wrong = |(_, group): &(&GroupId, &Group)| {
            let nodes = &group.record.nodes;
            nodes.iter().any(|node| *node != 0 && !members.contains_key(node))
                || (group.record.phase() == GroupPhase::Created) == group.lacks_room()
        };
        self.live.iter().find(is_wrong).map(|(id, _)| *id)
    }

    pub(crate) fn kept(&self) -> impl Iterator<Item = (GroupId, Vec<u8>)> {
        let live = self.live.iter().map(|(id, group)| (*id, group.record.encode_to_vec()));
        live.chain(self.removed.iter().map(|(id, record)| (*id, record.encode_to_vec())))
    }
}

impl Control {
    /// What became of a group.
    pub(crate) fn whereabouts(&self, id: GroupId) -> Whereabouts {
        let last = self.groups.last_of.get(&id.creator()).copied().unwrap_or(0);
        match () {
            () if self.groups.live.contains_key(&id) => Whereabouts::Live,
            () if id.counter() > last && self.is_alive(id.creator()) => Whereabouts::Expected,
            () => Whereabouts::Removed,
        }
    }

    pub(crate) fn on_create_group(
        &mut self,
        creator: ProcessId,
        create: CreateGroup,
        about: Option<Introduce>,
        out: &mut impl Outbox,
    ) {
        let Some(id) = GroupId::from_slice(&create.group).filter(|id| id.creator() == creator)
        else {
            return out.note(format!("process {creator} asks for a group that is not its own"));
        };
        let (request, name) = (create.request, (create.namespace.clone(), create.name.clone()));
        let is_taken = !create.name.is_empty() && self.groups.names.contains_key(&name);
        // Its node may say it again after this service was away, and then after later ones.
        let is_new = !self.groups.live.contains_key(&id) && !self.groups.removed.contains_key(&id);
        if is_new && self.is_alive(creator) {
            let last = self.groups.last_of.entry(creator).or_default();
            *last = (*last).max(id.counter());
            let watchers = self.groups.expected.remove(&(creator, id)).unwrap_or_default();
            if !is_taken {
                self.begin_group(id, create, about, watchers, out);
            }
        }
        if request != 0 {
            let wanted =
                FindGroups { request, name: name.1, namespace: name.0, ..FindGroups::default() };
            self.tell(creator, from_node::Body::Groups(self.find_groups(wanted)), out);
        }
        // Its node asks again, because this service was away; or it will never be.
        self.on_watch_group(creator.node(), &id.0, out);
    }

    fn begin_group(
        &mut self,
        id: GroupId,
        create: CreateGroup,
        about: Option<Introduce>,
        watchers: BTreeSet<u32>,
        out: &mut impl Outbox,
    ) {
        let config = about.and_then(|about| about.config);
        let driver = config.map_or(id.creator().0, |config| config.driver);
        // What a detached actor makes ends with that, whatever becomes of the program.
        let by_detached = ActorId::from_slice(&create.actor)
            .and_then(|actor| self.actors.get(&actor))
            .and_then(|actor| actor.record.create.as_ref())
            .is_some_and(|create| create.detached);
        self.groups.last_order += 1;
        let record = GroupRecord {
            driver: if create.detached || by_detached { 0 } else { driver },
            nodes: vec![0; create.bundles.len()],
            asked_ms: self.now.wall_ms,
            order: self.groups.last_order,
            create: Some(create),
            ..GroupRecord::default()
        };
        let group = Group { record, watchers, asked_at: self.now.ns, ..Group::default() };
        if let Some(name) = group.name() {
            self.groups.names.insert(name, id);
        }
        self.groups.live.insert(id, group);
        self.groups.queue(id);
        self.write_group(id, out);
        if !self.place_group(id, out) {
            self.groups.look_again(self.now.ns + PRESS_AFTER);
            self.warn_of_group_later(id);
            self.tell_of_group(id, out);
        }
    }

    /// Keeps what is recorded of a group.
    pub(crate) fn write_group(&self, id: GroupId, out: &mut impl Outbox) {
        let value = self.groups.live[&id].record.encode_to_vec();
        out.persist(Change::put(Table::Group, id.0, value));
    }

    /// A node wants to hear how a group fares.
    pub(crate) fn on_watch_group(&mut self, number: u32, group: &[u8], out: &mut impl Outbox) {
        let Some(id) = GroupId::from_slice(group) else {
            return;
        };
        match self.whereabouts(id) {
            Whereabouts::Live => {
                let group = self.groups.live.get_mut(&id).expect("lives");
                group.watchers.insert(number);
                let news = self.show_group(id);
                self.send(number, from_control::Body::GroupNews(news), out);
            }
            Whereabouts::Expected => {
                let expected = self.groups.expected.entry((id.creator(), id)).or_default();
                expected.insert(number);
            }
            Whereabouts::Removed => self.tell_of_removed(id, &BTreeSet::from([number]), out),
        }
    }

    /// Tells nodes that a group is not there any more.
    pub(crate) fn tell_of_removed(&self, id: GroupId, to: &BTreeSet<u32>, out: &mut impl Outbox) {
        let removed = self.groups.removed.get(&id);
        let reason = removed.map_or("nothing is known of it", |record| &record.reason);
        let (group, phase) = (id.0.to_vec(), GroupPhase::Removed as i32);
        let news = GroupInfo { group, phase, reason: reason.into(), ..GroupInfo::default() };
        for &number in to {
            self.send(number, from_control::Body::GroupNews(news.clone()), out);
        }
    }

    /// Tells the nodes that want to know how a group fares.
    pub(crate) fn tell_of_group(&self, id: GroupId, out: &mut impl Outbox) {
        let news = self.show_group(id);
        for &number in &self.groups.live[&id].watchers {
            self.send(number, from_control::Body::GroupNews(news.clone()), out);
        }
    }

    pub(crate) fn find_groups(&self, wanted: FindGroups) -> Found {
        let FindGroups { request, group, name, namespace, after } = wanted;
        let named = self.groups.names.get(&(namespace, name.clone())).copied();
        let id = match name.is_empty() {
            true => GroupId::from_slice(&group),
            false => named,
        };
        let (groups, next) = match id {
            Some(id) => (self.show_any(id).into_iter().collect(), Vec::new()),
            None if name.is_empty() && group.is_empty() => self.groups_after(&after),
            None => (Vec::new(), Vec::new()),
        };
        Found { request, groups, next }
    }

    /// Groups in parts: those that live, and the last that were removed.
    pub(crate) fn groups_after(&self, after: &[u8]) -> (Vec<GroupInfo>, Vec<u8>) {
        let (live, removed) = places(after, GroupId::from_slice);
        let groups = &self.groups;
        let live = live.map(|from| groups.live.range((from, Bound::Unbounded)));
        let live = live.into_iter().flatten();
        let live = live.map(|(&id, _)| (living(&id.0), self.show_group(id)));
        let removed = groups.removed.range((removed, Bound::Unbounded));
        let removed = removed.map(|(id, record)| (gone(&id.0), show_record(record)));
        part_of(live.chain(removed))
    }

    fn show_any(&self, id: GroupId) -> Option<GroupInfo> {
        match self.groups.live.contains_key(&id) {
            true => Some(self.show_group(id)),
            false => self.groups.removed.get(&id).map(show_record),
        }
    }

    /// A group that lives. Why it waits is found out now.
    pub(crate) fn show_group(&self, id: GroupId) -> GroupInfo {
        let group = &self.groups.live[&id];
        let mut info = show_record(&group.record);
        info.attempts = group.attempts;
        if group.lacks_room() {
            let wanted = self.wanted_by(group);
            let (scheduling, why) = match &group.attempt {
                Some(_) => {
                    let why = "nodes are being asked to reserve its bundles".to_owned();
                    (GroupScheduling::Started, why)
                }
                None if pack(&self.room, &wanted) == Packing::Never => {
                    (GroupScheduling::Infeasible, explain_group(&self.room, &wanted))
                }
                None => (GroupScheduling::NoResources, explain_group(&self.room, &wanted)),
            };
            info.set_scheduling(scheduling);
            info.reason = match group.record.reason.is_empty() {
                true => why,
                false => format!("{}; {why}", group.record.reason),
            };
        }
        let mut nodes = group.record.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        let place = |node: u32| {
            let id = self.members.get(&node)?.info.id.clone();
            Some(GroupPlace { node, id })
        };
        info.places = nodes.into_iter().filter_map(place).collect();
        info
    }
}

fn show_record(record: &GroupRecord) -> GroupInfo {
    let create = record.create.clone().unwrap_or_default();
    GroupInfo {
        group: create.group,
        name: shortened(&create.name),
        namespace: shortened(&create.namespace),
        strategy: create.strategy,
        phase: record.phase,
        bundles: create.bundles,
        nodes: record.nodes.clone(),
        places: Vec::new(),
        detached: create.detached,
        reason: shortened(&record.reason),
        actor: create.actor,
        asked_ms: record.asked_ms,
        created_ms: record.created_ms,
        removed_ms: record.removed_ms,
        waited_us: record.waited_us,
        attempts: 0,
        scheduling: GroupScheduling::Over as i32,
    }
}
