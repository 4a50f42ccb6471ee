//! The owner in a simulated world.
//!
//! - `world`: processes, and what must hold at any time
//! - `net`: the channels between them
//! - `node`: a node service that grants leases and places actors
//! - `user`: what programs do: put, submit, call, read, drop
//! - `work`: what workers do: begin, sleep, answer
//! - `streams`: what workers yield and programs read
//! - `end`: letting a world come to rest, and what must hold then
//! - `random`: properties of random histories
//! - `making_again`: values that were let go, and lost
//! - `borrowing`, `losing`, `scheduling`: histories that once went wrong
//! - `hostile`: whatever others say, in any order
//! - `unseen`: errors that nobody looks at

mod borrowing;
mod callers;
mod end;
mod hostile;
mod losing;
mod making_again;
mod memory;
mod net;
mod node;
mod random;
mod scheduling;
mod streams;
mod unseen;
mod user;
mod work;
mod world;
