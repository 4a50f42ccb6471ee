//! `oxiray timeline`: what ran when, as a file for Perfetto or chrome://tracing.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use oxiray_events::{History, LocalFiles, texts, trace};

use crate::commands::exit_code;
use crate::observer::{NOTHING_RUNS, Observer, base, sessions};

/// Of which session, and where to.
#[derive(Args, Debug)]
pub struct Options {
    /// The file to write; by default oxiray-timeline-SESSION.json in this directory.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Directory of a session; by default the one that was started last.
    #[arg(long)]
    session: Option<PathBuf>,
}

/// Writes the timeline of one session.
pub fn run(options: &Options) -> ExitCode {
    let Some(session) = options.session.clone().or_else(newest) else {
        eprintln!("oxiray: nothing runs on this machine");
        return ExitCode::from(NOTHING_RUNS);
    };
    exit_code(write(&session, options.output.as_deref()))
}

fn newest() -> Option<PathBuf> {
    let runs = |session: &PathBuf| Observer::connect(&session.join("node.sock")).is_ok();
    // Their names begin with when they were started.
    sessions(&base()).into_iter().rev().find(runs)
}

fn write(session: &Path, output: Option<&Path>) -> io::Result<ExitCode> {
    if !session.is_dir() {
        let text = format!("there is no session directory {}", session.display());
        return Err(io::Error::other(text));
    }
    let mut files = LocalFiles::of_session(session);
    let mut history = History::new();
    history.update(0, &mut files)?;
    let name = session.file_name().unwrap_or_default().to_string_lossy();
    let usual = PathBuf::from(format!("oxiray-timeline-{name}.json"));
    let output = output.unwrap_or(&usual);
    let about = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", output.display()))
    };
    let file = File::create(output).map_err(about)?;
    let text = |place| texts::read(&mut files, place).ok().flatten();
    trace::write(&history, text, file).map_err(about)?;
    println!(
        "{} tasks of {name} written to {}; open it in https://ui.perfetto.dev or chrome://tracing",
        history.len(),
        output.display()
    );
    if history.lost() > 0 {
        println!("{} records are missing: the disk was full", history.lost());
    }
    Ok(ExitCode::SUCCESS)
}
