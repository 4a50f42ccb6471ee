//! Placement groups that this process made, or that somebody in it waits for. The node says how
//! they fare; what is not here is removed, or nobody has asked.

use std::sync::atomic::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_ids::{GroupId, ObjectId};
use oxiray_owner::{Content, ObjectKey};
use oxiray_wire::control::{CreateGroup, Group, GroupPhase, GroupState, to_node};
use oxiray_wire::frame::FailureCode;

use crate::runtime::{Runtime, State};

/// A group that is not known to be removed.
#[derive(Default)]
pub(crate) struct Watched {
    is_created: bool,
    /// This process has removed it: that it was created is old news.
    is_removed: bool,
    /// What `ready` gave out: the object, and its value once the group is there.
    promised: Vec<(ObjectKey, Content)>,
}

pub(crate) type Groups = HashMap<GroupId, Watched, RandomState>;

/// Whether a group is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fare {
    /// It waits for room.
    Waits,
    /// It was created. Since then it may have lost bundles.
    Created,
    /// It will not be, or is no more.
    Removed,
}

impl State {
    /// How a group fares that [`Runtime::watch_group`] was asked for.
    pub fn fare_of(&self, id: &GroupId) -> Fare {
        match self.groups.get(id) {
            None => Fare::Removed,
            Some(watched) if watched.is_created => Fare::Created,
            Some(_) => Fare::Waits,
        }
    }

    /// The node says how a group fares.
    pub(crate) fn on_group_state(&mut self, said: &GroupState) {
        let Some(id) = GroupId::from_slice(&said.group) else {
            return;
        };
        match said.phase() {
            GroupPhase::Pending => {}
            GroupPhase::Removed => {
                let watched = self.groups.remove(&id).unwrap_or_default();
                let why = format!("the placement group {id} is not there: {}", said.reason);
                for (key, _) in watched.promised {
                    let failure = Content::failed(FailureCode::TaskGroupRemoved, &*why);
                    self.owner.keep_promise(key, failure, &mut self.io);
                }
            }
            // Once created is created: what it lost since comes back by itself.
            GroupPhase::Created | GroupPhase::Rescheduling => {
                let Some(watched) = self.groups.get_mut(&id) else {
                    return;
                };
                if watched.is_removed {
                    return;
                }
                watched.is_created = true;
                for (key, content) in std::mem::take(&mut watched.promised) {
                    self.owner.keep_promise(key, content, &mut self.io);
                }
            }
        }
    }
}

impl Runtime {
    /// An id for a new group of ours. Under the lock of the state, and said to the node before that
    /// is let go: the control service counts on the order.
    fn next_group_id(&self) -> GroupId {
        let counter = self.last_group.fetch_add(1, Ordering::Relaxed) + 1;
        GroupId::new(self.job(), self.identity.process, counter)
    }

    /// Makes a group. `None`: the session has ended, or `interrupted` said so; no group in it: its
    /// name is taken.
    pub fn create_group(
        &self,
        create: CreateGroup,
        interrupted: impl FnMut() -> bool,
    ) -> Option<Option<GroupId>> {
        if create.name.is_empty() {
            let state = &mut *self.lock();
            let id = self.next_group_id();
            state.groups.insert(id, Watched::default());
            let create = CreateGroup { group: id.0.to_vec(), ..create };
            state.io.tell_node(to_node::Body::CreateGroup(create));
            return Some(Some(id));
        }
        let mut made = None;
        let found = self.ask_for_group(
            || {
                let id = *made.insert(self.next_group_id());
                CreateGroup { group: id.0.to_vec(), ..create }
            },
            interrupted,
        );
        let id = made?;
        let Some(found) = found else {
            self.remove_group(id); // It may have been made all the same.
            return None;
        };
        let is_ours = found.groups.first().is_some_and(|bearer| bearer.group == id.0);
        if is_ours {
            self.watch_group(id);
        }
        Some(is_ours.then_some(id))
    }

    /// Ends a group, with what is in it.
    pub fn remove_group(&self, id: GroupId) {
        let state = &mut *self.lock();
        if let Some(watched) = state.groups.get_mut(&id) {
            // From now on nobody finds it there.
            (watched.is_created, watched.is_removed) = (false, true);
        }
        let group = Group { group: id.0.to_vec() };
        state.io.tell_node(to_node::Body::RemoveGroup(group));
    }

    /// Wants to hear how a group fares.
    pub fn watch_group(&self, id: GroupId) {
        watch(&mut self.lock(), id);
    }

    /// An object that has this value once a group is created, and fails if that never is.
    pub fn group_ready(&self, id: GroupId, value: Content) -> (ObjectId, ObjectKey) {
        let object = self.next_put_id();
        let state = &mut *self.lock();
        let key = state.owner.promise(object);
        let watched = watch(state, id);
        match watched.is_created {
            false => watched.promised.push((key, value)),
            true => state.owner.keep_promise(key, value, &mut state.io),
        }
        (object, key)
    }
}

fn watch(state: &mut State, id: GroupId) -> &mut Watched {
    let State { groups, io, .. } = state;
    groups.entry(id).or_insert_with(|| {
        io.tell_node(to_node::Body::WatchGroup(Group { group: id.0.to_vec() }));
        Watched::default()
    })
}
