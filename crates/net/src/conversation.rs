//! What two nodes say to each other, over connections that come and go.
//!
//! A connection may break, or carry nothing any more, though both nodes live. So what one says is
//! kept until the other has said that it has it, and goes again over the next connection, be that
//! by the same way or by another.
//!
//! - **C-1 (once, in order)** within an epoch every frame is taken in once, in the order in which
//!   it was said, whichever connections carried it, and however often.
//! - **C-2 (nothing is lost)** what was said is kept until the other side is known to have it.
//! - **C-3 (one end)** a conversation that ends, whoever ends it, is over for both: the next one
//!   has a higher epoch, nothing of an older one is taken in, and either side hears of it once.
//! - **C-4 (bounded)** what has come is acknowledged after [`MOST_FRAMES`] or [`MOST_BYTES`].

use std::collections::VecDeque;

/// Frames that come before they are acknowledged,
const MOST_FRAMES: u64 = 64;
/// and bytes of them.
const MOST_BYTES: usize = 64 << 10;

/// How far a side has heard the other, in which epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// Of the conversation.
    pub epoch: u64,
    /// Frames of it that were taken in.
    pub heard: u64,
}

/// What comes next over a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// Of the conversation.
    pub epoch: u64,
    /// The number of the next frame.
    pub next: u64,
}

/// Whether the conversation goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It does.
    GoesOn,
    /// The other side has begun anew: what was said and is not acknowledged is lost, and all that
    /// was between the two is over (C-3).
    Ended,
}

/// One side of a conversation.
#[derive(Debug, Default)]
pub struct Conversation {
    epoch: u64,
    /// The number of the first frame that is kept.
    first: u64,
    /// What was said and is not acknowledged (C-2).
    kept: VecDeque<Box<[u8]>>,
    heard: u64,
    /// What was heard and is not acknowledged.
    frames_owed: u64,
    bytes_owed: usize,
}

impl Conversation {
    /// Keeps what is said.
    pub fn say(&mut self, parts: &[&[u8]]) {
        self.kept.push_back(parts.concat().into());
    }

    /// What is said first over a connection, before [`Self::kept`].
    pub fn opening(&self) -> Cursor {
        Cursor { epoch: self.epoch, next: self.first }
    }

    /// What the other side may not have, in order.
    pub fn kept(&self) -> impl Iterator<Item = &[u8]> {
        self.kept.iter().map(AsRef::as_ref)
    }

    /// Whether anything was said or heard in this epoch.
    pub fn is_begun(&self) -> bool {
        self.heard > 0 || self.first > 0 || !self.kept.is_empty()
    }

    /// The other side opens a connection.
    pub fn on_opening(&mut self, opening: Cursor) -> Fate {
        // What lies between is lost: not expected of one that keeps C-2.
        let gap = opening.epoch == self.epoch && opening.next > self.heard;
        if gap {
            self.begin(self.epoch + 1);
            return Fate::Ended;
        }
        self.follow(opening.epoch)
    }

    /// A frame of so many bytes comes; whether it is to be taken in (C-1).
    pub fn hear(&mut self, cursor: &mut Cursor, bytes: usize) -> bool {
        let number = cursor.next;
        cursor.next += 1;
        let is_next = cursor.epoch == self.epoch && number == self.heard;
        if is_next {
            self.heard += 1;
            self.frames_owed += 1;
            self.bytes_owed += bytes;
        }
        is_next
    }

    /// Whether [`Self::receipt`] is due (C-4).
    pub fn owes_receipt(&self) -> bool {
        self.frames_owed >= MOST_FRAMES || self.bytes_owed >= MOST_BYTES
    }

    /// How far the other side was heard, for that to know.
    pub fn receipt(&mut self) -> Receipt {
        (self.frames_owed, self.bytes_owed) = (0, 0);
        Receipt { epoch: self.epoch, heard: self.heard }
    }

    /// The other side says how far it has heard this one.
    pub fn on_receipt(&mut self, receipt: Receipt) -> Fate {
        let fate = self.follow(receipt.epoch);
        if receipt.epoch == self.epoch {
            while self.first < receipt.heard && self.kept.pop_front().is_some() {
                self.first += 1;
            }
        }
        fate
    }

    /// This side ends it: what was between the two is over, and the other will hear so (C-3).
    pub fn end(&mut self) {
        self.begin(self.epoch + 1);
    }

    fn follow(&mut self, epoch: u64) -> Fate {
        if epoch <= self.epoch {
            return Fate::GoesOn;
        }
        let fate = if self.is_begun() { Fate::Ended } else { Fate::GoesOn };
        self.begin(epoch);
        fate
    }

    fn begin(&mut self, epoch: u64) {
        *self = Self { epoch, ..Self::default() };
    }
}

#[cfg(test)]
mod tests;
