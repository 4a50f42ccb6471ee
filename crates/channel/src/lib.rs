//! The way between two processes of one machine.
//!
//! - [`ring`]: a single-producer single-consumer queue of frames in shared memory
//! - [`bell`]: how a process sleeps until somebody has written to it
//! - [`claim`]: how a worker takes a queued task and its owner takes it back
//! - [`link`]: a pair of rings with its claims and bells: one process's end
//!
//! Sending is: write the frame, publish the tail, set a bit, and wake the
//! receiver only if it sleeps. Nothing here knows what a frame means.

pub mod bell;
pub mod claim;
pub mod layout;
pub mod link;
pub mod ring;
mod sync;

pub use bell::{Bell, Bells};
pub use layout::{BELLS_BYTES, CHANNEL_BYTES, MAX_PROCESSES};
pub use link::Link;
pub use ring::{Corrupt, Full, MAX_FRAME};
