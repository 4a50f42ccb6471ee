//! `oxiray timeline`: what ran when, as a file for Perfetto or chrome://tracing.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Error, Result};

use super::{Which, tell};
use crate::exit::fail;

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
    match write(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn write(options: &Options) -> Result<()> {
    let mut session = options.which.open()?;
    let name = session.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let usual = PathBuf::from(format!("oxiray-timeline-{name}.json"));
    let output = options.output.clone().unwrap_or(usual);
    if output.as_os_str() == "-" {
        return session.write_trace(std::io::stdout().lock()).map(|notes| tell(&notes));
    }
    let shown = output.display();
    let file = File::create(&output)
        .map_err(|error| Error::File(format!("{shown} cannot be written: {error}")))?;
    tell(&session.write_trace(file)?);
    let history = session.known_history();
    println!(
        "{} tasks of {name} written to {shown}; open it in https://ui.perfetto.dev or \
         chrome://tracing",
        history.len(),
    );
    Ok(())
}
