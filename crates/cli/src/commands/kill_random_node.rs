//! `oxiray kill-random-node`: kills one of this machine's nodes, to see what a program makes of it.
//!
//! Never the head: without it there is no cluster.

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::commands::stop::stop;
use crate::exit::{Failure, Result, end};
use crate::print::print;
use oxiray_observe::find::folder;
use oxiray_session::Started;

/// What Ray's scripts say.
#[derive(Args, Debug)]
pub struct Options {
    /// Nobody is asked before a node is killed: taken for scripts that were written for Ray.
    #[arg(short, long)]
    yes: bool,
    /// Only a node that was started with `--address` this, or of a head at it.
    #[arg(long)]
    address: Option<String>,
}

/// Kills one at once, as if its machine had been switched off.
pub fn run(options: &Options) -> ExitCode {
    end(kill_one(options))
}

fn kill_one(options: &Options) -> Result<()> {
    let Some(folder) = folder()? else {
        return Err(none());
    };
    let nodes: Vec<Started> = folder.started();
    let is_meant = |node: &&Started| {
        !node.is_head && options.address.as_ref().is_none_or(|address| *address == node.address)
    };
    let nodes: Vec<&Started> = nodes.iter().filter(is_meant).collect();
    let chosen = RandomState::new().hash_one(0) as usize % nodes.len().max(1);
    let Some(node) = nodes.get(chosen) else {
        return Err(none());
    };
    stop(&folder, &[(*node).clone()], Duration::ZERO);
    print(&format!("Killed the node {} at {}.\n", node.node_id, node.node_address))
}

fn none() -> Failure {
    Failure::NothingRuns(
        "No node of this machine can be killed: there is none beside the head (oxiray start \
         --address=... makes this machine one)."
            .into(),
    )
}
