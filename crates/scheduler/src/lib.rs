//! Resources and who may use them. Pure: no clock, no sockets, no randomness.
//!
//! Within a node:
//!
//! - [`Ledger`]: what a node has, what of it is free, bundles of it, and loans of CPUs
//! - [`Allocation`]: what one worker was given
//! - [`show_amount`], [`show_amounts`]: amounts as people read them
//!
//! Among nodes:
//!
//! - [`Cluster`]: what one node believes of all nodes
//! - [`choose`]: which node a [`Request`] goes to, by its [`Strategy`]
//! - [`pack`]: which nodes the bundles of a placement group go to
//! - [`explain`], [`explain_group`]: why it does not run, in one sentence
//! - [`Wanted`]: what a shape asks of nodes
//! - [`Selector`], [`parse_labels`]: labels of nodes

mod balance;
mod cluster;
mod devices;
mod labels;
mod ledger;
mod packing;
mod policy;
#[cfg(test)]
mod testing;
mod text;
mod wanted;
mod why;

pub use cluster::{Cluster, NodeNumber};
pub use labels::{LabelError, NODE_ID_LABEL, Operator, Selector, parse_labels};
pub use ledger::{Allocation, BundleKey, Ledger};
pub use packing::{BundleWanted, GroupWanted, Packing, explain_group, pack, pack_when_free};
pub use policy::{Affinity, Choice, Request, Strategy, choose};
pub use text::{show as show_amount, show_amounts};
pub use wanted::Wanted;
pub use why::explain;
