//! The bytes of the event files.
//!
//! A *log* with the number N is written by one process at a time: first by that whose number at
//! its node this is, then, when it has ended, by any other that is given it. It has the files `N.0`,
//! `N.1`, …: *chunks*, each a header of [`HEADER`] bytes and then slots of [`SLOT`] bytes, all
//! numbers in little endian. The header has the process that began the chunk; one that goes on
//! with it says so by a record.
//!
//! ```text
//! header:   0 magic u64       8 version u32     12 role u32
//!          16 process u64    24 pid u32         28 log u32
//!          32 wall clock minus monotonic clock, ns i64
//!          40 slots written u64                 48 records lost u64
//!          64 what runs now: start u64, task 24, attempt u64, exclusive or of those u64
//!         112 process that writes now u64
//! record:   0 kind u8   1 detail u8   2 attempt u16   4 home u32   8 unique u64
//!          16 time u64  24 two numbers u32
//! and if kind has its highest bit set, a second slot:
//!          32 two numbers u64   48 four numbers u32
//! ```
//!
//! A log that has not even had room for a first chunk has the file `N.lost`, whose length is
//! the number of records that were lost; the file has no bytes that would need room.
//!
//! Times are of the monotonic clock, which all processes of a machine share. A task is named by
//! its `unique` part and by its `home`, the other sixteen bytes of its id, which are a text. Texts
//! are named by where they are in the file beside the chunk, `N.0.text`: see [`crate::texts`]; 0 is
//! none. So a chunk needs no other: the oldest can go.

use oxiray_ids::{ObjectId, ProcessId, TaskId};
use oxiray_wire::frame::FailureCode;

/// First bytes of a chunk.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"oxirayev");
/// Of this format.
pub(crate) const VERSION: u32 = 3;
/// Bytes before the first slot.
pub(crate) const HEADER: usize = 128;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 32;
/// Where the number of slots is.
pub(crate) const COUNT_AT: usize = 40;
/// Where the number of lost records is.
pub(crate) const LOST_AT: usize = 48;
/// Where the running task is.
pub(crate) const RUNNING_AT: usize = 64;
/// Where the process is that writes, or wrote last.
pub(crate) const WRITER_AT: usize = 112;

/// Name of a chunk.
pub(crate) fn chunk_name(log: u32, chunk: u32) -> String {
    format!("{log}.{chunk}")
}

/// Name of the file that says how many records a log without a chunk lost.
pub(crate) fn lost_name(log: u32) -> String {
    format!("{log}.lost")
}

/// What a process is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Role {
    /// A program of the user's.
    Driver = 0,
    /// Runs tasks, or is an actor.
    Worker = 1,
    /// The node service.
    Node = 2,
}

impl Role {
    fn from_u32(role: u32) -> Option<Self> {
        [Self::Driver, Self::Worker, Self::Node].into_iter().find(|known| *known as u32 == role)
    }
}

/// What a task is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum TaskKind {
    /// A call of a function.
    Function = 0,
    /// A call of an actor's method.
    Method = 1,
    /// Makes an actor.
    Constructor = 2,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// It returned.
    Done = 1,
    /// It raised.
    Raised = 2,
}

/// The beginning of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// What the process that began the chunk is for.
    pub(crate) role: Role,
    /// Its number in the cluster.
    pub(crate) process: ProcessId,
    /// Its number in the system.
    pub(crate) pid: u32,
    /// The log that the chunk is of.
    pub(crate) log: u32,
    /// Nanoseconds to add to a time of the monotonic clock.
    pub(crate) to_wall: i64,
    /// Slots written.
    pub(crate) count: u64,
    /// Records that could not be written, in this chunk or before.
    pub(crate) lost: u64,
    /// What runs now.
    pub(crate) running: Option<Running>,
    /// The process that writes it, or wrote it last.
    pub(crate) writer: ProcessId,
}

/// The task that a process runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Running {
    /// Since when.
    pub(crate) start: u64,
    /// Which.
    pub(crate) task: TaskId,
    /// Which attempt.
    pub(crate) attempt: u16,
}

/// A task, in the records of one process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    /// Text of the other sixteen bytes of its id.
    pub(crate) home: u32,
    /// The first eight.
    pub(crate) unique: u64,
    /// How often it was tried before.
    pub(crate) attempt: u16,
}

/// One thing that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    /// A task was submitted; if `waits`, before all its arguments were there.
    /// `function` is 0 if that is its name.
    Submitted { task: Named, time: u64, name: u32, function: u32, kind: TaskKind, waits: bool },
    /// The task just submitted needs this object.
    Needs(ObjectId),
    /// What is submitted from now on is submitted by this task; nil: by none.
    Parent(TaskId),
    /// The arguments of a task are there, and no worker has it.
    Ready { task: Named, time: u64 },
    /// It was sent to a worker.
    Sent { task: Named, time: u64, peer: ProcessId },
    /// It is to be tried again: `task` names the new attempt; `waits` as above.
    Retried { task: Named, time: u64, waits: bool },
    /// A worker that runs several began it.
    Began { task: Named, time: u64 },
    /// Its owner has its answer, and nothing failed: it ran in `peer`.
    Answered { task: Named, time: u64, peer: ProcessId },
    /// It failed, as its owner sees it: why, and in words.
    Failed { task: Named, time: u64, code: FailureCode, text: u32 },
    /// It ran.
    Ran {
        task: Named,
        start: u64,
        outcome: Outcome,
        fetch: u64,
        execute: u64,
        store: u64,
        name: u32,
        exception: u32,
        text: u32,
    },
    /// The user marked a span of time; `home` is 0 where no task ran.
    Span { task: Named, start: u64, duration: u64, name: u32, extra: u32 },
    /// A process of this node ended, as the node service saw it.
    Ended { process: ProcessId, time: u64 },
    /// What follows in this log is of this process.
    Begins { process: ProcessId, pid: u32, role: Role, time: u64 },
    /// What a process that wrote this log before ran when it ended.
    Left { process: ProcessId, running: Running },
    /// The node service gave a log that had been written to a process.
    Given { log: u32, process: ProcessId, time: u64 },
    /// The oldest records of this node go, so many bytes in all so far; `until` is the time of the
    /// newest of them.
    Dropped { bytes: u64, until: u64 },
}

const SUBMITTED: u8 = 1;
const NEEDS: u8 = 2;
const PARENT: u8 = 3;
const READY: u8 = 4;
const SENT: u8 = 5;
const RETRIED: u8 = 6;
const FAILED: u8 = 7;
const ENDED: u8 = 8;
const ANSWERED: u8 = 9;
const BEGAN: u8 = 10;
const BEGINS: u8 = 11;
const GIVEN: u8 = 12;
const DROPPED: u8 = 13;
const TWO_SLOTS: u8 = 0x80;
const RAN: u8 = TWO_SLOTS | 1;
const SPAN: u8 = TWO_SLOTS | 2;
const LEFT: u8 = TWO_SLOTS | 3;
/// Bit of the detail of a submission, the first or another: it waits for arguments.
const WAITS: u8 = 0x80;

/// A record's bytes, of which the first slot or both count.
pub(crate) type Slots = [u8; 2 * SLOT];

/// How many slots a record of a kind takes.
#[inline(always)]
pub(crate) fn slots_of(kind: u8) -> usize {
    if kind & TWO_SLOTS == 0 { 1 } else { 2 }
}

impl Record {
    /// When it happened, or began, if it says so.
    pub(crate) fn time(&self) -> Option<u64> {
        match *self {
            Self::Submitted { time, .. }
            | Self::Ready { time, .. }
            | Self::Sent { time, .. }
            | Self::Retried { time, .. }
            | Self::Began { time, .. }
            | Self::Answered { time, .. }
            | Self::Failed { time, .. }
            | Self::Ended { time, .. }
            | Self::Begins { time, .. }
            | Self::Given { time, .. } => Some(time),
            Self::Ran { start, .. } | Self::Span { start, .. } => Some(start),
            Self::Left { running, .. } => Some(running.start),
            Self::Needs(_) | Self::Parent(_) | Self::Dropped { .. } => None,
        }
    }

    /// How many slots it takes.
    #[inline(always)]
    pub(crate) fn slots(&self) -> usize {
        if matches!(self, Self::Ran { .. } | Self::Span { .. } | Self::Left { .. }) { 2 } else { 1 }
    }

    /// Its bytes, and how many of them count.
    #[inline(always)]
    pub(crate) fn encode(self) -> (Slots, usize) {
        let mut slots = [0; 2 * SLOT];
        match self {
            Self::Submitted { task, time, name, function, kind, waits } => {
                let detail = kind as u8 | if waits { WAITS } else { 0 };
                head(&mut slots, SUBMITTED, detail, task, time);
                put(&mut slots, 24, name.to_le_bytes());
                put(&mut slots, 28, function.to_le_bytes());
            }
            Self::Needs(object) => {
                slots[0] = NEEDS;
                put(&mut slots, 4, object.0);
            }
            Self::Parent(task) => {
                slots[0] = PARENT;
                put(&mut slots, 8, task.0);
            }
            Self::Ready { task, time } => head(&mut slots, READY, 0, task, time),
            Self::Began { task, time } => head(&mut slots, BEGAN, 0, task, time),
            Self::Sent { task, time, peer } => {
                head(&mut slots, SENT, 0, task, time);
                put(&mut slots, 24, peer.0.to_le_bytes());
            }
            Self::Answered { task, time, peer } => {
                head(&mut slots, ANSWERED, 0, task, time);
                put(&mut slots, 24, peer.0.to_le_bytes());
            }
            Self::Retried { task, time, waits } => {
                head(&mut slots, RETRIED, if waits { WAITS } else { 0 }, task, time);
            }
            Self::Failed { task, time, code, text } => {
                head(&mut slots, FAILED, code as u8, task, time);
                put(&mut slots, 24, text.to_le_bytes());
            }
            Self::Ran { task, start, outcome, fetch, execute, store, name, exception, text } => {
                head(&mut slots, RAN, outcome as u8, task, start);
                put(&mut slots, 24, execute.to_le_bytes());
                put(&mut slots, 32, fetch.to_le_bytes());
                put(&mut slots, 40, store.to_le_bytes());
                put(&mut slots, 48, name.to_le_bytes());
                put(&mut slots, 52, exception.to_le_bytes());
                put(&mut slots, 56, text.to_le_bytes());
            }
            Self::Span { task, start, duration, name, extra } => {
                head(&mut slots, SPAN, 0, task, start);
                put(&mut slots, 24, duration.to_le_bytes());
                put(&mut slots, 48, name.to_le_bytes());
                put(&mut slots, 52, extra.to_le_bytes());
            }
            Self::Ended { process, time } => {
                slots[0] = ENDED;
                put(&mut slots, 16, time.to_le_bytes());
                put(&mut slots, 24, process.0.to_le_bytes());
            }
            Self::Begins { process, pid, role, time } => {
                (slots[0], slots[1]) = (BEGINS, role as u8);
                put(&mut slots, 4, pid.to_le_bytes());
                put(&mut slots, 16, time.to_le_bytes());
                put(&mut slots, 24, process.0.to_le_bytes());
            }
            Self::Left { process, running: Running { start, task, attempt } } => {
                slots[0] = LEFT;
                put(&mut slots, 2, attempt.to_le_bytes());
                put(&mut slots, 8, task.0);
                put(&mut slots, 32, start.to_le_bytes());
                put(&mut slots, 40, process.0.to_le_bytes());
            }
            Self::Given { log, process, time } => {
                slots[0] = GIVEN;
                put(&mut slots, 4, log.to_le_bytes());
                put(&mut slots, 16, time.to_le_bytes());
                put(&mut slots, 24, process.0.to_le_bytes());
            }
            Self::Dropped { bytes, until } => {
                slots[0] = DROPPED;
                put(&mut slots, 16, until.to_le_bytes());
                put(&mut slots, 24, bytes.to_le_bytes());
            }
        }
        (slots, slots_of(slots[0]) * SLOT)
    }

    /// The record at the beginning of `bytes`; `None`: nothing that this version knows.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, detail) = (*bytes.first()?, *bytes.get(1)?);
        bytes.get(..slots_of(kind) * SLOT)?;
        let (u32, u64) = (|at| get_u32(bytes, at), |at| get_u64(bytes, at));
        let attempt = u16::from_le_bytes(bytes[2..4].try_into().expect("two bytes"));
        let task = Named { home: u32(4), unique: u64(8), attempt };
        let time = u64(16);
        Some(match kind {
            SUBMITTED => {
                let kind = match detail & !WAITS {
                    0 => TaskKind::Function,
                    1 => TaskKind::Method,
                    2 => TaskKind::Constructor,
                    _ => return None,
                };
                let (name, function, waits) = (u32(24), u32(28), detail & WAITS != 0);
                Self::Submitted { task, time, name, function, kind, waits }
            }
            NEEDS => Self::Needs(ObjectId::from_slice(&bytes[4..SLOT])?),
            PARENT => Self::Parent(TaskId::from_slice(&bytes[8..SLOT])?),
            READY => Self::Ready { task, time },
            BEGAN => Self::Began { task, time },
            SENT => Self::Sent { task, time, peer: ProcessId(u64(24)) },
            ANSWERED => Self::Answered { task, time, peer: ProcessId(u64(24)) },
            RETRIED => Self::Retried { task, time, waits: detail & WAITS != 0 },
            FAILED => {
                // One of a later version is at least a failure.
                let code = FailureCode::from_u8(detail).unwrap_or(FailureCode::System);
                Self::Failed { task, time, code, text: u32(24) }
            }
            ENDED => Self::Ended { process: ProcessId(u64(24)), time },
            BEGINS => {
                let role = Role::from_u32(u32::from(detail))?;
                Self::Begins { process: ProcessId(u64(24)), pid: u32(4), role, time }
            }
            GIVEN => Self::Given { log: u32(4), process: ProcessId(u64(24)), time },
            DROPPED => Self::Dropped { bytes: u64(24), until: time },
            LEFT => {
                let task = TaskId::from_slice(&bytes[8..SLOT])?;
                let running = Running { start: u64(32), task, attempt };
                Self::Left { process: ProcessId(u64(40)), running }
            }
            RAN => Self::Ran {
                task,
                start: time,
                outcome: match detail {
                    1 => Outcome::Done,
                    2 => Outcome::Raised,
                    _ => return None,
                },
                execute: u64(24),
                fetch: u64(32),
                store: u64(40),
                name: u32(48),
                exception: u32(52),
                text: u32(56),
            },
            SPAN => {
                Self::Span { task, start: time, duration: u64(24), name: u32(48), extra: u32(52) }
            }
            _ => return None,
        })
    }
}

#[inline(always)]
fn head(slots: &mut Slots, kind: u8, detail: u8, task: Named, time: u64) {
    slots[0] = kind;
    slots[1] = detail;
    put(slots, 2, task.attempt.to_le_bytes());
    put(slots, 4, task.home.to_le_bytes());
    put(slots, 8, task.unique.to_le_bytes());
    put(slots, 16, time.to_le_bytes());
}

#[inline(always)]
fn put<const N: usize>(slots: &mut Slots, at: usize, bytes: [u8; N]) {
    slots[at..at + N].copy_from_slice(&bytes);
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Header {
    /// Its bytes.
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.role as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.process.0.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.pid.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.log.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.to_wall.to_le_bytes());
        bytes[COUNT_AT..COUNT_AT + 8].copy_from_slice(&self.count.to_le_bytes());
        bytes[LOST_AT..LOST_AT + 8].copy_from_slice(&self.lost.to_le_bytes());
        bytes[WRITER_AT..WRITER_AT + 8].copy_from_slice(&self.writer.0.to_le_bytes());
        if let Some(running) = &self.running {
            for (word, at) in running.words().into_iter().zip((RUNNING_AT..).step_by(8)) {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    }

    /// The header in `bytes`, if they are those of a chunk of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        let (u32, u64) = (|at| get_u32(bytes, at), |at| get_u64(bytes, at));
        if u64(0) != MAGIC || u32(8) != VERSION {
            return None;
        }
        Some(Self {
            role: Role::from_u32(u32(12))?,
            process: ProcessId(u64(16)),
            pid: u32(24),
            log: u32(28),
            to_wall: u64(32) as i64,
            count: u64(COUNT_AT),
            lost: u64(LOST_AT),
            running: Running::from_words(std::array::from_fn(|at| u64(RUNNING_AT + 8 * at))),
            writer: ProcessId(u64(WRITER_AT)),
        })
    }
}

impl Running {
    /// As words of the header. The last makes one that is read half-written show.
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; 6] {
        let id = |at| get_u64(&self.task.0, at);
        let mut words = [self.start, id(0), id(8), id(16), u64::from(self.attempt), 0];
        words[5] = words.iter().fold(0, |all, word| all ^ word);
        words
    }

    pub(crate) fn from_words(words: [u64; 6]) -> Option<Self> {
        let whole = words.iter().fold(0, |all, word| all ^ word) == 0;
        if words[0] == 0 || !whole {
            return None;
        }
        let mut id = [0; 24];
        for (bytes, word) in id.chunks_exact_mut(8).zip(&words[1..4]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Some(Self { start: words[0], task: TaskId(id), attempt: words[4] as u16 })
    }
}
