//! The way between two processes of one machine.
//!
//! - [`ring`]: a single-producer single-consumer queue of frames in shared memory
//! - [`bell`]: how a process sleeps until somebody has written to it
//! - [`claim`]: how a worker takes a queued task and its owner takes it back
//! - [`lease`]: how long all processes of a node may go on, by themselves
//! - [`link`]: a pair of rings with its claims and bells: one process's end
//!
//! Sending is: write the frame, publish the tail, set a bit, and wake the
//! receiver only if it sleeps. Nothing here knows what a frame means.

// Without `link` nothing but tests uses the rest.
#![cfg_attr(feature = "shuttle", allow(dead_code))]

pub mod bell;
pub mod claim;
pub mod layout;
#[cfg(not(feature = "shuttle"))]
pub mod lease;
#[cfg(not(feature = "shuttle"))]
pub mod link;
pub mod ring;
mod sync;

#[cfg(feature = "shuttle-sleep")]
pub use sync::futex::sleep_while;

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;

pub use bell::{Bell, Bells};
pub use layout::{BELLS_BYTES, CHANNEL_BYTES, MAX_PROCESSES};
#[cfg(not(feature = "shuttle"))]
pub use lease::LeaseEnd;
#[cfg(not(feature = "shuttle"))]
pub use link::Link;
pub use ring::{Corrupt, Full, MAX_FRAME};
