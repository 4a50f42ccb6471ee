//! `oxiray why`: why a task is not done, or how it ended, in a sentence.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Error;
use oxiray_observe::find::{base, running};

use crate::exit::{NOTHING_RUNS, fail};
use crate::state::tell;

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// A task: its name, its id or the beginning of it, or the id of an ObjectRef that it returns.
    task: String,
}

/// Explains, for every session of this user that has to do with this machine.
pub fn run(options: &Options) -> ExitCode {
    let mut sessions = running(&base());
    if sessions.is_empty() {
        eprintln!("oxiray: nothing runs on this machine");
        return ExitCode::from(NOTHING_RUNS);
    }
    let mut found = 0;
    for session in &mut sessions {
        match session.why(&options.task) {
            Ok(sentences) => {
                found += sentences.len();
                tell(session.missing());
                sentences.iter().for_each(|sentence| println!("{sentence}"));
            }
            // It ended meanwhile.
            Err(Error::Connection { .. }) => {}
            Err(error) => return fail(&error),
        }
    }
    if found == 0 {
        eprintln!("oxiray: there is no task {}; `oxiray list tasks` shows all", options.task);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
