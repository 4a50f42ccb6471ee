//! What tasks and actors need, and which nodes will do.

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
}

impl Shape {
    /// Bytes that it has in a message.
    pub fn bytes(&self) -> usize {
        self.encoded_len()
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
