//! Questions that every process answers: passes them round, and the answers back.

use std::collections::BTreeSet;

use oxiray_ids::ProcessId;
use oxiray_wire::control::{ObjectReport, Query, from_node};

use crate::event::Outbox;
use crate::node::Node;

/// A question under way.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) asker: ProcessId,
    /// The asker's name for it.
    request: u64,
    /// Who has yet to answer.
    remaining: BTreeSet<ProcessId>,
}

impl Node {
    /// Somebody asks what everybody holds.
    pub(crate) fn ask_round(&mut self, asker: ProcessId, request: u64, out: &mut impl Outbox) {
        self.last_round += 1;
        let number = self.last_round;
        let have_objects = self.processes.iter().filter(|(_, process)| process.bell.is_some());
        let remaining: BTreeSet<ProcessId> = have_objects.map(|(id, _)| *id).collect();
        for &process in &remaining {
            let query = Query { request: number, ..Query::default() };
            out.send(process, from_node::Body::ReportObjects(query));
        }
        self.rounds.insert(number, Round { asker, request, remaining });
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
            let all = ObjectReport { request, last: true, ..ObjectReport::default() };
            out.send(round.asker, from_node::Body::ObjectReport(all));
        }
    }
}
