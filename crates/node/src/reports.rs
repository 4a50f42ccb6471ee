//! Questions that every process answers: passes them round, and the answers back.

use std::collections::BTreeSet;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_scheduler::{Allocation, NodeNumber};
use oxiray_wire::control::{ObjectReport, Query, TaskReason, TaskReport, Topic, from_node};

use crate::actors::Stage;
use crate::event::Outbox;
use crate::node::Node;
use crate::schedule::ShapeId;

/// A question under way.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) asker: ProcessId,
    /// The asker's name for it.
    request: u64,
    topic: Topic,
    /// Who has yet to answer.
    remaining: BTreeSet<ProcessId>,
}

impl Node {
    /// Somebody asks what everybody holds.
    pub(crate) fn ask_round(&mut self, asker: ProcessId, query: Query, out: &mut impl Outbox) {
        let (request, topic) = (query.request, query.topic());
        self.last_round += 1;
        let number = self.last_round;
        let have_objects = self
            .processes
            .iter()
            .filter(|(_, process)| process.bell.is_some() && !process.is_foreign());
        let remaining: BTreeSet<ProcessId> = have_objects.map(|(id, _)| *id).collect();
        for &process in &remaining {
            let query = Query { request: number, ..query.clone() };
            out.send(
                process,
                match topic {
                    Topic::Tasks | Topic::Cancel => from_node::Body::ReportTasks(query),
                    _ => from_node::Body::ReportObjects(query),
                },
            );
        }
        self.rounds.insert(number, Round { asker, request, topic, remaining });
        self.end_round_if_done(number, out);
    }

    /// A process answers.
    pub(crate) fn on_report(
        &mut self,
        from: ProcessId,
        report: ObjectReport,
        out: &mut impl Outbox,
    ) {
        let number = report.request;
        let Some(round) = self.rounds.get_mut(&number) else {
            return;
        };
        if !round.remaining.contains(&from) {
            return;
        }
        if report.last {
            round.remaining.remove(&from);
        }
        let process = &self.processes[&from];
        let (request, asker) = (round.request, round.asker);
        let (pid, kind) = (process.pid, process.kind as i32);
        let report = ObjectReport { request, process: from.0, pid, kind, ..report };
        out.send(asker, from_node::Body::ObjectReport(report));
        self.end_round_if_done(number, out);
    }

    /// A process answers why tasks of its own are not done. Why there is no worker for
    /// them, the node adds.
    pub(crate) fn on_task_report(
        &mut self,
        from: ProcessId,
        report: TaskReport,
        out: &mut impl Outbox,
    ) {
        let number = report.request;
        let Some(round) = self.rounds.get_mut(&number) else {
            return;
        };
        if !round.remaining.remove(&from) {
            return;
        }
        let (request, asker) = (round.request, round.asker);
        let process = &self.processes[&from];
        let tasks = report.tasks.into_iter().map(|mut task| {
            let demand = task.shape_key.and_then(|key| process.demands.get(&key));
            let actor = ActorId::from_slice(&task.actor).and_then(|id| self.actors.get(&id));
            let shape = match (demand, actor.map(|actor| actor.stage)) {
                (Some(demand), _) => Some(demand.shape),
                (None, Some(Stage::Waiting(shape, _))) => Some(shape),
                _ => None,
            };
            if let Some(shape) = shape {
                task.text = self.why(shape);
                task.holders = self.holders(shape);
            }
            task
        });
        let (process, pid, tasks) = (from.0, process.pid, tasks.collect());
        let report = TaskReport { request, process, pid, tasks, ..report };
        out.send(asker, from_node::Body::TaskReport(report));
        self.end_round_if_done(number, out);
    }

    /// Why a process has no worker of a shape of its own.
    pub(crate) fn why_no_worker(&self, from: ProcessId, query: &Query) -> TaskReport {
        let key = query.about.parse::<u64>().ok();
        let process = self.processes.get(&from);
        let demand = key.and_then(|key| process?.demands.get(&key));
        let text = demand.map(|demand| self.why(demand.shape)).unwrap_or_default();
        let tasks = vec![TaskReason { text, ..TaskReason::default() }];
        TaskReport { request: query.request, process: from.0, tasks, ..TaskReport::default() }
    }

    /// The processes here that hold what a shape lacks, if no other node could serve it.
    fn holders(&self, shape: ShapeId) -> Vec<u64> {
        let known = &self.schedule.shapes[shape.0];
        let shape = &known.shape;
        let here = NodeNumber(self.number);
        let view = &self.member.view;
        let elsewhere = match known.wanted.place {
            Some(place) => self.is_in_group_elsewhere(shape, place),
            None => view.nodes().any(|node| node != here && view.can_ever_fit(node, shape)),
        };
        if elsewhere || !self.ledger.can_ever_fit(shape) {
            return Vec::new();
        }
        let leases = self.leases.values().map(|lease| (lease.worker, Some(&lease.allocation)));
        let actors = self.actors.values();
        let actors = actors.filter_map(|actor| Some((actor.worker()?, actor.allocation.as_ref())));
        let holds = |allocation: &Allocation| self.ledger.stands_in_the_way(allocation, shape);
        let held = leases.chain(actors).filter(|(_, allocation)| allocation.is_some_and(holds));
        held.map(|(process, _)| process.0).collect()
    }

    /// A process is gone: nobody waits for its answer, nor it for others'.
    pub(crate) fn leave_rounds(&mut self, process: ProcessId, out: &mut impl Outbox) {
        self.rounds.retain(|_, round| round.asker != process);
        let numbers: Vec<u64> = self.rounds.keys().copied().collect();
        for number in numbers {
            if let Some(round) = self.rounds.get_mut(&number) {
                round.remaining.remove(&process);
            }
            self.end_round_if_done(number, out);
        }
    }

    fn end_round_if_done(&mut self, number: u64, out: &mut impl Outbox) {
        if self.rounds.get(&number).is_some_and(|round| round.remaining.is_empty())
            && let Some(round) = self.rounds.remove(&number)
        {
            let request = round.request;
            let all = match round.topic {
                Topic::Tasks | Topic::Cancel => {
                    from_node::Body::TaskReport(TaskReport { request, ..TaskReport::default() })
                }
                _ => from_node::Body::ObjectReport(ObjectReport {
                    request,
                    last: true,
                    ..ObjectReport::default()
                }),
            };
            out.send(round.asker, all);
        }
    }
}
