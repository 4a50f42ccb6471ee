//! What the end of a process means for all others.

use oxiray_control::listing::shortened;
use oxiray_ids::{ActorId, NodeId, ProcessId};
use oxiray_wire::cluster::{Job, between_nodes, to_control};
use oxiray_wire::control::{MemoryEnd, ProcessDied, ProcessInfo, ProcessKind, from_node};

use crate::actors::{Actor, Stage};
use crate::cluster::tell;
use crate::demand::LeaseId;
use crate::event::Outbox;
use crate::listing::is_shown;
use crate::node::Node;
use crate::process::{Farewell, Process, Role};
use crate::schedule::Turn;
use crate::storage::keeper;

/// Dead processes whose end is remembered.
const MOST_REMEMBERED: usize = 1_000;

impl Node {
    /// Peers hear first that the process is gone, so that they take in what it
    /// still sent; watchers of its actor hear afterwards what that means.
    pub(crate) fn on_ended(
        &mut self,
        id: ProcessId,
        reason: &str,
        last_lines: Vec<String>,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let Some(mut process) = self.processes.remove(&id) else {
            return;
        };
        if let Some(bell) = process.bell.filter(|_| !process.is_foreign()) {
            self.bells.give_back(bell);
        }
        if process.role == Role::Idle {
            self.pool.forget(id);
        }
        if process.has_turn {
            // One of another node may come back, and then has no turn (N-8).
            self.schedule.turns.retain(|turn| *turn != Turn::Process(id));
        }
        self.note_unused(&process, now);
        if let Role::Leased(lease) = process.role {
            self.end_lease(lease);
        }
        let farewell = process.farewell.take();
        let failure = match &farewell {
            Some(farewell) if farewell.intended => String::new(),
            Some(farewell) => farewell.reason.clone(),
            None => reason.to_owned(),
        };
        self.remember_end(id, &process, farewell.as_ref().map_or(reason, |f| &f.reason), now);
        self.tell_peers(id, &process, farewell.as_ref(), reason, &last_lines, out);
        self.leave_rounds(id, out);
        // Peers say when they have read what it still sent.
        let told = |owner| process.channels.contains_key(&owner);
        let (keeper, mut counter) = keeper!(self, out);
        keeper.on_ended(id, told, now, &mut counter);
        self.forget_copy_waiter(id);
        self.forget_kv_asker(id);
        self.forget_group_watcher(id);
        if let Role::Actor(actor) = process.role {
            let intended = farewell.as_ref().is_some_and(|farewell| farewell.intended);
            let here = &self.setup.member;
            let id = NodeId::from_slice(&here.id).unwrap_or(NodeId::NIL);
            let place = format!("process {} on {}", process.pid, id.called(&here.host));
            let reason = match farewell {
                Some(farewell) => format!("{} (it was {place})", farewell.reason),
                None => words(&place, reason, &last_lines),
            };
            self.on_actor_lost(actor, reason, intended, out);
        }
        process.unanswered.take().into_iter().for_each(|held| self.ledger.release(held));
        if let Role::Asked(actor) = process.role
            && self.actors.get(&actor).is_some_and(|actor| actor.worker() == Some(id))
        {
            self.queue_again(actor);
        }
        self.end_belongings(&process, out);
        for actor in &process.watching {
            if let Some(actor) = self.actors.get_mut(actor) {
                actor.watchers.retain(|&watcher| watcher != id);
            }
        }
        self.tell_others_of_end(id, &process, failure, now, out);
        let config = process.job.and_then(|job| Some((job, self.jobs.get(&job)?)));
        if let Some((job, _)) = config.filter(|(_, job)| job.driver == id.0 && process.is_foreign())
        {
            self.end_job(job, out);
        }
        if process.kind == ProcessKind::Driver {
            match (self.setup.job, process.job) {
                (None, Some(job)) => self.end_job(job, out),
                _ => out.shut_down(false),
            }
        }
    }

    /// A process of ours is gone: the control service forgets what it knows of it.
    /// `failure`: why it ended, unless it said that it would.
    fn tell_others_of_end(
        &mut self,
        id: ProcessId,
        process: &Process,
        failure: String,
        now: u64,
        out: &mut impl Outbox,
    ) {
        if id.node() != self.number {
            return;
        }
        let member = &mut self.member;
        member.asked.retain(|(asker, _), _| *asker != id);
        member.creating.retain(|_, (creator, _)| *creator != id);
        member.killing.retain(|_, (killer, _)| *killer != id);
        member.unplaced.retain(|(asker, _)| *asker != id);
        if process.kind == ProcessKind::Observer {
            return;
        }
        if let (ProcessKind::Driver, Some(config)) =
            (process.kind, process.job.and_then(|job| self.jobs.get(&job)))
        {
            let job = Job {
                id: config.job.clone(),
                driver: id.0,
                namespace: config.namespace.clone(),
                entrypoint: config.entrypoint.clone(),
                submission: config.submission.clone(),
                pid: process.pid,
                started_ms: self.wall_ms(process.started),
                ended_ms: self.wall_ms(now).max(1),
                failure,
            };
            self.tell_of_job(job, out);
        }
        // After how its program ended: that it did would follow from this alone.
        self.tell_control(to_control::Body::ProcessGone(id.0), out);
    }

    /// Keeps what people may want to know of a process of ours.
    fn remember_end(&mut self, id: ProcessId, process: &Process, reason: &str, now: u64) {
        if is_shown(process) {
            let ended_ms = self.wall_ms(now).max(1);
            let info = self.show_process(id, process);
            let reason = shortened(reason);
            self.ended_processes.push_back(ProcessInfo { ended_ms, reason, ..info });
            if self.ended_processes.len() > MOST_REMEMBERED {
                self.ended_processes.pop_front();
            }
        }
    }

    fn tell_peers(
        &mut self,
        id: ProcessId,
        process: &Process,
        farewell: Option<&Farewell>,
        reason: &str,
        last_lines: &[String],
        out: &mut impl Outbox,
    ) {
        let mut died = ProcessDied {
            process: id.0,
            pid: process.pid,
            intended: farewell.is_some_and(|farewell| farewell.intended),
            reason: farewell.map_or(reason, |farewell| &farewell.reason).to_owned(),
            last_lines: last_lines.to_vec(),
            memory: farewell.map_or(MemoryEnd::Not, |farewell| farewell.memory).into(),
        };
        for peer in process.channels.keys() {
            let Some(other) = self.processes.get_mut(peer) else {
                continue;
            };
            let other_is_foreign = other.is_foreign();
            if let Some(index) = other.channels.remove(&id) {
                match other_is_foreign {
                    true => self.member.indexes.give_back(index),
                    false => other.indexes.give_back(index),
                }
            }
            if process.is_foreign() {
                self.member.indexes.give_back(process.channels[peer]);
                out.close_channel(*peer, id);
                out.send(*peer, from_node::Body::ProcessDied(died.clone()));
            } else if other_is_foreign {
                out.close_channel(id, *peer);
            } else {
                out.send(*peer, from_node::Body::ProcessDied(died.clone()));
            }
        }
        // After what it had still said.
        for node in &process.known_at {
            tell(*node, between_nodes::Body::Ended(died.clone()), out);
        }
        if process.bell.is_some() {
            died.last_lines.clear();
            self.dead_processes.push_back(died);
            if self.dead_processes.len() > MOST_REMEMBERED {
                self.dead_processes.pop_front();
            }
        }
    }

    /// What belonged to a process goes with it: the workers that may be running
    /// its tasks, and its actors.
    fn end_belongings(&mut self, process: &Process, out: &mut impl Outbox) {
        let leases: Vec<LeaseId> = process.leases.iter().copied().collect();
        for lease in leases {
            let worker = self.end_lease(lease);
            self.send_away(worker, "the owner of its task died", out);
        }
        let actors: Vec<ActorId> = process.actors.iter().copied().collect();
        for actor in actors {
            let lives_on = |actor: &Actor| {
                actor.detached && (actor.kept || matches!(actor.stage, Stage::Alive(_)))
            };
            if self.actors.get(&actor).is_some_and(lives_on) {
                continue;
            }
            let worker = self.actors.get(&actor).and_then(|actor| actor.worker());
            self.bury(actor, "its owner died".into(), Vec::new(), out);
            if let Some(worker) = worker {
                self.send_actor_away(worker, "its owner died", out);
            }
        }
    }
}

/// Why an actor died whose process ended by itself.
fn words(place: &str, reason: &str, last_lines: &[String]) -> String {
    let mut text = format!("its {place} ended: {reason}");
    if !last_lines.is_empty() {
        text.push_str(". The last lines it printed:");
        for line in last_lines {
            text.push_str("\n    ");
            text.push_str(line);
        }
    }
    text
}
