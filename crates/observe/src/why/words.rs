//! Why things wait, in sentences: from the one that is asked about to the end of the chain.

use std::collections::BTreeSet;

use oxiray_events::History;
use oxiray_ids::{ProcessId, TaskId};
use oxiray_wire::cluster::ActorInfo;
use oxiray_wire::control::{ActorPhase, WaitKind};

use super::facts::Facts;
use super::place;
use crate::rows::{Nodes, hex};

/// Knows what everything is called.
pub(super) struct Teller<'a> {
    history: &'a History,
    nodes: &'a Nodes,
    pub(super) facts: &'a Facts,
    pub(super) actors: &'a [ActorInfo],
    pub(super) stuck: BTreeSet<TaskId>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        history: &'a History,
        nodes: &'a Nodes,
        facts: &'a Facts,
        actors: &'a [ActorInfo],
    ) -> Self {
        Self { history, nodes, facts, actors, stuck: facts.stuck() }
    }

    /// Why a task is not done.
    pub(super) fn task(&self, id: TaskId) -> Option<String> {
        if !self.facts.tasks.contains_key(&id) {
            // It ran, or ended, between the two looks; or whoever submitted it is gone.
            let task = self.history.get(id)?;
            let place = place(&task.newest(), self.nodes);
            return Some(match task.state() {
                oxiray_events::State::Running => format!("{} runs in {place}.", self.full(id)),
                state => format!("{} is {}.", self.full(id), state.as_str()),
            });
        }
        Some(format!("{} {}", self.full(id), self.chain(id)))
    }

    /// How an actor is, and what it does or waits for.
    pub(super) fn actor(&self, actor: &ActorInfo) -> String {
        let named = match actor.name.is_empty() {
            true => String::new(),
            false => format!(" {:?}", actor.name),
        };
        let called = format!("The actor {}{named} ({})", actor.class_name, hex(&actor.actor));
        let process = ProcessId(actor.process);
        match actor.phase() {
            ActorPhase::Dead => format!("{called} is DEAD: {}", actor.reason),
            ActorPhase::Alive => {
                let place = process_called(process, actor.pid, self.nodes);
                let seen = self.facts.processes.get(&process);
                match seen.and_then(|seen| seen.running.first()) {
                    None => format!("{called} is ALIVE and idle, in {place}."),
                    Some(task) => {
                        let does = self.chain(*task);
                        let name = self.name(*task);
                        format!("{called} is ALIVE, in {place}: its {name} {does}")
                    }
                }
            }
            ActorPhase::Pending | ActorPhase::Restarting => {
                let makes = self.facts.tasks.iter().find(|(id, task)| {
                    id.actor().0 == actor.actor[..] && task.wait() != WaitKind::AtActor
                });
                let why = match makes {
                    Some((id, _)) => self.chain(*id),
                    None if actor.reason.is_empty() => "waits for its constructor.".to_owned(),
                    None => format!("waits: {}.", actor.reason),
                };
                format!("{called} is not there yet: it {why}")
            }
        }
    }

    /// Reads on after the name of a task: what it waits for, and what that does, to the end.
    pub(super) fn chain(&self, id: TaskId) -> String {
        let path = self.facts.path(id, &self.stuck);
        let (last, whole) = (path[path.len() - 1], path.len());
        let returns = path[..whole - 1].contains(&last);
        let mut text = String::new();
        for (at, step) in path.iter().enumerate() {
            let next = path.get(at + 1).copied();
            if at > 0 {
                text.push_str(if at == whole - 1 && returns { "" } else { ", which " });
            }
            if at < whole - 1 || !returns {
                text.push_str(&self.step(*step, next));
            }
        }
        text.push('.');
        text.push_str(&self.blocked(&path));
        if returns && self.stuck.contains(&last) {
            let circle = path.iter().position(|one| *one == last).unwrap_or(0);
            let names: Vec<String> = path[circle..].iter().map(|one| self.name(*one)).collect();
            text.push_str(&format!(
                " This is a deadlock: {}. None of them can go on; end one of them, for example \
                 with ray.kill or by ending its program.",
                names.join(" waits for ")
            ));
        }
        text
    }

    /// What is known of event loops that hold these up.
    fn blocked(&self, path: &[TaskId]) -> String {
        let tasks = path.iter().filter_map(|id| self.facts.tasks.get(id));
        let processes: BTreeSet<u64> = tasks.filter_map(|task| task.process).collect();
        let seen = processes.iter().filter_map(|id| self.facts.processes.get(&ProcessId(*id)));
        let blocked = seen.map(|seen| seen.blocked.as_str()).filter(|text| !text.is_empty());
        blocked.map(|text| format!(" The process is blocked: {text}")).collect()
    }

    /// What one task waits for; `next` is the task that this is about, if it is one.
    fn step(&self, id: TaskId, next: Option<TaskId>) -> String {
        let Some(task) = self.facts.tasks.get(&id) else {
            let state = self.history.get(id).map(|task| task.state().as_str());
            return match state {
                Some(state) => format!("is {state}"),
                None => "is not known any more".into(),
            };
        };
        let place = task.process.map(|process| self.process(ProcessId(process)));
        let place = place.unwrap_or_else(|| "another process".into());
        let runs = task.process.and_then(|process| self.facts.processes.get(&ProcessId(process)));
        let runs = runs.is_some_and(|seen| seen.running.contains(&id));
        let next = next.map(|next| self.full(next));
        match (task.wait(), next) {
            (WaitKind::Nothing, _) => "is about to go on".into(),
            (WaitKind::News, _) => {
                "waits for news of an argument whose node could not be reached".into()
            }
            (WaitKind::Memory, _) => {
                "was ended because memory ran out, and is tried again after a pause".into()
            }
            (WaitKind::Running | WaitKind::Turn | WaitKind::AtActor, Some(next)) if runs => {
                format!("runs in {place} and waits there for {next}")
            }
            (WaitKind::Running | WaitKind::Turn | WaitKind::AtActor, _) if runs => {
                format!("runs in {place}")
            }
            (WaitKind::Turn | WaitKind::AtActor, Some(next)) => {
                format!("waits in {place} until it is done with {next}")
            }
            (WaitKind::Running, _) => format!("is about to run in {place}"),
            (WaitKind::Turn | WaitKind::AtActor, None) => format!("is among the next in {place}"),
            (WaitKind::Argument, next) => match (next, task.process) {
                (Some(next), None) => format!("waits for its argument, to be returned by {next}"),
                (Some(next), Some(_)) => {
                    format!("waits for its argument, to be returned by {next} (of {place})")
                }
                (None, _) => format!("waits for its argument {}", hex(&task.object)),
            },
            (WaitKind::Worker, Some(next)) => {
                format!("waits for a worker: {}; that is held by {next}", task.text)
            }
            (WaitKind::Worker, None) => match task.text.is_empty() {
                true => "waits for a worker".into(),
                false => format!("waits for a worker: {}", task.text),
            },
            (WaitKind::Actor, next) => {
                let actor = self.actor_called(&task.actor);
                let held = next.map(|next| format!("; that is held by {next}")).unwrap_or_default();
                format!(
                    "waits for its actor {actor}, {}{held}",
                    self.why_no_actor(&task.actor, &task.text)
                )
            }
            (WaitKind::Construction, next) => {
                let held = next.map(|next| format!("; that is held by {next}")).unwrap_or_default();
                format!("makes an actor, {}{held}", self.why_no_actor(&task.actor, &task.text))
            }
        }
    }

    fn why_no_actor(&self, id: &[u8], text: &str) -> String {
        let info = self.actors.iter().find(|actor| actor.actor == id);
        let known = info.map_or("", |actor| &actor.reason);
        let constructor = info.is_some_and(|actor| actor.process != 0 || actor.pid != 0);
        match (text, known) {
            ("", "") if constructor => "whose constructor runs".into(),
            ("", "") => "which is not there yet".into(),
            ("", known) => format!("which waits: {known}"),
            (text, _) => format!("which waits for a place: {text}"),
        }
    }

    fn actor_called(&self, id: &[u8]) -> String {
        let info = self.actors.iter().find(|actor| actor.actor == id);
        let class = info.map_or("", |actor| actor.class_name.as_str());
        format!("{class} ({})", hex(id)).trim_start().to_owned()
    }

    /// A task with its id.
    pub(super) fn full(&self, id: TaskId) -> String {
        format!("{} ({id})", self.name(id))
    }

    fn name(&self, id: TaskId) -> String {
        if let Some(task) = self.history.get(id) {
            return task.name().to_owned();
        }
        let task = self.facts.tasks.get(&id).map(|task| task.name.clone());
        task.unwrap_or_else(|| "a task".into())
    }

    fn process(&self, process: ProcessId) -> String {
        let known = self.history.processes().iter().find(|known| known.id == process);
        process_called(process, known.map_or(0, |known| known.pid), self.nodes)
    }
}

/// A process as `oxiray list workers` has it.
pub(super) fn process_called(process: ProcessId, pid: u32, nodes: &Nodes) -> String {
    let node = nodes.called(process.node());
    match (pid, nodes.worker_id(process).as_deref()) {
        (0, Some(id)) => format!("worker {id} of {node}"),
        (0, None) => format!("a process of {node}"),
        (pid, _) => format!("process {pid} of {node}"),
    }
}
