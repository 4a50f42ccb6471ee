//! `oxiray get`: everything about one task, actor, object, node, worker or job.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Resource;

use super::show::{Format, one, several};
use super::{Which, tell};
use crate::exit::{Failure, Result, end};
use crate::print::print;

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
    end(get(options))
}

fn get(options: &Options) -> Result<()> {
    let resource: Resource = options.resource.parse()?;
    let mut session = options.which.open()?;
    let found = session.get_all(resource, &options.id)?;
    tell(session.missing());
    match &found[..] {
        [] => Err(Failure::Other(format!(
            "there is none with the id {} among the {resource}; `oxiray list {resource}` shows all",
            options.id
        ))),
        // An object is held by any number of processes.
        all if resource == Resource::Objects => print(&several(resource, all, options.format)),
        [row, ..] => print(&one(resource, row, options.format)),
    }
}
