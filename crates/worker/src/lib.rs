//! A process's side of the engine: submit, get, put, wait, execute. No Python in it.
//!
//! - [`connect`]: how a driver starts a node service, how a worker finds it
//! - [`runtime`]: the state of this process, and how its threads wait
//! - [`io`]: frames out and in: the pure owner's outbox
//! - [`control`]: the thread that listens to the node service
//! - [`questions`]: questions to the node service, and its answers
//! - [`logs`]: lines for the driver's terminal
//! - [`pump`]: the thread that reads frames while nobody else does
//! - [`near`]: sleeping near the process that one takes turns with
//! - [`executor`]: tasks that others pushed to this process
//! - `report`: what this process holds, told to whoever asks
//! - [`store`], `copy`: the shared-memory store, as this process sees it

pub mod connect;
pub mod control;
mod copy;
pub mod executor;
pub mod io;
pub mod logs;
mod near;
pub mod pump;
pub mod questions;
mod report;
pub mod runtime;
pub mod store;

pub use connect::{
    DriverConfig, DriverSession, StartError, connect_driver, start_driver, start_worker,
};
pub use executor::{Execution, Work};
pub use logs::{LogItem, NextLog};
pub use questions::{NoRoom, Unseen};
pub use runtime::{Identity, Runtime, State, Waited};
pub use store::{Look, Room};

pub use oxiray_owner::actor::handle_object;
pub use oxiray_owner::{Content, Failure, ObjectKey, SmallBytes, Target, TaskSpec};
