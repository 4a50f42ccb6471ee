//! `oxiray token`: the secret by which machines join the cluster of this one.

use std::io;
use std::process::ExitCode;

use clap::Args;
use oxiray_net::{Keyring, Secret};

use crate::commands::tool::Tool;
use crate::commands::{home, refuse, start};
use crate::exit::{Failure, Result, end};
use crate::print::print;
use oxiray_observe::find::folder;
use oxiray_session::{Started, folder_path};

/// What to do with the token.
#[derive(Args, Debug)]
pub struct Options {
    /// Change it. Nodes that run learn the new one; the old one stays good for those that do not.
    #[arg(long)]
    rotate: bool,
    /// Print the command by which other machines join.
    #[arg(long)]
    show_command: bool,
    /// The cluster, if this machine has nodes of several.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

/// Prints the token.
pub fn run(options: &Options) -> ExitCode {
    end(choose(options))
}

fn choose(options: &Options) -> Result<()> {
    let folder = folder()?;
    let clusters = folder.map(|folder| folder.clusters(options.address.as_deref()));
    match &clusters.unwrap_or_default()[..] {
        [] => Err(Failure::NothingRuns(format!(
            "no node of a cluster runs on this machine (looked in {})",
            folder_path().display()
        ))),
        [started] => tell(options, started),
        several => {
            let addresses: Vec<&str> = several.iter().map(|one| one.address.as_str()).collect();
            let addresses = addresses.join(", ");
            Err(Failure::Other(format!("say which cluster, with --address: {addresses}")))
        }
    }
}

fn tell(options: &Options, started: &Started) -> Result<()> {
    if started.keyring.as_os_str().is_empty() {
        refuse(format!("the cluster at {} is --insecure: no token", started.address))?;
    }
    if options.rotate {
        let tokens = Tool::connect(started)?.rotate()?;
        let parsed = tokens.iter().map(|token| Secret::parse(token).map_err(io::Error::other));
        let mut secrets = parsed.collect::<io::Result<Vec<_>>>()?;
        if secrets.is_empty() {
            refuse("the control service named no token")?;
        }
        let keyring = Keyring { current: secrets.remove(0), previous: secrets };
        keyring.save(&started.keyring).map_err(io::Error::other)?;
    }
    let text = match options.show_command {
        true => start::join_command(started)?,
        false => home::load(&started.keyring)?.current.to_string(),
    };
    print(&format!("{text}\n"))
}
