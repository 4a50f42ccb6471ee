//! Identifiers and their bits. Each id ends with its parent, so that an object
//! names its task, a task its actor (or the process that submitted it), and an
//! actor its job:
//!
//! ```text
//! job     4   number given by the control service
//! actor  16   counter (4) ++ creator's process number (8) ++ job
//! task   24   unique  (8) ++ actor
//! object 28   task   (24) ++ index (4, little endian; returns count from 1, puts from 1 << 31)
//! group  18   counter (4) ++ zeros (2) ++ creator's process number (8) ++ job
//! ```
//!
//! A task that belongs to no actor carries in the actor part a *home*: the number
//! of the submitting process, with a counter that no actor has. Uniqueness needs
//! no randomness on the task path: `unique` is a counter of the submitter's (40
//! bits) and, for those that call the same actor, the low bits of the submitter's
//! node (8) and process (16).

mod process_set;

use std::fmt;

pub use process_set::ProcessSet;

macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// Length in bytes.
            pub const LEN: usize = $len;
            /// The id that names nothing: all bits set.
            pub const NIL: Self = Self([0xff; $len]);

            /// Reads an id from exactly [`Self::LEN`] bytes.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }

            /// Whether this is [`Self::NIL`].
            pub fn is_nil(&self) -> bool {
                *self == Self::NIL
            }

            /// Parses lower- or upper-case hexadecimal of exactly the right length.
            pub fn from_hex(text: &str) -> Option<Self> {
                let digits = text.as_bytes();
                if digits.len() != 2 * $len {
                    return None;
                }
                let mut bytes = [0; $len];
                for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                    let high = (pair[0] as char).to_digit(16)?;
                    let low = (pair[1] as char).to_digit(16)?;
                    *byte = (high * 16 + low) as u8;
                }
                Some(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

define_id!(
    /// One driver's program.
    JobId, 4
);
define_id!(
    /// An actor for its whole life, restarts included.
    ActorId, 16
);
define_id!(
    /// A placement group for its whole life, wherever its bundles are.
    GroupId, 18
);
define_id!(
    /// One call of a remote function or actor method, retries included.
    TaskId, 24
);
define_id!(
    /// One immutable value: a task's return or a `put`.
    ObjectId, 28
);
define_id!(
    /// A machine's membership in a cluster.
    NodeId, 28
);
define_id!(
    /// A process of a cluster, as users see it.
    WorkerId, 28
);
define_id!(
    /// The content hash of a shipped function or class.
    FunctionId, 16
);

impl NodeId {
    /// The node in a sentence: the beginning of its id, which is enough to find it by, and the
    /// machine's name.
    pub fn called(&self, host: &str) -> String {
        let id = self.to_string();
        format!("node {} ({host})", &id[..12])
    }
}

/// The first object index that belongs to `put` rather than to a task's returns.
pub const PUT_INDEX: u32 = 1 << 31;

/// Number of a process within its cluster: the short name used on the wire. The
/// upper half is the number of its node, 0 where there is but one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId(pub u64);

impl ProcessId {
    /// The `number`th process of a node. Number 0 is the node service itself.
    pub const fn new(node: u32, number: u32) -> Self {
        Self((node as u64) << 32 | number as u64)
    }

    /// Number of its node.
    pub const fn node(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Its number at that node.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node() {
            0 => write!(f, "{}", self.number()),
            node => write!(f, "{node}.{}", self.number()),
        }
    }
}

/// Names an object of a node's store for as long as the object exists: its slot
/// in the store's table (24 bits) and how often that slot was used before (40 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey(pub u64);

impl StoreKey {
    /// The `generation`th use of `slot`.
    pub const fn new(slot: u32, generation: u64) -> Self {
        Self(generation << 24 | (slot & 0xff_ffff) as u64)
    }

    /// Place in the table.
    pub const fn slot(self) -> u32 {
        (self.0 & 0xff_ffff) as u32
    }

    /// Which use of the slot.
    pub const fn generation(self) -> u64 {
        self.0 >> 24
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreKey({}#{})", self.slot(), self.generation())
    }
}

/// Names a large object in the whole cluster: the node where it was made, and
/// its key in the store there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Origin {
    /// Number of the node.
    pub node: u32,
    /// Its name in that node's store.
    pub key: StoreKey,
}

impl ActorId {
    /// Builds an actor id from its creator and the creator's counter.
    pub fn new(job: JobId, creator: ProcessId, counter: u32) -> Self {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&counter.to_le_bytes());
        bytes[4..12].copy_from_slice(&creator.0.to_le_bytes());
        bytes[12..].copy_from_slice(&job.0);
        Self(bytes)
    }

    /// The actor part of tasks that belong to no actor: see the module documentation.
    pub fn home(job: JobId, submitter: ProcessId) -> Self {
        Self::new(job, submitter, u32::MAX)
    }

    /// Whether this is a [`Self::home`] rather than a real actor.
    pub fn is_home(&self) -> bool {
        self.0[..4] == [0xff; 4]
    }

    /// The process that creates this actor.
    pub fn creator(&self) -> ProcessId {
        ProcessId(u64::from_le_bytes(self.0[4..12].try_into().expect("eight bytes")))
    }

    /// The job this actor belongs to.
    pub fn job(&self) -> JobId {
        JobId(self.0[12..].try_into().expect("four bytes"))
    }
}

impl GroupId {
    /// Builds a group's id from its creator and the creator's counter, which counts from 1.
    pub fn new(job: JobId, creator: ProcessId, counter: u32) -> Self {
        let mut bytes = [0; 18];
        bytes[..4].copy_from_slice(&counter.to_le_bytes());
        bytes[6..14].copy_from_slice(&creator.0.to_le_bytes());
        bytes[14..].copy_from_slice(&job.0);
        Self(bytes)
    }

    /// The creator's counter: later groups have higher ones.
    pub fn counter(&self) -> u32 {
        u32::from_le_bytes(self.0[..4].try_into().expect("four bytes"))
    }

    /// The process that creates this group.
    pub fn creator(&self) -> ProcessId {
        ProcessId(u64::from_le_bytes(self.0[6..14].try_into().expect("eight bytes")))
    }

    /// The job this group belongs to.
    pub fn job(&self) -> JobId {
        JobId(self.0[14..].try_into().expect("four bytes"))
    }
}

impl TaskId {
    /// Builds a task id; `counter` is the submitter's own.
    pub fn new(actor: ActorId, submitter: ProcessId, counter: u64) -> Self {
        let whose = u64::from(submitter.node() & 0xff) << 16 | u64::from(submitter.number() as u16);
        Self::of(actor, (whose << 40) | (counter & ((1 << 40) - 1)))
    }

    /// The part that tells it from others of its actor or home.
    pub fn unique(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("eight bytes"))
    }

    /// The task of `actor` with this [`Self::unique`] part.
    pub fn of(actor: ActorId, unique: u64) -> Self {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&unique.to_le_bytes());
        bytes[8..].copy_from_slice(&actor.0);
        Self(bytes)
    }

    /// The actor (or home) this task belongs to.
    pub fn actor(&self) -> ActorId {
        ActorId(self.0[8..].try_into().expect("sixteen bytes"))
    }

    /// The object at `index` of this task.
    pub fn object(&self, index: u32) -> ObjectId {
        let mut bytes = [0; 28];
        bytes[..24].copy_from_slice(&self.0);
        bytes[24..].copy_from_slice(&index.to_le_bytes());
        ObjectId(bytes)
    }
}

impl ObjectId {
    /// The task that makes this object.
    pub fn task(&self) -> TaskId {
        TaskId(self.0[..24].try_into().expect("twenty-four bytes"))
    }

    /// Which of its task's objects this is.
    pub fn index(&self) -> u32 {
        u32::from_le_bytes(self.0[24..].try_into().expect("four bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_contains_its_parent() {
        let job = JobId([1, 0, 0, 0]);
        let actor = ActorId::new(job, ProcessId(7), 42);
        let task = TaskId::new(actor, ProcessId(9), 3);
        let object = task.object(2);
        assert_eq!(object.task(), task);
        assert_eq!(object.index(), 2);
        assert_eq!(task.actor(), actor);
        assert_eq!(actor.job(), job);
        assert_eq!(actor.creator(), ProcessId(7));
        assert!(!actor.is_home());
        assert!(ActorId::home(job, ProcessId(7)).is_home());
    }

    #[test]
    fn hexadecimal_goes_both_ways_and_refuses_the_rest() {
        let task = TaskId::new(ActorId::NIL, ProcessId(1), 1);
        assert_eq!(TaskId::from_hex(&task.to_string()), Some(task));
        assert_eq!(TaskId::from_hex("00"), None);
        assert_eq!(JobId::from_hex("zz000000"), None);
        assert_eq!(JobId::from_hex("+1000000"), None);
    }
}
