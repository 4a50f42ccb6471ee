//! The commands of `oxiray` that start, stop and ask clusters.
//!
//! - [`start`]: `oxiray start`: the control service and the node service of this machine
//! - [`stop`]: `oxiray stop`
//! - [`drain`]: `oxiray drain`: a node leaves in an orderly way
//! - [`token`]: `oxiray token`: the cluster's secret
//! - [`python_module`]: `oxiray doctor`, `job` and `microbenchmark`, modules of the package
//! - [`dashboard`]: `oxiray dashboard`: where the dashboard is
//! - [`kill_random_node`]: `oxiray kill-random-node`, for tests
//! - [`completion`]: `oxiray completion` and `oxiray man`
//!
//! Inside:
//!
//! - `process`: processes that outlive the command which started them
//! - `offer`: what a node has to offer, by its arguments and by the machine
//! - `own_address`: by which address other machines reach this one
//! - `place`: HOST:PORT, read and compared
//! - `health`: when nodes that say nothing are given up
//! - `home`: the directory of a cluster on this machine: its keyring and its state
//! - `interpreter`: which Python the workers are
//! - `tool`: questions to the control service

pub mod completion;
pub mod dashboard;
pub mod drain;
mod health;
mod home;
mod interpreter;
pub mod kill_random_node;
mod offer;
mod own_address;
mod place;
mod process;
pub mod python_module;
pub mod start;
pub mod stop;
pub mod token;
pub(crate) mod tool;

use std::io;

use oxiray_session::{Folder, Started, folder_path};

use crate::exit::{Failure, Result};

/// An error that is nothing but its sentence.
pub(crate) fn refuse<T>(text: impl Into<String>) -> io::Result<T> {
    Err(io::Error::other(text.into()))
}

/// The cluster that is meant, of those that this machine has nodes of.
pub(crate) fn which_cluster(folder: Option<&Folder>, address: Option<&str>) -> Result<Started> {
    let clusters = folder.map(|folder| folder.clusters(address)).unwrap_or_default();
    match <[Started; 1]>::try_from(clusters) {
        Ok([started]) => Ok(started),
        Err(none) if none.is_empty() => Err(Failure::NothingRuns(format!(
            "no node of a cluster runs on this machine (looked in {})",
            folder_path().display()
        ))),
        Err(several) => {
            let addresses: Vec<&str> = several.iter().map(|one| one.address.as_str()).collect();
            let addresses = addresses.join(", ");
            Err(Failure::Other(format!("say which cluster, with --address: {addresses}")))
        }
    }
}
