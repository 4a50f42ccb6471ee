//! Messages between a process and its node service.
//!
//! Each is one packet on a sequenced-packet Unix socket, descriptors attached.
//! Resource amounts are fixed-point: [`UNIT`] is 1.0.
//!
//! - `amounts`: what tasks and actors need, and which nodes will do
//! - `process`: processes: how they register, what they are told of each other, what they print
//! - `lease`: leases: workers that a process may push tasks to
//! - `actor`: actors: making, naming, watching and ending them
//! - `group`: placement groups: making, watching, finding and removing them
//! - `store`: the object store: memory, objects on disk, objects of other nodes
//! - `report`: questions about what there is, what is held, and what waits

mod actor;
mod amounts;
mod group;
mod lease;
mod process;
mod report;
mod store;

use prost::Message;

pub use actor::*;
pub use amounts::*;
pub use group::*;
pub use lease::*;
pub use process::*;
pub use report::*;
pub use store::*;

/// From a process to its node service.
#[derive(Clone, PartialEq, Message)]
pub struct ToNode {
    /// Which message.
    #[prost(
        oneof = "to_node::Body",
        tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,34,35,36,37,38,39"
    )]
    pub body: Option<to_node::Body>,
}

/// The messages of [`ToNode`].
pub mod to_node {
    use super::*;

    /// From a process to its node service.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(clippy::large_enum_variant, reason = "there are few at a time")]
    pub enum Body {
        /// First message of every connection.
        #[prost(message, tag = "1")]
        Register(Register),
        /// How many leases of a shape are wanted.
        #[prost(message, tag = "2")]
        SetDemand(SetDemand),
        /// A lease is no longer needed and its worker is idle.
        #[prost(message, tag = "3")]
        ReturnLease(Lease),
        /// This worker sleeps in `get` or `wait`: lend its CPUs.
        #[prost(message, tag = "4")]
        Blocked(Empty),
        /// It runs again.
        #[prost(message, tag = "5")]
        Unblocked(Empty),
        /// Wants a channel. A peer that is gone is answered with [`ProcessDied`].
        #[prost(message, tag = "6")]
        Connect(Peer),
        /// Makes an actor; the creator watches it without asking.
        #[prost(message, tag = "7")]
        CreateActor(CreateActor),
        /// Wants [`ActorState`], now and at every change.
        #[prost(message, tag = "8")]
        WatchActor(Actor),
        /// Ends an actor at once.
        #[prost(message, tag = "9")]
        KillActor(Actor),
        /// From an actor's worker.
        #[prost(message, tag = "10")]
        ActorCreated(ActorCreated),
        /// Wants room in the arena.
        #[prost(message, tag = "11")]
        Allocate(Allocate),
        /// Objects are no longer needed by their owner: keys.
        #[prost(message, tag = "12")]
        Free(Stored),
        /// A question.
        #[prost(message, tag = "13")]
        Query(Query),
        /// This worker is about to exit, and why: its death is intended.
        #[prost(message, tag = "14")]
        Exiting(Text),
        /// The driver leaves: end everything; answered with `Stopped` when all output was sent. The
        /// text is the error that ends it; empty: none.
        #[prost(message, tag = "15")]
        Stop(Text),
        /// This process no longer looks at doomed objects: slots.
        #[prost(message, tag = "16")]
        Unpinned(Stored),
        /// Wants an object to be in memory.
        #[prost(message, tag = "17")]
        Fetch(Fetch),
        /// A request for memory is no longer waited for.
        #[prost(message, tag = "18")]
        Withdraw(Withdraw),
        /// Everything that a dead process had sent has been read.
        #[prost(message, tag = "19")]
        DeathSeen(Peer),
        /// Wants memory for small objects.
        #[prost(message, tag = "20")]
        WantSlab(Slab),
        /// Gives an empty slab back.
        #[prost(message, tag = "21")]
        ReturnSlab(Slab),
        /// Answer to `ReportObjects`.
        #[prost(message, tag = "22")]
        ObjectReport(ObjectReport),
        /// Wants a name for an actor about to be made; answered with whoever has it.
        #[prost(message, tag = "23")]
        NameActor(NamedActor),
        /// Wants the actor of a name.
        #[prost(message, tag = "24")]
        FindActor(NamedActor),
        /// Wants the names there are, as many as fit; none: there are no more.
        #[prost(message, tag = "25")]
        ListActors(ActorNames),
        /// An actor is about to end: nobody is to find it by its name any more.
        #[prost(message, tag = "26")]
        ReleaseName(Actor),
        /// Wants an object of another node.
        #[prost(message, tag = "27")]
        Pull(PullObject),
        /// Objects that others made at another node belong to this process now.
        #[prost(message, tag = "28")]
        OwnAt(StoredAt),
        /// Objects of this process at another node are no longer needed.
        #[prost(message, tag = "29")]
        FreeAt(StoredAt),
        /// Answer to `ReportTasks`.
        #[prost(message, tag = "30")]
        TaskReport(TaskReport),
        /// A question to the key-value table.
        #[prost(message, tag = "31")]
        Kv(crate::cluster::Kv),
        /// Wants bytes of a file of a node.
        #[prost(message, tag = "32")]
        ReadFile(ReadFile),
        /// Whether this worker will be the actor that it was asked to be.
        #[prost(message, tag = "34")]
        StartAnswer(StartAnswer),
        /// Makes a placement group; the creator watches it without asking.
        #[prost(message, tag = "35")]
        CreateGroup(CreateGroup),
        /// Wants [`GroupState`], now and at every change.
        #[prost(message, tag = "36")]
        WatchGroup(Group),
        /// Ends a placement group, with what is in it.
        #[prost(message, tag = "37")]
        RemoveGroup(Group),
        /// Wants to know of placement groups.
        #[prost(message, tag = "38")]
        FindGroups(FindGroups),
        /// This worker is about to exit by an error of its program, and which: an actor may be
        /// started again.
        #[prost(message, tag = "39")]
        Failing(Text),
    }
}

/// From a node service to a process.
#[derive(Clone, PartialEq, Message)]
pub struct FromNode {
    /// Which message.
    #[prost(
        oneof = "from_node::Body",
        tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,40,41"
    )]
    pub body: Option<from_node::Body>,
}

/// The messages of [`FromNode`].
pub mod from_node {
    use super::*;

    /// From a node service to a process.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(clippy::large_enum_variant, reason = "there are few at a time")]
    pub enum Body {
        /// Answer to `Register`; descriptors: bells, arena, table.
        #[prost(message, tag = "1")]
        Registered(Registered),
        /// A lease.
        #[prost(message, tag = "2")]
        Granted(Granted),
        /// Others wait: give back idle leases, and share busy ones.
        #[prost(message, tag = "3")]
        Reclaim(Empty),
        /// A new channel; descriptor: its memory file.
        #[prost(message, tag = "4")]
        ChannelOpened(ChannelOpened),
        /// A process is gone.
        #[prost(message, tag = "5")]
        ProcessDied(ProcessDied),
        /// Become an actor.
        #[prost(message, tag = "6")]
        StartActor(StartActor),
        /// News of a watched actor.
        #[prost(message, tag = "7")]
        ActorState(ActorState),
        /// Answer to `Allocate`.
        #[prost(message, tag = "8")]
        Allocated(Allocated),
        /// To the driver: what a worker printed.
        #[prost(message, tag = "9")]
        Log(Log),
        /// To the driver: a sentence for the user.
        #[prost(message, tag = "10")]
        Warning(Text),
        /// Answer to `Query`.
        #[prost(message, tag = "11")]
        ClusterView(ClusterView),
        /// To a worker: exit when idle.
        #[prost(message, tag = "12")]
        Exit(Empty),
        /// Answer to `Stop`, or a refusal of `Register` when it carries a reason.
        #[prost(message, tag = "13")]
        Stopped(Text),
        /// To the driver: the workers that are started in advance are there.
        #[prost(message, tag = "14")]
        Warm(Empty),
        /// Answer to `Fetch`.
        #[prost(message, tag = "15")]
        Fetched(Fetched),
        /// Answer to `WantSlab`.
        #[prost(message, tag = "16")]
        SlabGranted(Slab),
        /// Memory is short: give slabs back, with what is in them.
        #[prost(message, tag = "17")]
        Trim(Empty),
        /// Somebody asks what this process holds.
        #[prost(message, tag = "18")]
        ReportObjects(Query),
        /// Answer to `Query`.
        #[prost(message, tag = "19")]
        ObjectReport(ObjectReport),
        /// Answer to `NameActor` and `FindActor`.
        #[prost(message, tag = "20")]
        NamedActor(NamedActor),
        /// Answer to `ListActors`.
        #[prost(message, tag = "21")]
        ActorNames(ActorNames),
        /// Answer to `Pull`.
        #[prost(message, tag = "22")]
        Pulled(PullObject),
        /// To a worker: from now on it works for this job.
        #[prost(message, tag = "23")]
        JoinJob(JobConfig),
        /// A node is gone.
        #[prost(message, tag = "24")]
        NodeLost(NodeLost),
        /// An object of this process is at another node now.
        #[prost(message, tag = "40")]
        ObjectMoved(ObjectMoved),
        /// A node is about to leave: leases there go back as soon as nothing runs on them.
        #[prost(message, tag = "41")]
        NodeDrains(NodeLost),
        /// What was asked for can never be.
        #[prost(message, tag = "25")]
        Unschedulable(Unschedulable),
        /// Somebody asks why tasks of this process are not done.
        #[prost(message, tag = "26")]
        ReportTasks(Query),
        /// Answer to `Query`.
        #[prost(message, tag = "27")]
        TaskReport(TaskReport),
        /// Answer to `Kv`.
        #[prost(message, tag = "28")]
        Kv(crate::cluster::Kv),
        /// Answer to `Query`.
        #[prost(message, tag = "29")]
        Listing(Listing),
        /// Answer to `ReadFile`.
        #[prost(message, tag = "30")]
        FilePart(FilePart),
        /// News of a watched placement group.
        #[prost(message, tag = "31")]
        GroupState(GroupState),
        /// Answer to `FindGroups`, and to a `CreateGroup` that wants one.
        #[prost(message, tag = "32")]
        Groups(Groups),
    }
}

impl From<to_node::Body> for ToNode {
    fn from(body: to_node::Body) -> Self {
        Self { body: Some(body) }
    }
}

impl From<from_node::Body> for FromNode {
    fn from(body: from_node::Body) -> Self {
        Self { body: Some(body) }
    }
}
