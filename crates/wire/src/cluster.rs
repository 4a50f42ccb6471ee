//! Messages between machines: of nodes with the control service, and of nodes
//! with each other.
//!
//! Each is one frame of a TCP connection on which both sides have proved that
//! they know the cluster's secret. A process's own messages ([`ToNode`],
//! [`FromNode`]) travel inside: a node serves the processes of other nodes as
//! it serves its own.

use prost::Message;

use crate::control::{Amount, Empty, FromNode, Shape, Text, ToNode, incarnation};

mod groups;
mod heads;
mod leaving;
mod membership;
mod nodes;

pub use groups::*;
pub use heads::*;
pub use leaving::*;
pub use membership::*;
pub use nodes::*;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Purpose {
    /// A node speaks to the control service: [`ToControl`], [`FromControl`].
    Control = 0,
    /// Two nodes speak: [`BetweenNodes`].
    Node = 1,
    /// Bytes of objects: [`ReadRange`], then the bytes.
    Data = 2,
    /// A tool asks the control service: [`ToControl`], [`FromControl`].
    Tool = 3,
}

/// First frame of whoever connects.
#[derive(Clone, PartialEq, Message)]
pub struct Hello {
    /// See [`crate::VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// What the connection is for.
    #[prost(enumeration = "Purpose", tag = "2")]
    pub purpose: i32,
    /// Number of the node that connects, if it has one.
    #[prost(uint32, tag = "3")]
    pub node: u32,
    /// Number of the node that it means to reach.
    #[prost(uint32, tag = "4")]
    pub to: u32,
}

/// A member, as all others know it.
#[derive(Clone, PartialEq, Message)]
pub struct NodeInfo {
    /// Never used again.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Twenty-eight bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub id: Vec<u8>,
    /// Where other nodes reach it: `10.0.0.2:40123`.
    #[prost(string, tag = "3")]
    pub address: String,
    /// Name of the machine.
    #[prost(string, tag = "4")]
    pub host: String,
    /// Process id of its node service.
    #[prost(uint32, tag = "5")]
    pub pid: u32,
    /// Everything it has.
    #[prost(message, repeated, tag = "6")]
    pub total: Vec<Amount>,
    /// What of that is free.
    #[prost(message, repeated, tag = "7")]
    pub available: Vec<Amount>,
    /// What it is like, by keys.
    #[prost(btree_map = "string, string", tag = "8")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Requests that wait there.
    #[prost(uint64, tag = "9")]
    pub waiting: u64,
    /// It is on the machine of the control service.
    #[prost(bool, tag = "10")]
    pub is_head: bool,
    /// Its Python, `3.11`.
    #[prost(string, tag = "11")]
    pub python: String,
    /// Bytes of its object store.
    #[prost(uint64, tag = "12")]
    pub store_size: u64,
    /// Bytes of that in use.
    #[prost(uint64, tag = "13")]
    pub store_used: u64,
    /// What waits there, in words.
    #[prost(string, repeated, tag = "14")]
    pub waiting_for: Vec<String>,
    /// Why it is not a member any more; empty while it is.
    #[prost(string, tag = "15")]
    pub left: String,
    /// When its service was started: wall-clock milliseconds.
    #[prost(uint64, tag = "16")]
    pub started_ms: u64,
    /// When it left: wall-clock milliseconds; 0: it is a member.
    #[prost(uint64, tag = "17")]
    pub left_ms: u64,
    /// Programs or tasks have run there: what they recorded is there, and goes with it.
    #[prost(bool, tag = "18")]
    pub has_worked: bool,
    /// Why it is to leave once what it has is elsewhere; empty: it is not.
    #[prost(string, tag = "30")]
    pub draining: String,
    /// When it leaves at the latest: wall-clock milliseconds; 0: whenever it is done.
    #[prost(uint64, tag = "31")]
    pub drain_until_ms: u64,
    /// It is not given up before it was silent for so many milliseconds, whatever the settings are
    /// now: it was promised that.
    #[prost(uint64, tag = "32")]
    pub patience_ms: u64,
}

impl NodeInfo {
    /// Whether it is a member that takes no new work and is about to leave.
    pub fn is_draining(&self) -> bool {
        !self.draining.is_empty()
    }
}

/// Asks to be a member, or to be one again after the control service went away.
#[derive(Clone, PartialEq, Message)]
pub struct Join {
    /// About the node; its number is 0 the first time.
    #[prost(message, optional, tag = "1")]
    pub node: Option<NodeInfo>,
    /// Actors that live there or are being started.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub actors: Vec<Vec<u8>>,
    /// Its drivers.
    #[prost(message, repeated, tag = "3")]
    pub jobs: Vec<Job>,
    /// The cluster it was a member of.
    #[prost(bytes = "vec", tag = "4")]
    pub cluster: Vec<u8>,
    /// Its processes that live, the node service itself (number 0) included: of all others the
    /// control service may have missed the end. Empty: the node does not say.
    #[prost(uint64, repeated, tag = "5")]
    pub processes: Vec<u64>,
    /// Bundles that are reserved there.
    #[prost(message, repeated, tag = "6")]
    pub bundles: Vec<HeldBundle>,
}

/// A driver's program.
#[derive(Clone, PartialEq, Message)]
pub struct Job {
    /// Four bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    /// Process number of its driver.
    #[prost(uint64, tag = "2")]
    pub driver: u64,
    /// Its namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// What was run, in words.
    #[prost(string, tag = "4")]
    pub entrypoint: String,
    /// Operating-system process id of its driver.
    #[prost(uint32, tag = "5")]
    pub pid: u32,
    /// Wall-clock milliseconds.
    #[prost(uint64, tag = "6")]
    pub started_ms: u64,
    /// Wall-clock milliseconds; 0: it runs.
    #[prost(uint64, tag = "7")]
    pub ended_ms: u64,
    /// Why it ended, if its driver did not say that it would.
    #[prost(string, tag = "8")]
    pub failure: String,
    /// The id by which it was handed in; empty: it came by itself.
    #[prost(string, tag = "9")]
    pub submission: String,
}

/// What is free at a node, and what waits.
#[derive(Clone, PartialEq, Message)]
pub struct Load {
    /// Whose.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// What is free.
    #[prost(message, repeated, tag = "2")]
    pub available: Vec<Amount>,
    /// Requests that wait.
    #[prost(uint64, tag = "3")]
    pub waiting: u64,
    /// Bytes of the object store in use.
    #[prost(uint64, tag = "4")]
    pub store_used: u64,
    /// What waits, in words.
    #[prost(string, repeated, tag = "5")]
    pub waiting_for: Vec<String>,
    /// As in [`NodeInfo`].
    #[prost(bool, tag = "6")]
    pub has_worked: bool,
    /// Nothing is heard of the node at the moment, says the control service.
    #[prost(bool, tag = "7")]
    pub suspect: bool,
}

/// Loads of several nodes.
#[derive(Clone, PartialEq, Message)]
pub struct Loads {
    /// Those that changed.
    #[prost(message, repeated, tag = "1")]
    pub loads: Vec<Load>,
}

/// A message of a process that its own node passes on.
#[derive(Clone, PartialEq, Message)]
pub struct OfProcess {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// What it says.
    #[prost(message, optional, tag = "2")]
    pub message: Option<ToNode>,
    /// Of an actor that it makes: how often that was started before. Of one that it watches: as far
    /// as it has heard.
    #[prost(uint64, tag = "3")]
    pub restarts: u64,
    /// The process, for a node that does not know it.
    #[prost(message, optional, tag = "4")]
    pub about: Option<Introduce>,
    /// The process is gone: the actor is made from what was kept of it.
    #[prost(bool, tag = "5")]
    pub gone: bool,
    /// Which of the actor's stays that is: see [`incarnation`].
    #[prost(uint32, tag = "6")]
    pub stay: u32,
}

/// A message to a process of another node.
#[derive(Clone, PartialEq, Message)]
pub struct ForProcess {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// What it is told.
    #[prost(message, optional, tag = "2")]
    pub message: Option<FromNode>,
}

/// How an actor fares, from the node where it lives.
#[derive(Clone, PartialEq, Message)]
pub struct ActorNews {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// See [`crate::control::ActorPhase`].
    #[prost(enumeration = "crate::control::ActorPhase", tag = "2")]
    pub phase: i32,
    /// Why it died.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// Its constructor's error.
    #[prost(bytes = "vec", tag = "4")]
    pub creation_error: Vec<u8>,
    /// How often it was started again.
    #[prost(uint64, tag = "5")]
    pub restarts: u64,
    /// Process number of its worker, when alive.
    #[prost(uint64, tag = "6")]
    pub process: u64,
    /// Operating-system process id of its worker, when alive.
    #[prost(uint32, tag = "7")]
    pub pid: u32,
    /// Which of its stays at nodes this is news of: see [`incarnation`].
    #[prost(uint32, tag = "8")]
    pub stay: u32,
}

impl ActorNews {
    /// Which incarnation this is news of.
    pub fn incarnation(&self) -> u64 {
        incarnation(self.stay, self.restarts)
    }
}

/// Where constructors of detached actors are kept in the key-value table, by actor id.
pub const KEPT_ACTORS: &str = "__actors__";

/// Where jobs that were handed in are kept in it, by their ids: a line of JSON with what lists show,
/// and then all that is known.
pub const SUBMISSIONS: &str = "job";

/// What to do with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum KvVerb {
    /// Its value.
    Get = 0,
    /// Sets it, unless it exists and must not be overwritten.
    Put = 1,
    /// Removes it, or every key that begins with it.
    Delete = 2,
    /// The keys that begin with it.
    List = 3,
}

/// A question to the key-value table, and its answer.
#[derive(Clone, PartialEq, Message)]
pub struct Kv {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// What to do.
    #[prost(enumeration = "KvVerb", tag = "2")]
    pub verb: i32,
    /// Keys are apart in each.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The key, or the beginning of keys.
    #[prost(bytes = "vec", tag = "4")]
    pub key: Vec<u8>,
    /// The value; in an answer, only if there is one.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub value: Option<Vec<u8>>,
    /// Put: also if it exists. Delete: everything that begins with it.
    #[prost(bool, tag = "6")]
    pub wide: bool,
    /// Answer: how many were set or removed.
    #[prost(uint64, tag = "7")]
    pub count: u64,
    /// Answer to a list.
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub keys: Vec<Vec<u8>>,
    /// Of a node's question: of all that it asked before this request it has the answers.
    #[prost(uint64, tag = "9")]
    pub answered: u64,
}

/// Tokens of the cluster, the current one first.
#[derive(Clone, PartialEq, Message)]
pub struct Tokens {
    /// As `oxiray token` prints them.
    #[prost(string, repeated, tag = "1")]
    pub tokens: Vec<String>,
}

/// An actor, as tools see it.
#[derive(Clone, PartialEq, Message)]
pub struct ActorInfo {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Name of its class.
    #[prost(string, tag = "2")]
    pub class_name: String,
    /// Its own name, if it has one.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The namespace of that.
    #[prost(string, tag = "4")]
    pub namespace: String,
    /// See [`crate::control::ActorPhase`].
    #[prost(enumeration = "crate::control::ActorPhase", tag = "5")]
    pub phase: i32,
    /// The node where it lives or waits.
    #[prost(uint32, tag = "6")]
    pub node: u32,
    /// How often it was started again.
    #[prost(uint64, tag = "7")]
    pub restarts: u64,
    /// Why it died, or why it waits.
    #[prost(string, tag = "8")]
    pub reason: String,
    /// Process number of its worker; of a dead one, its last.
    #[prost(uint64, tag = "9")]
    pub process: u64,
    /// Operating-system process id of that.
    #[prost(uint32, tag = "10")]
    pub pid: u32,
    /// It lives until it is killed.
    #[prost(bool, tag = "11")]
    pub detached: bool,
    /// What it takes to place it.
    #[prost(message, repeated, tag = "12")]
    pub resources: Vec<Amount>,
    /// Its constructor waits for arguments: nobody has asked for it yet.
    #[prost(bool, tag = "13")]
    pub expected: bool,
}

/// The cluster, as tools see it.
#[derive(Clone, PartialEq, Message)]
pub struct State {
    /// Sixteen bytes that name it.
    #[prost(bytes = "vec", tag = "1")]
    pub cluster: Vec<u8>,
    /// Members, and the last that left.
    #[prost(message, repeated, tag = "2")]
    pub nodes: Vec<NodeInfo>,
    /// Programs, the last that ended included.
    #[prost(message, repeated, tag = "3")]
    pub jobs: Vec<Job>,
    /// Actors, the last that died included.
    #[prost(message, repeated, tag = "4")]
    pub actors: Vec<ActorInfo>,
    /// Where it keeps its state: `memory`, a path, a URL without its password.
    #[prost(string, tag = "5")]
    pub store: String,
    /// What is wrong with that; empty: nothing.
    #[prost(string, tag = "6")]
    pub store_trouble: String,
    /// As in [`Heads`].
    #[prost(string, repeated, tag = "7")]
    pub heads: Vec<String>,
}

/// From a node, or a tool, to the control service.
#[derive(Clone, PartialEq, Message)]
pub struct ToControl {
    /// Which message.
    #[prost(oneof = "to_control::Body", tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,20,31,40")]
    pub body: Option<to_control::Body>,
}

/// The messages of [`ToControl`].
pub mod to_control {
    use super::*;

    /// From a node, or a tool, to the control service.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(clippy::large_enum_variant, reason = "there are few at a time")]
    pub enum Body {
        /// First message of a node.
        #[prost(message, tag = "1")]
        Join(Join),
        /// Answer to `Ping`.
        #[prost(message, tag = "2")]
        Pong(Pong),
        /// What is free and what waits.
        #[prost(message, tag = "3")]
        Load(Load),
        /// A process of the node makes, watches, kills, names or finds an actor.
        #[prost(message, tag = "4")]
        OfProcess(OfProcess),
        /// An actor that lives at the node.
        #[prost(message, tag = "5")]
        ActorNews(ActorNews),
        /// A driver came, or went.
        #[prost(message, tag = "6")]
        Job(Job),
        /// A process of the node is gone.
        #[prost(uint64, tag = "7")]
        ProcessGone(u64),
        /// A question to the key-value table.
        #[prost(message, tag = "8")]
        Kv(Kv),
        /// The node leaves, for this reason.
        #[prost(message, tag = "9")]
        Leave(Text),
        /// A tool wants to see everything: answered with `State`.
        #[prost(message, tag = "10")]
        See(Empty),
        /// A tool wants the secret changed: answered with `Tokens`.
        #[prost(message, tag = "11")]
        Rotate(Empty),
        /// A tool wants a node, by its id in hexadecimal or its beginning, to leave.
        #[prost(message, tag = "12")]
        Remove(Text),
        /// Answer to `Reserve`.
        #[prost(message, tag = "13")]
        Reserved(Reserved),
        /// The node wants `GroupNews` of this placement group, now and at every change.
        #[prost(bytes = "vec", tag = "14")]
        WatchGroup(Vec<u8>),
        /// A tool wants a node to leave in an orderly way: answered with `Drains`.
        #[prost(message, tag = "20")]
        Drain(Drain),
        /// An actor that waits at a node that drains is to be elsewhere: answered with `ActorTaken`.
        #[prost(message, tag = "31")]
        ReturnActor(ReturnActor),
        /// Last over this connection: the node lives, and makes another.
        #[prost(message, tag = "40")]
        Parting(Empty),
    }
}

/// From the control service to a node or a tool.
#[derive(Clone, PartialEq, Message)]
pub struct FromControl {
    /// Which message.
    #[prost(
        oneof = "from_control::Body",
        tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,25,36,37,40,41"
    )]
    pub body: Option<from_control::Body>,
}

/// The messages of [`FromControl`].
pub mod from_control {
    use super::*;

    /// From the control service to a node or a tool.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(clippy::large_enum_variant, reason = "there are few at a time")]
    pub enum Body {
        /// Answer to `Join`.
        #[prost(message, tag = "1")]
        Welcome(Welcome),
        /// The node is not, or no longer, a member: it must end. Or a tool's wish is refused.
        #[prost(message, tag = "2")]
        Refused(Text),
        /// Are you there?
        #[prost(message, tag = "3")]
        Ping(Ping),
        /// A member more.
        #[prost(message, tag = "4")]
        NodeJoined(NodeInfo),
        /// A member less; `left` says why.
        #[prost(message, tag = "5")]
        NodeLeft(NodeInfo),
        /// What is free elsewhere.
        #[prost(message, tag = "6")]
        Loads(Loads),
        /// A process of another node makes, watches or kills an actor here.
        #[prost(message, tag = "7")]
        OfProcess(OfProcess),
        /// An answer to a process of the node.
        #[prost(message, tag = "8")]
        ForProcess(ForProcess),
        /// Answer to `Kv`.
        #[prost(message, tag = "9")]
        Kv(Kv),
        /// The secret changed.
        #[prost(message, tag = "10")]
        Tokens(Tokens),
        /// Answer to `See`.
        #[prost(message, tag = "11")]
        State(State),
        /// That this actor of the node is dead is known, and kept.
        #[prost(bytes = "vec", tag = "12")]
        ActorBuried(Vec<u8>),
        /// That a process of the node wants this actor to end is known, and kept.
        #[prost(bytes = "vec", tag = "13")]
        KillHeard(Vec<u8>),
        /// Bundles are to be reserved, all of them or none, at once: answered with `Reserved`.
        #[prost(message, tag = "14")]
        Reserve(Reserve),
        /// What was reserved for this placement group may be used.
        #[prost(bytes = "vec", tag = "15")]
        CommitGroup(Vec<u8>),
        /// Bundles are not to be reserved any more.
        #[prost(message, tag = "16")]
        ReleaseBundles(ReleaseBundles),
        /// How a placement group fares.
        #[prost(message, tag = "17")]
        GroupNews(GroupInfo),
        /// A placement group waits for so much at this node: leases are to make room for it.
        #[prost(message, tag = "18")]
        WantRoom(Shape),
        /// A member takes no new work, and leaves once what it has is elsewhere.
        #[prost(message, tag = "25")]
        Drains(Drain),
        /// This actor is not the node's any more.
        #[prost(bytes = "vec", tag = "36")]
        ActorTaken(Vec<u8>),
        /// The node was given up, and is no member any more, for this reason: all that it had is
        /// others'. It may join again as a new one.
        #[prost(message, tag = "37")]
        GivenUp(Text),
        /// Where control services are has changed.
        #[prost(message, tag = "40")]
        Heads(Heads),
        /// This control service waits to take over, and does nothing else: one of the others reigns.
        #[prost(message, tag = "41")]
        Standby(Heads),
    }
}

macro_rules! from_body {
    ($($message:ident, $module:ident);*) => {$(
        impl From<$module::Body> for $message {
            fn from(body: $module::Body) -> Self {
                Self { body: Some(body) }
            }
        }
    )*};
}
from_body!(ToControl, to_control; FromControl, from_control; BetweenNodes, between_nodes);
