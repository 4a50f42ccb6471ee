//! A session as `oxiray-observe` sees it.

use std::io::Write;

use axum::http::StatusCode;
use oxiray_observe::log_stream::{LogChunk, LogPlace};
use oxiray_observe::logs::AT_ONCE;
use oxiray_observe::task_output::{Place, TaskOutput, WantedTask};
use oxiray_observe::{Error, Page, Query, Resource, Session};
use serde_json::{Map, Value, json};

use crate::Options;
use crate::reply::Fault;
use crate::source::{Answer, Piece, Source, Window, WorkerPlace};

/// The version of Ray whose interface this is, as `oxiray._version` has it.
const RAY_VERSION: &str = "2.60.0";
/// How much of what a task printed is shown: its end.
const MOST_OF_LOG: u64 = 256 * 1024;
const NS_PER_MS: f64 = 1e6;

/// The session.
pub(crate) struct Observed {
    session: Session,
    python_version: String,
    /// Tasks by name, and the version of the history that they were counted in.
    tasks: (u64, Value),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::BadQuery(_) => StatusCode::BAD_REQUEST,
            Error::NodeGone { .. } | Error::File(_) | Error::NoSuchFile(_) => StatusCode::NOT_FOUND,
            Error::NotInstalled(_) => StatusCode::NOT_IMPLEMENTED,
            Error::Program(_) => StatusCode::BAD_GATEWAY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl Observed {
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        let session = Session::open(&options.session_dir)?;
        let python_version = options.python_version.clone();
        Ok(Self { session, python_version, tasks: (0, Value::Null) })
    }

    /// Counted only if anything has happened: there may be a million.
    fn tasks(&mut self) -> Answer<Value> {
        let version = self.session.history()?.version();
        if self.tasks.0 != version || self.tasks.1.is_null() {
            self.tasks = (version, self.session.summary(Resource::Tasks)?);
        }
        Ok(self.tasks.1.clone())
    }

    fn rows(&mut self, resource: Resource) -> Answer<Vec<Value>> {
        Ok(self.session.list(resource, &Query::default())?.rows)
    }
}

impl Source for Observed {
    fn cluster(&mut self) -> Answer<Value> {
        let Page { rows: nodes, notes: mut missing, .. } =
            self.session.list(Resource::Nodes, &Query::default())?;
        let (actors, jobs) = (self.rows(Resource::Actors)?, self.rows(Resource::Jobs)?);
        let groups = self.rows(Resource::PlacementGroups)?;
        let without_room = self.session.groups_without_room()?;
        let tasks = self.tasks()?;
        missing.extend_from_slice(self.session.missing());
        missing.sort_unstable();
        missing.dedup();
        let session = self.session.dir().file_name().unwrap_or_default();
        let alive = || nodes.iter().filter(|node| node["state"] != "DEAD");
        let total = |key: &str| alive().filter_map(|node| node[key].as_u64()).sum::<u64>();
        let started = nodes.iter().filter_map(|node| node["start_time_ms"].as_f64());
        let waiting = alive().filter_map(|node| node["waiting"].as_array()).flatten();
        Ok(json!({
            "session": session.to_string_lossy(),
            "address": self.session.control().unwrap_or("local"),
            "python_version": self.python_version,
            "oxiray_version": env!("CARGO_PKG_VERSION"),
            "ray_version": RAY_VERSION,
            "started_ms": started.reduce(f64::min),
            "resources_total": sum(alive().map(|node| &node["resources_total"])),
            "resources_available": sum(alive().map(|node| &node["resources_available"])),
            "store_used": total("store_used"),
            "store_size": total("store_size"),
            "tasks": sum(tasks["rows"].as_array().into_iter().flatten().map(|row| &row["states"])),
            "actors": counts(&actors, "state"),
            "jobs": counts(&jobs, "status"),
            "placement_groups": counts(&groups, "state"),
            "waiting": waiting.cloned().chain(without_room.into_iter().map(Value::from))
                .collect::<Vec<_>>(),
            "missing": missing,
            "nodes": nodes,
        }))
    }

    fn list(&mut self, resource: Resource, query: &Query) -> Answer<Value> {
        let page = self.session.list(resource, query)?;
        let (total, filtered) = (page.total, page.filtered);
        Ok(json!({
            "total": total, "filtered": filtered, "rows": page.rows, "notes": page.notes,
        }))
    }

    fn get(&mut self, resource: Resource, id: &str) -> Answer<Option<Value>> {
        self.session.get(resource, id).map_err(of_one)
    }

    fn summary(&mut self, resource: Resource) -> Answer<Value> {
        match resource {
            Resource::Tasks => self.tasks(),
            _ => Ok(self.session.summary(resource)?),
        }
    }

    fn why(&mut self, task: &str) -> Answer<Option<String>> {
        Ok(self.session.why(task).map_err(of_one)?.into_iter().next())
    }

    fn cancel(&mut self, task: &str, force: bool) -> Answer<Option<bool>> {
        match self.get(Resource::Tasks, task)? {
            Some(_) => Ok(self.session.cancel(task, force)?),
            None => Ok(None),
        }
    }

    fn kill(&mut self, actor: &str) -> Answer<Option<bool>> {
        Ok(self.session.kill(actor)?)
    }

    fn task_log(&mut self, task: &str) -> Answer<Option<Value>> {
        let Some(row) = self.get(Resource::Tasks, task)? else {
            return Ok(None);
        };
        let mut printed = |is_error| -> Answer<Value> {
            let mut output = TaskOutput::default();
            if !row["worker_pid"].is_null() {
                let wanted = WantedTask { id: task.to_owned(), is_error, may_come: true };
                output = self.session.task_output(&wanted, &Place::default(), MOST_OF_LOG)?;
            }
            let text = String::from_utf8_lossy(&output.bytes);
            Ok(json!({ "text": text, "truncated": output.is_cut }))
        };
        Ok(Some(json!({ "out": printed(false)?, "err": printed(true)? })))
    }

    fn timeline(&mut self, window: &Window) -> Answer<Value> {
        let ns = |ms: f64| (ms * NS_PER_MS) as u64;
        let (from, to) = (window.from.map(ns), window.to.map(ns));
        Ok(self.session.timeline(from, to, window.width, &window.search)?)
    }

    fn trace(&mut self, out: &mut dyn Write) -> Answer<()> {
        for note in self.session.write_trace(out)? {
            tracing::warn!(note, "the timeline is not whole");
        }
        Ok(())
    }

    fn log_files(&mut self) -> Answer<Value> {
        let (files, notes) = self.session.log_files(None)?;
        let files: Vec<Value> = files
            .into_iter()
            .map(|file| {
                let (node, name) = (file.node_id, file.file);
                json!({ "node_id": node, "file": name, "size": file.size, "pid": file.pid })
            })
            .collect();
        Ok(json!({ "files": files, "notes": notes }))
    }

    fn read_log(&mut self, node: &str, file: &str, offset: i64, most: usize) -> Answer<Piece> {
        let read = self.session.read_log(node, file, offset, most_bytes(most));
        let part = read.map_err(unknown_log)?;
        let place = LogPlace { file: part.identity, offset: part.next(), number: 0 };
        Ok(piece(LogChunk { part, place, ..LogChunk::default() }))
    }

    fn read_log_on(
        &mut self,
        node: &str,
        file: &str,
        after: LogPlace,
        most: usize,
    ) -> Answer<Piece> {
        let read = self.session.read_on(node, file, &after, most_bytes(most));
        Ok(piece(read.map_err(unknown_log)?))
    }

    fn figures(&mut self) -> Answer<Vec<Value>> {
        Ok(self.session.figures()?.0)
    }

    fn worker(&mut self, id: &str) -> Answer<Option<WorkerPlace>> {
        let here = self.session.node_id();
        let row = self.get(Resource::Workers, id)?;
        let row = row.filter(|row| row["is_alive"] == true);
        Ok(row.and_then(|row| {
            let pid = row["pid"].as_u64()?.try_into().ok()?;
            Some(WorkerPlace { pid, is_here: row["node_id"] == *here })
        }))
    }
}

/// What is wrong with an id: it is the beginning of several.
fn of_one(error: Error) -> Fault {
    match error {
        Error::BadQuery(why) => Fault::new(StatusCode::CONFLICT, why),
        error => error.into(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn most_bytes(most: usize) -> u32 {
    most.min(AT_ONCE as usize) as u32
}

fn unknown_log(error: Error) -> Fault {
    match error {
        Error::BadQuery(why) => Fault::unknown(why),
        error => error.into(),
    }
}

/// A character that goes on behind the last byte is left for the next piece.
fn piece(LogChunk { part, mut place, is_after_loss, .. }: LogChunk) -> Piece {
    let bytes = &part.bytes[..whole_characters(&part.bytes)];
    let next = part.offset + bytes.len() as u64;
    if next < part.next() {
        place = LogPlace { file: part.identity, offset: next, number: place.number };
    }
    Piece {
        part: part.identity,
        offset: part.offset,
        next,
        size: part.size,
        text: String::from_utf8_lossy(bytes).into_owned(),
        is_after_loss,
        place,
    }
}

/// How many rows have which value.
fn counts(rows: &[Value], key: &str) -> Value {
    let ones: Vec<Value> = rows.iter().map(|row| json!({ text(&row[key]): 1 })).collect();
    sum(ones.iter())
}

/// Objects of numbers, added up by their keys.
fn sum<'a>(objects: impl Iterator<Item = &'a Value>) -> Value {
    let mut sums: Map<String, Value> = Map::new();
    for (key, value) in objects.filter_map(Value::as_object).flatten() {
        let known = sums.entry(key).or_insert(json!(0));
        *known = match (known.as_u64(), value.as_u64()) {
            (Some(a), Some(b)) => json!(a + b),
            _ => json!(known.as_f64().unwrap_or(0.0) + value.as_f64().unwrap_or(0.0)),
        };
    }
    sums.into()
}

/// How many bytes there are before a character that goes on behind the last of them.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // Nothing of it is wrong, only missing.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use oxiray_observe::logs::LogPart;

    use super::*;

    #[test]
    fn numbers_are_added_by_key() {
        let objects = [json!({ "CPU": 2, "x": 0.5 }), json!({ "CPU": 1, "x": 1 }), Value::Null];
        assert_eq!(sum(objects.iter()), json!({ "CPU": 3, "x": 1.5 }));
        let rows = [json!({ "state": "A" }), json!({ "state": "B" }), json!({ "state": "A" })];
        assert_eq!(counts(&rows, "state"), json!({ "A": 2, "B": 1 }));
    }

    #[test]
    fn what_is_not_installed_is_told_apart_from_what_failed() {
        let status = |error: Error| Fault::from(error).status.as_u16();
        assert_eq!(status(Error::NotInstalled("pip install py-spy")), 501);
        assert_eq!(status(Error::Program("no".into())), 502);
        assert_eq!(status(Error::BadQuery("no".into())), 400);
    }

    #[test]
    fn a_character_is_read_whole_before_the_next_part_is() {
        let part =
            LogPart { bytes: "aé".as_bytes()[..2].to_vec(), identity: 5, ..Default::default() };
        let place = LogPlace { file: 6, offset: 0, number: 1 };
        let piece = piece(LogChunk { part, place, ..LogChunk::default() });
        assert_eq!((piece.text.as_str(), piece.next), ("a", 1));
        assert_eq!(piece.place, LogPlace { file: 5, offset: 1, number: 1 });
    }

    #[test]
    fn characters_are_not_cut_and_junk_is_kept() {
        assert_eq!(whole_characters("aé".as_bytes()), 3);
        assert_eq!(whole_characters(&"aé".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(b"a\xff\xfeb"), 4);
        // At the very beginning there is nothing to wait for.
        assert_eq!(whole_characters(&"é".as_bytes()[..1]), 1);
    }
}
