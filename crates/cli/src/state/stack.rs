//! `oxiray stack`: what the workers of this machine do right now.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Error, Filter, Query, Resource, Result, py_spy};
use serde_json::Value;

use super::{Which, print};
use crate::exit::fail;

/// Whose stacks.
#[derive(Args, Debug)]
pub struct Options {
    /// Only of this process.
    #[arg(long)]
    pid: Option<u32>,
    #[command(flatten)]
    which: Which,
}

/// Prints the stacks of all threads of all workers, and of drivers.
pub fn run(options: &Options) -> ExitCode {
    match stacks(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn stacks(options: &Options) -> Result<()> {
    let mut session = options.which.open()?;
    let alive = Filter::new("is_alive", "=", "true")?;
    let query = Query { filters: vec![alive], ..Query::default() };
    let workers = session.list(Resource::Workers, &query)?.rows;
    let here = session.node_id();
    let (here, elsewhere): (Vec<&Value>, Vec<&Value>) =
        workers.iter().partition(|worker| worker["node_id"] == *here);
    let pid = |worker: &Value| worker["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let mut pids: Vec<u32> = here.iter().filter_map(|worker| pid(worker)).collect();
    if let Some(wanted) = options.pid {
        if !pids.contains(&wanted) {
            return Err(Error::BadQuery(format!(
                "process {wanted} is none of the session's on this machine; `oxiray list workers` \
                 shows all"
            )));
        }
        pids = vec![wanted];
    }
    let mut failure = None;
    for pid in pids {
        match py_spy::stack(pid) {
            Ok(text) => print(&format!("{}\n\n", text.trim_end())),
            // One that ended meanwhile is not the others' fault.
            Err(error) => failure = Some(error),
        }
        if matches!(&failure, Some(Error::NotInstalled(_))) {
            break;
        }
    }
    if options.pid.is_none() && !elsewhere.is_empty() {
        eprintln!("oxiray: {} more run on other machines: ask there", elsewhere.len());
    }
    failure.map_or(Ok(()), Err)
}
