//! Placement groups: what the control service says of them, and what it has nodes reserve.

use prost::Message;

use crate::control::{Amount, Bundle, GroupPhase, GroupScheduling, GroupStrategy};

/// A placement group, as nodes and tools know it.
#[derive(Clone, PartialEq, Message)]
pub struct GroupInfo {
    /// Eighteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// What it is called; empty: nothing.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The namespace of that.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Where its bundles are to be.
    #[prost(enumeration = "GroupStrategy", tag = "4")]
    pub strategy: i32,
    /// Where it is in its life.
    #[prost(enumeration = "GroupPhase", tag = "5")]
    pub phase: i32,
    /// What is reserved, or to be.
    #[prost(message, repeated, tag = "6")]
    pub bundles: Vec<Bundle>,
    /// Numbers of the nodes where the bundles are, in their order; 0: nowhere yet.
    #[prost(uint32, repeated, tag = "7")]
    pub nodes: Vec<u32>,
    /// Those nodes, each once.
    #[prost(message, repeated, tag = "8")]
    pub places: Vec<GroupPlace>,
    /// It stays until it is removed.
    #[prost(bool, tag = "9")]
    pub detached: bool,
    /// Why it waits, or was removed.
    #[prost(string, tag = "10")]
    pub reason: String,
    /// Sixteen bytes: the actor that made it; none: no actor did.
    #[prost(bytes = "vec", tag = "11")]
    pub actor: Vec<u8>,
    /// When it was asked for: wall-clock milliseconds.
    #[prost(uint64, tag = "12")]
    pub asked_ms: u64,
    /// When it was first created: wall-clock milliseconds; 0: not yet.
    #[prost(uint64, tag = "13")]
    pub created_ms: u64,
    /// When it was removed: wall-clock milliseconds; 0: it was not.
    #[prost(uint64, tag = "14")]
    pub removed_ms: u64,
    /// Its room was looked for so often.
    #[prost(uint32, tag = "15")]
    pub attempts: u32,
    /// How that stands.
    #[prost(enumeration = "GroupScheduling", tag = "16")]
    pub scheduling: i32,
    /// From when it was asked for until it was first created, in microseconds; 0: not yet.
    #[prost(uint64, tag = "17")]
    pub waited_us: u64,
}

/// A node where bundles are.
#[derive(Clone, PartialEq, Message)]
pub struct GroupPlace {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// Twenty-eight bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub id: Vec<u8>,
}

/// A bundle that a node has reserved.
#[derive(Clone, PartialEq, Message)]
pub struct HeldBundle {
    /// Eighteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// Its place in the group.
    #[prost(uint32, tag = "2")]
    pub index: u32,
}

/// A bundle to reserve.
#[derive(Clone, PartialEq, Message)]
pub struct NumberedBundle {
    /// Its place in the group.
    #[prost(uint32, tag = "1")]
    pub index: u32,
    /// What it needs.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Amount>,
}

/// Bundles to reserve.
#[derive(Clone, PartialEq, Message)]
pub struct Reserve {
    /// Eighteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// Names the answer.
    #[prost(uint64, tag = "2")]
    pub attempt: u64,
    /// All of them or none.
    #[prost(message, repeated, tag = "3")]
    pub bundles: Vec<NumberedBundle>,
    /// They may be used at once: no other node has a part of it.
    #[prost(bool, tag = "4")]
    pub commit: bool,
}

/// Answer to [`Reserve`].
#[derive(Clone, PartialEq, Message)]
pub struct Reserved {
    /// As in [`Reserve`].
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// As in [`Reserve`].
    #[prost(uint64, tag = "2")]
    pub attempt: u64,
    /// There was no room for all of them.
    #[prost(bool, tag = "3")]
    pub refused: bool,
    /// If so: what is free at the node.
    #[prost(message, repeated, tag = "4")]
    pub available: Vec<Amount>,
}

/// Bundles that are not to be reserved any more.
#[derive(Clone, PartialEq, Message)]
pub struct ReleaseBundles {
    /// Eighteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub group: Vec<u8>,
    /// These alone; none: all that the node has of the group.
    #[prost(uint32, repeated, tag = "2")]
    pub indexes: Vec<u32>,
    /// Why, for what is in them.
    #[prost(string, tag = "3")]
    pub reason: String,
}
