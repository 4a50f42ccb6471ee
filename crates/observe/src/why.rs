//! Why tasks are not done and actors not there; of those that are, how they ended.
//!
//! What happened to a task is in the history, and by what names it goes. What it waits for only
//! its owner knows, which is asked, and then whoever that leads to:
//!
//! - `facts`: what processes say, and of whom they say something
//! - `graph`: who waits for whom, and who can never go on
//! - `words`: that, in sentences
//! - `stuck`: what can never go on, for who has not asked

mod facts;
mod graph;
mod stuck;
mod words;

use oxiray_events::{Attempt, State, Task};
use oxiray_ids::{ObjectId, TaskId};
use oxiray_wire::cluster::{ActorInfo, GroupInfo};
use oxiray_wire::control::ActorPhase;

use crate::error::{Error, Result};
use crate::rows::{Nodes, hex, placement_groups};
use crate::session::Session;
use words::{Teller, process_called};

/// Of so many tasks that are not done something is said.
const MOST: usize = 20;
/// Digits that an id is known by, at least.
const SHORTEST_ID: usize = 8;

impl Session {
    /// Why tasks are not done, or actors not there, a sentence each: tasks by id, the beginning of
    /// one, the id of what they return, or by any of their names; actors by id, name or class;
    /// placement groups by id or name. If
    /// all are done, how the newest ended. Nothing, if there is none.
    pub fn why(&mut self, about: &str) -> Result<Vec<String>> {
        let nodes = self.members()?;
        let mut missing = self.update_history()?;
        let groups = self.meant_groups(about)?;
        if !groups.is_empty() {
            return Ok(groups.iter().map(placement_groups::why).collect());
        }
        let actors = self.meant_actors(about)?;
        let meant = if actors.is_empty() { self.meant(about)? } else { Vec::new() };
        let mut waiting: Vec<TaskId> = self.of(&meant, |task| !task.state().is_end());
        waiting.truncate(MOST);
        let mut sentences = Vec::new();
        if !waiting.is_empty() || meant.is_empty() {
            let of_actors = self.unfinished_of(&actors);
            let ids: Vec<TaskId> = waiting.iter().copied().chain(of_actors).collect();
            // What is not recorded, its owner may know by its name.
            let facts = self.facts(&ids, about, &nodes, &mut missing)?;
            let all = if facts.tasks.is_empty() { Vec::new() } else { self.actors()? };
            let teller = Teller::new(&self.history, &nodes, &facts, &all);
            let unrecorded =
                if ids.is_empty() { facts.tasks.keys().copied().collect() } else { ids };
            match actors.is_empty() {
                true => sentences.extend(unrecorded.iter().filter_map(|id| teller.task(*id))),
                false => sentences.extend(actors.iter().map(|actor| teller.actor(actor))),
            }
        }
        self.missing = missing;
        if sentences.is_empty() && !meant.is_empty() {
            sentences = self.ends(about, &meant, &nodes);
        }
        Ok(sentences)
    }

    /// Placement groups that are meant: by id or the beginning of it, or by name.
    fn meant_groups(&mut self, about: &str) -> Result<Vec<GroupInfo>> {
        let id = about.to_ascii_lowercase();
        let is_id = id.len() >= SHORTEST_ID;
        let mut groups = self.groups()?;
        groups.retain(|group| {
            (!about.is_empty() && group.name == about)
                || (is_id && hex(&group.group).starts_with(&id))
        });
        groups.sort_by_key(|group| std::cmp::Reverse(group.asked_ms));
        groups.truncate(MOST);
        Ok(groups)
    }

    /// Actors that are meant: by id or the beginning of it, by name, or all of a class; those that
    /// are not there first.
    fn meant_actors(&mut self, about: &str) -> Result<Vec<ActorInfo>> {
        let mut actors = self.actors()?;
        let id = about.to_ascii_lowercase();
        let is_id = id.len() >= SHORTEST_ID;
        actors.retain(|actor| {
            actor.name == about
                || actor.class_name == about
                || (is_id && hex(&actor.actor).starts_with(&id))
        });
        let order = |actor: &ActorInfo| match actor.phase() {
            ActorPhase::Pending | ActorPhase::Restarting => 0,
            ActorPhase::Alive => 1,
            ActorPhase::Dead => 2,
        };
        actors.sort_by_key(order);
        actors.truncate(MOST);
        Ok(actors)
    }

    /// Constructors and calls of actors that have not ended.
    fn unfinished_of(&self, actors: &[ActorInfo]) -> Vec<TaskId> {
        let ids: Vec<&[u8]> = actors.iter().map(|actor| &actor.actor[..]).collect();
        let tasks = self.history.tasks().filter(|task| !task.state().is_end());
        let own = tasks.filter(|task| ids.contains(&&task.id().actor().0[..]));
        own.map(|task| task.id()).take(MOST).collect()
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

    /// How tasks ended that are all done.
    fn ends(&mut self, about: &str, ids: &[TaskId], nodes: &Nodes) -> Vec<String> {
        let failed = self.of(ids, |task| task.state() == State::Failed).len();
        let mut sentences = Vec::new();
        if ids.len() > 1 {
            let mut others = String::new();
            let mut finished = ids.len() - failed;
            for state in [State::Cancelled, State::Unknown] {
                let count = self.of(ids, |task| task.state() == state).len();
                finished -= count;
                if count > 0 {
                    others.push_str(&format!(", {count} {}", state.as_str()));
                }
            }
            sentences.push(format!(
                "All {} tasks called {about} are done: {finished} FINISHED, {failed} FAILED{others}. \
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
        let failure = newest.failure().filter(|_| newest.state().has_failed());
        let Some(failure) = failure else {
            sentences.push(format!("{called} has FINISHED: it ran in {place}."));
            return sentences;
        };
        if newest.state() == State::Cancelled {
            sentences.push(format!("{called} was CANCELLED: nobody wanted it any more."));
            return sentences;
        }
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
