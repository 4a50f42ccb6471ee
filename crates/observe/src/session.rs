//! One session, or one cluster: what is in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use oxiray_events::History;
use oxiray_wire::cluster::{ActorInfo, GroupInfo};
use oxiray_wire::control::{
    ActorPhase, ClusterView, Listing, ProcessInfo, Query as Asked, Topic, from_node::Body, to_node,
};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::find;
use crate::machine::{Machines, used_by};
use crate::observer::{Observer, Question};
use crate::query::{Page, Query, summarise};
use crate::resource::Resource;
use crate::row::{Cell, together};
use crate::rows::actors::{ActorDetail, ActorRow};
use crate::rows::jobs::{CLERKS, JobRow, Program, programs, supervisor};
use crate::rows::nodes::NodeRow;
use crate::rows::objects::{Held, ObjectRow, name_owners};
use crate::rows::placement_groups::{self, PlacementGroupDetail, PlacementGroupRow};
use crate::rows::workers::{self, WorkerRow};
use crate::rows::{Nodes, hex};

/// A connection to one node that answers for all.
pub struct Session {
    pub(crate) dir: PathBuf,
    pub(crate) observer: Observer,
    pub(crate) machines: Machines,
    pub(crate) history: History,
    pub(crate) missing: Vec<String>,
    pub(crate) gaps: Vec<String>,
    /// The node whose files were read last: what it was called, and its number.
    pub(crate) last_node: Option<(String, u32)>,
}

impl Session {
    /// The session of that address, see [`find::session`].
    pub fn find(address: Option<&str>) -> Result<Self> {
        find::session(address)
    }

    /// The session in that directory.
    pub fn open(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            return Err(Error::File(format!("there is no session directory {}", dir.display())));
        }
        Ok(Self::over(dir, Observer::connect(dir)?))
    }

    /// What is left of a session that has ended, in that directory.
    pub fn open_ended(dir: &Path) -> Result<Self> {
        Ok(Self::over(dir, Observer::of_ended(dir)?))
    }

    fn over(dir: &Path, observer: Observer) -> Self {
        let (machines, history) = (Machines::default(), History::new());
        let (missing, gaps) = (Vec::new(), Vec::new());
        let (dir, last_node) = (dir.to_owned(), None);
        Self { dir, observer, machines, history, missing, gaps, last_node }
    }

    /// Whether it has ended, so that this is what it left.
    pub fn has_ended(&self) -> bool {
        self.observer.ended_ns().is_some()
    }

    /// Its directory: of the node that is asked.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the control service of the cluster is reached; none: the session is one driver's.
    pub fn control(&self) -> Option<&str> {
        Some(self.observer.registered.control.as_str()).filter(|address| !address.is_empty())
    }

    /// How long a node may take to answer before it is left out; never more than three seconds.
    pub fn set_patience(&mut self, patience: Duration) {
        self.observer.set_patience(patience);
    }

    /// The id of the node that is asked.
    pub fn node_id(&self) -> String {
        hex(&self.observer.registered.node)
    }

    /// What is missing from what [`Self::get`], [`Self::summary`], [`Self::history`] or
    /// [`Self::why`] gave last, in sentences: some nodes may not have answered.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Those of the sentences on tasks that will be true for as long as the session lasts: what
    /// they speak of cannot be had by asking again.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// The rows of a resource that meet a query.
    pub fn list(&mut self, resource: Resource, query: &Query) -> Result<Page> {
        let mut rows = Vec::new();
        let page = self.each_row(resource, query, |row| -> Result<()> {
            rows.push(row);
            Ok(())
        })?;
        Ok(Page { rows, ..page })
    }

    /// As [`Self::list`], with the rows as the text of one JSON array instead: for many tasks that
    /// takes a fraction of the memory.
    pub fn list_json(&mut self, resource: Resource, query: &Query) -> Result<(Page, String)> {
        let mut text = String::from("[");
        let page = self.each_row(resource, query, |row| -> Result<()> {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&row.to_string());
            Ok(())
        })?;
        text.push(']');
        Ok((page, text))
    }

    /// As [`Self::list`], with each row given to `take` as it is made, until that fails: a million
    /// at once would be gigabytes. The page has none.
    pub fn each_row<E: From<Error>>(
        &mut self,
        resource: Resource,
        query: &Query,
        mut take: impl FnMut(Value) -> std::result::Result<(), E>,
    ) -> std::result::Result<Page, E> {
        query.check(resource)?;
        if resource == Resource::Tasks {
            return self.each_task(query, take);
        }
        let (rows, notes) = self.rows(resource, query.detail)?;
        let mut page = query.page(resource, rows, notes);
        std::mem::take(&mut page.rows).into_iter().try_for_each(&mut take)?;
        Ok(page)
    }

    /// The row of an id, or of the beginning of one, with all details. Of an object the owner's.
    pub fn get(&mut self, resource: Resource, id: &str) -> Result<Option<Value>> {
        Ok(self.get_all(resource, id)?.into_iter().next())
    }

    /// All rows of an id, or of the beginning of one, with all details. Objects have a row for each
    /// process that holds them, the owner's first; all else has one.
    pub fn get_all(&mut self, resource: Resource, id: &str) -> Result<Vec<Value>> {
        let id = id.to_ascii_lowercase();
        if id.is_empty() {
            return Err(Error::BadQuery(format!("the id of one of the {resource} is needed")));
        }
        if resource == Resource::Tasks {
            return Ok(self.get_task(&id)?.into_iter().collect());
        }
        let column = resource.id_column();
        let (rows, missing) = self.rows(resource, true)?;
        self.missing = missing;
        let mut found: Vec<Value> = rows
            .into_iter()
            .filter(|row| row[column].as_str().is_some_and(|text| text.starts_with(&id)))
            .collect();
        if found.iter().any(|row| row[column] == *id) {
            found.retain(|row| row[column] == *id);
        }
        let first = found.first().map(|row| row[column].clone());
        if found.iter().any(|row| Some(&row[column]) != first.as_ref()) {
            return Err(Error::BadQuery(format!(
                "the ids of {} {resource} begin with {id}: give more of it",
                found.len()
            )));
        }
        Ok(found)
    }

    /// How many there are of each name, by state: `{rows: [{name, type, states}], total}`.
    pub fn summary(&mut self, resource: Resource) -> Result<Value> {
        if resource == Resource::Tasks {
            return self.summarise_tasks();
        }
        let (rows, missing) = self.rows(resource, false)?;
        self.missing = missing;
        Ok(match resource {
            Resource::Tasks => Value::Null,
            Resource::Objects => {
                let mut summary = summarise(&rows, "call_site", None, resource.state_column());
                summary["total_bytes"] = owned_bytes(&rows).into();
                summary
            }
            Resource::Actors => summarise(&rows, "class_name", None, resource.state_column()),
            Resource::Nodes => summarise(&rows, "node_name", None, resource.state_column()),
            Resource::Workers => summarise(&rows, "worker_type", None, resource.state_column()),
            Resource::Jobs => summarise(&rows, "entrypoint", None, resource.state_column()),
            Resource::PlacementGroups => {
                summarise(&rows, "strategy", None, resource.state_column())
            }
        })
    }

    /// What every process of the node that is asked holds; and what is missing, in sentences.
    pub fn held_here(&mut self) -> Result<(Vec<Held>, Vec<String>)> {
        self.held(&[self.observer.node()])
    }

    /// The node that is asked, as a whole.
    pub fn view(&mut self) -> Result<ClusterView> {
        let mut whole: Option<ClusterView> = None;
        let question = Question { node: 0, body: to_node::Body::Query(topic(Topic::Cluster)) };
        self.observer.ask_one(question, |body| {
            let Body::ClusterView(part) = body else {
                return None;
            };
            let more = part.more;
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => whole.nodes.extend(part.nodes),
            }
            if more { None } else { whole.take() }
        })
    }

    /// Actors that no node can take, a sentence each.
    pub fn actors_without_node(&mut self) -> Result<Vec<String>> {
        let actors = self.list_all(Topic::Actors, 0)?.actors.into_iter();
        let waiting = actors.filter(|actor| {
            actor.node == 0 && actor.phase() != ActorPhase::Dead && !actor.reason.is_empty()
        });
        Ok(waiting.map(|actor| format!("actor {}: {}", actor.class_name, actor.reason)).collect())
    }

    /// Programs. A job whose supervisor is gone runs no more, whatever was written down last.
    fn programs(&mut self) -> Result<Vec<Program>> {
        let all = self.list_all(Topic::Jobs, 0)?;
        let mut programs = programs(all.jobs, &all.submissions);
        if programs.iter().all(|program| program.said_to_run().is_none()) {
            return Ok(programs);
        }
        let actors = self.list_all(Topic::Actors, 0)?.actors.into_iter();
        let living = actors.filter(|actor| actor.phase() != ActorPhase::Dead);
        let supervisors: std::collections::HashSet<String> =
            living.filter(|actor| actor.namespace == CLERKS).map(|actor| actor.name).collect();
        for program in &mut programs {
            let id = program.said_to_run();
            if id.is_some_and(|id| !supervisors.contains(&supervisor(id))) {
                program.is_lost();
            }
        }
        Ok(programs)
    }

    /// The nodes, as the one that is asked knows them: this needs no control service.
    pub(crate) fn members(&mut self) -> Result<Nodes> {
        Ok(Nodes::new(self.view()?.nodes))
    }

    /// The number and the whole id of the node whose id begins with `id`.
    pub(crate) fn node_number(&self, nodes: &Nodes, id: &str) -> Result<(u32, String)> {
        let Some(node) = nodes.find(id) else {
            return Err(Error::BadQuery(format!(
                "there is no node {id}; `oxiray list nodes` shows all"
            )));
        };
        if !node.left.is_empty() {
            return Err(Error::NodeGone { node: hex(&node.id), reason: node.left.clone() });
        }
        Ok((node.number, hex(&node.id)))
    }

    fn rows(&mut self, resource: Resource, detail: bool) -> Result<(Vec<Value>, Vec<String>)> {
        let known = self.members()?;
        let mut notes = Vec::new();
        let rows = match resource {
            Resource::Nodes => {
                let (rows, missing) = self.nodes(detail)?;
                notes = missing;
                rows.iter().map(Cell::json).collect()
            }
            Resource::Jobs => {
                let programs = self.programs()?;
                programs.iter().map(|program| JobRow::of(program, &known).json()).collect()
            }
            Resource::Actors => {
                let actors = self.actors()?;
                let row = |actor| match detail {
                    true => together(&ActorRow::of(actor, &known), &ActorDetail::of(actor)),
                    false => ActorRow::of(actor, &known).json(),
                };
                actors.iter().map(row).collect()
            }
            Resource::Workers => {
                let (rows, missing) = self.workers_of(&known)?;
                notes = missing;
                rows.iter().map(Cell::json).collect()
            }
            Resource::PlacementGroups => {
                let groups = self.groups()?;
                let row = |group| match detail {
                    true => {
                        together(&PlacementGroupRow::of(group), &PlacementGroupDetail::of(group))
                    }
                    false => PlacementGroupRow::of(group).json(),
                };
                groups.iter().map(row).collect()
            }
            Resource::Objects => {
                let numbers: Vec<u32> = known.alive().map(|node| node.number).collect();
                let (held, missing) = self.held(&numbers)?;
                notes = missing;
                held.iter().map(|held| ObjectRow::of(held, &known).json()).collect()
            }
            Resource::Tasks => Vec::new(),
        };
        Ok((rows, notes))
    }

    /// Placement groups that wait for room, a sentence each.
    pub fn groups_without_room(&mut self) -> Result<Vec<String>> {
        Ok(self.groups()?.iter().filter_map(placement_groups::waits).collect())
    }

    /// All placement groups, the removed included.
    pub(crate) fn groups(&mut self) -> Result<Vec<GroupInfo>> {
        Ok(self.list_all(Topic::Groups, 0)?.groups)
    }

    /// All actors, the dead included.
    pub(crate) fn actors(&mut self) -> Result<Vec<ActorInfo>> {
        let mut all = self.list_all(Topic::Actors, 0)?.actors;
        // One that died while they were listed is in it twice: it is dead.
        let mut seen = std::collections::HashSet::new();
        all.reverse();
        all.retain(|actor| seen.insert(actor.actor.clone()));
        all.reverse();
        Ok(all)
    }

    /// All nodes, those that left included; and what is missing, in sentences. `detail`: each is
    /// asked, however many there are.
    pub fn nodes(&mut self, detail: bool) -> Result<(Vec<NodeRow>, Vec<String>)> {
        let infos = self.list_all(Topic::Nodes, 0)?.nodes;
        self.node_rows(&infos, detail)
    }

    /// All drivers and workers, those that ended lately included; and what is missing.
    pub fn workers(&mut self) -> Result<(Vec<WorkerRow>, Vec<String>)> {
        let known = self.members()?;
        self.workers_of(&known)
    }

    fn workers_of(&mut self, known: &Nodes) -> Result<(Vec<WorkerRow>, Vec<String>)> {
        let numbers: Vec<u32> = known.alive().map(|node| node.number).collect();
        let (mut rows, mut notes) = (Vec::new(), Vec::new());
        for number in numbers {
            let processes: Result<Vec<ProcessInfo>> =
                self.list_all(Topic::Processes, number).map(|listing| listing.processes);
            let processes = match processes {
                Ok(processes) => processes,
                Err(error @ Error::Connection { .. }) => return Err(error),
                Err(error) => {
                    notes.push(error.to_string());
                    continue;
                }
            };
            let used = used_by(&self.read_text(number, "machine/processes").unwrap_or_default());
            rows.extend(processes.iter().map(|process| {
                let used = used.get(&process.pid).copied();
                WorkerRow::of(workers::Seen { process, used }, known)
            }));
        }
        Ok((rows, notes))
    }

    fn held(&mut self, nodes: &[u32]) -> Result<(Vec<Held>, Vec<String>)> {
        let (mut held, mut notes) = (Vec::new(), Vec::new());
        self.ask_nodes(nodes, &topic(Topic::Objects), &mut notes, |node, body| {
            let Body::ObjectReport(report) = body else {
                return false;
            };
            if report.process == 0 {
                return true;
            }
            let (process, pid, kind) = (report.process, report.pid, report.kind());
            let objects = report.objects.into_iter();
            held.extend(objects.map(|object| Held::new(node, process, pid, kind, object)));
            false
        })?;
        name_owners(&mut held);
        // Whoever an object belongs to knows most of it.
        held.sort_by_key(|held| held.object.owner != 0);
        Ok((held, notes))
    }

    /// Asks these nodes the same. Those that do not answer are noted.
    pub(crate) fn ask_nodes(
        &mut self,
        nodes: &[u32],
        query: &Asked,
        notes: &mut Vec<String>,
        mut take: impl FnMut(u32, Body) -> bool,
    ) -> Result<()> {
        let question =
            |node: &u32| Question { node: *node, body: to_node::Body::Query(query.clone()) };
        let questions = nodes.iter().map(question).collect();
        let failures = self.observer.ask(questions, |at, body| take(nodes[at], body))?;
        notes.extend(failures.into_iter().flatten().map(|error| error.to_string()));
        Ok(())
    }

    /// All parts of a listing.
    fn list_all(&mut self, about: Topic, node: u32) -> Result<Listing> {
        let mut whole = Listing::default();
        loop {
            let query = Asked { after: whole.next.clone(), ..topic(about) };
            let question = Question { node, body: to_node::Body::Query(query) };
            let asked = self.observer.ask_one(question, |body| match body {
                Body::Listing(part) => Some(part),
                _ => None,
            });
            let part = asked.map_err(|error| match (error, self.control()) {
                (Error::NoAnswer(_), Some(address)) if about != Topic::Processes => {
                    Error::NoAnswer(format!("the control service at {address}"))
                }
                (error, _) => error,
            })?;
            whole.nodes.extend(part.nodes);
            whole.jobs.extend(part.jobs);
            whole.actors.extend(part.actors);
            whole.processes.extend(part.processes);
            whole.groups.extend(part.groups);
            whole.submissions.extend(part.submissions);
            whole.next = part.next;
            if whole.next.is_empty() {
                return Ok(whole);
            }
        }
    }
}

pub(crate) fn topic(topic: Topic) -> Asked {
    Asked { topic: topic.into(), ..Asked::default() }
}

/// Bytes of objects, each counted once: at whom it belongs to.
fn owned_bytes(rows: &[Value]) -> u64 {
    let mut seen = std::collections::HashSet::new();
    let once = rows.iter().filter(|row| seen.insert(row["object_id"].as_str().unwrap_or("")));
    once.filter_map(|row| row["object_size"].as_u64()).sum()
}
