//! A single-producer single-consumer queue of frames in shared memory.
//!
//! A frame is a 4-byte length, 4 bytes of padding, the payload, and padding to
//! 8 bytes. It never wraps: where it would, a skip mark is written and the
//! frame starts at the beginning. Positions count bytes for ever; a position
//! modulo the capacity is an offset.
//!
//! Invariants:
//! - **R-1** `head <= tail <= head + capacity`.
//! - **R-2** Bytes between head and tail are written before the tail that
//!   covers them is published, and not written again before the head has passed.
//! - **R-3** Frames come out whole, once, in the order they went in.
//! - **R-4** A producer that found the ring full and said so (`starved`) is told
//!   when there is room again.
//! - **R-5** Whatever bytes are in the memory, the consumer neither reads
//!   outside of it nor loops: it reports [`Corrupt`].

use crate::layout::RING_BYTES;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

const PREFIX: usize = 8;
const SKIP: u32 = u32::MAX;

/// The largest payload of one frame. Larger things go through the store.
pub const MAX_FRAME: usize = RING_BYTES / 2 - 2 * PREFIX;

/// There is no room for the frame now.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring is full")]
pub struct Full;

/// The other side wrote what no correct peer writes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring holds bytes that are no frame")]
pub struct Corrupt;

/// The memory of one ring: a mapping, or plain memory in tests.
pub(crate) trait Memory {
    fn tail(&self) -> &AtomicU64;
    fn head(&self) -> &AtomicU64;
    /// 1 while the producer waits for room.
    fn starved(&self) -> &AtomicU32;
    fn write(&self, offset: usize, bytes: &[u8]);
    fn bytes(&self, offset: usize, len: usize) -> &[u8];
    fn capacity(&self) -> usize;
}

/// The writing end. Knows the head as it last saw it, to read it rarely.
pub(crate) struct Producer<M> {
    memory: M,
    tail: u64,
    head_seen: u64,
}

impl<M: Memory> Producer<M> {
    pub(crate) fn new(memory: M) -> Self {
        let tail = memory.tail().load(Ordering::Relaxed);
        Self { memory, tail, head_seen: 0 }
    }

    /// Writes and publishes one frame made of `parts`.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), Full> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        assert!(len <= self.memory.capacity() / 2 - 2 * PREFIX, "frame larger than MAX_FRAME");
        let size = frame_size(len);
        let capacity = self.memory.capacity();
        let offset = self.tail as usize & (capacity - 1);
        let skipped = if offset + size > capacity { capacity - offset } else { 0 };
        if !self.has_room(skipped + size) {
            return Err(Full);
        }
        let mut at = offset;
        if skipped > 0 {
            self.memory.write(at, &SKIP.to_le_bytes());
            at = 0;
        }
        self.memory.write(at, &(len as u32).to_le_bytes());
        at += PREFIX;
        for part in parts {
            self.memory.write(at, part);
            at += part.len();
        }
        self.tail += (skipped + size) as u64;
        self.memory.tail().store(self.tail, Ordering::Release);
        Ok(())
    }

    fn has_room(&mut self, needed: usize) -> bool {
        let most = (self.memory.capacity() - needed) as u64;
        // A head beyond the tail is nonsense: then there is no room.
        let fits = |head: u64, tail: u64| tail.wrapping_sub(head) <= most;
        if fits(self.head_seen, self.tail) {
            return true;
        }
        self.head_seen = self.memory.head().load(Ordering::Acquire);
        if fits(self.head_seen, self.tail) {
            return true;
        }
        // Say that we wait, then look again: the consumer may have passed in between.
        self.memory.starved().store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.head_seen = self.memory.head().load(Ordering::Acquire);
        fits(self.head_seen, self.tail)
    }
}

/// The reading end.
pub(crate) struct Consumer<M> {
    memory: M,
    head: u64,
}

impl<M: Memory> Consumer<M> {
    pub(crate) fn new(memory: M) -> Self {
        let head = memory.head().load(Ordering::Relaxed);
        Self { memory, head }
    }

    /// Whether a frame is there.
    pub(crate) fn has_frames(&self) -> bool {
        self.memory.tail().load(Ordering::Acquire) != self.head
    }

    /// Hands every frame that is there now to `visit`, then gives their room
    /// back. Says whether the producer waited for that room.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(&[u8])) -> Result<bool, Corrupt> {
        let capacity = self.memory.capacity();
        let tail = self.memory.tail().load(Ordering::Acquire);
        let ordered = self.head <= tail && tail - self.head <= capacity as u64;
        if !ordered || !self.head.is_multiple_of(PREFIX as u64) {
            return Err(Corrupt);
        }
        let mut given_back = self.head;
        while self.head != tail {
            let offset = self.head as usize & (capacity - 1);
            let room = capacity - offset;
            let available = (tail - self.head) as usize;
            let prefix = self.memory.bytes(offset, 4);
            let len = u32::from_le_bytes(prefix.try_into().expect("four bytes"));
            if len == SKIP {
                if available < room || offset == 0 {
                    return Err(Corrupt);
                }
                self.head += room as u64;
                continue;
            }
            let size = frame_size(len as usize);
            if size > available || size > room {
                return Err(Corrupt);
            }
            visit(self.memory.bytes(offset + PREFIX, len as usize));
            self.head += size as u64;
            // In a long drain, let the producer go on meanwhile.
            if self.head - given_back > capacity as u64 / 4 {
                self.memory.head().store(self.head, Ordering::Release);
                given_back = self.head;
            }
        }
        self.memory.head().store(self.head, Ordering::Release);
        fence(Ordering::SeqCst);
        let starved = self.memory.starved();
        Ok(starved.load(Ordering::Relaxed) == 1 && starved.swap(0, Ordering::SeqCst) == 1)
    }
}

fn frame_size(len: usize) -> usize {
    PREFIX + len.next_multiple_of(8)
}

#[cfg(test)]
pub(crate) mod tests;
