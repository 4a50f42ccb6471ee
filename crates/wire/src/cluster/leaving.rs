//! Nodes that say nothing, and nodes that are to leave.

use prost::Message;

use super::{Introduce, NodeInfo};

/// When a node that says nothing is given up: Ray's `health_check_…`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct HealthConfig {
    /// Milliseconds for which a new node is not judged.
    #[prost(uint64, tag = "1")]
    pub initial_delay_ms: u64,
    /// Milliseconds between two checks.
    #[prost(uint64, tag = "2")]
    pub period_ms: u64,
    /// Milliseconds that a check may take.
    #[prost(uint64, tag = "3")]
    pub timeout_ms: u64,
    /// So many that fail in a row give a node up.
    #[prost(uint64, tag = "4")]
    pub failure_threshold: u64,
}

/// A node is to leave, once what it has is elsewhere.
#[derive(Clone, PartialEq, Message)]
pub struct Drain {
    /// A tool says which: the beginning of its id in hexadecimal, its address or its host.
    #[prost(string, tag = "1")]
    pub node: String,
    /// Why, for people.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Milliseconds from now after which it leaves, done or not; 0: when it is done.
    #[prost(uint64, tag = "3")]
    pub within_ms: u64,
    /// The control service says which it is, to all nodes.
    #[prost(message, optional, tag = "4")]
    pub info: Option<NodeInfo>,
}

/// An actor that waits for a worker at a node which gives out none any more.
#[derive(Clone, PartialEq, Message)]
pub struct ReturnActor {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// How often it was started again.
    #[prost(uint64, tag = "2")]
    pub restarts: u64,
    /// Who wants to know of it.
    #[prost(message, repeated, tag = "3")]
    pub watchers: Vec<Introduce>,
}
