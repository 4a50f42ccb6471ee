//! A process's side of the engine: submit, get, put, wait, execute. No Python in it.
//!
//! - [`connect`]: how a driver starts a node service, how a worker finds it
//! - [`runtime`]: the state of this process, and how its threads wait
//! - [`io`]: frames out and in: the pure owner's outbox
//! - [`control`]: the thread that listens to the node service
//! - [`questions`]: questions to the node service, and its answers
//! - `line`: what this process says to its node service, which is never waited for
//! - [`logs`]: lines for the driver's terminal
//! - [`pump`]: the thread that reads frames while nobody else does
//! - [`near`]: sleeping near the process that one takes turns with
//! - [`executor`]: what others asked this process to do: calls that wait in lanes, calls that run
//! - [`call`]: one call, and the handle by which it is answered
//! - `cancel`: calls that nobody wants any more
//! - [`stream`]: calls that yield, and who reads it
//! - `lane`, `lend`: how many calls run at once; lending CPUs while all of them wait
//! - [`language`]: the seam to the language whose functions are called
//! - [`serve`](mod@serve): the loops that take calls and hand them to the language
//! - `shapes`: what this process asks leases of
//! - `awaits`: what its threads sleep for, told to whoever asks
//! - `blocked`: event loops that are late, and who is told
//! - `fence`: an actor that must not outlive the lease of its node
//! - `constructor`, `keeping`: constructors of actors, and those that outlive us
//! - `groups`: placement groups that this process made or waits for
//! - [`port`]: how an event loop of the language hears that something is there for it
//! - `reading`: an event loop that reads frames for itself
//! - [`breakdown`]: a panic ends the session, never the program
//! - `report`: what this process holds, told to whoever asks
//! - [`store`], `copy`: the shared-memory store, as this process sees it
//! - `sync`: the locks, atomics and sleeps at which its threads meet

mod awaits;
mod blocked;
pub mod breakdown;
pub mod call;
mod cancel;
pub mod connect;
mod constructor;
pub mod control;
mod copy;
pub mod executor;
mod fence;
mod groups;
pub mod io;
mod keeping;
mod lane;
pub mod language;
mod lend;
mod line;
pub mod logs;
mod near;
pub mod port;
pub mod pump;
pub mod questions;
mod reading;
mod report;
pub mod runtime;
pub mod serve;
mod shapes;
pub mod store;
pub mod stream;
mod sync;

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;

pub use blocked::TellBlocked;
pub use call::{Call, Raised};
pub use cancel::{Asked, Interrupt};
pub use connect::{
    DriverConfig, DriverSession, StartError, connect_driver, start_driver, start_worker,
};
pub use executor::Work;
pub use groups::Fare;
pub use language::{Language, Loaded, Serving};
pub use logs::{LogItem, NextLog};
pub use port::{Descriptor, PortKey, Watcher};
pub use questions::{NoRoom, Unseen};
pub use reading::Found;
pub use runtime::{Identity, Runtime, State, Waited};
pub use serve::{LoopServer, serve, serve_lane};
pub use store::{Look, Room};
pub use stream::Flow;

pub use oxiray_owner::actor::handle_object;
pub use oxiray_owner::why::{Missing, Wait};
pub use oxiray_owner::{
    CallOrder, Content, Failure, Next, ObjectKey, SmallBytes, Target, TaskSpec,
};
