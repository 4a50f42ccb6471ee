//! `oxiray summary`: how many there are of each name, by state.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Resource, Result};

use super::show::{Format, groups};
use super::{Which, print, tell};
use crate::exit::fail;

/// What to count.
#[derive(Args, Debug)]
pub struct Options {
    /// tasks, actors, objects, nodes, workers or jobs.
    resource: String,
    /// How to show it.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    which: Which,
}

/// Counts.
pub fn run(options: &Options) -> ExitCode {
    let summary = || -> Result<String> {
        let resource: Resource = options.resource.parse()?;
        let mut session = options.which.open()?;
        let summary = session.summary(resource)?;
        tell(session.missing());
        Ok(groups(&summary, options.format))
    };
    match summary() {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}
