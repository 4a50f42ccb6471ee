//! `oxiray stop`: ends what `oxiray start` has started on this machine.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::commands::home::Home;
use crate::commands::process::{self, Process};
use crate::commands::started::{self, Started};
use crate::exit::end;
use crate::print::print;
use crate::words::plural;
use oxiray_observe::find::base;

/// How long a service may take to end before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// How to stop.
#[derive(Args, Debug)]
pub struct Options {
    /// Kill at once.
    #[arg(short, long)]
    force: bool,
    /// Seconds that services may take to end before they are killed.
    #[arg(short, long, default_value_t = 10.0, value_parser = seconds)]
    grace_period: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..1e6).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds".into()),
    }
}

/// Ends all nodes of this user on this machine.
pub fn run(options: &Options) -> ExitCode {
    let base = base();
    let running = started::all(&base);
    if running.is_empty() {
        return end(print("Nothing to stop.\n"));
    }
    let grace = if options.force { 0.0 } else { options.grace_period };
    let killed = stop(&base, &running, Duration::from_secs_f64(grace));
    let nodes = running.iter().filter(|started| started.node.is_some()).count() as u64;
    let controls = running.iter().filter(|started| started.control.is_some()).count() as u64;
    let mut text = format!("Stopped {}", plural(nodes, "node"));
    if controls > 0 {
        text.push_str(&format!(" and {}", plural(controls, "control service")));
    }
    if killed > 0 && !options.force {
        text.push_str(&format!("; {killed} did not end in time and had to be killed"));
    }
    end(print(&format!("{text}.\n")))
}

/// Ends nodes, then control services, so that these hear of it. How many were killed?
pub(super) fn stop(base: &Path, started: &[Started], grace: Duration) -> usize {
    let nodes: Vec<Process> = started.iter().filter_map(|started| started.node).collect();
    let controls: Vec<Process> = started.iter().filter_map(|started| started.control).collect();
    let killed = process::end(&nodes, grace) + process::end(&controls, grace);
    for started in started {
        started.forget(base);
        if started.control.is_some() && started.owns_store {
            Home::forget_state(&started.home);
        }
    }
    killed
}
