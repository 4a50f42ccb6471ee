//! The node service's decisions: worker pool, leases, actors, channels, store.
//!
//! Pure: no clock, no sockets, no randomness. A shell feeds [`Node::on_event`]
//! and does what it asks for through [`Outbox`]. The way in:
//!
//! - `event`: what happens to a node ([`Event`]) and what it asks for ([`Outbox`])
//! - `node`: the state, and which part of it an event concerns
//! - `process`, `slots`, `channels`: processes, their bells and channels
//! - `demand`: what processes ask for; leases
//! - `schedule`: whose turn it is, and which workers to start
//! - `pressure`: asking for leases back, and warning about what cannot run
//! - `jobs`: programs of drivers, and which workers serve them
//! - `kv`: questions about keys and values
//! - `pool`: idle workers, those that start and those that leave
//! - `environments`: what workers are forked from, by what they are to find
//! - `actors`, `deaths`: the lives of actors, and how they ended
//! - `full`: what lacks only a worker, and will get none
//! - `groups`, `bundles`: placement groups that matter here, and what is reserved for them
//! - `storage`: messages to and from the object store
//! - `cluster`: other nodes, their processes, and the control service
//! - `reports`: questions that every process answers
//! - `memory`: which worker ends when memory is short
//! - `listing`: this node's processes, in parts, and questions to other nodes
//! - `ending`: what the end of a process means for all others
//! - `view`: the node in words; `validate`: its invariants

mod actors;
mod bundles;
mod channels;
mod cluster;
mod deaths;
mod demand;
mod ending;
mod environments;
mod event;
mod full;
mod groups;
mod jobs;
mod kv;
mod listing;
mod memory;
mod node;
mod pool;
mod pressure;
mod process;
mod reports;
mod schedule;
mod slots;
mod storage;
mod validate;
mod view;

pub use event::{AdmitError, Admitted, DiskNews, Endpoint, Event, Outbox, Setup, Transfer};
pub use memory::Shortage;
pub use node::Node;

#[cfg(test)]
mod tests;
