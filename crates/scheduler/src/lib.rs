//! Resources and who may use them. Pure: no clock, no sockets.
//!
//! - [`Ledger`]: what a node has, what of it is free, and loans of CPUs
//! - [`Allocation`]: what one worker was given
//! - [`show_amounts`]: amounts as people read them

mod devices;
mod ledger;
mod text;

pub use ledger::{Allocation, Ledger};
pub use text::show_amounts;
