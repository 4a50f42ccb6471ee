//! A pair of rings with its claims and bells: one process's end of a channel.

use std::os::fd::AsFd;
use std::sync::Arc;

use oxiray_sys::memory::Mapping;

use crate::bell::Bell;
use crate::claim;
use crate::layout::{self, CHANNEL_BYTES, RING_BYTES};
use crate::ring::{Consumer, Corrupt, Full, Memory, Producer};
use crate::sync::{AtomicU32, AtomicU64};

struct RingMemory {
    mapping: Arc<Mapping>,
    side: usize,
}

impl Memory for RingMemory {
    fn tail(&self) -> &AtomicU64 {
        self.mapping.atomic_u64(layout::header(self.side))
    }

    fn head(&self) -> &AtomicU64 {
        self.mapping.atomic_u64(layout::header(self.side) + 64)
    }

    fn starved(&self) -> &AtomicU32 {
        self.mapping.atomic_u32(layout::header(self.side) + 128)
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= RING_BYTES);
        self.mapping.write(layout::data(self.side) + offset, bytes);
    }

    fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset + len <= RING_BYTES);
        self.mapping.bytes(layout::data(self.side) + offset, len)
    }

    fn capacity(&self) -> usize {
        RING_BYTES
    }
}

/// One process's end of a channel.
pub struct Link {
    mapping: Arc<Mapping>,
    side: usize,
    outgoing: Producer<RingMemory>,
    incoming: Consumer<RingMemory>,
    peer_bell: Bell,
    peer_bit: u32,
    next_number: u64,
}

impl Link {
    /// Maps `file`; we write ring `side`, and set bit `peer_bit` of `peer_bell` when we do.
    pub fn map(
        file: impl AsFd,
        side: usize,
        peer_bell: Bell,
        peer_bit: u32,
    ) -> std::io::Result<Self> {
        let mapping = Arc::new(Mapping::new(file, CHANNEL_BYTES)?);
        let memory = |side| RingMemory { mapping: mapping.clone(), side };
        Ok(Self {
            outgoing: Producer::new(memory(side)),
            incoming: Consumer::new(memory(1 - side)),
            side,
            peer_bell,
            peer_bit,
            next_number: 1,
            mapping,
        })
    }

    /// Publishes a frame and marks it in the peer's bell. The peer is woken by
    /// [`Self::wake`], so that several frames can share one wake-up.
    pub fn push(&mut self, parts: &[&[u8]]) -> Result<(), Full> {
        self.outgoing.push(parts)?;
        self.peer_bell.mark(self.peer_bit);
        Ok(())
    }

    /// Wakes the peer if it sleeps.
    pub fn wake(&self) -> bool {
        self.peer_bell.wake()
    }

    /// The peer's bell.
    pub fn peer_bell(&self) -> &Bell {
        &self.peer_bell
    }

    /// Whether the peer has written something that we have not read.
    pub fn has_frames(&self) -> bool {
        self.incoming.has_frames()
    }

    /// Hands out every frame that the peer has written.
    pub fn drain(&mut self, visit: impl FnMut(&[u8])) -> Result<(), Corrupt> {
        if self.incoming.drain(visit)? {
            self.peer_bell.mark(self.peer_bit);
            self.peer_bell.wake();
        }
        Ok(())
    }

    fn cell(&self, side: usize, number: u64) -> &AtomicU64 {
        self.mapping.atomic_u64(layout::claims(side) + 8 * claim::place(number))
    }

    /// Offers the next task to the peer: its number, to be sent in its frame.
    pub fn offer(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        claim::offer(self.cell(self.side, number), number);
        number
    }

    /// Takes back a task that we offered, unless the peer has taken it.
    pub fn take_back(&self, number: u64) -> bool {
        claim::take_back(self.cell(self.side, number), number)
    }

    /// Takes a task that the peer offered, unless it was taken back.
    pub fn take(&self, number: u64) -> bool {
        claim::take(self.cell(1 - self.side, number), number)
    }
}

#[cfg(test)]
mod tests;
