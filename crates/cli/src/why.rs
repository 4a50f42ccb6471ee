//! `oxiray why`: why a task is not done, in a sentence.

use std::process::ExitCode;

use clap::Args;
use oxiray_ids::TaskId;
use oxiray_wire::control::{TaskReason, Topic, from_node::Body};

use crate::observer::{NOTHING_RUNS, Observer, base, sessions};

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// A task: its id, the id of an ObjectRef that it returns, or its name.
    task: String,
}

/// Explains, for every session and node of this user on this machine.
pub fn run(options: &Options) -> ExitCode {
    let mut asked = 0;
    let mut found = 0;
    for session in sessions(&base()) {
        let Ok(reasons) = ask(&session.join("node.sock"), &options.task) else {
            continue;
        };
        asked += 1;
        for reason in reasons {
            found += 1;
            println!("{}", sentence(&reason));
        }
    }
    match (asked, found) {
        (0, _) => {
            eprintln!("oxiray: nothing runs on this machine");
            ExitCode::from(NOTHING_RUNS)
        }
        (_, 0) => {
            eprintln!(
                "oxiray: no process on this machine waits for a task {}: it is done, or was \
                 submitted on another machine (ask there)",
                options.task
            );
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn sentence(reason: &TaskReason) -> String {
    let id = TaskId::from_slice(&reason.id).map(|id| id.to_string()).unwrap_or_default();
    format!("{} ({id}) {}.", reason.name, reason.text)
}

fn ask(socket: &std::path::Path, about: &str) -> std::io::Result<Vec<TaskReason>> {
    let observer = Observer::connect(socket)?;
    observer.ask_about(Topic::Tasks, about)?;
    let mut reasons = Vec::new();
    observer.receive(|body| match body {
        Body::TaskReport(report) if report.process == 0 => Some(()),
        Body::TaskReport(report) => {
            reasons.extend(report.tasks);
            None
        }
        _ => None,
    })?;
    Ok(reasons)
}
