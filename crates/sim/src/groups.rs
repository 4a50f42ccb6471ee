//! Placement groups among nodes that die and come: programs make them, wait for them, remove them,
//! or end meanwhile.

use std::collections::BTreeMap;

use oxiray_ids::{GroupId, ProcessId};
use oxiray_wire::control::{
    Amount, Bundle, CreateGroup, Group, GroupPhase, GroupState, GroupStrategy, UNIT, to_node,
};

use crate::happening::Happening;
use crate::plan::MILLISECOND;
use crate::world::World;

/// A group is kept for at most so long.
const LONGEST: u64 = 300 * MILLISECOND;

/// What a program knows of its groups.
#[derive(Debug, Default)]
pub(crate) struct Made {
    last: u32,
    /// Those that are not removed: whether each was created.
    live: BTreeMap<GroupId, bool>,
    /// How many were created in all.
    pub(crate) created: u64,
}

impl World {
    /// Some program makes a group that the cluster has room for when nothing else runs.
    pub(crate) fn make_group(&mut self) {
        let programs = self.drivers.iter().filter_map(|driver| driver.process);
        let programs: Vec<ProcessId> = programs.filter(|id| self.lives(*id)).collect();
        if programs.is_empty() {
            return;
        }
        let creator = programs[self.random.place(programs.len())];
        let strategy = GroupStrategy::ALL[self.random.place(4)];
        let (nodes, cpus) = (self.plan.nodes as u64, self.plan.cpus);
        let (most, each) = match strategy {
            GroupStrategy::StrictPack => (cpus, 1),
            _ => (nodes, cpus),
        };
        let count = self.random.between(1, most.min(8) + 1);
        let bundle = |amount: u64| Bundle {
            resources: vec![Amount { name: "CPU".into(), amount }],
            labels: Vec::new(),
        };
        let bundles = (0..count).map(|_| bundle(self.random.between(1, each + 1) * UNIT)).collect();
        self.groups.last += 1;
        let job = self.process_mut(creator).job;
        let id = GroupId::new(job, creator, self.groups.last);
        let create = CreateGroup {
            group: id.0.to_vec(),
            strategy: strategy as i32,
            bundles,
            ..CreateGroup::default()
        };
        self.groups.live.insert(id, false);
        self.tell_node(creator, to_node::Body::CreateGroup(create));
        if self.random.once_in(3) {
            self.remove_later(id);
        }
    }

    fn remove_later(&mut self, id: GroupId) {
        let at = self.now + self.random.between(0, LONGEST);
        self.agenda.add(at, Happening::GroupIsRemoved(id));
    }

    pub(crate) fn remove_group(&mut self, id: GroupId) {
        if self.lives(id.creator()) {
            let group = Group { group: id.0.to_vec() };
            self.tell_node(id.creator(), to_node::Body::RemoveGroup(group));
        }
    }

    /// A program hears how a group fares.
    pub(crate) fn hears_of_group(&mut self, state: &GroupState) {
        let Some(id) = GroupId::from_slice(&state.group) else {
            return;
        };
        let Some(created) = self.groups.live.get_mut(&id) else {
            return;
        };
        match state.phase() {
            GroupPhase::Created if !std::mem::replace(created, true) => {
                self.groups.created += 1;
                self.remove_later(id);
            }
            GroupPhase::Removed => _ = self.groups.live.remove(&id),
            _ => return,
        }
        self.progress();
    }

    /// Groups of programs that live and have not been removed.
    pub(crate) fn groups_left(&self) -> Vec<(GroupId, bool)> {
        let live = self.groups.live.iter().map(|(id, created)| (*id, *created));
        live.filter(|(id, _)| self.lives(id.creator())).collect()
    }
}
