//! The commands of `oxiray` that start, stop and ask clusters.
//!
//! - [`start`]: `oxiray start`: the control service and the node service of this machine
//! - [`stop`]: `oxiray stop`
//! - [`token`]: `oxiray token`: the cluster's secret
//! - [`microbenchmark`]: `oxiray microbenchmark`, which is a Python module
//! - [`dashboard`]: `oxiray dashboard`: where the dashboard is
//!
//! Inside:
//!
//! - `process`: processes that outlive the command which started them
//! - `offer`: what a node has to offer, by its arguments and by the machine
//! - `own_address`: by which address other machines reach this one
//! - `home`: the directory of a cluster on this machine: its keyring and its state
//! - `interpreter`: which Python the workers are
//! - `tool`: questions to the control service

pub mod dashboard;
mod home;
mod interpreter;
pub mod microbenchmark;
mod offer;
mod own_address;
mod process;
pub mod start;
pub mod stop;
pub mod token;
pub(crate) mod tool;

use std::io;

/// An error that is nothing but its sentence.
pub(crate) fn refuse<T>(text: impl Into<String>) -> io::Result<T> {
    Err(io::Error::other(text.into()))
}
