//! The object store: memory, objects on disk, objects of other nodes.

use prost::Message;

use crate::frame::FailureCode;

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

/// What there is none of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Lacking {
    /// The object: it is lost.
    Object = 0,
    /// Memory: waiting for it was of no use.
    Memory = 1,
    /// Memory, and room on disk for what is in it.
    Disk = 2,
    /// The node where the object was: its owner may make it again.
    Node = 3,
}

/// Why there is no memory, or no object.
#[derive(Clone, PartialEq, Message)]
pub struct Refused {
    /// In words, with the remedy.
    #[prost(string, tag = "1")]
    pub text: String,
    /// What is lacking.
    #[prost(enumeration = "Lacking", tag = "2")]
    pub lacking: i32,
}

impl Refused {
    /// This is lacking; `text` says it with the remedy.
    pub fn new(lacking: Lacking, text: impl Into<String>) -> Self {
        Self { text: text.into(), lacking: lacking.into() }
    }

    /// What it fails with.
    pub fn failure_code(&self) -> FailureCode {
        match self.lacking() {
            Lacking::Object | Lacking::Node => FailureCode::ObjectLost,
            Lacking::Memory => FailureCode::StoreFull,
            Lacking::Disk => FailureCode::OutOfDisk,
        }
    }
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

/// An object has a new place.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ObjectMoved {
    /// Where it was.
    #[prost(message, optional, tag = "1")]
    pub from: Option<crate::cluster::Origin>,
    /// Where it is.
    #[prost(message, optional, tag = "2")]
    pub to: Option<crate::cluster::Origin>,
}

/// A request is no longer waited for.
#[derive(Clone, PartialEq, Message)]
pub struct Withdraw {
    /// Its name.
    #[prost(uint64, tag = "1")]
    pub request: u64,
}
