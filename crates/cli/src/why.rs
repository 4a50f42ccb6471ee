//! `oxiray why`: why a task is not done or an actor not there, or how it ended, in a sentence.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Error;
use oxiray_observe::find::{nothing_runs, running};

use crate::exit::{Failure, Result, end};
use crate::print::print;
use crate::state::show::cell::plain;
use crate::state::{Only, tell};

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// A task: its name, its id or the beginning of it, or the id of an ObjectRef that it returns.
    /// Or an actor: its name, its id or the beginning of it, or its class.
    what: String,
    #[command(flatten)]
    only: Only,
}

/// Explains, for every session of this user that has to do with this machine.
pub fn run(options: &Options) -> ExitCode {
    end(explain(options))
}

fn explain(options: &Options) -> Result<()> {
    let mut sessions = match options.only.open()? {
        Some(session) => vec![session],
        None => running()?,
    };
    if sessions.is_empty() {
        return Err(nothing_runs().into());
    }
    let mut found = 0;
    for session in &mut sessions {
        match session.why(&options.what) {
            Ok(sentences) => {
                found += sentences.len();
                tell(session.missing());
                for sentence in &sentences {
                    print(&format!("{}\n", plain(sentence)))?;
                }
            }
            // It ended meanwhile.
            Err(Error::Connection { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if found == 0 {
        let text = format!(
            "there is no task or actor {}; `oxiray list tasks` and `oxiray list actors` show all",
            options.what
        );
        return Err(Failure::Other(text));
    }
    Ok(())
}
