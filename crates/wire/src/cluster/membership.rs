//! What a member is told, and how it is asked whether it is there.

use prost::Message;

use super::NodeInfo;

/// Answer to [`super::Join`].
#[derive(Clone, PartialEq, Message)]
pub struct Welcome {
    /// The node's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Sixteen bytes that name the cluster.
    #[prost(bytes = "vec", tag = "2")]
    pub cluster: Vec<u8>,
    /// All members.
    #[prost(message, repeated, tag = "3")]
    pub nodes: Vec<NodeInfo>,
    /// For how many milliseconds from a mark that was heard ([`Ping`]), and now from its question, the
    /// node may have actors that would be started again elsewhere; 0: for ever.
    #[prost(uint64, tag = "4")]
    pub lease_ms: u64,
    /// As in [`super::Heads`].
    #[prost(string, repeated, tag = "5")]
    pub heads: Vec<String>,
}

/// The control service asks whether a node is there.
#[derive(Clone, PartialEq, Message)]
pub struct Ping {
    /// The mark of the node's last answer that has come.
    #[prost(uint64, tag = "1")]
    pub heard: u64,
    /// Counts the questions to this node.
    #[prost(uint64, tag = "2")]
    pub number: u64,
}

/// A node is there.
#[derive(Clone, PartialEq, Message)]
pub struct Pong {
    /// The node's own time. It means nothing to anybody else.
    #[prost(uint64, tag = "1")]
    pub mark: u64,
    /// The question that it answers: all that was said before that has come.
    #[prost(uint64, tag = "2")]
    pub answers: u64,
}
