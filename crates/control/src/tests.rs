//! The control service in a simulated cluster.
//!
//! - `world`: control, its store, and what must hold at any time
//! - `node`: a node service, as far as the control service can tell
//! - `steps`: what may happen, drawn from numbers
//! - `end`: letting a world come to rest, and what must hold then
//! - `random`: properties of random histories, small and large
//! - `bench`: a control service on its own, spoken to by hand
//! - `members`, `health`, `actors`, `stays`, `tables`, `listing`, `warnings`, `alone`: one
//!   thing each

mod actors;
mod alone;
mod bench;
mod draining;
mod end;
mod health;
mod listing;
mod members;
mod node;
mod random;
mod stays;
mod steps;
mod tables;
mod warnings;
mod world;
