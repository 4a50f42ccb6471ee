//! Messages of nodes with each other: whom they speak for, leases, and objects that one reads of the
//! other.

use prost::Message;

use super::{ForProcess, OfProcess};
use crate::control::ProcessDied;

/// A process that another node may hear from.
#[derive(Clone, PartialEq, Message)]
pub struct Introduce {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Operating-system process id.
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    /// Four bytes: the job it works for.
    #[prost(bytes = "vec", tag = "3")]
    pub job: Vec<u8>,
    /// What workers of that job must know.
    #[prost(message, optional, tag = "4")]
    pub config: Option<crate::control::JobConfig>,
}

/// Bytes of a ring between two processes of different nodes.
#[derive(Clone, PartialEq, Message)]
pub struct Passed {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// Process number.
    #[prost(uint64, tag = "2")]
    pub to: u64,
    /// One frame of the ring, or one piece.
    #[prost(bytes = "vec", tag = "3")]
    pub frame: Vec<u8>,
}

/// Names an object by the node and the store where it was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub struct Origin {
    /// Number of the node.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// Key in its store.
    #[prost(uint64, tag = "2")]
    pub key: u64,
}

/// Wants to read an object.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Pull {
    /// The reader's name for it.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// The object.
    #[prost(message, optional, tag = "2")]
    pub origin: Option<Origin>,
}

/// Answer to [`Pull`].
#[derive(Clone, PartialEq, Message)]
pub struct PullAnswer {
    /// As in [`Pull`].
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// Names what may be read, in [`ReadRange`]; 0: nothing.
    #[prost(uint64, tag = "2")]
    pub grant: u64,
    /// Bytes of the object.
    #[prost(uint64, tag = "3")]
    pub len: u64,
    /// Ask this node instead; 0: no.
    #[prost(uint32, tag = "4")]
    pub elsewhere: u32,
    /// Why not, if so.
    #[prost(message, optional, tag = "5")]
    pub refused: Option<crate::control::Refused>,
}

/// The reader is done with a grant.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct PullDone {
    /// As in [`PullAnswer`].
    #[prost(uint64, tag = "1")]
    pub grant: u64,
    /// It has all, and can serve others.
    #[prost(bool, tag = "2")]
    pub complete: bool,
}

/// Names objects by keys of the receiver's store, or of the sender's.
#[derive(Clone, PartialEq, Message)]
pub struct Keys {
    /// The keys.
    #[prost(uint64, repeated, tag = "1")]
    pub keys: Vec<u64>,
    /// Number of the node they are of.
    #[prost(uint32, tag = "2")]
    pub node: u32,
}

/// An object of the sender that is to be the receiver's.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Adopt {
    /// Its name in the sender's store.
    #[prost(uint64, tag = "1")]
    pub key: u64,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub len: u64,
    /// Process number of its owner.
    #[prost(uint64, tag = "3")]
    pub owner: u64,
}

/// Answer to [`Adopt`], once the owner knows where the object is.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Adopted {
    /// As in [`Adopt`].
    #[prost(uint64, tag = "1")]
    pub key: u64,
    /// It cannot be had.
    #[prost(bool, tag = "2")]
    pub refused: bool,
}

/// Between two nodes.
#[derive(Clone, PartialEq, Message)]
pub struct BetweenNodes {
    /// Which message.
    #[prost(oneof = "between_nodes::Body", tags = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,20,21")]
    pub body: Option<between_nodes::Body>,
}

/// The messages of [`BetweenNodes`].
pub mod between_nodes {
    use super::*;

    /// Between two nodes.
    #[derive(Clone, PartialEq, prost::Oneof)]
    #[allow(clippy::large_enum_variant, reason = "there are few at a time")]
    pub enum Body {
        /// A process of the sender, before anything else about it.
        #[prost(message, tag = "1")]
        Introduce(Introduce),
        /// A process of the sender says this to the receiver's service.
        #[prost(message, tag = "2")]
        OfProcess(OfProcess),
        /// The sender's service says this to a process of the receiver.
        #[prost(message, tag = "3")]
        ForProcess(ForProcess),
        /// A process of the sender says this to one of the receiver.
        #[prost(message, tag = "4")]
        Passed(Passed),
        /// A process of the sender is gone.
        #[prost(message, tag = "5")]
        Ended(ProcessDied),
        /// Wants to read an object.
        #[prost(message, tag = "6")]
        Pull(Pull),
        /// Answer to `Pull`.
        #[prost(message, tag = "7")]
        PullAnswer(PullAnswer),
        /// The reader is done.
        #[prost(message, tag = "8")]
        PullDone(PullDone),
        /// These objects are gone: so must their copies.
        #[prost(message, tag = "9")]
        Freed(Keys),
        /// Leases that the receiver asked for on behalf of a process cannot be had now.
        #[prost(message, tag = "10")]
        Declined(Declined),
        /// The sender has to do with this process of the receiver, and wants to
        /// hear of its end.
        #[prost(uint64, tag = "11")]
        Knows(u64),
        /// Wants leases for a process of the sender.
        #[prost(message, tag = "12")]
        AskLeases(AskLeases),
        /// The sender has copies of these objects of the receiver, which it read elsewhere.
        #[prost(message, tag = "13")]
        Holds(Keys),
        /// Something came free in bundles of this placement group at the sender, after it
        /// declined leases there.
        #[prost(bytes = "vec", tag = "14")]
        BundleRoom(Vec<u8>),
        /// The sender is about to leave: the receiver is to have this object of it.
        #[prost(message, tag = "20")]
        Adopt(Adopt),
        /// Answer to `Adopt`.
        #[prost(message, tag = "21")]
        Adopted(Adopted),
    }
}

/// Leases that a process of the sender can use.
#[derive(Clone, PartialEq, Message)]
pub struct AskLeases {
    /// Process number.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// As in [`crate::control::SetDemand`].
    #[prost(uint64, tag = "2")]
    pub shape_key: u64,
    /// The shape.
    #[prost(message, optional, tag = "3")]
    pub shape: Option<crate::control::Shape>,
    /// So many more, or fewer.
    #[prost(sint64, tag = "4")]
    pub more: i64,
    /// They may wait there; otherwise they are declined if they cannot be had now.
    #[prost(bool, tag = "5")]
    pub wait: bool,
}

/// Leases that cannot be had now.
#[derive(Clone, PartialEq, Message)]
pub struct Declined {
    /// Process number of whom they were for.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// As in [`crate::control::SetDemand`].
    #[prost(uint64, tag = "2")]
    pub shape_key: u64,
    /// How many.
    #[prost(uint64, tag = "3")]
    pub count: u64,
    /// Nor later: the sender is about to leave.
    #[prost(bool, tag = "20")]
    pub draining: bool,
}

/// On a data connection: send these bytes of a grant.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ReadRange {
    /// As in [`PullAnswer`].
    #[prost(uint64, tag = "1")]
    pub grant: u64,
    /// From here in the object,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// so many.
    #[prost(uint64, tag = "3")]
    pub len: u64,
}
