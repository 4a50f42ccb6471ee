//! The node as people and tools see it.

use oxiray_ids::ProcessId;
use oxiray_scheduler::{Choice, choose, explain, show_amounts};
use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::{Amount, ClusterView, ProcessKind};
use oxiray_words::{listed, plural};

use crate::actors::Stage;
use crate::node::Node;
use crate::process::Role;
use crate::schedule::ShapeId;

/// Sentences about what waits; a packet must hold them all.
const MOST_SENTENCES: usize = 100;

/// Nodes whose description fits into a packet beside those sentences.
const NODES_IN_ONE_PACKET: usize = 100;

impl Node {
    /// The whole, in as many parts as packets are needed for its nodes.
    pub(crate) fn view(&self, request: u64, from: ProcessId) -> Vec<ClusterView> {
        let mut nodes = self.members();
        let mut views = vec![self.view_of_this(request, from)];
        while let Some(view) = views.last_mut() {
            let rest = nodes.split_off(nodes.len().min(NODES_IN_ONE_PACKET));
            view.nodes = std::mem::replace(&mut nodes, rest);
            view.more = !nodes.is_empty();
            if !view.more {
                break;
            }
            views.push(ClusterView { request, ..ClusterView::default() });
        }
        views
    }

    fn view_of_this(&self, request: u64, from: ProcessId) -> ClusterView {
        let worker = |role: Role| !matches!(role, Role::None | Role::Leaving);
        let workers = self.processes.values().filter(|process| worker(process.role)).count();
        let alive = |stage: Stage| matches!(stage, Stage::Alive(_));
        let actors = self.actors.values().filter(|actor| alive(actor.stage)).count();
        let store = self.keeper.usage();
        ClusterView {
            request,
            total: self.ledger.total(),
            available: self.ledger.available(),
            node: self.member.own.id.clone(),
            workers: workers as u32,
            actors: actors as u32,
            store_used: store.used,
            store_size: store.size,
            store_objects: store.objects,
            on_disk: store.on_disk,
            objects_on_disk: store.objects_on_disk,
            spilled: store.spilled,
            restored: store.restored,
            waiting: self.waiting(),
            host: self.member.own.host.clone(),
            pid: self.member.own.pid,
            held: self.held_by(from),
            nodes: Vec::new(),
            more: false,
        }
    }

    /// All members, this node as it is now.
    fn members(&self) -> Vec<NodeInfo> {
        let mut nodes = self.member.infos.clone();
        if let Some(own) = nodes.get_mut(&self.number) {
            own.available = self.ledger.available();
            own.store_used = self.keeper.usage().used;
        }
        let all = nodes.into_values().chain(self.member.left.iter().cloned());
        all.map(|node| NodeInfo { waiting_for: Vec::new(), ..node }).collect()
    }

    fn held_by(&self, worker: ProcessId) -> Vec<Amount> {
        let allocation = match self.processes.get(&worker).map(|process| process.role) {
            Some(Role::Leased(lease)) => self.leases.get(&lease).map(|lease| &lease.allocation),
            Some(Role::Actor(actor)) => {
                self.actors.get(&actor).and_then(|actor| actor.allocation.as_ref())
            }
            _ => None,
        };
        allocation.map(|allocation| self.ledger.amounts_of(allocation)).unwrap_or_default()
    }

    pub(crate) fn waiting(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut more = 0;
        let mut add = |sentence: &dyn Fn() -> String| match sentences.len() < MOST_SENTENCES {
            true => sentences.push(sentence()),
            false => more += 1,
        };
        for (id, process) in &self.processes {
            for demand in process.demands.values() {
                let count = demand.placed() + demand.unplaced();
                if count == 0 {
                    continue;
                }
                let whose = match process.kind {
                    ProcessKind::Driver => format!("the driver, pid {}", process.pid),
                    ProcessKind::Foreign => format!("a process of node {}", id.node()),
                    _ => format!("the worker with pid {}", process.pid),
                };
                add(&|| {
                    let workers = plural(count, "worker");
                    let (tasks, why) = (named(&demand.tasks), self.why(demand.shape));
                    format!("{tasks} (of {whose}) for {workers}: {why}")
                });
            }
        }
        for (&(shape, _), id) in &self.schedule.waiting_actors {
            let name = &self.actors[id].class_name;
            add(&|| format!("actor {name} ({id}): {}", self.why(shape)));
        }
        if more > 0 {
            sentences.push(format!("and {more} more"));
        }
        sentences
    }

    /// Who waits for a shape: functions and classes by name.
    pub(crate) fn who_waits(&self, shape: ShapeId) -> String {
        let demands = self.processes.values().flat_map(|process| process.demands.values());
        let demands = demands.filter(|demand| demand.shape == shape);
        let waiting = demands.filter(|demand| demand.placed() + demand.unplaced() > 0);
        let actors = self.schedule.waiting_actors.iter().filter(|((id, _), _)| *id == shape);
        let actors = actors.map(|(_, id)| format!("the actor {}", self.actors[id].class_name));
        let mut names: Vec<String> =
            waiting.map(|demand| named(&demand.tasks).to_owned()).chain(actors).collect();
        names.dedup();
        if names.is_empty() { "A task or actor".into() } else { listed(&names, 3) }
    }

    /// Why a shape is not served now.
    pub(crate) fn why(&self, id: ShapeId) -> String {
        let known = &self.schedule.shapes[id.0];
        if let Some(place) = known.wanted.place {
            return self.why_in_group(&known.shape, place);
        }
        let request = self.request(id);
        if !self.environments.is_ready(self.schedule.shapes[id.0].environment) {
            return "its runtime environment is being made".into();
        }
        match choose(&self.member.view, &request) {
            Choice::Now(node) if node.0 == self.number => {
                let needs = show_amounts(&request.shape.resources);
                format!("needs {needs}; a worker is being started")
            }
            Choice::Now(node) | Choice::Queue(node) if self.is_out_of_reach(node.0) => {
                self.why_out_of_reach(node.0)
            }
            _ => explain(&self.member.view, &request),
        }
    }
}

/// What waits, where nothing is known of it too.
fn named(tasks: &str) -> &str {
    if tasks.is_empty() { "tasks" } else { tasks }
}
