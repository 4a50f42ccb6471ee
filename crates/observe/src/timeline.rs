//! What ran when, as JSON that a page draws.

use std::time::{SystemTime, UNIX_EPOCH};

use oxiray_events::timeline::{self, Filter, Span};
use oxiray_events::{Role, State};
use serde_json::{Value, json};

use crate::error::Result;
use crate::session::Session;

impl Session {
    /// The timeline between two moments in nanoseconds since 1970, from the first to the last
    /// unless they are given, as detailed as `width` pixels can show. Only tasks whose name
    /// contains `search`.
    pub fn timeline(
        &mut self,
        from_ns: Option<u64>,
        to_ns: Option<u64>,
        width: u32,
        search: &str,
    ) -> Result<Value> {
        let nodes = self.members()?;
        self.missing = self.update_history()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = now.as_nanos() as u64;
        let (first, mut last) = self.history.extent_ns().unwrap_or((now, now));
        if self.history.summary().iter().any(|row| row.states[State::Running as usize] > 0) {
            // What runs has no end yet.
            last = last.max(now);
        }
        let (from, to) = (from_ns.unwrap_or(first), to_ns.unwrap_or(last));
        let filter = Filter { name: search.to_owned() };
        let view = timeline::view(&self.history, from, to.max(from), width, &filter);
        let rows: Vec<Value> = view
            .rows
            .iter()
            .map(|row| {
                let process = row.process;
                let what = if process.role == Role::Driver { "driver" } else { "worker" };
                // Of one that runs several calls at once.
                let lane =
                    if row.lane > 0 { format!(" · {}", row.lane + 1) } else { String::new() };
                json!({
                    "node_id": nodes.id(process.node),
                    "worker_id": nodes.worker_id(process.id),
                    "pid": process.pid,
                    "lane": row.lane,
                    "label": format!("{what} {}{lane}", process.pid),
                    "spans": row.spans.iter().map(span).collect::<Vec<_>>(),
                })
            })
            .collect();
        Ok(json!({
            "from": ms(from),
            "to": ms(to.max(from)),
            "first": ms(first),
            "last": ms(last),
            "names": view.names,
            "rows": rows,
        }))
    }
}

/// A list and not an object: there are thousands.
fn span(span: &Span) -> Value {
    json!([
        ms(span.start_ns),
        ms(span.duration_ns),
        span.name,
        span.count,
        span.state.as_str(),
        span.task.map(|task| task.to_string()),
    ])
}

/// To the microsecond.
fn ms(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1000.0
}
