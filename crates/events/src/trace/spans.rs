//! Which row of its process a marked span is drawn in.
//!
//! Spans of one thread lie within each other and within a task. Those of several threads may
//! overlap, and no row can show that (T-2): each that does not fit moves to the next lane.

use std::cmp::Reverse;

use super::SHORTEST_PART_NS;
use crate::history::{History, Process, Run, Runs, Span};
use crate::lanes;
use crate::task::Task;

/// Spans in the order in which [`Lanes::place`] takes them.
pub(super) fn outer_first(spans: &[Span]) -> Vec<&Span> {
    let mut spans: Vec<&Span> = spans.iter().collect();
    spans.sort_by_key(|span| (span.start, Reverse(span.duration)));
    spans
}

/// Where the marked spans of one process go. Its first lanes also show its tasks.
pub(super) struct SpanLanes<'a> {
    history: &'a History,
    process: &'a Process,
    /// How many lanes its tasks have.
    tasks: usize,
    unended: Vec<(Runs, u16)>,
    /// Of each lane, the ends of spans that are open, the innermost last.
    open: Vec<Vec<u64>>,
}

impl<'a> SpanLanes<'a> {
    pub(super) fn new(history: &'a History, process: &'a Process) -> Self {
        let (unended, tasks) = lanes::unended(process);
        Self { history, process, tasks, unended, open: vec![Vec::new(); tasks] }
    }

    /// The first lane that a span fits in, and whether that is a new one.
    pub(super) fn place(&mut self, span: &Span) -> (usize, bool) {
        let (start, end) = (span.start, span.start.saturating_add(span.duration));
        let of_task = match self.tasks {
            1 => Some(0).filter(|_| self.fits_among_tasks(start, end)),
            _ => self.lane_around(span, start, end),
        };
        for (lane, open) in self.open.iter_mut().enumerate() {
            while open.pop_if(|outer| *outer <= start).is_some() {}
            let is_candidate = lane >= self.tasks || of_task == Some(lane);
            if is_candidate && open.last().is_none_or(|outer| end <= *outer) {
                open.push(end);
                return (lane, false);
            }
        }
        self.open.push(vec![end]);
        (self.open.len() - 1, true)
    }

    /// The lane of the run of its task that a span is within, where several run at once.
    fn lane_around(&self, span: &Span, start: u64, end: u64) -> Option<usize> {
        let unended =
            self.unended.iter().find(|(runs, _)| runs.task == span.task && runs.start <= start);
        let after = self.process.runs.partition_point(|run| run.start <= start);
        let is_around =
            |run: &&Run| run.task == span.task && end <= run.start.saturating_add(run.duration);
        let reaching = self.process.lanes.earliest_reaching(end);
        let earlier = self.process.runs[..after].iter().rev();
        let ended = earlier.take_while(|run| run.start >= reaching).find(is_around);
        match (unended, ended) {
            (Some((_, lane)), _) => Some(usize::from(*lane)),
            (None, Some(run)) => self.fits_with(run, start, end).then_some(usize::from(run.lane)),
            (None, None) => None,
        }
    }

    /// Whatever lies between the tasks at its two ends is within it.
    fn fits_among_tasks(&self, start: u64, end: u64) -> bool {
        let runs = &self.process.runs;
        let last_before = |time: u64| {
            let after = runs.partition_point(|run| run.start < time);
            after.checked_sub(1).map(|index| &runs[index])
        };
        // A task that never returned is not among the runs, and is drawn to its end.
        let unended = self.process.unended().find(|running| {
            running.start > start && runs.last().is_none_or(|last| last.start < running.start)
        });
        unended.is_none_or(|running| end <= running.start)
            && [start.saturating_add(1), end]
                .into_iter()
                .filter_map(last_before)
                .all(|run| self.fits_with(run, start, end))
    }

    fn fits_with(&self, run: &Run, start: u64, end: u64) -> bool {
        let run_end = run.start.saturating_add(run.duration);
        if is_nested(run.start, run_end, start, end) && start < run_end && run.start < end {
            let task = Task { history: self.history, index: run.task };
            let attempt = task.attempts().find(|attempt| attempt.start_ns() == Some(run.start));
            let [fetch, _, store] = attempt.and_then(|it| it.parts_ns()).unwrap_or_default();
            let is_drawn = |part: u64| part >= SHORTEST_PART_NS;
            let (fetch_end, store_start) =
                (run.start.saturating_add(fetch), run_end.saturating_sub(store));
            return (!is_drawn(fetch)
                || is_nested(run.start.saturating_add(1), fetch_end, start, end))
                && (!is_drawn(store) || is_nested(store_start, run_end, start, end));
        }
        is_nested(run.start, run_end, start, end)
    }
}

/// Whether two stretches of time lie apart, or one within the other.
fn is_nested(start: u64, end: u64, other_start: u64, other_end: u64) -> bool {
    let are_apart = end <= other_start || other_end <= start;
    let is_within = start <= other_start && other_end <= end;
    let is_around = other_start <= start && end <= other_end;
    are_apart || is_within || is_around
}
