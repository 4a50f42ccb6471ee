//! A cluster in one thread, in virtual time.
//!
//! The decisions are production's: [`oxiray_control::Control`] and one
//! [`oxiray_node::Node`] for every machine. Around them is a world that is
//! made up: a clock, a network with latency in which messages of a pair keep
//! their order, programs that have tasks and make actors, workers that run for
//! a while. Nodes die, connections break, the control service is started again,
//! and everything that must hold is looked at on the way. The same seed gives
//! the same run. The way in:
//!
//! - `plan`: what a run is made of
//! - `world`: machines, the network between them, and what goes wrong
//! - `run`: the loop, and what must hold (S-1 to S-6)
//! - `happening`: what happens, and when
//! - `machine`, `membership`: a node and what its shell does
//! - `head`: the control service and what its shell does
//! - `drivers`, `processes`: programs and workers
//! - `random`: numbers from a seed

mod drivers;
mod happening;
mod head;
mod machine;
mod membership;
mod plan;
mod processes;
mod random;
mod run;
mod world;

pub use plan::{MICROSECOND, MILLISECOND, Plan, SECOND};
pub use random::Random;
pub use world::{Report, World};
