//! What happens to a node, and what it asks its shell to do.

use oxiray_ids::{NodeId, ProcessId, StoreKey};
use oxiray_store::{Extent, Refusal};
use oxiray_wire::control::{Amount, from_node, to_node};

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
    /// Name of the node, for the view.
    pub node: NodeId,
    /// Name of the machine, for the view.
    pub host: String,
    /// Process id of the node service, for the view.
    pub pid: u32,
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
    /// Ends everything: the driver is gone, or asked for it when `asked`.
    fn shut_down(&mut self, asked: bool);
}

/// The numbers of a process that may register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// Process number.
    pub process: ProcessId,
    /// Place among the bells; `u32::MAX` for an observer, which has none.
    pub bell: u32,
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
