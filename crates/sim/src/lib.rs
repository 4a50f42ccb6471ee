//! A cluster in one thread, in virtual time.
//!
//! The decisions are production's: [`oxiray_control::Control`], one [`oxiray_node::Node`] for every
//! machine with the keeper and the table of its store, and one [`oxiray_owner::Owner`] for every
//! process. Around them is a world that is made up: a clock, a network with latency in which
//! messages of a pair keep their order, rings between processes, disks, and programs that submit,
//! nest, put, wait, make actors and call them. Nodes die, connections break, workers crash, actors
//! are killed, the control service is started again, and everything that must hold is looked at on
//! the way. The same seed gives the same run. The way in:
//!
//! - `plan`: what a run is made of
//! - `run`: the loop, and what must hold (S-1 to S-7)
//! - `program`, `oracle`, `judge`: what programs do, what must come out, and whether it does
//! - `history`: how often everything was begun, and where (H-1 to H-5)
//! - `broken`: worlds in which that does not hold, on purpose
//! - `drivers`: programs of users; `groups`: placement groups that they make
//! - `desk`, `asking`, `waiting`, `looking`: what programs ask their processes for, and how they wait
//! - `process`, `outbox`, `hearing`, `executing`: a process, and what its shell does
//! - `rings`, `parcel`, `shapes`: channels between processes; values as bytes; what tasks need
//! - `world`, `network`: machines, what is between them, and what goes wrong
//! - `machine`, `membership`: a node and what its shell does
//! - `cutting`: machines that the control service does not hear, or that do not hear it
//! - `apart`: pairs of machines that do not reach each other
//! - `head`: the control service and what its shell does
//! - `happening`: what happens, and when
//! - `random`: numbers from a seed; `seeds`: many runs, and those that fail

mod apart;
mod asking;
mod broken;
mod cutting;
mod desk;
mod drivers;
mod executing;
mod groups;
mod happening;
mod head;
mod hearing;
mod history;
mod judge;
mod looking;
mod machine;
mod membership;
mod network;
mod oracle;
mod outbox;
mod parcel;
mod plan;
mod process;
mod program;
mod random;
mod rings;
mod run;
mod seeds;
mod shapes;
mod waiting;
mod world;

pub use broken::Broken;
pub use plan::{MICROSECOND, MILLISECOND, Menu, Plan, SECOND};
pub use random::Random;
pub use seeds::run_seeds;
pub use world::{Report, World};
