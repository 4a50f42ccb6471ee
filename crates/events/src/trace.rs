//! What ran when, all of it, in the format that chrome://tracing and Perfetto read.
//!
//! Nodes are processes of the trace, and their processes its threads. A task is a slice, with
//! slices inside for arguments, the function and returns where these took long enough to be seen;
//! arrows lead from the tasks that made its arguments.

use std::io::{self, BufWriter, Write};

use crate::format::Role;
use crate::history::{History, NONE, Process};
use crate::task::{Attempt, State, Task};
use crate::texts::TextPlace;

/// A part of a task shorter than this is not drawn by itself, only said.
const SHORTEST_PART_NS: u64 = 10_000;

/// Writes a history as a JSON array, a piece at a time. `text` gives the words of failures and of
/// marked spans, or `None` where they are not to be had.
pub fn write(
    history: &History,
    mut text: impl FnMut(TextPlace) -> Option<String>,
    out: impl Write,
) -> io::Result<()> {
    let names = history.names().iter().map(|name| json(name)).collect();
    let mut trace =
        Trace { out: BufWriter::with_capacity(1 << 18, out), first: true, names, arrows: 0 };
    trace.out.write_all(b"[")?;
    trace.rows(history)?;
    for task in history.tasks() {
        trace.task(task, &mut text)?;
    }
    for process in history.processes() {
        trace.spans(history, process, &mut text)?;
    }
    trace.out.write_all(b"\n]\n")?;
    trace.out.flush()
}

struct Trace<W: Write> {
    out: BufWriter<W>,
    first: bool,
    /// Quoted and escaped.
    names: Vec<String>,
    arrows: u64,
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

    fn rows(&mut self, history: &History) -> io::Result<()> {
        let mut nodes: Vec<u32> = history.processes().iter().map(|process| process.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            write!(
                self.next()?,
                r#"{{"ph":"M","name":"process_name","pid":{node},"args":{{"name":"node {node}"}}}}"#
            )?;
        }
        // One that only others speak of has nothing to show.
        for process in history.processes().iter().filter(|process| process.pid > 0) {
            let what = match process.role {
                Role::Driver => "driver",
                Role::Worker => "worker",
                Role::Node => "node service",
            };
            let Process { node, pid, id, .. } = process;
            write!(
                self.next()?,
                r#"{{"ph":"M","name":"thread_name","pid":{node},"tid":{pid},"args":{{"name":"{what} {pid}"}}}}"#
            )?;
            let order = id.number();
            write!(
                self.next()?,
                r#"{{"ph":"M","name":"thread_sort_index","pid":{node},"tid":{pid},"args":{{"sort_index":{order}}}}}"#
            )?;
        }
        Ok(())
    }

    fn task(
        &mut self,
        task: Task<'_>,
        text: &mut impl FnMut(TextPlace) -> Option<String>,
    ) -> io::Result<()> {
        for attempt in task.attempts() {
            self.attempt(task, attempt, text)?;
        }
        self.arrows(task)
    }

    fn attempt(
        &mut self,
        task: Task<'_>,
        attempt: Attempt<'_>,
        text: &mut impl FnMut(TextPlace) -> Option<String>,
    ) -> io::Result<()> {
        let failure = attempt.failure().filter(|_| attempt.state() == State::Failed);
        // One that never began is a moment in the row of its owner, if it failed.
        let (worker, start) = match (attempt.worker(), attempt.start_ns(), task.owner(), failure) {
            (Some(worker), Some(start), ..) => (worker, start),
            (_, _, Some(owner), Some(failure)) => (owner, failure.time_ns),
            _ => return Ok(()),
        };
        let end = attempt.end_ns();
        let state = attempt.state();
        let entry = &task.history.entries[task.index as usize];
        let name = self.name(entry.name).to_owned();
        let out = self.next()?;
        let duration = micros(end.map_or(0, |end| end.saturating_sub(start)));
        let (node, pid) = (worker.node, worker.pid);
        let at = micros(start);
        // A slice without an end is drawn to the end of the trace.
        match (attempt.start_ns(), end) {
            (Some(_), Some(_)) => write!(out, r#"{{"ph":"X","dur":{duration},"#)?,
            (Some(_), None) => write!(out, r#"{{"ph":"B","#)?,
            (None, _) => write!(out, r#"{{"ph":"i","s":"t","#)?,
        }
        write!(out, r#""name":{name},"cat":"task","pid":{node},"tid":{pid},"ts":{at},"#)?;
        if state == State::Failed {
            write!(out, r#""cname":"terrible","#)?;
        }
        write!(out, r#""args":{{"task_id":"{}","state":"{}""#, task.id(), state.as_str())?;
        if attempt.number() > 0 {
            write!(out, r#","attempt":{}"#, attempt.number())?;
        }
        if let Some(parent) = task.parent() {
            write!(out, r#","parent_task_id":"{parent}""#)?;
        }
        let moments = [
            ("submitted", task.submitted_ns()),
            ("ready", attempt.ready_ns().filter(|ready| Some(*ready) != task.submitted_ns())),
            ("sent", attempt.sent_ns()),
        ];
        for (what, moment) in moments {
            if let Some(moment) = moment {
                write!(out, r#","{what}_us":{}"#, micros(moment))?;
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
            Some(parts) => self.parts(worker, start, parts),
            None => Ok(()),
        }
    }

    fn parts(&mut self, worker: &Process, start: u64, parts: [u64; 3]) -> io::Result<()> {
        let [fetch, execute, store] = parts;
        if fetch < SHORTEST_PART_NS && store < SHORTEST_PART_NS {
            return Ok(());
        }
        let (node, pid) = (worker.node, worker.pid);
        let mut at = start;
        for (what, duration) in [("fetch", fetch), ("execute", execute), ("store", store)] {
            if duration >= SHORTEST_PART_NS {
                let (start, duration) = (micros(at), micros(duration));
                write!(
                    self.next()?,
                    r#"{{"ph":"X","name":"{what}","cat":"part","pid":{node},"tid":{pid},"ts":{start},"dur":{duration}}}"#
                )?;
            }
            at = at.saturating_add(duration);
        }
        Ok(())
    }

    /// From the end of each task that it needs to its own beginning.
    fn arrows(&mut self, task: Task<'_>) -> io::Result<()> {
        let history = task.history;
        let mut next = history.entries[task.index as usize].needs;
        while let Some(edge) = history.edges.get(next as usize) {
            next = edge.next_need;
            let need = Task { history, index: edge.need }.newest();
            let this = task.newest();
            let (Some(from), Some(to)) = (need.worker(), this.worker()) else {
                continue;
            };
            // Both ends must lie within their slices.
            let (Some(begun), Some(left)) = (need.start_ns(), need.end_ns()) else { continue };
            let Some(arrived) = this.start_ns() else { continue };
            let left = micros(left.saturating_sub(1000).max(begun));
            let arrived = micros(arrived);
            self.arrows += 1;
            let id = self.arrows;
            let out = self.next()?;
            write!(
                out,
                r#"{{"ph":"s","id":{id},"name":"argument","cat":"argument","pid":{},"tid":{},"ts":{left}}},"#,
                from.node, from.pid
            )?;
            write!(
                out,
                r#"{{"ph":"f","bp":"e","id":{id},"name":"argument","cat":"argument","pid":{},"tid":{},"ts":{arrived}}}"#,
                to.node, to.pid
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
        for span in &process.spans {
            let name = self.name(span.name).to_owned();
            let (at, duration) = (micros(span.start), micros(span.duration));
            let out = self.next()?;
            write!(
                out,
                r#"{{"ph":"X","name":{name},"cat":"profile","pid":{node},"tid":{pid},"ts":{at},"dur":{duration},"args":{{"#
            )?;
            let mut separator = "";
            if span.task != NONE {
                write!(out, r#""task_id":"{}""#, Task { history, index: span.task }.id())?;
                separator = ",";
            }
            let place = TextPlace { node: *node, process: process.id.number(), at: span.extra };
            if let Some(extra) = Some(place).filter(|place| place.at > 0).and_then(&mut *text) {
                write!(out, r#"{separator}"extra_data":{}"#, extra_data(&extra))?;
            }
            out.write_all(b"}}")?;
        }
        Ok(())
    }
}

/// What users gave with a span is JSON, unless it was cut.
fn extra_data(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => text.to_owned(),
        Err(_) => json(text),
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Nanoseconds as microseconds, to the last digit.
struct Micros(u64);

fn micros(ns: u64) -> Micros {
    Micros(ns)
}

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
