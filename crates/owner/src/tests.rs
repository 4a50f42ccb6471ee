//! The owner in a simulated world.
//!
//! - `world`: processes, the channels between them, and what must hold at any time
//! - `node`: a node service that grants leases and places actors
//! - `user`: what programs do: put, submit, call, read, answer, drop
//! - `end`: letting a world come to rest, and what must hold then
//! - `random`: properties of random histories
//! - `borrowing`, `scheduling`: histories that once went wrong

mod borrowing;
mod end;
mod node;
mod random;
mod scheduling;
mod user;
mod world;
