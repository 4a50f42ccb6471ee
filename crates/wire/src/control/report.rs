//! Questions about what there is, what is held, and what waits.

use prost::Message;

use super::{Amount, ProcessKind};

/// What a [`Query`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Topic {
    /// Answered with [`ClusterView`].
    Cluster = 0,
    /// Answered with an [`ObjectReport`] or more of every process, and one more
    /// without a process when all have answered.
    Objects = 1,
    /// Answered with a [`TaskReport`] of every process, and one more without a process
    /// when all have answered.
    Tasks = 2,
    /// Nodes, those that left lately included. Answered with a [`Listing`].
    Nodes = 3,
    /// Programs, those that ended lately included. Answered with a [`Listing`].
    Jobs = 4,
    /// Actors, those that died lately included. Answered with a [`Listing`].
    Actors = 5,
    /// Processes of one node, those that ended lately included. Answered with a [`Listing`].
    Processes = 6,
    /// Placement groups, those removed lately included. Answered with a [`Listing`].
    Groups = 8,
    /// Why the asker has no worker of a shape, of which `about` is its own name. Answered with a
    /// [`TaskReport`] at once.
    Worker = 7,
    /// The tasks of which `about` are the ids are not wanted any more. Answered like `Tasks`, with
    /// those that had not ended.
    Cancel = 9,
}

/// Where an object's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum WhereHeld {
    /// It is not there yet.
    Pending = 0,
    /// In the process that owns it: it is small.
    Process = 1,
    /// In the store.
    Memory = 2,
    /// In the store, on disk.
    Disk = 3,
    /// Nowhere: its task failed, or it was lost or freed.
    Failed = 4,
}

/// An object, as one process holds it.
#[derive(Clone, PartialEq, Message)]
pub struct HeldObject {
    /// Twenty-eight bytes; none: its references are gone, but values in this process look at it.
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    /// Bytes, if that is known.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// Where its value is.
    #[prost(enumeration = "WhereHeld", tag = "3")]
    pub place: i32,
    /// Process number of its owner; 0: the process itself.
    #[prost(uint64, tag = "4")]
    pub owner: u64,
    /// References of the program.
    #[prost(uint32, tag = "5")]
    pub local: u32,
    /// Tasks under way that take it.
    #[prost(uint32, tag = "6")]
    pub tasks: u32,
    /// Objects that contain it.
    #[prost(uint32, tag = "7")]
    pub captured: u32,
    /// References on their way to other processes.
    #[prost(uint32, tag = "8")]
    pub in_flight: u32,
    /// Other processes that hold it.
    #[prost(uint32, tag = "9")]
    pub borrowers: u32,
    /// Values in the process look at it.
    #[prost(bool, tag = "10")]
    pub pinned: bool,
    /// Where it was created, if that is recorded.
    #[prost(string, tag = "11")]
    pub call_site: String,
    /// Its name in the store, if it is there.
    #[prost(uint64, optional, tag = "12")]
    pub key: Option<u64>,
}

/// What a process holds, or part of it.
#[derive(Clone, PartialEq, Message)]
pub struct ObjectReport {
    /// As in [`Query`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Process number; 0: all have answered.
    #[prost(uint64, tag = "2")]
    pub process: u64,
    /// Operating-system process id.
    #[prost(uint32, tag = "3")]
    pub pid: u32,
    /// What kind of process.
    #[prost(enumeration = "ProcessKind", tag = "4")]
    pub kind: i32,
    /// What it holds.
    #[prost(message, repeated, tag = "5")]
    pub objects: Vec<HeldObject>,
    /// The last one of this process.
    #[prost(bool, tag = "6")]
    pub last: bool,
}

/// A question about the cluster.
#[derive(Clone, PartialEq, Message)]
pub struct Query {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// What about.
    #[prost(enumeration = "Topic", tag = "2")]
    pub topic: i32,
    /// Of tasks: an id, an id of an object it returns, or a name.
    #[prost(string, tag = "3")]
    pub about: String,
    /// Number of the node that is to answer; 0: the one that is asked. Nodes, jobs and actors
    /// of a cluster its control service knows.
    #[prost(uint32, tag = "4")]
    pub node: u32,
    /// Of a listing: where to go on, as [`Listing::next`] said; empty: from the beginning.
    #[prost(bytes = "vec", tag = "5")]
    pub after: Vec<u8>,
    /// Of `Cancel`: the processes that run them end.
    #[prost(bool, tag = "6")]
    pub force: bool,
}

/// A part of what there is: as much as goes into a packet.
#[derive(Clone, PartialEq, Message)]
pub struct Listing {
    /// As in [`Query`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Nodes, if those were asked for.
    #[prost(message, repeated, tag = "2")]
    pub nodes: Vec<crate::cluster::NodeInfo>,
    /// Programs.
    #[prost(message, repeated, tag = "3")]
    pub jobs: Vec<crate::cluster::Job>,
    /// Actors.
    #[prost(message, repeated, tag = "4")]
    pub actors: Vec<crate::cluster::ActorInfo>,
    /// Processes.
    #[prost(message, repeated, tag = "5")]
    pub processes: Vec<ProcessInfo>,
    /// For [`Query::after`]; empty: this was the last part.
    #[prost(bytes = "vec", tag = "6")]
    pub next: Vec<u8>,
    /// Placement groups.
    #[prost(message, repeated, tag = "7")]
    pub groups: Vec<crate::cluster::GroupInfo>,
    /// Jobs that were handed in, if programs were asked for.
    #[prost(message, repeated, tag = "8")]
    pub submissions: Vec<Submission>,
}

/// A job that was handed in, as its clerk writes it down.
#[derive(Clone, PartialEq, Message)]
pub struct Submission {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// What is known of it, in short: JSON.
    #[prost(bytes = "vec", tag = "2")]
    pub said: Vec<u8>,
}

/// A driver or worker, as its node knows it.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessInfo {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Operating-system process id.
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    /// What kind of process.
    #[prost(enumeration = "ProcessKind", tag = "3")]
    pub kind: i32,
    /// Four bytes: the job it works for; none: for none yet.
    #[prost(bytes = "vec", tag = "4")]
    pub job: Vec<u8>,
    /// Sixteen bytes: the actor it is; none: it is none.
    #[prost(bytes = "vec", tag = "5")]
    pub actor: Vec<u8>,
    /// It runs tasks of somebody.
    #[prost(bool, tag = "6")]
    pub leased: bool,
    /// Wall-clock milliseconds.
    #[prost(uint64, tag = "7")]
    pub started_ms: u64,
    /// Wall-clock milliseconds; 0: it lives.
    #[prost(uint64, tag = "8")]
    pub ended_ms: u64,
    /// Why it ended, in words.
    #[prost(string, tag = "9")]
    pub reason: String,
}

/// Wants bytes of a file of a node, or the names of its files.
///
/// There are three folders, and nothing beside them can be read: `logs` and `events` of the
/// session, and `machine`, what the kernel says of the machine.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ReadFile {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Number of the node; 0: the one that is asked.
    #[prost(uint32, tag = "2")]
    pub node: u32,
    /// `logs/worker-17.out`; a folder alone, `logs`, for the names of its files.
    #[prost(string, tag = "3")]
    pub path: String,
    /// Of a file: from this byte on. Of a folder: how many names to leave out.
    #[prost(uint64, tag = "4")]
    pub offset: u64,
    /// The offset counts from the end.
    #[prost(bool, tag = "5")]
    pub from_end: bool,
    /// So many bytes at most, and never more than [`MOST_OF_FILE`].
    #[prost(uint32, tag = "6")]
    pub most: u32,
}

/// So many bytes of a file go into one [`FilePart`].
pub const MOST_OF_FILE: u32 = 64 << 10;

/// Answer to [`ReadFile`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FilePart {
    /// As in [`ReadFile`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Where `bytes` begin.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Bytes of the file; none: its end was reached.
    #[prost(bytes = "vec", tag = "3")]
    pub bytes: Vec<u8>,
    /// Bytes that the file has.
    #[prost(uint64, tag = "4")]
    pub size: u64,
    /// Names in the folder, sorted; none: there are no more.
    #[prost(message, repeated, tag = "5")]
    pub files: Vec<FileName>,
    /// Why it cannot be read; empty: it was.
    #[prost(string, tag = "6")]
    pub refused: String,
    /// It cannot be read because there is no such file, which trying again does not change.
    #[prost(bool, tag = "7")]
    pub missing: bool,
    /// Of a file on disk: which one it is, whatever it is called. No other has the same.
    #[prost(uint64, tag = "8")]
    pub identity: u64,
}

/// A file in a folder.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FileName {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its bytes.
    #[prost(uint64, tag = "2")]
    pub size: u64,
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum WaitKind {
    /// It is about to go on.
    Nothing = 0,
    /// It is the first of its owner's in a process.
    Running = 1,
    /// For the one before it in a process.
    Turn = 2,
    /// For an argument.
    Argument = 3,
    /// For news of an argument whose node could not be reached.
    News = 4,
    /// For a worker.
    Worker = 5,
    /// For its actor, which is not there yet.
    Actor = 6,
    /// For its end or its turn at its actor.
    AtActor = 7,
    /// For the actor that it makes.
    Construction = 8,
    /// For another try: memory ran out where it was.
    Memory = 9,
}

/// Why a task is not done.
#[derive(Clone, PartialEq, Message)]
pub struct TaskReason {
    /// Twenty-four bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Why there is no worker or no place for the actor, which the node knows.
    #[prost(string, tag = "3")]
    pub text: String,
    /// The sender's name for the shape of worker that is waited for, if one is.
    #[prost(uint64, optional, tag = "4")]
    pub shape_key: Option<u64>,
    /// The process where it is, or whose the argument is.
    #[prost(uint64, optional, tag = "5")]
    pub process: Option<u64>,
    /// What it waits for.
    #[prost(enumeration = "WaitKind", tag = "6")]
    pub wait: i32,
    /// Twenty-eight bytes: the argument.
    #[prost(bytes = "vec", tag = "7")]
    pub object: Vec<u8>,
    /// Sixteen bytes: the actor.
    #[prost(bytes = "vec", tag = "8")]
    pub actor: Vec<u8>,
    /// Processes that hold what it lacks, of which one must end for it to go on. None: that is
    /// not known.
    #[prost(uint64, repeated, tag = "9")]
    pub holders: Vec<u64>,
}

/// What a thread of a process sleeps for.
#[derive(Clone, PartialEq, Message)]
pub struct Awaited {
    /// Twenty-eight bytes each: some that are not there.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub objects: Vec<Vec<u8>>,
    /// It goes on when one of them is there; else when all are.
    #[prost(bool, tag = "2")]
    pub any: bool,
}

/// Why tasks of a process are not done.
#[derive(Clone, PartialEq, Message)]
pub struct TaskReport {
    /// As in [`Query`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Process number; 0: all have answered.
    #[prost(uint64, tag = "2")]
    pub process: u64,
    /// Operating-system process id.
    #[prost(uint32, tag = "3")]
    pub pid: u32,
    /// Those that were asked for and are known there.
    #[prost(message, repeated, tag = "4")]
    pub tasks: Vec<TaskReason>,
    /// Twenty-four bytes each: what runs there.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub running: Vec<Vec<u8>>,
    /// What its threads sleep for in `get` and `wait`.
    #[prost(message, repeated, tag = "6")]
    pub awaited: Vec<Awaited>,
    /// Of an event loop that has begun nothing for long though there is something: where it is.
    #[prost(string, tag = "7")]
    pub blocked: String,
}

/// The node as a whole.
#[derive(Clone, PartialEq, Message)]
pub struct ClusterView {
    /// As in [`Query`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// All there is.
    #[prost(message, repeated, tag = "2")]
    pub total: Vec<Amount>,
    /// All that is free now.
    #[prost(message, repeated, tag = "3")]
    pub available: Vec<Amount>,
    /// Twenty-eight bytes.
    #[prost(bytes = "vec", tag = "4")]
    pub node: Vec<u8>,
    /// Live workers, actors included.
    #[prost(uint32, tag = "5")]
    pub workers: u32,
    /// Live actors.
    #[prost(uint32, tag = "6")]
    pub actors: u32,
    /// Bytes of the arena in use.
    #[prost(uint64, tag = "7")]
    pub store_used: u64,
    /// Bytes of the arena.
    #[prost(uint64, tag = "8")]
    pub store_size: u64,
    /// Requests that wait, in words, one each.
    #[prost(string, repeated, tag = "9")]
    pub waiting: Vec<String>,
    /// Name of the machine.
    #[prost(string, tag = "10")]
    pub host: String,
    /// Process id of the node service.
    #[prost(uint32, tag = "11")]
    pub pid: u32,
    /// What the asking worker's task or actor holds.
    #[prost(message, repeated, tag = "12")]
    pub held: Vec<Amount>,
    /// Objects of the store, in memory or on disk.
    #[prost(uint64, tag = "13")]
    pub store_objects: u64,
    /// Bytes that are on disk now.
    #[prost(uint64, tag = "14")]
    pub on_disk: u64,
    /// Objects that are on disk now.
    #[prost(uint64, tag = "15")]
    pub objects_on_disk: u64,
    /// Bytes written to disk so far.
    #[prost(uint64, tag = "16")]
    pub spilled: u64,
    /// Bytes read back from disk so far.
    #[prost(uint64, tag = "17")]
    pub restored: u64,
    /// All members, this node included; none: it is the only one.
    #[prost(message, repeated, tag = "18")]
    pub nodes: Vec<crate::cluster::NodeInfo>,
    /// More nodes follow in another answer.
    #[prost(bool, tag = "19")]
    pub more: bool,
}
