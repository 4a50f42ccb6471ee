//! `oxiray stop`: ends what `oxiray start` has started on this machine.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::commands::{home, process};
use crate::exit::{Result, end};
use crate::print::print;
use oxiray_observe::find::folder;
use oxiray_session::{Folder, Service, Started};
use oxiray_words::plural;

/// How long a service may take to end before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(10);

const NOTHING: &str = "Nothing to stop.\n";

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

fn seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..1e6).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds".into()),
    }
}

/// Ends all nodes of this user on this machine.
pub fn run(options: &Options) -> ExitCode {
    end(stop_all(options))
}

fn stop_all(options: &Options) -> Result<()> {
    let Some(folder) = folder()? else {
        return print(NOTHING);
    };
    let running = folder.started();
    let grace = if options.force { 0.0 } else { options.grace_period };
    let stopped = stop(&folder, &running, Duration::from_secs_f64(grace));
    if running.is_empty() {
        return print(NOTHING);
    }
    let mut text = format!("Stopped {}", plural(stopped.nodes as u64, "node"));
    if stopped.controls > 0 {
        text.push_str(&format!(" and {}", plural(stopped.controls as u64, "control service")));
    }
    if stopped.killed > 0 && !options.force {
        text.push_str(&format!("; {} did not end in time and had to be killed", stopped.killed));
    }
    print(&format!("{text}.\n"))
}

/// What was stopped, and how much of it had to be killed.
pub(super) struct Stopped {
    nodes: usize,
    controls: usize,
    killed: usize,
}

/// Ends nodes, then control services, so that these hear of it; then nothing is left of them that
/// nobody wanted to be kept. Who is ended is who listens at their sockets.
pub(super) fn stop(folder: &Folder, started: &[Started], grace: Duration) -> Stopped {
    let nodes: Vec<Service> = started.iter().filter_map(Started::node).collect();
    let controls: Vec<Service> = started.iter().filter_map(|one| one.control(folder)).collect();
    let (nodes_ended, controls_ended) = (nodes.len(), controls.len());
    let killed = process::end(nodes, grace) + process::end(controls, grace);
    for started in started {
        folder.forget(&started.name());
    }
    home::forget_unused(folder);
    Stopped { nodes: nodes_ended, controls: controls_ended, killed }
}
