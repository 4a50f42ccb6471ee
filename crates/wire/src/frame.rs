//! Frames between two processes, through a shared-memory ring.
//!
//! A frame is a kind byte, fixed fields in little endian, then what varies in
//! length. Decoding checks every length against what is there and allocates
//! nothing in proportion to a claimed length. Encoding appends to a buffer
//! that the caller uses again.

use oxiray_ids::{ActorId, FunctionId, ObjectId, Origin, ProcessId, TaskId};

mod codec;
#[cfg(test)]
mod tests;

pub use codec::DecodeError;
use codec::{Reader, Writer};

/// A reference to an object, as processes pass it on: the object and who owns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RefName {
    /// The object.
    pub id: ObjectId,
    /// The process that knows its value, place and count.
    pub owner: ProcessId,
}

/// Why an object has no value. The numbers are the wire's and Python's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FailureCode {
    /// The task raised; `data` is the exception.
    TaskError = 0,
    /// Its worker died.
    WorkerCrashed = 1,
    /// Its actor is dead.
    ActorDied = 2,
    /// The process that knew the object is gone.
    OwnerDied = 3,
    /// The owner does not know the object.
    ObjectLost = 4,
    /// Its worker was ended because memory ran out.
    OutOfMemory = 5,
    /// It was cancelled; `data` is the task's id.
    Cancelled = 6,
    /// Its actor's process died, and the actor is being started again.
    ActorUnavailable = 7,
    /// The store has no room for it.
    StoreFull = 8,
    /// The engine failed.
    System = 9,
    /// Its actor's constructor raised; `data` is the exception.
    ActorCreation = 10,
    /// It was freed by `internal.free`.
    ObjectFreed = 14,
    /// No node will do for its task.
    Unschedulable = 12,
    /// Neither the store nor the disk has room for it.
    OutOfDisk = 16,
    /// Its value is gone, and cannot be made again.
    Unrecoverable = 17,
}

impl FailureCode {
    /// Ray's word for it, in lists of tasks.
    pub fn error_type(self) -> &'static str {
        match self {
            Self::TaskError => "TASK_EXECUTION_EXCEPTION",
            Self::WorkerCrashed => "WORKER_DIED",
            Self::ActorDied => "ACTOR_DIED",
            Self::OwnerDied => "OWNER_DIED",
            Self::ObjectLost => "OBJECT_LOST",
            Self::OutOfMemory | Self::StoreFull => "OUT_OF_MEMORY",
            Self::Cancelled => "TASK_CANCELLED",
            Self::ActorUnavailable => "ACTOR_UNAVAILABLE",
            Self::System => "LOCAL_RAYLET_DIED",
            Self::ActorCreation => "ACTOR_CREATION_FAILED",
            Self::ObjectFreed => "OBJECT_FREED",
            Self::Unschedulable => "TASK_UNSCHEDULABLE_ERROR",
            Self::OutOfDisk => "OUT_OF_DISK_ERROR",
            Self::Unrecoverable => "OBJECT_UNRECONSTRUCTABLE",
        }
    }

    /// The code of a number; `None`: none of this version.
    pub fn from_u8(code: u8) -> Option<Self> {
        use FailureCode::*;
        [
            TaskError,
            WorkerCrashed,
            ActorDied,
            OwnerDied,
            ObjectLost,
            OutOfMemory,
            Cancelled,
            ActorUnavailable,
            ObjectFreed,
            OutOfDisk,
            Unschedulable,
            StoreFull,
            System,
            ActorCreation,
            Unrecoverable,
        ]
        .into_iter()
        .find(|known| *known as u8 == code)
    }
}

/// The value of an object, or where it is, or why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// Serialised, here.
    Inline(&'a [u8]),
    /// Serialised, in the store.
    Stored {
        /// Its name there.
        origin: Origin,
        /// Bytes.
        len: u64,
    },
    /// There is none.
    Failed {
        /// What kind of failure.
        code: FailureCode,
        /// In words.
        message: &'a str,
        /// A serialised exception, where there is one.
        data: &'a [u8],
    },
}

/// A value with the references inside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value<'a> {
    /// The value itself.
    pub body: Body<'a>,
    /// References that reading it brings out.
    pub contained: Vec<RefName>,
}

/// A task to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task<'a> {
    /// The owner's name for this attempt.
    pub token: u64,
    /// Number in the claims of this channel; 0 for actor calls, which are not claimed.
    pub number: u64,
    /// Which of the actor's lanes it runs in; 0 is for calls that name none.
    pub lane: u16,
    /// The task.
    pub id: TaskId,
    /// What to call: a function's hash, or nil for an actor's method.
    pub function: FunctionId,
    /// Name of the actor's method, or the task's given name, or empty.
    pub name: &'a str,
    /// How many values it returns.
    pub num_returns: u32,
    /// How often it was tried before.
    pub attempt: u16,
    /// Whether what happens to it is recorded.
    pub recorded: bool,
    /// Devices given to it.
    pub devices: Vec<u32>,
    /// Serialised arguments, with places for `values`.
    pub args: &'a [u8],
    /// Values of top-level references, in order. A stored one has its name in `names`.
    pub values: Vec<Value<'a>>,
    /// Names of stored values (same order as in `values`), then of nested references.
    pub nested: Vec<RefName>,
}

/// How a task ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It returned.
    Done,
    /// It raised.
    Raised,
    /// It raised something that it may be retried for.
    Retryable,
    /// It was not begun: an argument could not be had, because its node has left.
    Unread,
    /// It was cancelled.
    Cancelled,
}

/// How far cancelling goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancelling {
    /// If it runs, its process ends.
    pub force: bool,
    /// What it submitted is cancelled, too.
    pub recursive: bool,
}

/// The answer to a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<'a> {
    /// As in [`Task`].
    pub token: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it ran, in nanoseconds.
    pub ran_ns: u64,
    /// Its values: one each return, or one failure for all.
    pub values: Vec<Value<'a>>,
    /// References of the arguments that the worker goes on holding.
    pub retained: Vec<ObjectId>,
}

/// Everything that one process says to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Owner to worker: run this.
    Task(Task<'a>),
    /// Worker to owner: it ended.
    Answer(Answer<'a>),
    /// Borrower to owner: send the value when it is there.
    WantObject(ObjectId),
    /// Owner to borrower: the value.
    Object(ObjectId, Value<'a>),
    /// To the owner: I hold this reference.
    Borrow(ObjectId),
    /// From the owner: it knows.
    Borrowed(ObjectId),
    /// To the owner: I no longer hold it.
    Release(ObjectId),
    /// Worker to owner: references retained by this task are registered with their owners.
    SettledArgs(u64),
    /// Owner to worker: references in the answer to this task are registered with their owners.
    SettledReturns(u64),
    /// Worker to owner: send the function.
    WantFunction(FunctionId),
    /// Owner to worker: the function.
    Function(FunctionId, &'a [u8]),
    /// Worker to owner: my running task sleeps; take back what is queued behind it.
    Blocked,
    /// Worker to owner: it runs again.
    Unblocked,
    /// An actor's worker to its creator: send the constructor.
    WantConstructor(ActorId),
    /// The creator to its actor's worker: the constructor, an encoded task.
    Constructor(ActorId, &'a [u8]),
    /// Owner to actor: nobody holds a handle any more; end when idle.
    ActorUnreferenced(ActorId),
    /// To the owner: free this, whoever holds it.
    FreeObject(ObjectId),
    /// Owner to a worker of another node: give back the task with this number, unless
    /// it has begun. That worker's node service answers.
    TakeBack(u64),
    /// To the owner: the task with this number will not begin.
    TakenBack(u64),
    /// Own this from now on; I hold a reference to it. Answered with `Borrowed`.
    Entrust(ObjectId, Value<'a>),
    /// Owner to worker: the task with this token is not wanted any more. It is answered as ever.
    Cancel(u64, Cancelling),
    /// To the owner: the task that is to return this is not wanted any more.
    CancelObject(ObjectId, Cancelling),
}

/// First byte of a piece of a frame too large for a ring, that more pieces follow.
pub const PIECE: u8 = 0xfe;
/// First byte of the last piece of a frame.
pub const LAST_PIECE: u8 = 0xff;

const TASK: u8 = 1;
const ANSWER: u8 = 2;
const WANT_OBJECT: u8 = 3;
const OBJECT: u8 = 4;
const BORROW: u8 = 5;
const BORROWED: u8 = 6;
const RELEASE: u8 = 7;
const SETTLED_ARGS: u8 = 8;
const SETTLED_RETURNS: u8 = 9;
const WANT_FUNCTION: u8 = 10;
const FUNCTION: u8 = 11;
const BLOCKED: u8 = 12;
const UNBLOCKED: u8 = 13;
const ACTOR_UNREFERENCED: u8 = 14;
const WANT_CONSTRUCTOR: u8 = 15;
const CONSTRUCTOR: u8 = 16;
const FREE_OBJECT: u8 = 17;
const ENTRUST: u8 = 18;
const TAKE_BACK: u8 = 19;
const TAKEN_BACK: u8 = 20;
const CANCEL: u8 = 21;
const CANCEL_OBJECT: u8 = 22;

impl<'a> Frame<'a> {
    /// Appends this frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer(out);
        match self {
            Frame::Task(task) => task.encode(&mut writer),
            Frame::Answer(answer) => answer.encode(&mut writer),
            Frame::Object(id, value) => {
                writer.kind_and(OBJECT, &id.0);
                writer.value(value);
            }
            Frame::Entrust(id, value) => {
                writer.kind_and(ENTRUST, &id.0);
                writer.value(value);
            }
            Frame::TakeBack(number) => writer.kind_and(TAKE_BACK, &number.to_le_bytes()),
            Frame::TakenBack(number) => writer.kind_and(TAKEN_BACK, &number.to_le_bytes()),
            Frame::Cancel(token, how) => {
                writer.kind_and(CANCEL, &token.to_le_bytes());
                writer.u8(how.bits());
            }
            Frame::CancelObject(id, how) => {
                writer.kind_and(CANCEL_OBJECT, &id.0);
                writer.u8(how.bits());
            }
            Frame::FreeObject(id) => writer.kind_and(FREE_OBJECT, &id.0),
            Frame::WantObject(id) => writer.kind_and(WANT_OBJECT, &id.0),
            Frame::Borrow(id) => writer.kind_and(BORROW, &id.0),
            Frame::Borrowed(id) => writer.kind_and(BORROWED, &id.0),
            Frame::Release(id) => writer.kind_and(RELEASE, &id.0),
            Frame::SettledArgs(token) => writer.kind_and(SETTLED_ARGS, &token.to_le_bytes()),
            Frame::SettledReturns(token) => writer.kind_and(SETTLED_RETURNS, &token.to_le_bytes()),
            Frame::WantFunction(id) => writer.kind_and(WANT_FUNCTION, &id.0),
            Frame::Function(id, payload) => {
                writer.kind_and(FUNCTION, &id.0);
                writer.raw(payload);
            }
            Frame::Blocked => writer.u8(BLOCKED),
            Frame::Unblocked => writer.u8(UNBLOCKED),
            Frame::ActorUnreferenced(id) => writer.kind_and(ACTOR_UNREFERENCED, &id.0),
            Frame::WantConstructor(id) => writer.kind_and(WANT_CONSTRUCTOR, &id.0),
            Frame::Constructor(id, task) => {
                writer.kind_and(CONSTRUCTOR, &id.0);
                writer.raw(task);
            }
        }
    }

    /// Reads a frame that must fill `bytes` exactly.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        let frame = match reader.u8()? {
            TASK => Frame::Task(Task::decode(&mut reader)?),
            ANSWER => Frame::Answer(Answer::decode(&mut reader)?),
            WANT_OBJECT => Frame::WantObject(ObjectId(reader.array()?)),
            OBJECT => Frame::Object(ObjectId(reader.array()?), reader.value()?),
            BORROW => Frame::Borrow(ObjectId(reader.array()?)),
            BORROWED => Frame::Borrowed(ObjectId(reader.array()?)),
            RELEASE => Frame::Release(ObjectId(reader.array()?)),
            SETTLED_ARGS => Frame::SettledArgs(reader.u64()?),
            SETTLED_RETURNS => Frame::SettledReturns(reader.u64()?),
            WANT_FUNCTION => Frame::WantFunction(FunctionId(reader.array()?)),
            FUNCTION => Frame::Function(FunctionId(reader.array()?), reader.rest()),
            BLOCKED => Frame::Blocked,
            UNBLOCKED => Frame::Unblocked,
            ACTOR_UNREFERENCED => Frame::ActorUnreferenced(ActorId(reader.array()?)),
            WANT_CONSTRUCTOR => Frame::WantConstructor(ActorId(reader.array()?)),
            CONSTRUCTOR => Frame::Constructor(ActorId(reader.array()?), reader.rest()),
            FREE_OBJECT => Frame::FreeObject(ObjectId(reader.array()?)),
            ENTRUST => Frame::Entrust(ObjectId(reader.array()?), reader.value()?),
            TAKE_BACK => Frame::TakeBack(reader.u64()?),
            TAKEN_BACK => Frame::TakenBack(reader.u64()?),
            CANCEL => Frame::Cancel(reader.u64()?, Cancelling::from_bits(reader.u8()?)?),
            CANCEL_OBJECT => {
                let id = ObjectId(reader.array()?);
                Frame::CancelObject(id, Cancelling::from_bits(reader.u8()?)?)
            }
            kind => return Err(DecodeError::UnknownKind(kind)),
        };
        reader.finish()?;
        Ok(frame)
    }
}

/// The claim number and the lane of an encoded task; `None` for any other frame.
pub fn task_place(bytes: &[u8]) -> Option<(u64, u16)> {
    let (number, lane) = (bytes.get(9..17)?, bytes.get(17..19)?);
    let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
    let lane = u16::from_le_bytes(lane.try_into().expect("two bytes"));
    (bytes[0] == TASK).then_some((number, lane))
}

/// The claim number of an encoded task; `None` for any other frame.
pub fn task_number(bytes: &[u8]) -> Option<u64> {
    task_place(bytes).map(|(number, _)| number)
}

/// Gives an encoded task another claim number: only for what has one.
pub fn renumber_task(bytes: &mut [u8], number: u64) {
    if let Some(field) = bytes.get_mut(9..17) {
        field.copy_from_slice(&number.to_le_bytes());
    }
}

/// The number in an encoded [`Frame::TakeBack`]; `None` for any other frame.
pub fn take_back_number(bytes: &[u8]) -> Option<u64> {
    match *bytes {
        [TAKE_BACK, ref number @ ..] => Some(u64::from_le_bytes(number.try_into().ok()?)),
        _ => None,
    }
}

impl Cancelling {
    fn bits(self) -> u8 {
        u8::from(self.force) | u8::from(self.recursive) << 1
    }

    fn from_bits(bits: u8) -> Result<Self, DecodeError> {
        match bits {
            0..=3 => Ok(Self { force: bits & 1 != 0, recursive: bits & 2 != 0 }),
            other => Err(DecodeError::BadTag(other)),
        }
    }
}

/// The token of an encoded task.
pub fn task_token(bytes: &[u8]) -> Option<u64> {
    let token = bytes.get(1..9).filter(|_| bytes[0] == TASK)?;
    Some(u64::from_le_bytes(token.try_into().expect("eight bytes")))
}

impl<'a> Task<'a> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(TASK);
        writer.u64(self.token);
        writer.u64(self.number);
        writer.raw(&self.lane.to_le_bytes());
        writer.raw(&self.id.0);
        writer.raw(&self.function.0);
        writer.u32(self.num_returns);
        writer.u32(u32::from(self.attempt));
        writer.u8(self.recorded.into());
        writer.text(self.name);
        writer.count(self.devices.len());
        self.devices.iter().for_each(|device| writer.u32(*device));
        writer.bytes(self.args);
        writer.count(self.values.len());
        self.values.iter().for_each(|value| writer.value(value));
        writer.names(&self.nested);
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            token: reader.u64()?,
            number: reader.u64()?,
            lane: u16::from_le_bytes(reader.array()?),
            id: TaskId(reader.array()?),
            function: FunctionId(reader.array()?),
            num_returns: reader.u32()?,
            attempt: reader.u32()? as u16,
            recorded: reader.u8()? != 0,
            name: reader.text()?,
            devices: reader.list(4, Reader::u32)?,
            args: reader.bytes()?,
            values: reader.list(Value::MIN_LEN, Reader::value)?,
            nested: reader.names()?,
        })
    }
}

impl<'a> Answer<'a> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(ANSWER);
        writer.u64(self.token);
        writer.u64(self.ran_ns);
        writer.u8(self.outcome as u8);
        writer.count(self.values.len());
        self.values.iter().for_each(|value| writer.value(value));
        writer.count(self.retained.len());
        self.retained.iter().for_each(|id| writer.raw(&id.0));
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            token: reader.u64()?,
            ran_ns: reader.u64()?,
            outcome: match reader.u8()? {
                0 => Outcome::Done,
                1 => Outcome::Raised,
                2 => Outcome::Retryable,
                3 => Outcome::Unread,
                4 => Outcome::Cancelled,
                other => return Err(DecodeError::BadTag(other)),
            },
            values: reader.list(Value::MIN_LEN, Reader::value)?,
            retained: reader.list(ObjectId::LEN, |reader| Ok(ObjectId(reader.array()?)))?,
        })
    }
}
