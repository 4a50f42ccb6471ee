//! Runtime environments: what workers of a shape must be forked from.
//!
//! Each has a *template*, a process that workers of it are forked from, which the shell makes when
//! something first waits for one. What is not plain waits, without resources, until its template is
//! there; if that cannot be made, everything that waits for it here fails with the reason. Nothing
//! is remembered of a failure: who asks again tries again. A template that nobody uses ends.
//!
//! - **E-1** whoever works for a lease or an actor was forked from the template of its shape.

use std::collections::BTreeSet;

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_wire::control::{Text, Unschedulable, from_node, unmade};
use oxiray_wire::frame::FailureCode;

use crate::event::Outbox;
use crate::node::Node;
use crate::process::Process;
use crate::schedule::ShapeId;

/// How long a template may be without workers.
const UNUSED_LIMIT: u64 = 60_000_000_000;
/// Of what a tool said, for whoever asked for the environment: its end.
const LONGEST_REASON: usize = 16 << 10;

/// The node's number for an environment; 0: what its own workers have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct EnvironmentId(pub(crate) u32);

impl EnvironmentId {
    /// That of the node itself: its template is always there, or about to be.
    pub(crate) const PLAIN: Self = Self(0);
}

/// How far the template of an environment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// There is none.
    Unmade,
    /// The shell makes it.
    Making,
    /// Workers can be forked from it. Since when it has had none, if it has none.
    Ready { unused_since: Option<u64> },
}

#[derive(Debug)]
struct Environment {
    text: String,
    stage: Stage,
}

/// The environments that somebody asked for; a session sees few.
#[derive(Debug, Default)]
pub(crate) struct Environments {
    /// That of number 1 is the first.
    others: Vec<Environment>,
}

impl Environments {
    /// The number of an environment; equal ones share one.
    pub(crate) fn intern(&mut self, text: &str) -> EnvironmentId {
        if text.is_empty() {
            return EnvironmentId::PLAIN;
        }
        let known = self.others.iter().position(|other| other.text == text);
        let index = known.unwrap_or_else(|| {
            self.others.push(Environment { text: text.into(), stage: Stage::Unmade });
            self.others.len() - 1
        });
        EnvironmentId(index as u32 + 1)
    }

    fn get_mut(&mut self, id: EnvironmentId) -> Option<&mut Environment> {
        self.others.get_mut((id.0 as usize).checked_sub(1)?)
    }

    fn get(&self, id: EnvironmentId) -> Option<&Environment> {
        self.others.get((id.0 as usize).checked_sub(1)?)
    }

    /// Whether workers of it can be started now.
    pub(crate) fn is_ready(&self, id: EnvironmentId) -> bool {
        self.get(id).is_none_or(|known| matches!(known.stage, Stage::Ready { .. }))
    }

    /// Whether there may be workers of this number.
    pub(crate) fn is_known(&self, id: EnvironmentId) -> bool {
        id == EnvironmentId::PLAIN || self.get(id).is_some()
    }

    /// When the next unused template ends.
    pub(crate) fn next_end(&self) -> Option<u64> {
        let unused = self.others.iter().filter_map(|known| match known.stage {
            Stage::Ready { unused_since } => unused_since,
            _ => None,
        });
        unused.min().map(|since| since + UNUSED_LIMIT)
    }
}

impl Node {
    /// Whether workers of an environment can be started; if there is no template, one is made.
    pub(crate) fn has_template(&mut self, id: EnvironmentId, out: &mut impl Outbox) -> bool {
        let Some(known) = self.environments.get_mut(id) else {
            return true;
        };
        match &mut known.stage {
            Stage::Ready { unused_since } => {
                *unused_since = None;
                return true;
            }
            Stage::Making => {}
            Stage::Unmade => {
                known.stage = Stage::Making;
                out.make_template(id.0, &known.text);
            }
        }
        false
    }

    /// The shell has a template, or has none (any more), for this reason.
    pub(crate) fn on_template(
        &mut self,
        id: u32,
        result: Result<(), String>,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let id = EnvironmentId(id);
        let Some(known) = self.environments.get_mut(id) else {
            return;
        };
        match (known.stage, result) {
            (Stage::Making, Ok(())) => known.stage = Stage::Ready { unused_since: Some(now) },
            (Stage::Making, Err(reason)) => self.fail_environment(id, &reason, out),
            // It died, and is made again when it is needed.
            (Stage::Ready { .. }, Err(_)) => known.stage = Stage::Unmade,
            _ => {}
        }
    }

    /// Everything that waits here for an environment fails: there will be no worker of it.
    pub(crate) fn fail_environment(
        &mut self,
        id: EnvironmentId,
        reason: &str,
        out: &mut impl Outbox,
    ) {
        let Some(known) = self.environments.get_mut(id) else {
            return;
        };
        if matches!(known.stage, Stage::Ready { .. }) {
            out.end_template(id.0);
        }
        known.stage = Stage::Unmade;
        self.pool.forget_starts(id);
        let from = reason.len().saturating_sub(LONGEST_REASON);
        let from = (from..).find(|&at| reason.is_char_boundary(at)).unwrap_or(0);
        let reason = &reason[from..];
        let of_it = |shape: ShapeId| self.schedule.shapes[shape.0].environment == id;
        let waiting = self.processes.iter().flat_map(|(&process, known)| {
            let demands = known.demands.iter().filter(|(_, demand)| demand.here > 0);
            demands.map(move |(&key, demand)| (process, key, demand.shape))
        });
        let waiting = waiting.filter(|(_, _, shape)| of_it(*shape));
        let waiting: Vec<(ProcessId, u64)> = waiting.map(|(who, key, _)| (who, key)).collect();
        let actors = self.schedule.waiting_actors.iter().filter(|((shape, _), _)| of_it(*shape));
        let actors: Vec<ActorId> = actors.map(|(_, &actor)| actor).collect();
        for (process, key) in waiting {
            self.abandon(process, key, out);
            let reason = reason.to_owned();
            let failure = FailureCode::Environment as u32;
            let failed = Unschedulable { shape_key: key, reason, failure };
            out.send(process, from_node::Body::Unschedulable(failed));
        }
        for actor in actors {
            let error = unmade(FailureCode::Environment, reason);
            self.bury(actor, "its runtime environment could not be made".into(), error, out);
        }
    }

    /// Says to the drivers of whoever waits for an environment what its making is at.
    pub(crate) fn tell_of_template(
        &mut self,
        id: EnvironmentId,
        text: &str,
        out: &mut impl Outbox,
    ) {
        let of_it = |shape: &ShapeId| self.schedule.shapes[shape.0].environment == id;
        let waits = |process: &&Process| {
            process.demands.values().any(|demand| demand.here > 0 && of_it(&demand.shape))
        };
        let mut jobs: BTreeSet<JobId> =
            self.processes.values().filter(waits).filter_map(|process| process.job).collect();
        let actors = self.schedule.waiting_actors.iter().filter(|((shape, _), _)| of_it(shape));
        jobs.extend(actors.filter_map(|(_, actor)| self.actors[actor].job));
        for driver in jobs.iter().filter_map(|job| self.jobs.get(job)).map(|job| job.driver) {
            let text = Text { text: text.to_owned() };
            out.send(ProcessId(driver), from_node::Body::Warning(text));
        }
    }

    /// Ends templates that have been without workers for long.
    pub(crate) fn end_unused_templates(&mut self, now: u64, out: &mut impl Outbox) {
        let workers = self.processes.values().filter(|process| process.is_worker());
        let used: BTreeSet<EnvironmentId> = workers.map(|worker| worker.environment).collect();
        for (index, known) in self.environments.others.iter_mut().enumerate() {
            let id = EnvironmentId(index as u32 + 1);
            let is_used = used.contains(&id) || self.pool.is_starting(id);
            let Stage::Ready { unused_since } = &mut known.stage else {
                continue;
            };
            match *unused_since {
                _ if is_used => *unused_since = None,
                None => *unused_since = Some(now),
                Some(since) if now >= since + UNUSED_LIMIT => {
                    known.stage = Stage::Unmade;
                    out.end_template(id.0);
                }
                Some(_) => {}
            }
        }
    }

    /// A worker has gone: if it was the last of its template, that is unused.
    pub(crate) fn note_unused(&mut self, gone: &Process, now: u64) {
        let id = gone.environment;
        if self.processes.values().any(|other| other.is_worker() && other.environment == id) {
            return;
        }
        if let Some(Stage::Ready { unused_since }) =
            self.environments.get_mut(id).map(|known| &mut known.stage)
        {
            unused_since.get_or_insert(now);
        }
    }
}
