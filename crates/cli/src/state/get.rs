//! `oxiray get`: everything about one task, actor, object, node, worker or job.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Resource, Result};

use super::show::{Format, one, rows};
use super::{Which, print, tell};
use crate::exit::fail;

/// What to show.
#[derive(Args, Debug)]
pub struct Options {
    /// task, actor, object, node, worker or job.
    resource: String,
    /// Its id, or the beginning of it.
    id: String,
    /// How to show it.
    #[arg(long, value_enum, default_value = "yaml")]
    format: Format,
    #[command(flatten)]
    which: Which,
}

/// Shows one.
pub fn run(options: &Options) -> ExitCode {
    match get(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "oxiray: there is none with the id {} among the {}; `oxiray list {}` shows all",
                options.id, options.resource, options.resource
            );
            ExitCode::FAILURE
        }
        Err(error) => fail(&error),
    }
}

fn get(options: &Options) -> Result<bool> {
    let resource: Resource = options.resource.parse()?;
    let mut session = options.which.open()?;
    let found = session.get_all(resource, &options.id)?;
    tell(session.missing());
    match &found[..] {
        [] => {}
        // An object is held by any number of processes.
        all if resource == Resource::Objects => print(&rows(resource, all, options.format, true)),
        [row, ..] => print(&one(resource, row, options.format)),
    }
    Ok(!found.is_empty())
}
