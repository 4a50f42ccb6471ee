//! `oxiray dashboard`: where the dashboards of this user's sessions are, with their tokens.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::find::{base, sessions};

use crate::commands::started;
use crate::exit::NOTHING_RUNS;

/// Which to show.
#[derive(Args, Default, Debug)]
pub struct Options {
    /// Only that of the cluster whose head is there, this machine being the head.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

/// Prints an address for each session and cluster of this machine that has a dashboard.
pub fn run(options: &Options) -> ExitCode {
    let base = base();
    let found: Vec<String> = match &options.address {
        None => sessions(&base).iter().filter_map(|path| url(path)).collect(),
        Some(address) => {
            let here = started::all(&base);
            let theirs = here.iter().filter(|started| started.address == *address);
            theirs.filter_map(|started| url(&started.session_dir)).collect()
        }
    };
    if found.is_empty() {
        eprintln!(
            "No session of yours on this machine has a dashboard (looked in {}). It is served by \
             the program that called init(), or on the machine of `oxiray start --head`, unless \
             include_dashboard is false.",
            base.display()
        );
        return ExitCode::from(NOTHING_RUNS);
    }
    // Whoever reads may have enough before the end.
    let _ = io::stdout().write_all((found.join("\n") + "\n").as_bytes());
    ExitCode::SUCCESS
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
