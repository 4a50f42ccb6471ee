//! `oxiray stack`: what the workers of this machine do right now.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Activity, Error, Filter, ProcessType, Query, Resource, WorkerRow, py_spy};
use serde_json::Value;

use super::{Which, tell};
use crate::exit::{Failure, Result, end};
use crate::print::print;

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
    end(stacks(options))
}

fn stacks(options: &Options) -> Result<()> {
    let mut session = options.which.open()?;
    if session.has_ended() {
        // Its processes' numbers may be those of others by now.
        return Err(Failure::NothingRuns("none of its processes is there any more".into()));
    }
    let (workers, _) = session.workers()?;
    let alive = workers.into_iter().filter(|worker| worker.is_alive);
    let here = Some(session.node_id());
    let (mut workers, elsewhere): (Vec<WorkerRow>, Vec<WorkerRow>) =
        alive.partition(|worker| worker.node_id == here);
    if let Some(wanted) = options.pid {
        workers.retain(|worker| worker.pid == wanted);
        if workers.is_empty() {
            return Err(Failure::Other(format!(
                "process {wanted} is none of the session's on this machine; `oxiray list workers` \
                 shows all"
            )));
        }
    }
    let running = Filter::new("state", "=", "RUNNING")?;
    let query = Query { filters: vec![running], ..Query::default() };
    let tasks = session.list(Resource::Tasks, &query)?.rows;
    let actors = session.list(Resource::Actors, &Query::default())?.rows;
    let mut failure = None;
    for worker in &workers {
        match py_spy::stack(worker.pid) {
            Ok(text) => {
                let what = what_it_is(worker, &tasks, &actors);
                print(&format!("{what}\n{}\n\n", text.trim_end()))?;
            }
            // One that ended meanwhile has none, unless it is the one that was asked for.
            Err(_) if options.pid.is_none() && !is_there(worker.pid) => {}
            // What is wrong with one is not the others' fault.
            Err(error) => failure = Some(error),
        }
        if matches!(&failure, Some(Error::NotInstalled(_))) {
            break;
        }
    }
    if options.pid.is_none() && !elsewhere.is_empty() {
        tell(&[format!("{} more run on other machines: ask there", elsewhere.len())]);
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

fn is_there(pid: u32) -> bool {
    // That of a process that has ended and was not yet buried cannot be read.
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

/// Which actor a worker is, and which tasks it runs: by its command all are the same.
fn what_it_is(worker: &WorkerRow, tasks: &[Value], actors: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut said = match (worker.worker_type, &worker.actor_id) {
        (ProcessType::Driver, _) => format!("Driver {}", worker.pid),
        (_, None) => format!("Worker {}", worker.pid),
        (_, Some(id)) => {
            let actor = actors.iter().find(|actor| actor["actor_id"] == *id);
            let class = actor.map_or("?".into(), |actor| text(&actor["class_name"]));
            format!("Worker {}, actor {class} ({id})", worker.pid)
        }
    };
    let own = tasks.iter().filter(|task| task["worker_id"].as_str() == worker.worker_id.as_deref());
    let own = own.map(|task| format!("{} ({})", text(&task["name"]), text(&task["task_id"])));
    let own: Vec<String> = own.collect();
    if !own.is_empty() {
        said.push_str(&format!(" runs {}", own.join(", ")));
    } else if worker.activity == Activity::Idle {
        said.push_str(" is idle");
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_worker_is_called_by_what_it_is_and_does() {
        let process = |worker_type, pid: u32, actor: Option<&str>, activity| WorkerRow {
            worker_id: Some(format!("w{pid}")),
            pid,
            ip: None,
            node_id: None,
            worker_type,
            is_alive: true,
            activity,
            job_id: None,
            actor_id: actor.map(str::to_owned),
            start_time_ms: None,
            end_time_ms: None,
            rss: None,
            cpu_ms: None,
            exit_detail: None,
        };
        let worker = |pid, actor, activity| process(ProcessType::Worker, pid, actor, activity);
        let task = |name: &str, id: &str, worker: &str| json!({ "name": name, "task_id": id, "worker_id": worker });
        let tasks = [task("f", "01", "w1"), task("A.m", "02", "w2"), task("A.n", "03", "w2")];
        let actors = [json!({ "actor_id": "aa", "class_name": "A" })];
        let said = |worker: WorkerRow| what_it_is(&worker, &tasks, &actors);
        assert_eq!(said(worker(1, None, Activity::Task)), "Worker 1 runs f (01)");
        let actor = worker(2, Some("aa"), Activity::Actor);
        assert_eq!(said(actor), "Worker 2, actor A (aa) runs A.m (02), A.n (03)");
        assert_eq!(said(worker(3, Some("aa"), Activity::Actor)), "Worker 3, actor A (aa)");
        assert_eq!(said(worker(4, None, Activity::Idle)), "Worker 4 is idle");
        let driver = process(ProcessType::Driver, 5, None, Activity::Driver);
        assert_eq!(said(driver), "Driver 5");
    }
}
