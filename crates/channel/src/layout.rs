//! Where everything is in the two kinds of shared memory.
//!
//! ```text
//! bells    MAX_PROCESSES x BELL_BYTES
//!          each: word u32 | sleepers u32 | processor u32 | .. | 64: pending, BELL_BITS bits
//!          then, a cache line: when the node's lease ends u64
//! channel  ring 0 header | ring 1 header | claims 0 | claims 1 | data 0 | data 1
//!          header: 0 tail | 64 head | 128 starved   (a cache line each)
//! ```

/// Most processes of a node at one time: each has a bell.
pub const MAX_PROCESSES: usize = 4096;

/// Bits of a bell: channels share one beyond that.
pub const BELL_BITS: usize = 1024;

/// Bytes of one bell.
pub const BELL_BYTES: usize = 64 + BELL_BITS / 8;

/// Where it is said when the node's lease ends.
pub(crate) const LEASE: usize = MAX_PROCESSES * BELL_BYTES;

/// Bytes of the memory file that holds all bells of a node.
pub const BELLS_BYTES: usize = LEASE + 64;

/// Bytes of one ring's data; a power of two.
pub const RING_BYTES: usize = 256 * 1024;

/// Tasks that may be queued in one direction of a channel at one time.
pub const CLAIMS: usize = 512;

const HEADER_BYTES: usize = 192;
const CLAIM_BYTES: usize = CLAIMS * 8;

/// Bytes of the memory file of one channel.
pub const CHANNEL_BYTES: usize = data(2);

pub(crate) const fn header(side: usize) -> usize {
    side * HEADER_BYTES
}

pub(crate) const fn claims(side: usize) -> usize {
    4096 + side * CLAIM_BYTES
}

pub(crate) const fn data(side: usize) -> usize {
    4096 + 2 * CLAIM_BYTES + side * RING_BYTES
}
