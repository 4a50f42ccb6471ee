//! Frames between two processes, through a shared-memory ring.
//!
//! A frame is a kind byte, fixed fields in little endian, then what varies in
//! length. Decoding checks every length against what is there and allocates
//! nothing in proportion to a claimed length. Encoding appends to a buffer
//! that the caller uses again.

use oxiray_ids::{ActorId, FunctionId, ObjectId, Origin, ProcessId, TaskId};
use smallvec::SmallVec;

mod codec;
mod failure;
mod stream;
#[cfg(test)]
mod tests;

pub use codec::DecodeError;
use codec::{Reader, Writer};
pub use failure::{About, FailureCode};
pub use stream::{MOST_ITEMS, Returns, Yield, item_object};

/// A reference to an object, as processes pass it on: the object and who owns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RefName {
    /// The object.
    pub id: ObjectId,
    /// The process that knows its value, place and count.
    pub owner: ProcessId,
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
        /// What [`FailureCode::about`] says.
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

/// Values of a frame: mostly one at the most.
pub type Values<'a> = SmallVec<[Value<'a>; 1]>;

/// A task to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task<'a> {
    /// The owner's name for this attempt.
    pub token: u64,
    /// Number in the claims of this channel; 0 for actor calls, which are not claimed.
    pub number: u64,
    /// Which of the actor's lanes it runs in; 0 is for calls that name none.
    pub lane: u16,
    /// Of an actor's call: the incarnation that is meant. Another one does not begin it. 0 for all
    /// other tasks.
    pub incarnation: u64,
    /// The task.
    pub id: TaskId,
    /// What to call: a function's hash, or nil for an actor's method.
    pub function: FunctionId,
    /// Name of the actor's method, or the task's given name, or empty.
    pub name: &'a str,
    /// What it gives back.
    pub returns: Returns,
    /// How often it was tried before.
    pub attempt: u16,
    /// Whether what happens to it is recorded.
    pub recorded: bool,
    /// Devices given to it, and its placement group: see [`crate::given`].
    pub devices: Vec<u32>,
    /// Serialised arguments, with places for `values`.
    pub args: &'a [u8],
    /// Values of top-level references, in order. A stored one has its name in `names`.
    pub values: Values<'a>,
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
    /// It was not begun: an argument could not be had, because its node has left; or it was meant
    /// for another incarnation of the actor.
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
    /// As in [`Task`]: each time that a task is sent it has another one, which so names the
    /// incarnation that answers, too.
    pub token: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it ran, in nanoseconds.
    pub ran_ns: u64,
    /// Its values: one each return, or those of the first and then one failure for all others.
    pub values: Values<'a>,
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
    /// Owner to worker: references in the answer to this task are registered with their owners; or
    /// those in this item that it yielded.
    SettledReturns(u64, u32),
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
    /// Worker to owner: an item of a stream.
    Yield(Yield<'a>),
    /// Owner to worker: of the stream with this token so many items were read.
    Consumed(u64, u32),
    /// Owner to worker: nobody reads on in the stream with this token. It is answered as ever.
    NoReader(u64),
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
const YIELD: u8 = 23;
const CONSUMED: u8 = 24;
const NO_READER: u8 = 25;

impl<'a> Frame<'a> {
    /// Appends this frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer(out);
        match self {
            Frame::Task(task) => task.write(&mut writer),
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
            Frame::Yield(Yield { token, item, value }) => {
                writer.kind_and(YIELD, &token.to_le_bytes());
                writer.u32(*item);
                writer.value(value);
            }
            Frame::Consumed(token, items) => {
                writer.kind_and(CONSUMED, &token.to_le_bytes());
                writer.u32(*items);
            }
            Frame::NoReader(token) => writer.kind_and(NO_READER, &token.to_le_bytes()),
            Frame::FreeObject(id) => writer.kind_and(FREE_OBJECT, &id.0),
            Frame::WantObject(id) => writer.kind_and(WANT_OBJECT, &id.0),
            Frame::Borrow(id) => writer.kind_and(BORROW, &id.0),
            Frame::Borrowed(id) => writer.kind_and(BORROWED, &id.0),
            Frame::Release(id) => writer.kind_and(RELEASE, &id.0),
            Frame::SettledArgs(token) => writer.kind_and(SETTLED_ARGS, &token.to_le_bytes()),
            Frame::SettledReturns(token, item) => {
                writer.kind_and(SETTLED_RETURNS, &token.to_le_bytes());
                writer.u32(*item);
            }
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
            SETTLED_RETURNS => Frame::SettledReturns(reader.u64()?, reader.u32()?),
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
            YIELD => Frame::Yield(Yield {
                token: reader.u64()?,
                item: reader.u32()?,
                value: reader.value()?,
            }),
            CONSUMED => Frame::Consumed(reader.u64()?, reader.u32()?),
            NO_READER => Frame::NoReader(reader.u64()?),
            kind => return Err(DecodeError::UnknownKind(kind)),
        };
        reader.finish()?;
        Ok(frame)
    }
}

/// Where the fixed fields of an encoded task are. They are written and read as a whole, with one
/// check of what is there.
mod task_head {
    use std::ops::Range;

    use oxiray_ids::{FunctionId, TaskId};

    pub(super) const TOKEN: Range<usize> = 1..9;
    pub(super) const NUMBER: Range<usize> = TOKEN.end..TOKEN.end + 8;
    pub(super) const LANE: Range<usize> = NUMBER.end..NUMBER.end + 2;
    pub(super) const INCARNATION: Range<usize> = LANE.end..LANE.end + 8;
    pub(super) const ID: Range<usize> = INCARNATION.end..INCARNATION.end + TaskId::LEN;
    pub(super) const FUNCTION: Range<usize> = ID.end..ID.end + FunctionId::LEN;
    pub(super) const RETURNS: Range<usize> = FUNCTION.end..FUNCTION.end + 4;
    pub(super) const ATTEMPT: Range<usize> = RETURNS.end..RETURNS.end + 4;
    pub(super) const RECORDED: usize = ATTEMPT.end;
    pub(super) const LEN: usize = RECORDED + 1;
}

/// The claim number and the lane of an encoded task; `None` for any other frame.
pub fn task_place(bytes: &[u8]) -> Option<(u64, u16)> {
    let (number, lane) = (bytes.get(task_head::NUMBER)?, bytes.get(task_head::LANE)?);
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
    if let Some(field) = bytes.get_mut(task_head::NUMBER) {
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
    let token = bytes.get(task_head::TOKEN).filter(|_| bytes[0] == TASK)?;
    Some(u64::from_le_bytes(token.try_into().expect("eight bytes")))
}

/// The incarnation that an encoded task is for.
pub fn task_incarnation(bytes: &[u8]) -> Option<u64> {
    let incarnation = bytes.get(task_head::INCARNATION).filter(|_| bytes[0] == TASK)?;
    Some(u64::from_le_bytes(incarnation.try_into().expect("eight bytes")))
}

impl<'a> Task<'a> {
    /// Appends [`Frame::Task`] to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write(&mut Writer(out));
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let mut head = [0; task_head::LEN];
        head[0] = TASK;
        head[task_head::TOKEN].copy_from_slice(&self.token.to_le_bytes());
        head[task_head::NUMBER].copy_from_slice(&self.number.to_le_bytes());
        head[task_head::LANE].copy_from_slice(&self.lane.to_le_bytes());
        head[task_head::INCARNATION].copy_from_slice(&self.incarnation.to_le_bytes());
        head[task_head::ID].copy_from_slice(&self.id.0);
        head[task_head::FUNCTION].copy_from_slice(&self.function.0);
        head[task_head::RETURNS].copy_from_slice(&self.returns.bits().to_le_bytes());
        head[task_head::ATTEMPT].copy_from_slice(&u32::from(self.attempt).to_le_bytes());
        head[task_head::RECORDED] = self.recorded.into();
        writer.raw(&head);
        writer.text(self.name);
        writer.count(self.devices.len());
        self.devices.iter().for_each(|device| writer.u32(*device));
        writer.bytes(self.args);
        writer.count(self.values.len());
        self.values.iter().for_each(|value| writer.value(value));
        writer.names(&self.nested);
    }

    /// What follows the kind.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut head = reader.head::<{ task_head::LEN - 1 }>()?;
        Ok(Self {
            token: head.u64()?,
            number: head.u64()?,
            lane: u16::from_le_bytes(head.array()?),
            incarnation: head.u64()?,
            id: TaskId(head.array()?),
            function: FunctionId(head.array()?),
            returns: Returns::from_bits(head.u32()?)?,
            attempt: head.u32()? as u16,
            recorded: head.u8()? != 0,
            name: reader.text()?,
            devices: reader.list(4, Reader::u32)?,
            args: reader.bytes()?,
            values: reader.values()?,
            nested: reader.names()?,
        })
    }
}

impl<'a> Answer<'a> {
    fn encode(&self, writer: &mut Writer<'_>) {
        let mut head = [0; 18];
        head[0] = ANSWER;
        head[1..9].copy_from_slice(&self.token.to_le_bytes());
        head[9..17].copy_from_slice(&self.ran_ns.to_le_bytes());
        head[17] = self.outcome as u8;
        writer.raw(&head);
        writer.count(self.values.len());
        self.values.iter().for_each(|value| writer.value(value));
        writer.count(self.retained.len());
        self.retained.iter().for_each(|id| writer.raw(&id.0));
    }

    /// What follows the kind.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut head = reader.head::<17>()?;
        Ok(Self {
            token: head.u64()?,
            ran_ns: head.u64()?,
            outcome: match head.u8()? {
                0 => Outcome::Done,
                1 => Outcome::Raised,
                2 => Outcome::Retryable,
                3 => Outcome::Unread,
                4 => Outcome::Cancelled,
                other => return Err(DecodeError::BadTag(other)),
            },
            values: reader.values()?,
            retained: reader.list(ObjectId::LEN, |reader| Ok(ObjectId(reader.array()?)))?,
        })
    }
}
