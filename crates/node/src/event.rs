//! What happens to a node, and what it asks its shell to do.

use oxiray_ids::{JobId, ProcessId, StoreKey};
use oxiray_store::{Extent, Refusal};
use oxiray_wire::cluster::{
    BetweenNodes, Join, NodeInfo, Tokens, between_nodes, from_control, to_control,
};
use oxiray_wire::control::{Amount, ReadFile, from_node, to_node};

/// What a node is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Everything the node has.
    pub resources: Vec<Amount>,
    /// Bytes of the arena.
    pub store_size: u64,
    /// How long creators wait for memory while nothing moves, in nanoseconds.
    pub store_patience: u64,
    /// Workers to start at once and to keep.
    pub prestart_workers: usize,
    /// Most workers that start at the same time.
    pub max_starting: usize,
    /// Most processes that have a bell.
    pub max_processes: usize,
    /// What keeps them from being more, for people: ` (ulimit -n is 256)`; empty: nothing does.
    pub limited_by: String,
    /// What to add to the time of an event to have nanoseconds since 1970.
    pub clock_began_ns: u64,
    /// The job of the only driver, which the node ends with; none: drivers come and go.
    pub job: Option<JobId>,
    /// What the node is in its cluster, with the number that it has there.
    pub member: NodeInfo,
    /// The control service is in the same process, and never away.
    pub alone: bool,
    /// When it asked to be a member, by the clock of its events.
    pub asked_at: u64,
}

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// An admitted process was told its number: messages may follow.
    Ready(ProcessId),
    /// A message of a process.
    Message(ProcessId, to_node::Body),
    /// A process is gone.
    Ended {
        /// Which.
        process: ProcessId,
        /// `exit code 1`.
        reason: String,
        /// What it printed last.
        last_lines: Vec<String>,
    },
    /// Memory is short: this worker must end, or was ended by the kernel.
    OutOfMemory {
        /// Which.
        process: ProcessId,
        /// The sentence for its owner.
        reason: String,
        /// It took more than it had asked for, which is why it alone is to blame.
        over_limit: bool,
    },
    /// A worker that was asked for will never come.
    StartFailed {
        /// The number of its environment.
        environment: u32,
        /// Why, for the user.
        reason: String,
    },
    /// The template of an environment is there, or is not (any more), for this reason.
    Template(u32, Result<(), String>),
    /// What the making of an environment is at, for people.
    TemplateSays(u32, String),
    /// The time that [`crate::Node::next_wakeup`] named has come.
    Tick,
    /// What was asked of the disk is done.
    Disk(DiskNews),
    /// Another node says this.
    FromPeer(u32, between_nodes::Body),
    /// The control service says this; its first word is that it welcomes the node.
    FromControl(from_control::Body),
    /// The connection with the control service broke, or could not be made.
    ControlLost,
    /// The first frame from one process for another: they need a channel.
    FrameCame {
        /// Of another node.
        from: ProcessId,
        /// Of this one.
        to: ProcessId,
    },
    /// What was said to a node, or by it, is lost in part, for this reason: everything between the
    /// two is over. It may be a member still.
    PeerLost(u32, String),
    /// No way leads to a node at the moment: what is said to it will come later, if it lives.
    PeerAway(u32),
    /// One does again.
    PeerBack(u32),
    /// After [`Self::PeerLost`]: the control service hears the node, which will say nothing itself.
    PeerLives(u32),
    /// An object came from another node, or did not, for this reason.
    Transferred(StoreKey, Result<(), String>),
}

/// What the disk has done.
#[derive(Debug)]
pub enum DiskNews {
    /// Objects were written.
    Spilled {
        /// Which.
        keys: Vec<StoreKey>,
        /// How long that took.
        nanoseconds: u64,
    },
    /// Objects could not be written.
    NotSpilled {
        /// Which.
        keys: Vec<StoreKey>,
        /// Why.
        why: Refusal,
    },
    /// An object was read.
    Restored(StoreKey),
    /// An object could not be read, for this reason.
    NotRestored(StoreKey, String),
}

/// One end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Process number.
    pub process: ProcessId,
    /// Operating-system process id.
    pub pid: u32,
    /// Place among the bells.
    pub bell: u32,
    /// This end's index for the channel.
    pub index: u32,
}

/// What a node asks for. Calls are carried out in order.
pub trait Outbox {
    /// Sends a message.
    fn send(&mut self, to: ProcessId, body: from_node::Body);
    /// Makes a channel and announces it to both ends; the first is side 0.
    fn open_channel(&mut self, ends: [Endpoint; 2]);
    /// Starts a worker of an environment whose template there is: it registers, or
    /// [`Event::StartFailed`] follows.
    fn start_worker(&mut self, environment: u32);
    /// Makes the template of an environment, which `text` describes; [`Event::Template`] follows.
    fn make_template(&mut self, environment: u32, text: &str);
    /// Ends the template of an environment; its workers live on.
    fn end_template(&mut self, environment: u32);
    /// A worker is about to have this much, and, where that is enforced, no more.
    fn confine(&mut self, _worker: ProcessId, _amounts: &[Amount]) {}
    /// Kills a process; [`Event::Ended`] follows.
    fn kill(&mut self, process: ProcessId);
    /// Writes objects of the store to disk; [`Event::Disk`] follows.
    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>);
    /// Reads an object from disk; [`Event::Disk`] follows.
    fn restore(&mut self, key: StoreKey, extent: Extent);
    /// Deletes an object's copy on disk.
    fn forget_copy(&mut self, key: StoreKey);
    /// Says a sentence about the store to the user.
    fn tell_user(&mut self, text: String);
    /// Says something to another node.
    fn tell_peer(&mut self, node: u32, message: BetweenNodes);
    /// Says something to the control service, over the connection that there is.
    fn tell_control(&mut self, body: to_control::Body);
    /// Ends the connection with the control service, if there is one, and makes another, over
    /// which this is said first; [`Event::FromControl`] or [`Event::ControlLost`] follows. Where
    /// several are known it is another one each time.
    fn dial_control(&mut self, join: Join);
    /// The control service that is connected is there, and these are all of them, if it said so.
    fn know_heads(&mut self, _heads: &[String]) {}
    /// Another node is there, and may be spoken to.
    fn add_node(&mut self, info: &NodeInfo);
    /// Another node is gone: nothing that still comes from it counts.
    fn remove_node(&mut self, number: u32);
    /// The cluster's secret changed.
    fn change_tokens(&mut self, tokens: Tokens);
    /// This node is no member any more, for this reason: it must end.
    fn exclude(&mut self, why: String);
    /// This node was given up, for this reason: it must end all that it has, and join again as a
    /// new one.
    fn rejoin(&mut self, why: String);
    /// Nothing is left to do: ends all processes here, says to the control service that the node
    /// leaves, for this reason, and ends.
    fn leave(&mut self, why: String);
    /// Reads what is left in the channel of a local and a foreign process, sends
    /// it on, and forgets the channel.
    fn close_channel(&mut self, local: ProcessId, foreign: ProcessId);
    /// Reads an object from another node; [`Event::Transferred`] follows.
    fn transfer(&mut self, transfer: Transfer);
    /// Other nodes may read these bytes, by this name.
    fn lend(&mut self, grant: u64, extent: Extent);
    /// They may not any more.
    fn end_lending(&mut self, grant: u64);
    /// Reads a file, or a folder, for a process; the answer goes to that directly.
    fn read_file(&mut self, asker: ProcessId, wanted: ReadFile);
    /// Ends everything: the driver is gone, or asked for it when `asked`.
    fn shut_down(&mut self, asked: bool);
}

/// An object to read from another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Number of the node to read from.
    pub node: u32,
    /// Its name for what may be read.
    pub grant: u64,
    /// What it becomes here.
    pub key: StoreKey,
    /// Where its bytes go.
    pub extent: Extent,
}

/// The numbers of a process that may register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// Process number.
    pub process: ProcessId,
    /// Place among the bells; `u32::MAX` for an observer, which has none.
    pub bell: u32,
    /// What it works for, if that is known.
    pub job: Option<JobId>,
}

/// Why a process may not register.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdmitError {
    /// Every bell is taken. Retryable once a process has ended.
    #[error("the node already serves {limit} processes, the most it can{limited_by}")]
    TooManyProcesses {
        /// The most there may be.
        limit: usize,
        /// What keeps them from being more; empty: nothing does.
        limited_by: String,
    },
    /// A worker of an environment that nobody asked for.
    #[error("there is no environment {0}")]
    UnknownEnvironment(u32),
}
