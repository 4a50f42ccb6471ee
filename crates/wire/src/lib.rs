//! Every message, its version, its encoding.
//!
//! - [`control`]: between a process and its node service, over a packet socket:
//!   protobuf, so that fields can be added and other languages can join
//! - [`cluster`]: between machines, over TLS: protobuf, too
//! - [`frame`]: between two processes, through a shared-memory ring: a fixed
//!   header and raw payload, because these are on the path of every task
//! - [`given`]: what of that a worker is given with a lease

pub mod cluster;
pub mod control;
pub mod frame;
pub mod given;

/// Version of everything in this crate. Peers of another version are refused at registration.
pub const VERSION: u32 = 11;
