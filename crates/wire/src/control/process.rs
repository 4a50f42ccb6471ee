//! Processes: how they register, what they are told of each other, what they print.

use prost::Message;

use super::Amount;

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
    /// What the driver tells its workers' Python, as JSON; empty: nothing.
    #[prost(string, tag = "9")]
    pub settings: String,
    /// The id by which it was handed in as a job; empty: it came by itself.
    #[prost(string, tag = "10")]
    pub submission: String,
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
    /// Fraction of the machine's memory above which workers are ended; 0 means never.
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
    /// The dashboard; none: there is none, and no port for it.
    #[prost(message, optional, tag = "15")]
    pub dashboard: Option<DashboardConfig>,
    /// Whether the kernel is to see that workers take no more than they asked for.
    #[prost(bool, tag = "20")]
    pub enforce: bool,
    /// What a node that is alone is like, by keys; that of a cluster has its own.
    #[prost(btree_map = "string, string", tag = "21")]
    pub labels: std::collections::BTreeMap<String, String>,
}

/// Where the dashboard is to be reached.
#[derive(Clone, PartialEq, Message)]
pub struct DashboardConfig {
    /// Name or address of this machine; empty: loopback.
    #[prost(string, tag = "1")]
    pub host: String,
    /// This port and no other, 0 being any; none: the first free one from the usual on.
    #[prost(uint32, optional, tag = "2")]
    pub port: Option<u32>,
    /// Whether there is to be no session without it.
    #[prost(bool, tag = "3")]
    pub is_required: bool,
    /// Version of the workers' Python, `3.11.2`, to be shown.
    #[prost(string, tag = "4")]
    pub python_version: String,
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
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: std::collections::BTreeMap<String, String>,
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
    /// From a worker: the node's number for the environment of the template it was forked from.
    #[prost(uint32, tag = "5")]
    pub environment: u32,
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
    /// The log of events that this process goes on with; 0: one of its own.
    #[prost(uint32, tag = "12")]
    pub event_log: u32,
    /// The newest chunk of that.
    #[prost(uint32, tag = "13")]
    pub event_chunk: u32,
    /// What the driver tells its workers' Python, as in [`JobConfig`].
    #[prost(string, tag = "15")]
    pub settings: String,
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
    /// Whether memory was the reason.
    #[prost(enumeration = "MemoryEnd", tag = "6")]
    pub memory: i32,
}

/// What memory has to do with the end of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum MemoryEnd {
    /// Nothing.
    Not = 0,
    /// The machine's was short, and others of the same owner ran there: it is worth another try.
    Shared = 1,
    /// The machine's was short, and nothing else of its owner ran there.
    Alone = 2,
    /// It took more than it had asked for: it would do so again.
    OverLimit = 3,
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
