//! `oxiray summary`: how many there are of each name, by state.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Resource;

use super::show::{Format, groups};
use super::{Which, tell};
use crate::exit::{Result, end};
use crate::print::{print, terminal_width};

/// What to count.
#[derive(Args, Debug)]
pub struct Options {
    /// tasks, actors, objects, nodes, workers, jobs or placement-groups.
    resource: String,
    /// How to show it.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    which: Which,
}

/// Counts.
pub fn run(options: &Options) -> ExitCode {
    end(summarise(options))
}

fn summarise(options: &Options) -> Result<()> {
    let resource: Resource = options.resource.parse()?;
    let mut session = options.which.open()?;
    let summary = session.summary(resource)?;
    tell(session.missing());
    print(&groups(resource, &summary, options.format, terminal_width()))
}
