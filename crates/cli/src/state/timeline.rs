//! `oxiray timeline`: what ran when, as a file for Perfetto or chrome://tracing.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Error;

use super::{Which, tell};
use crate::exit::{Failure, Result, end};
use crate::print::print;

/// Of which session, and where to.
#[derive(Args, Debug)]
pub struct Options {
    /// The file to write, `-` for standard output; by default oxiray-timeline-SESSION.json in this
    /// directory.
    #[arg(short, long)]
    output: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

/// Writes the timeline of one session.
pub fn run(options: &Options) -> ExitCode {
    end(write(options))
}

fn write(options: &Options) -> Result<()> {
    let mut session = options.which.open()?;
    let name = session.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let usual = PathBuf::from(format!("oxiray-timeline-{name}.json"));
    let output = options.output.clone().unwrap_or(usual);
    if output.as_os_str() == "-" {
        let notes = session.write_trace(std::io::stdout().lock()).map_err(|error| match error {
            Error::Unwritten { error, .. } => Failure::Unprinted(error),
            error => error.into(),
        })?;
        tell(&notes);
        return Ok(());
    }
    tell(&session.write_trace_file(&output)?);
    let history = session.known_history();
    let text = format!(
        "{} tasks of {name} written to {}; open it in https://ui.perfetto.dev or \
         chrome://tracing\n",
        history.len(),
        output.display()
    );
    print(&text)
}
