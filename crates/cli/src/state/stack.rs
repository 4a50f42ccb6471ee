//! `oxiray stack`: what the workers of this machine do right now.

use std::process::ExitCode;

use clap::Args;
use oxiray_observe::{Error, Filter, Query, Resource, py_spy};
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
    let alive = Filter::new("is_alive", "=", "true")?;
    let query = Query { filters: vec![alive], ..Query::default() };
    let workers = session.list(Resource::Workers, &query)?.rows;
    let here = session.node_id();
    let (here, elsewhere): (Vec<&Value>, Vec<&Value>) =
        workers.iter().partition(|worker| worker["node_id"] == *here);
    let mut workers = here;
    if let Some(wanted) = options.pid {
        workers.retain(|worker| worker["pid"] == wanted);
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
    for worker in workers {
        let Some(pid) = worker["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()) else {
            continue;
        };
        match py_spy::stack(pid) {
            Ok(text) => {
                let what = what_it_is(worker, &tasks, &actors);
                print(&format!("{what}\n{}\n\n", text.trim_end()))?;
            }
            // One that ended meanwhile is not the others' fault.
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

/// Which actor a worker is, and which tasks it runs: by its command all are the same.
fn what_it_is(worker: &Value, tasks: &[Value], actors: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut said = match (worker["worker_type"].as_str(), worker["actor_id"].as_str()) {
        (Some("DRIVER"), _) => format!("Driver {}", worker["pid"]),
        (_, None) => format!("Worker {}", worker["pid"]),
        (_, Some(id)) => {
            let actor = actors.iter().find(|actor| actor["actor_id"] == *id);
            let class = actor.map_or("?".into(), |actor| text(&actor["class_name"]));
            format!("Worker {}, actor {class} ({id})", worker["pid"])
        }
    };
    let own = tasks.iter().filter(|task| task["worker_id"] == worker["worker_id"]);
    let own = own.map(|task| format!("{} ({})", text(&task["name"]), text(&task["task_id"])));
    let own: Vec<String> = own.collect();
    if !own.is_empty() {
        said.push_str(&format!(" runs {}", own.join(", ")));
    } else if worker["activity"] == "idle" {
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
        let worker = |pid: u32, actor: Value, activity: &str| {
            let id = format!("w{pid}");
            json!({ "pid": pid, "worker_id": id, "actor_id": actor, "worker_type": "WORKER",
                    "activity": activity })
        };
        let task = |name: &str, id: &str, worker: &str| json!({ "name": name, "task_id": id, "worker_id": worker });
        let tasks = [task("f", "01", "w1"), task("A.m", "02", "w2"), task("A.n", "03", "w2")];
        let actors = [json!({ "actor_id": "aa", "class_name": "A" })];
        let said = |worker: Value| what_it_is(&worker, &tasks, &actors);
        assert_eq!(said(worker(1, Value::Null, "task")), "Worker 1 runs f (01)");
        let actor = worker(2, "aa".into(), "actor");
        assert_eq!(said(actor), "Worker 2, actor A (aa) runs A.m (02), A.n (03)");
        assert_eq!(said(worker(3, "aa".into(), "actor")), "Worker 3, actor A (aa)");
        assert_eq!(said(worker(4, Value::Null, "idle")), "Worker 4 is idle");
        let driver = json!({ "pid": 5, "worker_type": "DRIVER", "actor_id": null });
        assert_eq!(said(driver), "Driver 5");
    }
}
