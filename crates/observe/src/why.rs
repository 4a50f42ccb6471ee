//! Why a task is not done; of one that is, how it ended.
//!
//! What happened to a task is in the history, and by what names it goes. What it waits for only
//! its owner knows, which is asked.

use std::collections::HashMap;

use oxiray_events::{Attempt, State, Task};
use oxiray_ids::{ObjectId, ProcessId, TaskId};
use oxiray_wire::control::{Query, TaskReason, Topic, from_node::Body};

use crate::error::{Error, Result};
use crate::rows::Nodes;
use crate::session::{Session, topic};

/// Of so many tasks that are not done something is said.
const MOST: usize = 20;

impl Session {
    /// Why tasks are not done, a sentence each: by id, the beginning of one, the id of what they
    /// return, or by any of their names. If all are done, how the newest ended. Nothing, if there
    /// is none.
    pub fn why(&mut self, about: &str) -> Result<Vec<String>> {
        let nodes = self.members()?;
        let mut missing = self.update_history()?;
        let meant = self.meant(about)?;
        let mut waiting: Vec<TaskId> = self.of(&meant, |task| !task.state().is_end());
        waiting.truncate(MOST);
        let mut sentences = Vec::new();
        if !waiting.is_empty() || meant.is_empty() {
            // What is not recorded, its owner may know by its name.
            let ids: Vec<String> = waiting.iter().map(TaskId::to_string).collect();
            let question = if ids.is_empty() { about.to_owned() } else { ids.join(" ") };
            let mut reasons = self.reasons(question, &nodes, &mut missing)?;
            for id in &waiting {
                sentences.extend(self.waits(*id, reasons.remove(id), &nodes));
            }
            sentences.extend(reasons.values().map(|reason| self.reason(reason, &nodes)));
        }
        self.missing = missing;
        if sentences.is_empty() && !meant.is_empty() {
            sentences = self.ends(about, &meant, &nodes);
        }
        Ok(sentences)
    }

    /// The tasks that are meant, the newest first.
    fn meant(&self, about: &str) -> Result<Vec<TaskId>> {
        let object = ObjectId::from_hex(about).map(|object| object.task());
        if let Some(id) = TaskId::from_hex(about).or(object) {
            return Ok(self.history.get(id).map(|task| task.id()).into_iter().collect());
        }
        let is_called = |task: &Task<'_>| {
            let method = task.function().rsplit('.').next();
            task.name() == about || task.function() == about || method == Some(about)
        };
        let mut found: Vec<Task<'_>> = self.history.tasks().filter(is_called).collect();
        if found.is_empty() {
            found.extend(self.task_beginning(about)?);
        }
        found.sort_by_cached_key(|task| std::cmp::Reverse(task.submitted_ns()));
        Ok(found.iter().map(Task::id).collect())
    }

    /// The one task whose id begins with `id`.
    pub(crate) fn task_beginning(&self, id: &str) -> Result<Option<Task<'_>>> {
        let id = id.to_ascii_lowercase();
        if id.is_empty() {
            return Ok(None);
        }
        let mut like = self.history.tasks().filter(|task| task.id().to_string().starts_with(&id));
        let first = like.next();
        if like.next().is_some() {
            return Err(Error::BadQuery(format!(
                "the ids of several tasks begin with {id}: give more of it"
            )));
        }
        Ok(first)
    }

    fn of(&self, ids: &[TaskId], wanted: impl Fn(&Task<'_>) -> bool) -> Vec<TaskId> {
        let tasks = ids.iter().filter_map(|id| self.history.get(*id));
        tasks.filter(wanted).map(|task| task.id()).collect()
    }

    /// What the owners of tasks say of them: ids, or one name.
    fn reasons(
        &mut self,
        about: String,
        nodes: &Nodes,
        missing: &mut Vec<String>,
    ) -> Result<HashMap<TaskId, TaskReason>> {
        let mut reasons = HashMap::new();
        let question = Query { about, ..topic(Topic::Tasks) };
        let numbers: Vec<u32> = nodes.alive().map(|node| node.number).collect();
        self.ask_nodes(&numbers, &question, missing, |_, body| match body {
            Body::TaskReport(report) => {
                let done = report.process == 0;
                for reason in report.tasks {
                    reasons.extend(TaskId::from_slice(&reason.id).map(|id| (id, reason)));
                }
                done
            }
            _ => false,
        })?;
        Ok(reasons)
    }

    /// A task that is not done, as far as is recorded.
    fn waits(&self, id: TaskId, reason: Option<TaskReason>, nodes: &Nodes) -> Option<String> {
        let task = self.history.get(id)?;
        let called = format!("{} ({id})", task.name());
        if task.state() == State::Running {
            return Some(format!("{called} runs in {}.", place(&task.newest(), nodes)));
        }
        Some(match reason {
            // It ran, or ended, between the two looks.
            None => format!("{called} is {}.", task.state().as_str()),
            Some(reason) => format!("{called} {}.", self.words(&reason, nodes)),
        })
    }

    /// A task that its owner knows and that is not recorded.
    fn reason(&self, reason: &TaskReason, nodes: &Nodes) -> String {
        let id = TaskId::from_slice(&reason.id).map(|id| id.to_string()).unwrap_or_default();
        format!("{} ({id}) {}.", reason.name, self.words(reason, nodes))
    }

    /// What an owner says, with the process that it ends with as people know it.
    fn words(&self, reason: &TaskReason, nodes: &Nodes) -> String {
        let Some(process) = reason.process.map(ProcessId) else {
            return reason.text.clone();
        };
        let known = self.history.processes().iter().find(|known| known.id == process);
        let pid = known.map_or(0, |known| known.pid);
        format!("{} {}", reason.text, process_called(process, pid, nodes))
    }

    /// How tasks ended that are all done.
    fn ends(&mut self, about: &str, ids: &[TaskId], nodes: &Nodes) -> Vec<String> {
        let failed = self.of(ids, |task| task.state() == State::Failed).len();
        let mut sentences = Vec::new();
        if ids.len() > 1 {
            let unknown = self.of(ids, |task| task.state() == State::Unknown).len();
            let finished = ids.len() - failed - unknown;
            let unknown = if unknown > 0 { format!(", {unknown} UNKNOWN") } else { String::new() };
            sentences.push(format!(
                "All {} tasks called {about} are done: {finished} FINISHED, {failed} FAILED{unknown}. \
                 Of the newest:",
                ids.len()
            ));
        }
        let Some(task) = ids.first().and_then(|id| self.history.get(*id)) else {
            return sentences;
        };
        let (called, newest) = (format!("{} ({})", task.name(), task.id()), task.newest());
        let place = place(&newest, nodes);
        if newest.state() == State::Unknown {
            sentences.push(format!(
                "How {called} ended is UNKNOWN: whoever knew it is gone, and so is what they recorded."
            ));
            return sentences;
        }
        let failure = newest.failure().filter(|_| newest.state() == State::Failed);
        let Some(failure) = failure else {
            sentences.push(format!("{called} has FINISHED: it ran in {place}."));
            return sentences;
        };
        let (kind, text) = (failure.error_type(), failure.text);
        let message = text.and_then(|text| self.text(text)).unwrap_or_default();
        // Tracebacks end with what went wrong.
        sentences.push(match message.trim_end().lines().next_back() {
            Some(last) => format!("{called} has FAILED with {kind}: {}", last.trim()),
            None => format!("{called} has FAILED with {kind}."),
        });
        sentences
    }
}

/// Where an attempt runs, or ran.
fn place(attempt: &Attempt<'_>, nodes: &Nodes) -> String {
    match attempt.worker() {
        Some(worker) => process_called(worker.id, worker.pid, nodes),
        None => "a process that is not known".to_owned(),
    }
}

/// A process as `oxiray list workers` has it.
fn process_called(process: ProcessId, pid: u32, nodes: &Nodes) -> String {
    let node = nodes.called(process.node());
    match (pid, nodes.worker_id(process).as_str()) {
        (0, Some(id)) => format!("worker {id} of {node}"),
        (0, None) => format!("a process of {node}"),
        (pid, _) => format!("process {pid} of {node}"),
    }
}
