//! `oxiray token`: the secret by which machines join the cluster of this one.

use std::io;
use std::process::ExitCode;

use clap::Args;
use oxiray_net::{Keyring, Secret};

use crate::commands::tool::Tool;
use crate::commands::{home, refuse, start, which_cluster};
use crate::exit::{Result, end};
use crate::print::print;
use oxiray_observe::find::folder;
use oxiray_session::Started;

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
    tell(options, &which_cluster(folder.as_ref(), options.address.as_deref())?)
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
