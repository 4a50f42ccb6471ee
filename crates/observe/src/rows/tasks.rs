//! Tasks. There may be a million: a row is made only of those that are shown.

use oxiray_events::{Attempt, State, Task, TaskKind};
use serde_json::Value;

use super::{Nodes, hex};
use crate::row::{Cell, Kind, row, words};

/// To the microsecond: more is noise, and makes rows long.
fn ms(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| (ns / 1000) as f64 / 1000.0)
}

words! {
    /// What a task is, by Ray's words.
    TaskType {
        /// A call of a remote function.
        Function = "NORMAL_TASK",
        /// An actor's constructor.
        Constructor = "ACTOR_CREATION_TASK",
        /// A call of an actor's method.
        Method = "ACTOR_TASK",
    }
}

impl From<TaskKind> for TaskType {
    fn from(kind: TaskKind) -> Self {
        match kind {
            TaskKind::Function => Self::Function,
            TaskKind::Method => Self::Method,
            TaskKind::Constructor => Self::Constructor,
        }
    }
}

impl Cell for State {
    const KIND: Kind = {
        const WORDS: [&str; State::ALL.len()] = {
            let (mut words, mut at) = ([""; State::ALL.len()], 0);
            while at < words.len() {
                words[at] = State::ALL[at].as_str();
                at += 1;
            }
            words
        };
        Kind::OneOf("TaskState", &WORDS)
    };
    fn json(&self) -> Value {
        self.as_str().into()
    }
}

row! {
    /// A task, as far as it is: its newest attempt.
    TaskRow of task: &Task<'_>, nodes: &Nodes;
    /// The task.
    task_id: String [Id, Searched, Table] = hex(&task.id().0);
    /// Which attempt this is.
    attempt_number: u16 = task.newest().number();
    /// What it is called.
    name: String [Searched, Table] = task.name().to_owned();
    /// How far it is.
    state: State [Table, State] = task.newest().state();
    /// The program that it is of.
    job_id: String = hex(&task.id().actor().job().0);
    /// The actor that it is a call of.
    actor_id: Option<String> [Searched] = task.actor().map(|actor| hex(&actor.0));
    /// What it is.
    task_type as "type": TaskType [Table] = task.kind().into();
    /// The function that it calls, with its class.
    func_or_class_name: String = task.function().to_owned();
    /// The task that submitted it.
    parent_task_id: Option<String> = task.parent().map(|parent| hex(&parent.0));
    /// Where it runs, or ran.
    node_id: Option<String> = task.newest().worker().and_then(|worker| nodes.id(worker.node));
    /// The worker that it was sent to.
    worker_id: Option<String> =
        task.newest().worker().and_then(|worker| nodes.worker_id(worker.id));
    /// The process that it runs in, or ran in.
    worker_pid: Option<u32> [Table] = pid(&task.newest());
    /// Ray's word for why it failed.
    error_type: Option<&'static str> [Searched, Table] =
        failed(&task.newest()).map(|failure| failure.error_type());
    /// When it was submitted.
    creation_time_ms: Option<f64> = ms(task.submitted_ns());
    /// When it began.
    start_time_ms: Option<f64> [Table] = ms(task.newest().start_ns());
    /// When it ended.
    end_time_ms: Option<f64> = ms(task.newest().end_ns());
    /// How long it took.
    duration_ms: Option<f64> [Table] = {
        let newest = task.newest();
        let ends = newest.start_ns().zip(newest.end_ns());
        ms(ends.map(|(start, end)| end.saturating_sub(start)))
    };
}

row! {
    /// What else is known of a task.
    TaskDetail of task: &Task<'_>;
    /// The traceback, or why it failed in words: read by who asks.
    error_message: Option<String> = None;
    /// How long it took to have its arguments,
    fetch_ms: Option<f64> = part(task, 0);
    /// to run,
    execute_ms: Option<f64> = part(task, 1);
    /// and to store what it returned.
    store_ms: Option<f64> = part(task, 2);
    /// Tasks whose results it needs.
    needs: Vec<String> = ids(task.needs());
    /// Tasks that need its results.
    feeds: Vec<String> = ids(task.feeds());
    /// When it came into which state.
    events: Vec<TaskEvent> = events(task);
    /// All attempts, in the order of their numbers.
    attempts: Vec<AttemptRow> = attempts(task).iter().map(AttemptRow::of).collect();
    /// Where its worker prints to; its own lines of that are found by `Session::task_output`.
    task_log_info: Option<LogFiles> = pid(&task.newest()).map(LogFiles::of);
    /// Why it is not done: found out by who asks.
    why: Option<String> = None;
}

row! {
    /// One try of a task.
    AttemptRow of attempt: &Attempt<'_>;
    /// Which it is, from 0.
    attempt_number: u16 = attempt.number();
    /// How far it came.
    state: State = attempt.state();
    /// The process that it ran in.
    worker_pid: Option<u32> = pid(attempt);
    /// When it began.
    start_time_ms: Option<f64> = ms(attempt.start_ns());
    /// When it ended.
    end_time_ms: Option<f64> = ms(attempt.end_ns());
    /// Ray's word for why it failed.
    error_type: Option<&'static str> = failed(attempt).map(|failure| failure.error_type());
    /// The traceback, or why it failed in words: read by who asks.
    error_message: Option<String> = None;
}

row! {
    /// A moment in a task's life.
    TaskEvent of state: State, time_ns: u64;
    /// Into which state it came.
    state: State = state;
    /// When.
    created_ms: Option<f64> = ms(Some(time_ns));
}

row! {
    /// The files that a worker prints to.
    LogFiles of pid: u32;
    /// Its standard output.
    stdout_file: String = format!("worker-{pid}.out");
    /// Its standard error.
    stderr_file: String = format!("worker-{pid}.err");
}

fn part(task: &Task<'_>, at: usize) -> Option<f64> {
    ms(task.newest().parts_ns().map(|parts| parts[at]))
}

/// The process that an attempt runs in, or ran in; until it begins, that is not known.
fn pid(attempt: &Attempt<'_>) -> Option<u32> {
    attempt.worker().map(|worker| worker.pid).filter(|pid| *pid != 0)
}

/// Why an attempt failed: one that is tried again has not.
pub(crate) fn failed<'a>(attempt: &Attempt<'a>) -> Option<oxiray_events::Failure<'a>> {
    attempt.failure().filter(|_| attempt.state().has_failed())
}

fn ids(tasks: Vec<oxiray_ids::TaskId>) -> Vec<String> {
    tasks.into_iter().map(|task| hex(&task.0)).collect()
}

fn events(task: &Task<'_>) -> Vec<TaskEvent> {
    let attempt = task.newest();
    // When one that is tried again began to wait for its arguments is not known.
    let submitted = task.submitted_ns().filter(|_| attempt.number() == 0);
    let times = [
        (State::PendingArguments, submitted),
        (State::PendingNode, attempt.ready_ns()),
        (State::Submitted, attempt.sent_ns()),
        (State::Running, attempt.start_ns()),
        (attempt.state(), attempt.end_ns().filter(|_| attempt.state().is_end())),
    ];
    times.into_iter().filter_map(|(state, time)| Some(TaskEvent::of(state, time?))).collect()
}

/// All attempts, in the order of their numbers.
pub(crate) fn attempts<'a>(task: &Task<'a>) -> Vec<Attempt<'a>> {
    let mut attempts: Vec<_> = task.attempts().collect();
    attempts.reverse();
    attempts
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
        let nodes = Nodes::new(Vec::new());
        let (row, detail) = (TaskRow::of(&task, &nodes), TaskDetail::of(&task));
        assert_eq!((row.state, row.worker_pid), (State::Submitted, None));
        assert_eq!((detail.attempts[0].worker_pid, &detail.task_log_info), (None, &None));
        // A column alone is what it is in the row.
        let whole = row.json();
        for column in TaskRow::COLUMNS {
            assert_eq!(TaskRow::cell(&task, &nodes, column.name), whole[column.name]);
        }
        assert_eq!(whole["type"], "NORMAL_TASK");
    }
}
