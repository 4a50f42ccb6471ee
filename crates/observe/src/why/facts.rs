//! What processes say of tasks that are not done, of what runs in them, and of what they sleep for.
//!
//! One question goes to every process of every node. Its answers name other tasks, of which is
//! asked next, until nothing new is named.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ObjectId, ProcessId, TaskId};
use oxiray_wire::control::{Query, TaskReason, TaskReport, Topic, WaitKind, from_node::Body};

use crate::error::Result;
use crate::rows::Nodes;
use crate::session::{Session, topic};

/// Of so many tasks is asked at once.
const MOST_AT_ONCE: usize = 100;
/// Chains are followed this far.
const MOST_ROUNDS: usize = 20;

/// What a thread sleeps for: the tasks that are to return it, and whether one will do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sleep {
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) any: bool,
}

/// What is known of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) running: Vec<TaskId>,
    pub(crate) sleeps: Vec<Sleep>,
    /// Its event loop begins nothing; why, in words.
    pub(crate) blocked: String,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) tasks: BTreeMap<TaskId, TaskReason>,
    pub(crate) processes: BTreeMap<ProcessId, Seen>,
}

impl Facts {
    pub(crate) fn add(&mut self, report: TaskReport) {
        let tasks = report.tasks.into_iter();
        self.tasks.extend(tasks.filter_map(|task| Some((TaskId::from_slice(&task.id)?, task))));
        let made_by = |object: &Vec<u8>| ObjectId::from_slice(object).map(|id| id.task());
        let sleeps = report.awaited.iter().map(|awaited| Sleep {
            tasks: awaited.objects.iter().filter_map(made_by).collect(),
            any: awaited.any,
        });
        let running = report.running.iter().filter_map(|id| TaskId::from_slice(id)).collect();
        let seen = Seen { running, sleeps: sleeps.collect(), blocked: report.blocked };
        self.processes.insert(ProcessId(report.process), seen);
    }

    /// Tasks that are named, and of which nobody has been asked.
    fn named(&self, asked: &BTreeSet<TaskId>) -> Vec<TaskId> {
        let mut named = BTreeSet::new();
        let seen = |process: u64| self.processes.get(&ProcessId(process));
        for task in self.tasks.values() {
            if task.wait() == WaitKind::Argument {
                named.extend(ObjectId::from_slice(&task.object).map(|object| object.task()));
            }
            for process in task.holders.iter().copied().chain(task.process).filter_map(seen) {
                named.extend(process.running.iter().copied());
                named.extend(process.sleeps.iter().flat_map(|sleep| sleep.tasks.iter().copied()));
            }
        }
        named.difference(asked).copied().take(MOST_AT_ONCE).collect()
    }
}

impl Session {
    /// All that has to do with these tasks; or with those of a name, which may be in no record.
    pub(crate) fn facts(
        &mut self,
        ids: &[TaskId],
        name: &str,
        nodes: &Nodes,
        missing: &mut Vec<String>,
    ) -> Result<Facts> {
        let mut facts = Facts::default();
        let mut asked: BTreeSet<TaskId> = ids.iter().copied().collect();
        let words: Vec<String> = ids.iter().map(TaskId::to_string).collect();
        let mut about = if words.is_empty() { name.to_owned() } else { words.join(" ") };
        for _ in 0..MOST_ROUNDS {
            self.ask_processes(about, nodes, missing, &mut facts)?;
            let next = facts.named(&asked);
            if next.is_empty() {
                break;
            }
            asked.extend(next.iter().copied());
            about = next.iter().map(TaskId::to_string).collect::<Vec<_>>().join(" ");
        }
        Ok(facts)
    }

    fn ask_processes(
        &mut self,
        about: String,
        nodes: &Nodes,
        missing: &mut Vec<String>,
        facts: &mut Facts,
    ) -> Result<()> {
        let question = Query { about, ..topic(Topic::Tasks) };
        let numbers: Vec<u32> = nodes.alive().map(|node| node.number).collect();
        missing.clear(); // Of each round the same would be said.
        self.ask_nodes(&numbers, &question, missing, |_, body| match body {
            Body::TaskReport(report) => {
                let done = report.process == 0;
                if !done {
                    facts.add(report);
                }
                done
            }
            _ => false,
        })
    }
}
