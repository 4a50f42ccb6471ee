//! What tasks give back: values in their answer, or items on the way to it.

use oxiray_ids::{ObjectId, PUT_INDEX, TaskId};

use super::{DecodeError, Value};

/// What a task gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// So many values, in its answer.
    Fixed(u32),
    /// Items, one [`Yield`] each, for who reads them; in its answer one value: that it is complete.
    Stream {
        /// Items that it may yield before they are read; 0: any number.
        ahead: u32,
    },
    /// Items, likewise; in its answer one value, with the references to them.
    Gathered,
}

impl Returns {
    const STREAM: u32 = 1 << 31;
    const GATHERED: u32 = 1 << 30;

    /// How many values its answer has.
    pub fn in_answer(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Stream { .. } | Self::Gathered => 1,
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Fixed(count) => count & !Self::STREAM,
            Self::Stream { ahead } => Self::STREAM | ahead.min(Self::GATHERED - 1),
            Self::Gathered => Self::STREAM | Self::GATHERED,
        }
    }

    pub(super) fn from_bits(bits: u32) -> Result<Self, DecodeError> {
        match (bits & Self::STREAM, bits & Self::GATHERED) {
            (0, _) => Ok(Self::Fixed(bits)),
            (_, 0) => Ok(Self::Stream { ahead: bits & !Self::STREAM }),
            _ if bits == Self::Gathered.bits() => Ok(Self::Gathered),
            _ => Err(DecodeError::BadTag((bits >> 24) as u8)),
        }
    }
}

/// An item of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Yield<'a> {
    /// As in [`Task`].
    pub token: u64,
    /// Which item, from 1: its object is [`item_object`].
    pub item: u32,
    /// It.
    pub value: Value<'a>,
}

/// The object of an item: the first of its task's is that the stream is complete.
pub fn item_object(task: TaskId, item: u32) -> ObjectId {
    task.object(item.saturating_add(1))
}

/// Items that a stream can have: objects above are put.
pub const MOST_ITEMS: u32 = PUT_INDEX - 2;
