//! Placement groups.

use oxiray_ids::GroupId;
use oxiray_wire::cluster::GroupInfo;
use oxiray_wire::control::{GroupPhase, GroupScheduling, GroupStrategy};

use super::{amounts, hex, if_said, if_set};
use crate::row::{Amounts, row, words};

words! {
    /// Where a placement group is in its life.
    PlacementGroupState {
        /// It waits for room.
        Pending = "PENDING",
        /// All its bundles are reserved.
        Created = "CREATED",
        /// Bundles were lost with a node, and wait for room.
        Rescheduling = "RESCHEDULING",
        /// For good.
        Removed = "REMOVED",
    }
}

words! {
    /// Where the bundles of a placement group are to be.
    PlacementStrategy {
        /// On few nodes.
        Pack = "PACK",
        /// On many.
        Spread = "SPREAD",
        /// On one.
        StrictPack = "STRICT_PACK",
        /// Each on one of its own.
        StrictSpread = "STRICT_SPREAD",
    }
}

row! {
    /// A placement group, removed or not.
    PlacementGroupRow of group: &GroupInfo;
    /// The group.
    placement_group_id: String [Id, Searched, Table] = hex(&group.group);
    /// Its name, if it was given one.
    name: Option<String> [Searched, Table] = if_said(&group.name);
    /// Where it is in its life.
    state: PlacementGroupState [Table, State] = state(group);
    /// The program that made it.
    creator_job_id: Option<String> =
        GroupId::from_slice(&group.group).map(|id| id.job().to_string());
    /// Where its bundles are to be.
    strategy: PlacementStrategy [Table] = strategy(group);
    /// It stays until it is removed.
    is_detached: bool = group.detached;
    /// In which its name is: names are apart in each.
    ray_namespace: Option<String> = if_said(&group.namespace);
    /// How many bundles it has.
    bundle_count: u64 [Table] = group.bundles.len() as u64;
    /// The nodes where its bundles are.
    node_ids: Vec<String> [Searched] = group.places.iter().map(|place| hex(&place.id)).collect();
    /// Why it waits, or is gone.
    why: Option<String> [Table] = if_said(&group.reason);
    /// When it was asked for.
    start_time_ms: Option<u64> = if_set(group.asked_ms);
    /// When it was removed.
    end_time_ms: Option<u64> = if_set(group.removed_ms);
}

words! {
    /// How the search for a group's room stands.
    GroupSchedulingState {
        /// It is over: all bundles are reserved.
        Finished = "FINISHED",
        /// Nodes are being asked.
        Started = "SCHEDULING_STARTED",
        /// Others have what it needs.
        NoResources = "NO_RESOURCES",
        /// The nodes that there are could not hold it if nothing else ran.
        Infeasible = "INFEASIBLE",
        /// It waits for its turn.
        Queued = "QUEUED",
        /// The group was removed.
        Removed = "REMOVED",
    }
}

row! {
    /// What else is known of a placement group.
    PlacementGroupDetail of group: &GroupInfo;
    /// What is reserved, or to be.
    bundles: Vec<BundleRow> =
        (0..group.bundles.len()).map(|index| BundleRow::of(group, index)).collect();
    /// How it was placed.
    stats: GroupStats = GroupStats::of(group);
}

row! {
    /// What is reserved in one place.
    BundleRow of group: &GroupInfo, index: usize;
    /// Its place in the group.
    bundle_index: u64 = index as u64;
    /// What it has.
    resources: Amounts = amounts(&group.bundles[index].resources);
    /// The node where it is.
    node_id: Option<String> = node(group, index);
}

row! {
    /// How a group was placed.
    GroupStats of group: &GroupInfo;
    /// How the search for its room stands.
    scheduling_state: GroupSchedulingState = scheduling(group);
    /// How often nodes were asked for room.
    scheduling_attempt: u32 = group.attempts;
    /// How long it waited for its first room.
    end_to_end_creation_latency_ms: Option<u64> =
        if_set(group.created_ms).map(|_| group.waited_us / 1000);
}

fn state(group: &GroupInfo) -> PlacementGroupState {
    match group.phase() {
        GroupPhase::Pending => PlacementGroupState::Pending,
        GroupPhase::Created => PlacementGroupState::Created,
        GroupPhase::Rescheduling => PlacementGroupState::Rescheduling,
        GroupPhase::Removed => PlacementGroupState::Removed,
    }
}

fn scheduling(group: &GroupInfo) -> GroupSchedulingState {
    match (group.phase(), group.scheduling()) {
        (GroupPhase::Removed, _) => GroupSchedulingState::Removed,
        (GroupPhase::Created, _) => GroupSchedulingState::Finished,
        (_, GroupScheduling::Over) => GroupSchedulingState::Queued,
        (_, GroupScheduling::Started) => GroupSchedulingState::Started,
        (_, GroupScheduling::NoResources) => GroupSchedulingState::NoResources,
        (_, GroupScheduling::Infeasible) => GroupSchedulingState::Infeasible,
    }
}

fn strategy(group: &GroupInfo) -> PlacementStrategy {
    match group.strategy() {
        GroupStrategy::Pack => PlacementStrategy::Pack,
        GroupStrategy::Spread => PlacementStrategy::Spread,
        GroupStrategy::StrictPack => PlacementStrategy::StrictPack,
        GroupStrategy::StrictSpread => PlacementStrategy::StrictSpread,
    }
}

fn node(group: &GroupInfo, index: usize) -> Option<String> {
    let number = group.nodes.get(index)?;
    let place = group.places.iter().find(|place| place.node == *number)?;
    Some(hex(&place.id))
}

/// A group that waits for room, in a sentence.
pub(crate) fn waits(group: &GroupInfo) -> Option<String> {
    let waits = matches!(group.phase(), GroupPhase::Pending | GroupPhase::Rescheduling);
    waits.then(|| format!("placement group {}: {}", called(group), group.reason))
}

/// Why a group is not there, or that it is.
pub(crate) fn why(group: &GroupInfo) -> String {
    let called = called(group);
    match group.phase() {
        GroupPhase::Created => {
            format!("placement group {called} is there: all its bundles are reserved")
        }
        GroupPhase::Pending => format!("placement group {called} waits for room: {}", group.reason),
        GroupPhase::Rescheduling => {
            format!("placement group {called} has lost bundles: {}", group.reason)
        }
        GroupPhase::Removed => format!("placement group {called} is gone: {}", group.reason),
    }
}

fn called(group: &GroupInfo) -> String {
    let id = hex(&group.group);
    match group.name.is_empty() {
        true => id,
        false => format!("{} ({id})", group.name),
    }
}
