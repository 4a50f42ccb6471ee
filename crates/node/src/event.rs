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
    /// What to add to the time of an event to have nanoseconds since 1970.
    pub clock_began_ns: u64,
    /// The job of the only driver, which the node ends with; none: drivers come and go.
    pub job: Option<JobId>,
    /// What the node is in its cluster, with the number that it has there.
    pub member: NodeInfo,
    /// The control service is in the same process, and never away.
    pub alone: bool,
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
    /// The machine's memory is nearly used up: end this worker.
    OutOfMemory {
        /// Which.
        process: ProcessId,
        /// The sentence for its owner.
        reason: String,
    },
    /// A worker that was asked for will never come.
    StartFailed {
        /// Why, for the user.
        reason: String,
    },
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
    /// The connection with a node broke, for this reason: what was on its way is
    /// lost, and so is everything between the two. It may be a member still.
    PeerLost(u32, String),
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
    /// Starts a worker: it registers, or [`Event::StartFailed`] follows.
    fn start_worker(&mut self);
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
    /// which this is said first; [`Event::FromControl`] or [`Event::ControlLost`] follows.
    fn dial_control(&mut self, join: Join);
    /// Another node is there, and may be spoken to.
    fn add_node(&mut self, info: &NodeInfo);
    /// Another node is gone: nothing that still comes from it counts.
    fn remove_node(&mut self, number: u32);
    /// The cluster's secret changed.
    fn change_tokens(&mut self, tokens: Tokens);
    /// This node is no member any more, for this reason: it must end.
    fn exclude(&mut self, why: String);
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdmitError {
    /// Every bell is taken. Retryable once a process has ended.
    #[error("the node already serves {limit} processes, the most it can")]
    TooManyProcesses {
        /// The most there may be.
        limit: usize,
    },
}
