//! Tasks. There may be a million: a row is made only of those that are shown.

use oxiray_events::{Attempt, State, Task, TaskKind};
use serde_json::{Map, Value, json};

use super::{Nodes, hex};
use crate::resource::Resource;

fn ms(ns: Option<u64>) -> Value {
    // To the microsecond: more is noise, and makes rows long.
    ns.map_or(Value::Null, |ns| ((ns / 1000) as f64 / 1000.0).into())
}

/// Ray's word for what a task is.
pub(crate) fn kind(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Function => "NORMAL_TASK",
        TaskKind::Method => "ACTOR_TASK",
        TaskKind::Constructor => "ACTOR_CREATION_TASK",
    }
}

/// What is in a column.
pub(crate) fn value(task: &Task<'_>, column: &str, nodes: &Nodes) -> Value {
    let newest = task.newest();
    let worker = newest.worker();
    match column {
        "task_id" => hex(&task.id().0).into(),
        "attempt_number" => newest.number().into(),
        "name" => task.name().into(),
        "func_or_class_name" => task.function().into(),
        "state" => newest.state().as_str().into(),
        "job_id" => hex(&task.id().actor().job().0).into(),
        "actor_id" => task.actor().map_or(Value::Null, |actor| hex(&actor.0).into()),
        "type" => kind(task.kind()).into(),
        "parent_task_id" => task.parent().map_or(Value::Null, |parent| hex(&parent.0).into()),
        "node_id" => worker.map_or(Value::Null, |worker| nodes.id(worker.node)),
        "worker_id" => worker.map_or(Value::Null, |worker| nodes.worker_id(worker.id)),
        "worker_pid" => pid(&newest).into(),
        "error_type" => failed(&newest).map(|failure| failure.error_type()).into(),
        "creation_time_ms" => ms(task.submitted_ns()),
        "start_time_ms" => ms(newest.start_ns()),
        "end_time_ms" => ms(newest.end_ns()),
        "duration_ms" => {
            let ends = newest.start_ns().zip(newest.end_ns());
            ms(ends.map(|(start, end)| end.saturating_sub(start)))
        }
        _ => Value::Null,
    }
}

/// The process that an attempt runs in, or ran in; until it begins, that is not known.
fn pid(attempt: &Attempt<'_>) -> Option<u32> {
    attempt.worker().map(|worker| worker.pid).filter(|pid| *pid != 0)
}

/// Why an attempt failed: one that is tried again has not.
pub(crate) fn failed<'a>(attempt: &Attempt<'a>) -> Option<oxiray_events::Failure<'a>> {
    attempt.failure().filter(|_| attempt.state() == State::Failed)
}

/// The columns that every row has.
pub(crate) fn row(task: &Task<'_>, nodes: &Nodes) -> Value {
    let columns = Resource::Tasks.columns().all.iter();
    let fields = columns.map(|column| ((*column).to_owned(), value(task, column, nodes)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Adds what is known of a task beyond that, but for its error's words and why it waits.
pub(crate) fn add_detail(row: &mut Value, task: &Task<'_>) {
    let newest = task.newest();
    let parts = newest.parts_ns();
    let part = |at: usize| ms(parts.map(|parts| parts[at]));
    row["fetch_ms"] = part(0);
    row["execute_ms"] = part(1);
    row["store_ms"] = part(2);
    row["needs"] = ids(task.needs());
    row["feeds"] = ids(task.feeds());
    row["events"] = events(task, &newest);
    row["attempts"] = attempts(task).iter().map(tried).collect();
    // Its own lines of them are found by `Session::task_output`.
    row["task_log_info"] = pid(&newest).map_or(Value::Null, |pid| {
        json!({ "stdout_file": format!("worker-{pid}.out"), "stderr_file": format!("worker-{pid}.err") })
    });
    row["error_message"] = Value::Null;
    row["why"] = Value::Null;
}

fn ids(tasks: Vec<oxiray_ids::TaskId>) -> Value {
    tasks.into_iter().map(|task| hex(&task.0)).collect()
}

fn events(task: &Task<'_>, attempt: &Attempt<'_>) -> Value {
    // When one that is tried again began to wait for its arguments is not known.
    let submitted = task.submitted_ns().filter(|_| attempt.number() == 0);
    let times = [
        (State::PendingArguments, submitted),
        (State::PendingNode, attempt.ready_ns()),
        (State::Submitted, attempt.sent_ns()),
        (State::Running, attempt.start_ns()),
        (attempt.state(), attempt.end_ns().filter(|_| attempt.state().is_end())),
    ];
    let known = times.into_iter().filter(|(_, time)| time.is_some());
    known.map(|(state, time)| json!({ "state": state.as_str(), "created_ms": ms(time) })).collect()
}

/// All attempts, in the order of their numbers.
pub(crate) fn attempts<'a>(task: &Task<'a>) -> Vec<Attempt<'a>> {
    let mut attempts: Vec<_> = task.attempts().collect();
    attempts.reverse();
    attempts
}

fn tried(attempt: &Attempt<'_>) -> Value {
    json!({
        "attempt_number": attempt.number(),
        "state": attempt.state().as_str(),
        "worker_pid": pid(attempt),
        "start_time_ms": ms(attempt.start_ns()),
        "end_time_ms": ms(attempt.end_ns()),
        "error_type": failed(attempt).map(|failure| failure.error_type()),
        "error_message": null,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use oxiray_events::{EventLog, History, LocalFiles, Role};
    use oxiray_ids::{ActorId, JobId, ProcessId, TaskId};

    use super::*;

    #[test]
    fn an_attempt_that_has_not_begun_is_of_no_process() {
        let dir = std::env::temp_dir().join(format!("oxiray-rows-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let driver = ProcessId::new(0, 1);
        let id = TaskId::new(ActorId::home(JobId([1, 0, 0, 0]), driver), driver, 1);
        let mut log = EventLog::new(&dir, driver, Role::Driver);
        log.submitted(id, TaskKind::Function, &Arc::from("work"), false, std::iter::empty());
        log.sent(id, 0, ProcessId::new(0, 2));
        let mut history = History::new();
        let read = history.update(0, &mut LocalFiles::of_session(&dir));
        std::fs::remove_dir_all(&dir).expect("it is ours");
        read.expect("it can be read");
        let task = history.get(id).expect("it is known");
        let mut row = row(&task, &Nodes::new(Vec::new()));
        add_detail(&mut row, &task);
        assert_eq!(row["state"], "SUBMITTED_TO_WORKER");
        assert_eq!(row["worker_pid"], Value::Null);
        assert_eq!(row["attempts"][0]["worker_pid"], Value::Null);
        assert_eq!(row["task_log_info"], Value::Null);
    }
}
