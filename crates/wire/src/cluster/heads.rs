//! Control services: how one is to be, and where they are when there are several.

use prost::Message;

use super::HealthConfig;

/// How a control service is to be.
#[derive(Clone, PartialEq, Message)]
pub struct ControlConfig {
    /// Where it listens: `0.0.0.0:6379`.
    #[prost(string, tag = "1")]
    pub listen: String,
    /// File of the cluster's tokens; empty: it is an insecure one.
    #[prost(string, tag = "2")]
    pub keyring: String,
    /// Where it keeps its state: `memory:`, a path, a URL of Redis.
    #[prost(string, tag = "3")]
    pub store: String,
    /// The cluster's directory on its machine: for its log, and the socket that it is known by.
    #[prost(string, tag = "4")]
    pub home: String,
    /// Where others reach it: `10.0.0.1:6379`.
    #[prost(string, tag = "5")]
    pub address: String,
    /// When nodes that say nothing are given up; none: as is usual.
    #[prost(message, optional, tag = "11")]
    pub health: Option<HealthConfig>,
    /// It waits until nobody else uses the store, and then takes over.
    #[prost(bool, tag = "12")]
    pub standby: bool,
}

/// The control services of a cluster: the one that reigns, and those that wait to take over.
#[derive(Clone, PartialEq, Message)]
pub struct Heads {
    /// Where they are reached, `10.0.0.1:6379`; who says it first, if it reigns.
    #[prost(string, repeated, tag = "1")]
    pub addresses: Vec<String>,
}
