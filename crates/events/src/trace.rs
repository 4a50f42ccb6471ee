//! What ran when, all of it, in the format that chrome://tracing and Perfetto read.
//!
//! Nodes are processes of the trace, and their processes its threads; one that runs several calls
//! at once is as many threads. A task is a slice, with
//! slices inside for arguments and returns where these took long enough to be seen; the rest of it
//! is the function. Arrows lead from the tasks that made its arguments.
//!
//! Both viewers are strict, so:
//!
//! - **T-1** Times count from the first moment of the trace. Viewers read them as 64-bit floating
//!   point, which has a quarter of a microsecond left for times since 1970: slices that follow each
//!   other would overlap.
//! - **T-2** Any two slices of a row lie apart, or one within the other. Perfetto drops a slice that
//!   does not.
//! - **T-3** Both ends of an arrow are at the beginning of their task, a nanosecond before anything
//!   inside. Viewers bind an arrow to the innermost slice, and to Perfetto that is the one that
//!   began last, be it over or not. Perfetto draws it from the end of the one to the beginning of
//!   the other all the same.
//! - **T-4** A backslash at the end of a text is spelt `\u005c`. To Perfetto the quote after `\\`
//!   would not end the text, and it would refuse the whole trace.

mod spans;

use std::io::{self, BufWriter, Write};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use self::spans::SpanLanes;
use crate::format::Role;
use crate::history::{History, NONE, Process};
use crate::lanes;
use crate::task::{Attempt, Task};
use crate::texts::TextPlace;

/// A part of a task shorter than this is not drawn by itself, only said.
const SHORTEST_PART_NS: u64 = 10_000;

/// Writes a history as a JSON array, a piece at a time. What runs is drawn until `now_ns`. `text`
/// gives the words of failures and of marked spans, or `None` where they are not to be had.
pub fn write(
    history: &History,
    now_ns: u64,
    mut text: impl FnMut(TextPlace) -> Option<String>,
    out: impl Write,
) -> io::Result<()> {
    let names = history.names().iter().map(|name| json(name)).collect();
    let out = BufWriter::with_capacity(1 << 18, out);
    let zero = first_moment(history);
    // The clock of another node may be ahead.
    let now = history.extent_ns().map_or(now_ns, |(_, last)| last.max(now_ns));
    let lanes = lanes_of(history);
    let mut trace = Trace { out, first: true, names, arrows: 0, lanes, zero, now };
    trace.out.write_all(b"[")?;
    trace.rows(history)?;
    for task in history.tasks() {
        for attempt in task.attempts() {
            trace.attempt(task, attempt, &mut text)?;
        }
    }
    // After the slices that they bind.
    for task in history.tasks() {
        trace.arrows(task)?;
    }
    for process in history.processes() {
        trace.spans(history, process, &mut text)?;
    }
    trace.out.write_all(b"\n]\n")?;
    trace.out.flush()
}

/// Nothing in the trace is earlier. In whole microseconds, so that it can be said exactly.
fn first_moment(history: &History) -> u64 {
    let submitted = history.tasks().filter_map(|task| task.submitted_ns());
    let failed = history.failures.iter().map(|failed| failed.time);
    let ran = history.extent_ns().map(|(first, _)| first);
    let first = submitted.chain(failed).chain(ran).min().unwrap_or(0);
    first - first % 1000
}

/// What is not in the first lane of its process: by task and start.
type LaneOfRun = HashMap<(u32, u64), usize, RandomState>;

fn lanes_of(history: &History) -> LaneOfRun {
    let mut found = LaneOfRun::default();
    for process in history.processes() {
        let ended = process.runs.iter().map(|run| (run.task, run.start, run.lane));
        let unended = lanes::unended(process).0;
        let unended = unended.iter().map(|(runs, lane)| (runs.task, runs.start, *lane));
        let beside = ended.chain(unended).filter(|(_, _, lane)| *lane > 0);
        found.extend(beside.map(|(task, start, lane)| ((task, start), usize::from(lane))));
    }
    found
}

struct Trace<W: Write> {
    out: BufWriter<W>,
    first: bool,
    /// Quoted and escaped.
    names: Vec<String>,
    arrows: u64,
    lanes: LaneOfRun,
    /// Nanoseconds since 1970 that are 0 in the trace, and that are now.
    zero: u64,
    now: u64,
}

impl<W: Write> Trace<W> {
    fn next(&mut self) -> io::Result<&mut BufWriter<W>> {
        let separator: &[u8] = if self.first { b"\n" } else { b",\n" };
        self.first = false;
        self.out.write_all(separator)?;
        Ok(&mut self.out)
    }

    fn name(&self, index: u32) -> &str {
        self.names.get(index as usize).map_or("\"?\"", String::as_str)
    }

    fn at(&self, ns: u64) -> Micros {
        micros(ns.saturating_sub(self.zero))
    }

    fn rows(&mut self, history: &History) -> io::Result<()> {
        let mut nodes: Vec<u32> = history.processes().iter().map(|process| process.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let start = self.zero / 1000;
        // Viewers add its number.
        for node in nodes {
            write!(
                self.next()?,
                r#"{{"ph":"M","name":"process_name","pid":{node},"args":{{"name":"node","start_us":{start}}}}}"#
            )?;
        }
        // One that only others speak of has nothing to show.
        for process in history.processes().iter().filter(|process| process.pid > 0) {
            (0..lanes::unended(process).1).try_for_each(|lane| self.row(process, lane))?;
        }
        Ok(())
    }

    /// The row of an attempt that began at `start`, or of a moment.
    fn tid(&self, task: Task<'_>, start: u64, process: &Process) -> u64 {
        let lane = self.lanes.get(&(task.index, start)).copied().unwrap_or(0);
        lane_id(process.pid, lane)
    }

    fn row(&mut self, process: &Process, lane: usize) -> io::Result<()> {
        let what = match process.role {
            Role::Driver => "driver",
            Role::Worker => "worker",
            Role::Node => "node service",
        };
        let Process { node, pid, id, .. } = process;
        let tid = lane_id(*pid, lane);
        let thread = if lane > 0 { format!(", thread {}", lane + 1) } else { String::new() };
        write!(
            self.next()?,
            r#"{{"ph":"M","name":"thread_name","pid":{node},"tid":{tid},"args":{{"name":"{what} {pid}{thread}"}}}}"#
        )?;
        let order = id.number();
        write!(
            self.next()?,
            r#"{{"ph":"M","name":"thread_sort_index","pid":{node},"tid":{tid},"args":{{"sort_index":{order}}}}}"#
        )
    }

    fn attempt(
        &mut self,
        task: Task<'_>,
        attempt: Attempt<'_>,
        text: &mut impl FnMut(TextPlace) -> Option<String>,
    ) -> io::Result<()> {
        let failure = attempt.failure().filter(|_| attempt.state().has_failed());
        // One that never began is a moment in the row of its owner, if it failed.
        let (worker, start) = match (attempt.worker(), attempt.start_ns(), task.owner(), failure) {
            (Some(worker), Some(start), ..) => (worker, start),
            (_, _, Some(owner), Some(failure)) => (owner, failure.time_ns),
            _ => return Ok(()),
        };
        let state = attempt.state();
        let entry = &task.history.entries[task.index as usize];
        let name = self.name(entry.name).to_owned();
        let end = self.end(attempt, start);
        let duration = micros(end - start);
        let (node, tid) = (worker.node, self.tid(task, start, worker));
        let at = self.at(start);
        let moments = [
            ("submitted", task.submitted_ns()),
            ("ready", attempt.ready_ns().filter(|ready| Some(*ready) != task.submitted_ns())),
            ("sent", attempt.sent_ns()),
        ];
        let moments = moments.map(|(what, moment)| (what, moment.map(|moment| self.at(moment))));
        let out = self.next()?;
        match attempt.start_ns() {
            Some(_) => write!(out, r#"{{"ph":"X","dur":{duration},"#)?,
            None => write!(out, r#"{{"ph":"i","s":"t","#)?,
        }
        write!(out, r#""name":{name},"cat":"task","pid":{node},"tid":{tid},"ts":{at},"#)?;
        if state.has_failed() {
            write!(out, r#""cname":"terrible","#)?;
        }
        write!(out, r#""args":{{"task_id":"{}","state":"{}""#, task.id(), state.as_str())?;
        if attempt.number() > 0 {
            write!(out, r#","attempt":{}"#, attempt.number())?;
        }
        if let Some(parent) = task.parent() {
            write!(out, r#","parent_task_id":"{parent}""#)?;
        }
        for (what, moment) in moments {
            if let Some(moment) = moment {
                write!(out, r#","{what}_us":{moment}"#)?;
            }
        }
        let parts = attempt.parts_ns();
        if let Some([fetch, execute, store]) = parts {
            let (fetch, execute, store) = (micros(fetch), micros(execute), micros(store));
            write!(out, r#","fetch_us":{fetch},"execute_us":{execute},"store_us":{store}"#)?;
        }
        if let Some(failure) = failure {
            write!(out, r#","error_type":"{}""#, failure.error_type())?;
            if let Some(exception) = failure.exception {
                write!(out, r#","exception":{}"#, json(exception))?;
            }
            if let Some(words) = failure.text.and_then(text) {
                write!(out, r#","error":{}"#, json(&words))?;
            }
        }
        out.write_all(b"}}")?;
        match parts {
            Some([fetch, _, store]) => self.parts((node, tid), start, end, fetch, store),
            None => Ok(()),
        }
    }

    /// Where the slice of an attempt ends: one that runs, now, or with its process. None is too short for an arrow.
    fn end(&self, attempt: Attempt<'_>, start: u64) -> u64 {
        let end = attempt.end_ns().or_else(|| attempt.worker().and_then(|worker| worker.ended_ns));
        end.unwrap_or(self.now).max(start.saturating_add(1))
    }

    fn parts(
        &mut self,
        (node, tid): (u32, u64),
        start: u64,
        end: u64,
        fetch: u64,
        store: u64,
    ) -> io::Result<()> {
        // T-3: what is fetched from the first moment is drawn from the next.
        let parts = [
            ("fetch", start.saturating_add(1), fetch.saturating_sub(1)),
            ("store", end - store.min(end), store),
        ];
        for (what, at, duration) in parts {
            if duration >= SHORTEST_PART_NS {
                let (at, duration) = (self.at(at), micros(duration));
                write!(
                    self.next()?,
                    r#"{{"ph":"X","name":"{what}","cat":"part","pid":{node},"tid":{tid},"ts":{at},"dur":{duration}}}"#
                )?;
            }
        }
        Ok(())
    }

    /// From each task that it needs, see T-3.
    fn arrows(&mut self, task: Task<'_>) -> io::Result<()> {
        let history = task.history;
        let mut next = history.entries[task.index as usize].needs;
        while let Some(edge) = history.edges.get(next as usize) {
            next = edge.next_need;
            let needed = Task { history, index: edge.need };
            let (need, this) = (needed.newest(), task.newest());
            let (Some(from), Some(to)) = (need.worker(), this.worker()) else {
                continue;
            };
            let (Some(left), Some(arrived)) = (need.start_ns(), this.start_ns()) else { continue };
            let tids = (self.tid(needed, left, from), self.tid(task, arrived, to));
            let (left, arrived) = (self.at(left), self.at(arrived));
            self.arrows += 1;
            let id = self.arrows;
            let out = self.next()?;
            write!(
                out,
                r#"{{"ph":"s","id":{id},"name":"argument","cat":"argument","pid":{},"tid":{},"ts":{left}}},"#,
                from.node, tids.0
            )?;
            write!(
                out,
                r#"{{"ph":"f","bp":"e","id":{id},"name":"argument","cat":"argument","pid":{},"tid":{},"ts":{arrived}}}"#,
                to.node, tids.1
            )?;
        }
        Ok(())
    }

    fn spans(
        &mut self,
        history: &History,
        process: &Process,
        text: &mut impl FnMut(TextPlace) -> Option<String>,
    ) -> io::Result<()> {
        let Process { node, pid, .. } = process;
        let mut lanes = SpanLanes::new(history, process);
        for span in spans::outer_first(&process.spans) {
            let name = self.name(span.name).to_owned();
            let (lane, is_new) = lanes.place(span);
            if is_new {
                self.row(process, lane)?;
            }
            let tid = lane_id(*pid, lane);
            let (at, duration) = (self.at(span.start), micros(span.duration));
            let out = self.next()?;
            write!(
                out,
                r#"{{"ph":"X","name":{name},"cat":"profile","pid":{node},"tid":{tid},"ts":{at},"dur":{duration},"args":{{"#
            )?;
            let mut separator = "";
            if span.task != NONE {
                write!(out, r#""task_id":"{}""#, Task { history, index: span.task }.id())?;
                separator = ",";
            }
            let (log, chunk) = (span.log, span.chunk);
            let place = TextPlace { node: *node, log, chunk, at: span.extra };
            if let Some(extra) = Some(place).filter(|place| place.at > 0).and_then(&mut *text) {
                write!(out, r#"{separator}"extra_data":{}"#, extra_data(&extra))?;
            }
            out.write_all(b"}}")?;
        }
        Ok(())
    }
}

/// Process ids end below this.
const PID_LIMIT: u64 = 1 << 22;

/// The first lane of a process has its number, the others numbers that no process has.
fn lane_id(pid: u32, lane: usize) -> u64 {
    u64::from(pid) + lane as u64 * PID_LIMIT
}

/// What users gave with a span is JSON, unless it was cut.
fn extra_data(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => spell_last_backslashes(text),
        Err(_) => json(text),
    }
}

fn json(text: &str) -> String {
    spell_last_backslashes(&serde_json::Value::from(text).to_string())
}

/// T-4, in any JSON.
fn spell_last_backslashes(json: &str) -> String {
    let mut spelt = String::with_capacity(json.len());
    let mut rest = json;
    // What follows a backslash is escaped by it, also if it is another.
    while let Some(at) = rest.find('\\').filter(|at| at + 2 <= rest.len()) {
        let (before, escape) = rest.split_at(at);
        spelt.push_str(before);
        spelt.push_str(if escape.starts_with(r#"\\""#) { r"\u005c" } else { &escape[..2] });
        rest = &escape[2..];
    }
    spelt.push_str(rest);
    spelt
}

/// Nanoseconds as microseconds, to the last digit.
#[derive(Clone, Copy)]
struct Micros(u64);

fn micros(ns: u64) -> Micros {
    Micros(ns)
}

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
