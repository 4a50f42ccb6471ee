//! Placement groups: making, watching, finding and removing them.

use prost::Message;

use super::{Amount, LabelSelector};

/// Where the bundles of a group are to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum GroupStrategy {
    /// On as few nodes as possible.
    Pack = 0,
    /// On as many nodes as possible.
    Spread = 1,
    /// On one node.
    StrictPack = 2,
    /// Each on a node of its own.
    StrictSpread = 3,
}

impl GroupStrategy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pack, Self::Spread, Self::StrictPack, Self::StrictSpread];

    /// Ray's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pack => "PACK",
            Self::Spread => "SPREAD",
            Self::StrictPack => "STRICT_PACK",
            Self::StrictSpread => "STRICT_SPREAD",
        }
    }
}

/// Where a group is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum GroupPhase {
    /// It waits for room.
    Pending = 0,
    /// All its bundles are reserved.
    Created = 1,
    /// For good.
    Removed = 2,
    /// Bundles were lost with a node and wait for room elsewhere.
    Rescheduling = 3,
}

impl GroupPhase {
    /// Ray's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Created => "CREATED",
            Self::Removed => "REMOVED",
            Self::Rescheduling => "RESCHEDULING",
        }
    }
}

/// How the search for a group's room stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum GroupScheduling {
    /// It is over: the group is there, or was removed.
    Over = 0,
    /// Nodes are being asked to reserve its bundles.
    Started = 1,
    /// Others have what it needs.
    NoResources = 2,
    /// The nodes that there are could not hold it if nothing else ran.
    Infeasible = 3,
}

impl GroupScheduling {
    /// Ray's name of it, of a group in this phase.
    pub const fn name(self, phase: GroupPhase) -> &'static str {
        match (phase, self) {
            (GroupPhase::Removed, _) => "REMOVED",
            (GroupPhase::Created, _) => "FINISHED",
            (_, Self::Over) => "QUEUED",
            (_, Self::Started) => "SCHEDULING_STARTED",
            (_, Self::NoResources) => "NO_RESOURCES",
            (_, Self::Infeasible) => "INFEASIBLE",
        }
    }
}

/// What is to be reserved in one place.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Bundle {
    /// Amounts above zero, sorted by name.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<Amount>,
    /// Only at nodes with these labels.
    #[prost(message, repeated, tag = "2")]
    pub labels: Vec<LabelSelector>,
}

/// Makes a group; the creator watches it without asking.
#[derive(Clone, PartialEq, Message)]
pub struct CreateGroup {
    /// Eighteen bytes, chosen by the creator.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// What it is called; empty: nothing.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Names are apart in each.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Where its bundles are to be.
    #[prost(enumeration = "GroupStrategy", tag = "4")]
    pub strategy: i32,
    /// What is to be reserved.
    #[prost(message, repeated, tag = "5")]
    pub bundles: Vec<Bundle>,
    /// It stays until it is removed, whatever becomes of its creator.
    #[prost(bool, tag = "6")]
    pub detached: bool,
    /// Sixteen bytes: the actor that makes it; none: no actor does.
    #[prost(bytes = "vec", tag = "7")]
    pub actor: Vec<u8>,
    /// Rather at this node: twenty-eight bytes, or none.
    #[prost(bytes = "vec", tag = "8")]
    pub prefer: Vec<u8>,
    /// Names the answer, [`Groups`] with whoever has the name then; 0: none is wanted.
    #[prost(uint64, tag = "9")]
    pub request: u64,
}

impl CreateGroup {
    /// Bytes that it has in a message.
    pub fn bytes(&self) -> usize {
        self.encoded_len()
    }
}

/// Names a group.
#[derive(Clone, PartialEq, Message)]
pub struct Group {
    /// Eighteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
}

/// Asks for groups: of an id, of a name, or all.
#[derive(Clone, PartialEq, Message)]
pub struct FindGroups {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// This one: eighteen bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub group: Vec<u8>,
    /// The one of this name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// In this namespace.
    #[prost(string, tag = "4")]
    pub namespace: String,
    /// Of all: where to go on, as [`Groups::next`] said.
    #[prost(bytes = "vec", tag = "5")]
    pub after: Vec<u8>,
}

/// Answer to [`FindGroups`]: as many as go into a packet.
#[derive(Clone, PartialEq, Message)]
pub struct Groups {
    /// As in [`FindGroups`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Those that were asked for and are known.
    #[prost(message, repeated, tag = "2")]
    pub groups: Vec<crate::cluster::GroupInfo>,
    /// For [`FindGroups::after`]; empty: this was the last part.
    #[prost(bytes = "vec", tag = "3")]
    pub next: Vec<u8>,
}

/// How a group fares, to everyone who watches it.
#[derive(Clone, PartialEq, Message)]
pub struct GroupState {
    /// Eighteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// Where it is in its life.
    #[prost(enumeration = "GroupPhase", tag = "2")]
    pub phase: i32,
    /// Why it waits, or was removed.
    #[prost(string, tag = "3")]
    pub reason: String,
}
