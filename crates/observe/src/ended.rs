//! A session that has ended, and answers as its node would: from what it left.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oxiray_ids::ProcessId;
use oxiray_session::{Record, Session as Directory, files};
use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::{
    Listing, ObjectReport, Query, Registered, TaskReport, Topic, from_node::Body, to_node,
};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Ended {
    path: PathBuf,
    /// Nobody removes it while it is looked at.
    _held: Directory,
    registered: Registered,
    /// What it listed last.
    last: Listing,
    at: Option<SystemTime>,
    answers: VecDeque<Body>,
}

impl Ended {
    /// None: somebody removes it.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(held) = Directory::at(path)?.hold()? else {
            return Ok(None);
        };
        let Record { said, at } = Record::of(path)?;
        let mut registered = Registered::default();
        let mut last = Listing::default();
        for body in said {
            match body {
                Body::Registered(known) => registered = known,
                Body::Listing(part) => {
                    last.nodes.extend(part.nodes);
                    last.jobs.extend(part.jobs);
                    last.submissions.extend(part.submissions);
                    last.actors.extend(part.actors);
                    last.processes.extend(part.processes);
                    last.groups.extend(part.groups);
                }
                _ => {}
            }
        }
        // It is asked itself: what other nodes of its cluster had is with them.
        registered.control.clear();
        // One that was killed has not said its number: alone it is the first.
        if registered.process == 0 {
            registered.process = ProcessId::new(1, 0).0;
        }
        let number = ProcessId(registered.process).node();
        last.nodes.retain(|node| node.number == number);
        if last.nodes.is_empty() {
            let id = registered.node.clone();
            last.nodes.push(NodeInfo { number, id, ..NodeInfo::default() });
        }
        let (path, answers) = (path.to_owned(), VecDeque::new());
        Ok(Some(Self { path, _held: held, registered, last, at, answers }))
    }

    pub(crate) fn registered(&self) -> Registered {
        self.registered.clone()
    }

    /// When it ended, in nanoseconds since 1970: now, if it was killed and nobody knows.
    pub(crate) fn at_ns(&self) -> u64 {
        let at = self.at.unwrap_or_else(SystemTime::now).duration_since(UNIX_EPOCH);
        at.unwrap_or(Duration::ZERO).as_nanos() as u64
    }

    pub(crate) fn ask(&mut self, question: to_node::Body) {
        let answer = match question {
            to_node::Body::Query(query) => self.list(&query),
            to_node::Body::ReadFile(wanted) => {
                Body::FilePart(files::answer(&wanted, files::read(&self.path, &wanted)))
            }
            _ => return,
        };
        self.answers.push_back(answer);
    }

    pub(crate) fn answer(&mut self) -> Option<Body> {
        self.answers.pop_front()
    }

    fn list(&self, query: &Query) -> Body {
        let request = query.request;
        let last = self.last.clone();
        let part = Listing { request, ..Listing::default() };
        Body::Listing(match query.topic() {
            Topic::Nodes => Listing { nodes: last.nodes, ..part },
            Topic::Jobs => Listing { jobs: last.jobs, submissions: last.submissions, ..part },
            Topic::Actors => Listing { actors: last.actors, ..part },
            Topic::Processes => Listing { processes: last.processes, ..part },
            Topic::Groups => Listing { groups: last.groups, ..part },
            // Nobody holds anything any more, and nothing waits.
            Topic::Objects => {
                return Body::ObjectReport(ObjectReport { request, ..ObjectReport::default() });
            }
            Topic::Tasks | Topic::Worker | Topic::Cancel => {
                return Body::TaskReport(TaskReport { request, ..TaskReport::default() });
            }
            Topic::Cluster => return self.view(request),
        })
    }

    fn view(&self, request: u64) -> Body {
        let node = self.last.nodes.first().cloned().unwrap_or_default();
        Body::ClusterView(oxiray_wire::control::ClusterView {
            request,
            node: node.id.clone(),
            total: node.total.clone(),
            nodes: self.last.nodes.clone(),
            host: node.host.clone(),
            pid: node.pid,
            store_size: node.store_size,
            ..oxiray_wire::control::ClusterView::default()
        })
    }
}
