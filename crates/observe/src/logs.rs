//! Log files of every node.

use oxiray_wire::control::{FilePart, MOST_OF_FILE, ReadFile};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::log_stream::is_older_part;
use crate::resource::Resource;
use crate::rows::{ProcessType, hex};
use crate::session::Session;
use crate::task_output::is_notes;

/// Bytes that come at once, at most.
pub const AT_ONCE: u32 = MOST_OF_FILE;

/// Which log is wanted: by its name, or by who wrote it.
#[derive(Clone, Default, Debug)]
pub struct Wanted {
    /// Its name, or a part of it that no other has.
    pub file: Option<String>,
    /// The id of its node, or the beginning of it.
    pub node_id: Option<String>,
    /// Of the worker that is, or was, this actor.
    pub actor_id: Option<String>,
    /// Of this process.
    pub pid: Option<u32>,
    /// Its standard error rather than its output.
    pub is_error: bool,
    /// A worker's log that does not exist will do: it may print something yet.
    pub may_come: bool,
}

/// A log file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFile {
    /// The id of its node.
    pub node_id: String,
    /// Its name.
    pub file: String,
    /// Its bytes.
    pub size: u64,
    /// The process that wrote it, if it is one's own.
    pub pid: Option<u32>,
}

/// Bytes of a log file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogPart {
    /// Where they begin.
    pub offset: u64,
    /// The bytes; none: the end was reached.
    pub bytes: Vec<u8>,
    /// Bytes that the file has now.
    pub size: u64,
    /// Which file it is, whatever it is called.
    pub identity: u64,
}

impl LogPart {
    /// Where to go on.
    pub fn next(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl Session {
    /// All log files of one node, or of all: those of nodes that do not answer are
    /// missing, which is said.
    pub fn log_files(&mut self, node_id: Option<&str>) -> Result<(Vec<LogFile>, Vec<String>)> {
        let nodes = self.members()?;
        let asked: Vec<(u32, String)> = match node_id {
            Some(id) => vec![self.node_number(&nodes, id)?],
            None => nodes.alive().map(|node| (node.number, hex(&node.id))).collect(),
        };
        let mut files = Vec::new();
        let mut notes = Vec::new();
        for (number, node_id) in asked {
            match self.observer.names(number, "logs") {
                Ok(names) => {
                    let logs = names.into_iter().filter(|name| !is_notes(&name.name));
                    files.extend(logs.map(|name| LogFile {
                        node_id: node_id.clone(),
                        pid: pid_of(&name.name),
                        file: name.name,
                        size: name.size,
                    }));
                }
                Err(error @ Error::Connection { .. }) => return Err(error),
                Err(error) => notes.push(error.to_string()),
            }
        }
        Ok((files, notes))
    }

    /// Bytes of a log file of a node, by the node's id or its beginning; a negative offset
    /// counts from the end. No more than 64 KB come at once.
    pub fn read_log(
        &mut self,
        node_id: &str,
        file: &str,
        offset: i64,
        most: u32,
    ) -> Result<LogPart> {
        self.at_node(node_id, |session, node| {
            session.read(node, &format!("logs/{file}"), offset, most)
        })
    }

    /// Asks for files of a node, by the node's id or its beginning.
    pub(crate) fn at_node<T>(
        &mut self,
        node_id: &str,
        ask: impl FnOnce(&mut Self, u32) -> Result<T>,
    ) -> Result<T> {
        let number = match &self.last_node {
            Some((known, number)) if known == node_id => *number,
            _ => {
                let nodes = self.members()?;
                self.node_number(&nodes, node_id)?.0
            }
        };
        let answer = ask(self, number);
        // Who reads on asks for the same again, some times a second. A node that could not be
        // read may have left: then the list of nodes says so.
        self.last_node = answer.is_ok().then(|| (node_id.to_owned(), number));
        answer
    }

    /// The id of the node and the name of the file that are wanted; none: nothing says which.
    pub fn find_log(&mut self, wanted: &Wanted) -> Result<Option<(String, String)>> {
        let (mut node_id, mut pid) = (wanted.node_id.clone(), wanted.pid);
        if let Some(id) = &wanted.actor_id {
            let row = self.get(Resource::Actors, id)?.ok_or_else(|| {
                Error::BadQuery(format!("there is none with the id {id} among the actors"))
            })?;
            pid = row["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            node_id = row["node_id"].as_str().map(str::to_owned).or(node_id);
            if pid.is_none() {
                let state = row.get("state").and_then(Value::as_str).unwrap_or("unknown");
                return Err(Error::BadQuery(format!("no worker has run it yet: it is {state}")));
            }
        }
        let name = match (pid, &wanted.file) {
            (Some(pid), _) => {
                format!("worker-{pid}.{}", if wanted.is_error { "err" } else { "out" })
            }
            (None, Some(file)) => file.clone(),
            (None, None) => return Ok(None),
        };
        let (files, notes) = self.log_files(node_id.as_deref())?;
        let exact: Vec<&LogFile> = files.iter().filter(|file| file.file == name).collect();
        // Not the older parts of each: they are read with it.
        let is_like = |file: &&LogFile| file.file.contains(&name) && !is_older_part(&file.file);
        let partial = || files.iter().filter(is_like).collect();
        let found: Vec<&LogFile> =
            if exact.is_empty() && pid.is_none() { partial() } else { exact };
        match found[..] {
            [one] => Ok(Some((one.node_id.clone(), one.file.clone()))),
            [] if let Some(pid) = pid
                && notes.is_empty() =>
            {
                let node_id = self.node_of_worker(pid, node_id.as_deref())?;
                match wanted.may_come {
                    true => Ok(Some((node_id, name))),
                    false => Err(Error::NoSuchFile(format!(
                        "it has printed nothing: there is no file {name}"
                    ))),
                }
            }
            [] => {
                let missing: String = notes.iter().map(|note| format!(" ({note})")).collect();
                Err(Error::File(format!(
                    "there is no log file {name}; `oxiray logs` lists all{missing}"
                )))
            }
            _ => {
                let names = found.iter().map(|file| format!("{} of {}", file.file, file.node_id));
                Err(Error::BadQuery(format!(
                    "several files are called like that: {}; say which by its whole name and its \
                     node",
                    names.collect::<Vec<_>>().join(", ")
                )))
            }
        }
    }

    /// The node of a worker that is, or was lately.
    fn node_of_worker(&mut self, pid: u32, node_id: Option<&str>) -> Result<String> {
        let nodes = self.members()?;
        let wanted = node_id.map(|id| self.node_number(&nodes, id)).transpose()?;
        let (rows, _) = self.workers()?;
        let workers =
            rows.into_iter().filter(|row| row.pid == pid && row.worker_type == ProcessType::Worker);
        let mut ids = workers.filter_map(|row| row.node_id);
        let found = ids.find(|id| wanted.as_ref().is_none_or(|(_, wanted)| id == wanted));
        found.ok_or_else(|| {
            Error::BadQuery(format!(
                "there is no worker with the process id {pid}; `oxiray list workers` shows all"
            ))
        })
    }

    pub(crate) fn read(
        &mut self,
        node: u32,
        path: &str,
        offset: i64,
        most: u32,
    ) -> Result<LogPart> {
        let wanted = ReadFile {
            path: path.to_owned(),
            offset: offset.unsigned_abs(),
            from_end: offset < 0,
            most,
            ..ReadFile::default()
        };
        let part = self.observer.part(node, wanted)?;
        let FilePart { offset, bytes, size, identity, .. } = part;
        Ok(LogPart { offset, bytes, size, identity })
    }

    /// The whole of a small file, as text.
    pub(crate) fn read_text(&mut self, node: u32, path: &str) -> Result<String> {
        let part = self.read(node, path, 0, MOST_OF_FILE)?;
        Ok(String::from_utf8_lossy(&part.bytes).into_owned())
    }
}

/// `worker-17.out` is of process 17.
fn pid_of(file: &str) -> Option<u32> {
    let rest = file.strip_prefix("worker-")?;
    rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use oxiray_wire::cluster::NodeInfo;
    use oxiray_wire::control::{ClusterView, from_node, to_node};

    use super::*;
    use crate::fake_node::{FakeNode, connected, session};

    #[test]
    fn who_reads_on_does_not_ask_for_the_nodes_again() {
        let (observer, node) = connected(Duration::from_secs(30));
        let node = FakeNode::start(node, |_, question| match question {
            to_node::Body::Query(query) => {
                let nodes = vec![NodeInfo { number: 3, id: vec![0xab; 28], ..NodeInfo::default() }];
                let request = query.request;
                let view = ClusterView { request, nodes, ..ClusterView::default() };
                Some(from_node::Body::ClusterView(view))
            }
            to_node::Body::ReadFile(wanted) => {
                assert_eq!((wanted.node, wanted.path.as_str()), (3, "logs/worker-1.out"));
                let (request, offset) = (wanted.request, wanted.offset);
                let refused = if offset == 8 { "it is gone".into() } else { String::new() };
                let part = FilePart { request, offset, refused, ..FilePart::default() };
                Some(from_node::Body::FilePart(part))
            }
            _ => None,
        });
        let mut session = session(observer);
        let mut read = |offset| session.read_log("abab", "worker-1.out", offset, 1);
        (0..8).for_each(|offset| assert_eq!(read(offset).unwrap().offset, offset as u64));
        assert!(read(8).is_err());
        assert!(read(0).is_ok());
        drop(session);
        let (pieces, lists) = (8 + 1 + 1, 1 + 1);
        assert_eq!(node.asked(), pieces + lists, "again only after a failure");
    }

    #[test]
    fn files_of_workers_say_whose_they_are() {
        assert_eq!(pid_of("worker-17.out"), Some(17));
        assert_eq!(pid_of("worker-17.err.1"), Some(17));
        assert_eq!(pid_of("oxirayd.log"), None);
        assert_eq!(pid_of("worker-x.out"), None);
    }
}
