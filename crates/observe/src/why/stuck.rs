//! What can never go on, said without being asked: circles of tasks that wait for each other, and
//! tasks that wait for what idle actors hold.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ProcessId, TaskId};
use oxiray_wire::control::WaitKind;
use oxiray_words::listed;

use super::words::Teller;
use crate::error::Result;
use crate::session::Session;

/// Actors that are named of those that hold something.
const MOST_ACTORS: usize = 3;

impl Session {
    /// Of these tasks and whatever they wait for: what can never go on, a sentence each, by a name
    /// that is the same at the next look.
    pub fn stuck(&mut self, ids: &[TaskId]) -> Result<BTreeMap<String, String>> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let nodes = self.members()?;
        let mut missing = self.update_history()?;
        let facts = self.facts(ids, "", &nodes, &mut missing)?;
        let actors = if facts.tasks.is_empty() { Vec::new() } else { self.actors()? };
        let teller = Teller::new(&self.history, &nodes, &facts, &actors);
        let mut told = teller.circles();
        told.extend(teller.starving());
        self.missing = missing;
        Ok(told)
    }
}

impl Teller<'_> {
    /// A sentence for each circle of tasks that wait for each other.
    fn circles(&self) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        let mut seen: BTreeSet<TaskId> = BTreeSet::new();
        for id in &self.stuck {
            let path = self.facts.path(*id, &self.stuck);
            let last = path[path.len() - 1];
            let Some(first) = path[..path.len() - 1].iter().position(|one| *one == last) else {
                continue;
            };
            let circle: BTreeSet<TaskId> = path[first..].iter().copied().collect();
            if circle.is_disjoint(&seen)
                && let Some(begin) = circle.first().copied()
            {
                seen.extend(circle);
                told.insert(
                    begin.to_string(),
                    format!("{} {}", self.full(begin), self.chain(begin)),
                );
            }
        }
        told
    }

    /// A sentence for each task that waits for a place, all of which is held by actors that have
    /// nothing to do.
    fn starving(&self) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        for (id, task) in &self.facts.tasks {
            let waits = matches!(task.wait(), WaitKind::Worker | WaitKind::Construction);
            let holders: Vec<ProcessId> = task.holders.iter().map(|id| ProcessId(*id)).collect();
            let idle = |holder: &ProcessId| {
                let seen = self.facts.processes.get(holder);
                seen.is_some_and(|seen| seen.running.is_empty() && seen.sleeps.is_empty())
            };
            if !waits || holders.is_empty() || !holders.iter().all(idle) {
                continue;
            }
            let names: Vec<String> = holders.iter().map(|holder| self.actor_at(*holder)).collect();
            if names.iter().any(String::is_empty) {
                continue; // A worker that is about to give it back.
            }
            let (called, text) = (self.full(*id), &task.text);
            let names = listed(&names, MOST_ACTORS);
            told.insert(
                id.to_string(),
                format!(
                    "{called} waits for a place: {text}. All of it is held by actors that have \
                     nothing to do: {names}. It goes on when one of them ends, for example with \
                     ray.kill, or when a node joins that has more."
                ),
            );
        }
        told
    }

    /// The actor that a process is, for people; empty: it is none.
    fn actor_at(&self, process: ProcessId) -> String {
        let actor = self.actors.iter().find(|actor| actor.process == process.0);
        actor.map_or_else(String::new, |actor| match actor.name.is_empty() {
            true => format!("{} (process {})", actor.class_name, actor.pid),
            false => format!("{} {:?} (process {})", actor.class_name, actor.name, actor.pid),
        })
    }
}
