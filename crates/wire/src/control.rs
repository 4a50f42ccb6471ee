//! Messages between a process and its node service.
//!
//! Each is one packet on a sequenced-packet Unix socket, descriptors attached.
//! Resource amounts are fixed-point: [`UNIT`] is 1.0.

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

/// What the workers of a job must know of it.
#[derive(Clone, PartialEq, Message)]
pub struct JobConfig {
    /// Four bytes; none: the node chooses.
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    /// `sys.path` of the driver, for modules beside its script.
    #[prost(string, repeated, tag = "2")]
    pub sys_path: Vec<String>,
    /// Its namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Process number of the driver.
    #[prost(uint64, tag = "4")]
    pub driver: u64,
    /// Whether what workers print goes to the driver.
    #[prost(bool, tag = "5")]
    pub log_to_driver: bool,
    /// What was run, in words.
    #[prost(string, tag = "6")]
    pub entrypoint: String,
    /// Version of its Python, `3.11`.
    #[prost(string, tag = "7")]
    pub python: String,
}

/// How a node service started by a driver is to be.
#[derive(Clone, PartialEq, Message)]
pub struct NodeConfig {
    /// Everything the node has, `CPU` included.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<Amount>,
    /// Bytes of the object store; 0 chooses.
    #[prost(uint64, tag = "2")]
    pub object_store_memory: u64,
    /// Python interpreter of the workers.
    #[prost(string, tag = "3")]
    pub python: String,
    /// `sys.path` of the driver, for modules beside its script.
    #[prost(string, repeated, tag = "4")]
    pub sys_path: Vec<String>,
    /// Modules that workers import while they have nothing else to do.
    #[prost(string, repeated, tag = "5")]
    pub preload: Vec<String>,
    /// Directory of this session: exists, mode 0700, empty.
    #[prost(string, tag = "6")]
    pub session_dir: String,
    /// Whether what workers print goes to the driver.
    #[prost(bool, tag = "7")]
    pub log_to_driver: bool,
    /// Workers to start at once and to keep.
    #[prost(uint32, tag = "8")]
    pub prestart_workers: u32,
    /// Fraction of the machine's memory above which the largest worker is ended; 0 means never.
    #[prost(double, tag = "9")]
    pub memory_usage_threshold: f64,
    /// Namespace of the driver.
    #[prost(string, tag = "10")]
    pub namespace: String,
    /// Where objects go when the store is full: directories, or one URL. Empty: into the session's.
    #[prost(string, repeated, tag = "11")]
    pub spill_to: Vec<String>,
    /// How long creators wait for memory while nothing moves, in milliseconds.
    #[prost(uint64, tag = "12")]
    pub store_patience_ms: u64,
    /// Whether the driver hears of spilling.
    #[prost(bool, tag = "13")]
    pub tell_spilling: bool,
    /// The cluster it is to join; none: it is alone, and ends with its driver.
    #[prost(message, optional, tag = "14")]
    pub cluster: Option<ClusterConfig>,
}

/// How a node is to be a member of a cluster.
#[derive(Clone, PartialEq, Message)]
pub struct ClusterConfig {
    /// Where the control service is reached: `10.0.0.1:6379`.
    #[prost(string, tag = "1")]
    pub control: String,
    /// File of the cluster's tokens; empty: it is an insecure one.
    #[prost(string, tag = "2")]
    pub keyring: String,
    /// The address at which other nodes reach this one; empty: that from which it
    /// reaches the control service.
    #[prost(string, tag = "3")]
    pub node_ip: String,
    /// The port at which other nodes reach this one; 0: any.
    #[prost(uint32, tag = "4")]
    pub port: u32,
    /// What the node is like, by keys.
    #[prost(map = "string, string", tag = "5")]
    pub labels: std::collections::HashMap<String, String>,
    /// It is on the machine of the control service.
    #[prost(bool, tag = "6")]
    pub is_head: bool,
    /// Version of the workers' Python, `3.11`.
    #[prost(string, tag = "7")]
    pub python_version: String,
}

/// What kind of process registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum ProcessKind {
    /// A user's program.
    Driver = 0,
    /// Forked from the zygote.
    Worker = 1,
    /// A tool that only looks.
    Observer = 2,
    /// A process of another node. None registers as such.
    Foreign = 3,
}

/// First message of every connection. A worker attaches the read ends of its
/// standard output and error.
#[derive(Clone, PartialEq, Message)]
pub struct Register {
    /// See [`crate::VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// What registers.
    #[prost(enumeration = "ProcessKind", tag = "2")]
    pub kind: i32,
    /// Only from the driver that started the node service.
    #[prost(message, optional, tag = "3")]
    pub config: Option<NodeConfig>,
    /// From every driver.
    #[prost(message, optional, tag = "4")]
    pub job: Option<JobConfig>,
}

/// Answer to [`Register`], with descriptors: the bells, the arena, its table.
#[derive(Clone, PartialEq, Message)]
pub struct Registered {
    /// This process's number. Also its place among the bells.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Four bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub job: Vec<u8>,
    /// Twenty-eight bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub node: Vec<u8>,
    /// Bytes of the arena.
    #[prost(uint64, tag = "4")]
    pub store_size: u64,
    /// Directory of the session.
    #[prost(string, tag = "5")]
    pub session_dir: String,
    /// Namespace of the driver.
    #[prost(string, tag = "6")]
    pub namespace: String,
    /// Place among the bells.
    #[prost(uint32, tag = "7")]
    pub bell: u32,
    /// Modules that a worker imports while it has nothing else to do.
    #[prost(string, repeated, tag = "8")]
    pub preload: Vec<String>,
    /// Process number of the driver.
    #[prost(uint64, tag = "9")]
    pub driver: u64,
    /// Where the node is reached, if it is one of many: `10.0.0.2:40123`.
    #[prost(string, tag = "10")]
    pub address: String,
    /// Where the control service is reached, if there is one.
    #[prost(string, tag = "11")]
    pub control: String,
}

/// "Of this shape I have asked for so many leases in all." Never falls below
/// the number granted; a smaller total than before withdraws.
#[derive(Clone, PartialEq, Message)]
pub struct SetDemand {
    /// The sender's own name for the shape.
    #[prost(uint64, tag = "1")]
    pub shape_key: u64,
    /// The shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
    /// Leases asked for since the beginning.
    #[prost(uint64, tag = "3")]
    pub requested_total: u64,
}

/// A worker to push tasks to, with resources taken for it.
#[derive(Clone, PartialEq, Message)]
pub struct Granted {
    /// As in [`SetDemand`].
    #[prost(uint64, tag = "1")]
    pub shape_key: u64,
    /// Names the lease when it is given back.
    #[prost(uint64, tag = "2")]
    pub lease: u64,
    /// The worker. A channel to it was announced before this.
    #[prost(uint64, tag = "3")]
    pub worker: u64,
    /// Devices that go with it.
    #[prost(message, repeated, tag = "4")]
    pub devices: Vec<Devices>,
}

/// Names one lease, process, actor: several small messages share this form.
#[derive(Clone, PartialEq, Message)]
pub struct Lease {
    /// As in [`Granted`].
    #[prost(uint64, tag = "1")]
    pub lease: u64,
}

/// Asks for a channel to another process, or names one.
#[derive(Clone, PartialEq, Message)]
pub struct Peer {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
}

/// Nothing but its kind.
#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

/// A channel between the receiver of this and `peer`; its memory file is attached.
#[derive(Clone, PartialEq, Message)]
pub struct ChannelOpened {
    /// Process number of the other end.
    #[prost(uint64, tag = "1")]
    pub peer: u64,
    /// Bell of the other end.
    #[prost(uint32, tag = "2")]
    pub peer_bell: u32,
    /// Our index for this channel: the bit that the peer sets in our bell.
    #[prost(uint32, tag = "3")]
    pub index: u32,
    /// The peer's index for this channel: the bit that we set in its bell.
    #[prost(uint32, tag = "4")]
    pub peer_index: u32,
    /// Which of the two rings we write: 0 or 1.
    #[prost(uint32, tag = "5")]
    pub side: u32,
    /// Operating-system process id of the other end.
    #[prost(uint32, tag = "6")]
    pub peer_pid: u32,
}

/// A process is gone. Sent to everyone with a channel to it.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDied {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Operating-system process id.
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    /// It said beforehand that it would go.
    #[prost(bool, tag = "3")]
    pub intended: bool,
    /// In words: `exit code 1`, `killed by signal 11 (SIGSEGV)`.
    #[prost(string, tag = "4")]
    pub reason: String,
    /// The last lines it printed.
    #[prost(string, repeated, tag = "5")]
    pub last_lines: Vec<String>,
    /// It was ended because the machine's memory was nearly used up.
    #[prost(bool, tag = "6")]
    pub out_of_memory: bool,
}

/// Makes an actor.
#[derive(Clone, PartialEq, Message)]
pub struct CreateActor {
    /// Sixteen bytes, chosen by the creator.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Name of the class, for people.
    #[prost(string, tag = "2")]
    pub class_name: String,
    /// Needed to place it.
    #[prost(message, optional, tag = "3")]
    pub placement: Option<Shape>,
    /// Held while it lives: a part of `placement`.
    #[prost(message, optional, tag = "4")]
    pub held: Option<Shape>,
    /// How often it may be started again when its process dies; negative: for ever.
    #[prost(int64, tag = "5")]
    pub max_restarts: i64,
    /// It lives until it is killed: neither its handles nor its creator count.
    #[prost(bool, tag = "6")]
    pub detached: bool,
}

/// Asks for an actor's name, or for the actor of a name.
#[derive(Clone, PartialEq, Message)]
pub struct NamedActor {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Names are apart in each.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Sixteen bytes; none: there is no such actor.
    #[prost(bytes = "vec", tag = "4")]
    pub actor: Vec<u8>,
    /// What a handle needs to know of the class.
    #[prost(bytes = "vec", tag = "5")]
    pub about: Vec<u8>,
    /// Process number of the creator.
    #[prost(uint64, tag = "6")]
    pub creator: u64,
}

/// The names of actors, of one namespace or all.
#[derive(Clone, PartialEq, Message)]
pub struct ActorNames {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Of this namespace alone; empty: of all.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Namespace and name, in turn. In a question: after which to go on.
    #[prost(string, repeated, tag = "3")]
    pub names: Vec<String>,
}

/// Names an actor; `no_restart` is for [`to_node::Body::KillActor`].
#[derive(Clone, PartialEq, Message)]
pub struct Actor {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Whether it must stay dead.
    #[prost(bool, tag = "2")]
    pub no_restart: bool,
    /// Why, if it is not the user's wish.
    #[prost(string, tag = "3")]
    pub reason: String,
}

/// From an actor's worker: how its constructor ended.
#[derive(Clone, PartialEq, Message)]
pub struct ActorCreated {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Serialised error, empty when it went well.
    #[prost(bytes = "vec", tag = "2")]
    pub error: Vec<u8>,
}

/// To a worker: become this actor. The creator has its class and arguments.
#[derive(Clone, PartialEq, Message)]
pub struct StartActor {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Devices that go with it.
    #[prost(message, repeated, tag = "3")]
    pub devices: Vec<Devices>,
    /// Process number of the creator.
    #[prost(uint64, tag = "4")]
    pub creator: u64,
    /// Name of the class.
    #[prost(string, tag = "5")]
    pub class_name: String,
    /// How often it was started again.
    #[prost(uint64, tag = "6")]
    pub restarts: u64,
    /// Its creator is gone: its class and arguments were kept.
    #[prost(bool, tag = "7")]
    pub kept: bool,
    /// Its class and arguments are to be kept: it may outlive its creator.
    #[prost(bool, tag = "8")]
    pub keep: bool,
}

/// Where an actor is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum ActorPhase {
    /// Waits for resources, or its constructor runs.
    Pending = 0,
    /// Takes calls.
    Alive = 1,
    /// For good.
    Dead = 2,
    /// Its process died, and it is being started again.
    Restarting = 3,
}

/// State of an actor, to everyone who watches it.
#[derive(Clone, PartialEq, Message)]
pub struct ActorState {
    /// Sixteen bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub actor: Vec<u8>,
    /// Where it is in its life.
    #[prost(enumeration = "ActorPhase", tag = "2")]
    pub phase: i32,
    /// Its worker, when alive. A channel to it was announced before this.
    #[prost(uint64, tag = "3")]
    pub process: u64,
    /// Why it died, in words.
    #[prost(string, tag = "4")]
    pub reason: String,
    /// Serialised error of its constructor, if that is why.
    #[prost(bytes = "vec", tag = "5")]
    pub creation_error: Vec<u8>,
    /// Operating-system process id of its worker.
    #[prost(uint32, tag = "6")]
    pub pid: u32,
    /// Name of the class.
    #[prost(string, tag = "7")]
    pub class_name: String,
    /// How often it was started again.
    #[prost(uint64, tag = "8")]
    pub restarts: u64,
}

/// Asks for room in the arena.
#[derive(Clone, PartialEq, Message)]
pub struct Allocate {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// Process number of whom the object will belong to.
    #[prost(uint64, tag = "3")]
    pub owner: u64,
}

/// Answer to [`Allocate`].
#[derive(Clone, PartialEq, Message)]
pub struct Allocated {
    /// As in [`Allocate`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Where, 64-byte aligned.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Names the object.
    #[prost(uint64, tag = "3")]
    pub key: u64,
    /// Why not, if so.
    #[prost(message, optional, tag = "4")]
    pub refused: Option<Refused>,
}

/// Why there is no memory, or no object.
#[derive(Clone, PartialEq, Message)]
pub struct Refused {
    /// In words, with the remedy.
    #[prost(string, tag = "1")]
    pub text: String,
    /// The disk is full, too.
    #[prost(bool, tag = "2")]
    pub out_of_disk: bool,
    /// Waiting for memory was of no use; otherwise the object is lost.
    #[prost(bool, tag = "3")]
    pub store_full: bool,
    /// It was at a node that has left: its owner may make it again.
    #[prost(bool, tag = "4")]
    pub node_left: bool,
}

/// Asks for, or grants, memory to carve small objects from.
#[derive(Clone, PartialEq, Message)]
pub struct Slab {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// First byte in the arena.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Bytes. In a request, of the smallest object; in an answer, 0 is no.
    #[prost(uint64, tag = "3")]
    pub len: u64,
    /// Names for objects in it.
    #[prost(uint64, repeated, tag = "4")]
    pub keys: Vec<u64>,
}

/// Wants an object that is on disk to be in memory.
#[derive(Clone, PartialEq, Message)]
pub struct Fetch {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// The object.
    #[prost(uint64, tag = "2")]
    pub key: u64,
}

/// Answer to [`Fetch`].
#[derive(Clone, PartialEq, Message)]
pub struct Fetched {
    /// As in [`Fetch`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Why it will not be, if so.
    #[prost(message, optional, tag = "2")]
    pub refused: Option<Refused>,
}

/// Names objects of the store: their keys, or their slots.
#[derive(Clone, PartialEq, Message)]
pub struct Stored {
    /// Keys of objects, or slots of the table.
    #[prost(uint64, repeated, tag = "1")]
    pub keys: Vec<u64>,
}

/// Wants an object of another node to be in this node's store, or says that it is.
#[derive(Clone, PartialEq, Message)]
pub struct PullObject {
    /// Names the answer.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Number of the node where it was made.
    #[prost(uint32, tag = "2")]
    pub node: u32,
    /// Its name there; in an answer, its name here.
    #[prost(uint64, tag = "3")]
    pub key: u64,
    /// Bytes.
    #[prost(uint64, tag = "4")]
    pub len: u64,
    /// Why it will not be, if so.
    #[prost(message, optional, tag = "5")]
    pub refused: Option<Refused>,
}

/// Names objects of another node's store.
#[derive(Clone, PartialEq, Message)]
pub struct StoredAt {
    /// Number of the node.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// Their keys there.
    #[prost(uint64, repeated, tag = "2")]
    pub keys: Vec<u64>,
}

/// What a process asked for can never be.
#[derive(Clone, PartialEq, Message)]
pub struct Unschedulable {
    /// As in [`SetDemand`].
    #[prost(uint64, tag = "1")]
    pub shape_key: u64,
    /// Why, in words.
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// A node is gone, with every object in its store.
#[derive(Clone, PartialEq, Message)]
pub struct NodeLost {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// Why, in words.
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// A request is no longer waited for.
#[derive(Clone, PartialEq, Message)]
pub struct Withdraw {
    /// Its name.
    #[prost(uint64, tag = "1")]
    pub request: u64,
}

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
    /// Reads on after "it".
    #[prost(string, tag = "3")]
    pub text: String,
    /// The sender's name for the shape of worker that is waited for, if one is.
    #[prost(uint64, optional, tag = "4")]
    pub shape_key: Option<u64>,
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

/// Lines that a worker printed.
#[derive(Clone, PartialEq, Message)]
pub struct Log {
    /// Who printed, in words: the task or actor class.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Process id.
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    /// Whether to standard error.
    #[prost(bool, tag = "3")]
    pub is_error: bool,
    /// Without line ends.
    #[prost(string, repeated, tag = "4")]
    pub lines: Vec<String>,
    /// Address of the machine, if it is not the driver's.
    #[prost(string, tag = "5")]
    pub host: String,
}

/// A sentence for the user.
#[derive(Clone, PartialEq, Message)]
pub struct Text {
    /// The sentence.
    #[prost(string, tag = "1")]
    pub text: String,
}

/// From a process to its node service.
#[derive(Clone, PartialEq, Message)]
pub struct ToNode {
    /// Which message.
    #[prost(
        oneof = "to_node::Body",
        tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
    )]
    pub body: Option<to_node::Body>,
}

/// The messages of [`ToNode`].
pub mod to_node {
    use super::*;

    /// From a process to its node service.
    #[derive(Clone, PartialEq, prost::Oneof)]
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
        /// The driver leaves: end everything; answered with `Stopped` when all output was sent.
        #[prost(message, tag = "15")]
        Stop(Empty),
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
    }
}

/// From a node service to a process.
#[derive(Clone, PartialEq, Message)]
pub struct FromNode {
    /// Which message.
    #[prost(
        oneof = "from_node::Body",
        tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28"
    )]
    pub body: Option<from_node::Body>,
}

/// The messages of [`FromNode`].
pub mod from_node {
    use super::*;

    /// From a node service to a process.
    #[derive(Clone, PartialEq, prost::Oneof)]
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
