//! What tasks and actors need, and which nodes will do.

use oxiray_ids::GroupId;
use prost::Message;

/// One whole unit of a resource. Amounts have four decimal places.
pub const UNIT: u64 = 10_000;

/// A named amount.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Amount {
    /// `CPU`, `GPU`, `memory` (bytes) or a custom name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Amount in 1/[`UNIT`].
    #[prost(uint64, tag = "2")]
    pub amount: u64,
}

/// Which instances of a resource that comes in devices were given out.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Devices {
    /// Name of the resource, `GPU`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Device numbers.
    #[prost(uint32, repeated, tag = "2")]
    pub ids: Vec<u32>,
}

/// What a task or actor needs in order to run. Equal shapes share leases.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Shape {
    /// Amounts above zero, sorted by name.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<Amount>,
    /// Which nodes will do; none: any.
    #[prost(message, optional, tag = "2")]
    pub strategy: Option<Strategy>,
    /// Number of the node where large arguments are; 0: nowhere in particular.
    #[prost(uint32, tag = "3")]
    pub near: u32,
    /// Higher goes first, within a job.
    #[prost(sint32, tag = "4")]
    pub priority: i32,
    /// The runtime environment as JSON with sorted keys; empty: that of the node itself.
    #[prost(string, tag = "10")]
    pub environment: String,
    /// Its tasks may not be run again: they are ended last when memory runs out.
    #[prost(bool, tag = "11")]
    pub unrepeatable: bool,
}

/// How many threads numerical libraries are to use where so much is held: a thread for each whole
/// CPU, and one at least.
pub fn threads_of(resources: &[Amount]) -> u32 {
    let cpus = resources.iter().find(|amount| amount.name == "CPU");
    cpus.map_or(1, |cpus| u32::try_from(cpus.amount / UNIT).unwrap_or(u32::MAX).max(1))
}

impl Shape {
    /// Bytes that it has in a message.
    pub fn bytes(&self) -> usize {
        self.encoded_len()
    }

    /// The placement group that it is to be in, and the bundle of that; `None`: any bundle.
    pub fn place(&self) -> Option<(GroupId, Option<u32>)> {
        let strategy = self.strategy.as_ref()?;
        Some((GroupId::from_slice(&strategy.group)?, strategy.bundle))
    }
}

/// Which nodes will do for a task or actor.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Strategy {
    /// One after the other.
    #[prost(bool, tag = "1")]
    pub spread: bool,
    /// This one: twenty-eight bytes, or none.
    #[prost(bytes = "vec", tag = "2")]
    pub node: Vec<u8>,
    /// Another will do if that one is gone.
    #[prost(bool, tag = "3")]
    pub soft: bool,
    /// Another will do if that one has no room.
    #[prost(bool, tag = "4")]
    pub spill_on_unavailable: bool,
    /// It fails if that one has no room.
    #[prost(bool, tag = "5")]
    pub fail_on_unavailable: bool,
    /// Only nodes with these labels.
    #[prost(message, repeated, tag = "6")]
    pub labels: Vec<LabelSelector>,
    /// Rather nodes with these labels.
    #[prost(message, repeated, tag = "7")]
    pub soft_labels: Vec<LabelSelector>,
    /// Within this placement group: eighteen bytes, or none.
    #[prost(bytes = "vec", tag = "8")]
    pub group: Vec<u8>,
    /// In this bundle of it; none: in any.
    #[prost(uint32, optional, tag = "9")]
    pub bundle: Option<u32>,
    /// What it submits is to be within that group, too.
    #[prost(bool, tag = "10")]
    pub capture: bool,
    /// What to ask instead of `labels`, in this order, where no node with those has room.
    #[prost(message, repeated, tag = "11")]
    pub fallbacks: Vec<LabelSelectors>,
}

/// All of these must match.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LabelSelectors {
    /// The conditions.
    #[prost(message, repeated, tag = "1")]
    pub all: Vec<LabelSelector>,
}

/// What to ask of a node's label.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum LabelTest {
    /// It is one of the values.
    In = 0,
    /// It is none of the values, or not there.
    NotIn = 1,
    /// It is there.
    Exists = 2,
    /// It is not there.
    DoesNotExist = 3,
}

/// A condition on a node's labels.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LabelSelector {
    /// The label.
    #[prost(string, tag = "1")]
    pub key: String,
    /// What is asked of it.
    #[prost(enumeration = "LabelTest", tag = "2")]
    pub test: i32,
    /// Values, for those tests that have any.
    #[prost(string, repeated, tag = "3")]
    pub values: Vec<String>,
}
