//! `oxiray why`: why a task is not done, in a sentence.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::find::{base, running};
use oxiray_observe::{Error, Session};

use crate::exit::{NOTHING_RUNS, fail};
use crate::state::tell;

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// A task: its id, the id of an ObjectRef that it returns, or its name.
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
            Ok(reasons) => {
                found += reasons.len();
                tell(session.missing());
                reasons.iter().for_each(|reason| println!("{}", Session::reason_sentence(reason)));
            }
            // It ended meanwhile.
            Err(Error::Connection { .. }) => {}
            Err(error) => return fail(&error),
        }
    }
    if found == 0 {
        eprintln!(
            "oxiray: no process waits for a task {}: it is done, or there is none of that name",
            options.task
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
