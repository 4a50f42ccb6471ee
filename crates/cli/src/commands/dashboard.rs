//! `oxiray dashboard`: where the dashboards of this user's sessions are, with their tokens.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Session;
use oxiray_observe::find::{base, sessions};

use crate::commands::started;
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
    let base = base();
    let found: Vec<String> = match &options.address {
        None => sessions(&base).iter().filter_map(|path| url(path)).collect(),
        Some(address) => {
            let here = started::all(&base).into_iter();
            let theirs = here.filter(|started| started.address == *address);
            let mut folders: Vec<PathBuf> = theirs.map(|started| started.session_dir).collect();
            if folders.is_empty() {
                folders.push(Session::find(Some(address))?.dir().to_owned());
            }
            folders.iter().filter_map(|path| url(path)).collect()
        }
    };
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
            base.display()
        )));
    }
    print(&(found.join("\n") + "\n"))
}

/// The address, token included, of a session's dashboard. Only the session's user can know it.
pub(crate) fn url(session_dir: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(session_dir.join(name)).ok();
    let address = reachable(&read("dashboard.address")?);
    Some(format!("http://{address}/?token={}", read("dashboard.token")?))
}

/// What is bound at every address of the machine is reached at each; a browser needs one.
fn reachable(address: &str) -> String {
    match address.rsplit_once(':') {
        Some(("0.0.0.0", port)) => format!("127.0.0.1:{port}"),
        Some(("[::]", port)) => format!("[::1]:{port}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_one_that_a_browser_can_open() {
        assert_eq!(reachable("0.0.0.0:8265"), "127.0.0.1:8265");
        assert_eq!(reachable("[::]:8265"), "[::1]:8265");
        assert_eq!(reachable("10.0.0.1:8265"), "10.0.0.1:8265");
    }
}
