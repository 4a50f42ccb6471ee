//! `oxiray dashboard`: where the dashboards of this user's sessions are, with their tokens.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Session as Observed;
use oxiray_observe::find::folder;
use oxiray_session::{Folder, Session, folder_path};

use crate::exit::{Failure, Result, end};
use crate::print::print;

/// Which to show.
#[derive(Args, Default, Debug)]
pub struct Options {
    /// Only that of this session: where the head of its cluster is, this machine being the head,
    /// or its name, or its directory.
    #[arg(long, alias = "session", value_name = "ADDRESS")]
    address: Option<String>,
}

/// Prints an address for each session and cluster of this machine that has a dashboard.
pub fn run(options: &Options) -> ExitCode {
    end(show(options))
}

fn show(options: &Options) -> Result<()> {
    let folder = folder()?;
    let there: Vec<Session> = match (&options.address, &folder) {
        (None, Some(folder)) => folder.running(),
        (None, None) => Vec::new(),
        (Some(address), folder) => {
            let here = folder.as_ref().map(Folder::started).unwrap_or_default().into_iter();
            let theirs = here.filter(|started| started.address == *address);
            let mut paths: Vec<PathBuf> = theirs.map(|started| started.session_dir).collect();
            if paths.is_empty() {
                paths.push(Observed::find(Some(address))?.dir().to_owned());
            }
            paths.iter().filter_map(|path| Session::at(path).ok()).collect()
        }
    };
    let found: Vec<String> = there.iter().filter_map(Session::dashboard_url).collect();
    if let (true, Some(address)) = (found.is_empty(), &options.address) {
        return Err(Failure::NothingRuns(format!(
            "{address} has no dashboard on this machine: that of a cluster is on its head, unless \
             it was started with --include-dashboard=false"
        )));
    }
    if found.is_empty() {
        return Err(Failure::NothingRuns(format!(
            "no session of yours on this machine has a dashboard (looked in {}). It is served by \
             the program that called init(), or on the machine of `oxiray start --head`, unless \
             include_dashboard is false.",
            folder_path().display()
        )));
    }
    print(&(found.join("\n") + "\n"))
}
