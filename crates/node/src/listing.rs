//! What tools ask a node. It knows its processes, which it lists in parts that go into a
//! packet; nodes, programs and actors the control service knows.

use std::ops::Bound;

use oxiray_control::listing::{gone, living, part_of, places, shortened};
use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::ActorInfo;
use oxiray_wire::control::{
    Listing, NodeLost, ProcessInfo, ProcessKind, Query, ReadFile, Topic, from_node, to_node,
};

use crate::actors::Stage;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::{Process, Role};

impl Node {
    /// A question, for this node or another.
    pub(crate) fn on_query(&mut self, from: ProcessId, query: Query, out: &mut impl Outbox) {
        if query.node != 0 && query.node != self.number {
            return self.ask_elsewhere(from, query.node, to_node::Body::Query(query), out);
        }
        match query.topic() {
            Topic::Cluster => {
                self.refresh_own_room();
                for view in self.view(query.request, from) {
                    out.send(from, from_node::Body::ClusterView(view));
                }
            }
            Topic::Objects | Topic::Tasks | Topic::Cancel => self.ask_round(from, query, out),
            Topic::Worker => {
                let report = self.why_no_worker(from, &query);
                out.send(from, from_node::Body::TaskReport(report));
            }
            Topic::Processes => {
                let (processes, next) = self.processes_after(&query.after);
                let listing =
                    Listing { request: query.request, processes, next, ..Listing::default() };
                out.send(from, from_node::Body::Listing(listing));
            }
            // The control service's to answer; but another node may ask anything.
            Topic::Nodes | Topic::Jobs | Topic::Actors | Topic::Groups => {}
        }
    }

    /// Wants bytes of a file, of this node or another.
    pub(crate) fn on_read_file(
        &mut self,
        from: ProcessId,
        wanted: ReadFile,
        out: &mut impl Outbox,
    ) {
        match wanted.node {
            node if node != 0 && node != self.number => {
                self.ask_elsewhere(from, node, to_node::Body::ReadFile(wanted), out);
            }
            _ => out.read_file(from, wanted),
        }
    }

    /// Passes a question on to another node; if there is no such node, that is the answer.
    fn ask_elsewhere(
        &mut self,
        from: ProcessId,
        node: u32,
        question: to_node::Body,
        out: &mut impl Outbox,
    ) {
        if self.node_info(node).is_some() {
            return self.pass_on(from, node, question, out);
        }
        let left =
            self.member.left.iter().find(|info| info.number == node).map(|info| info.left.clone());
        let reason = left.unwrap_or_else(|| "there is no such node".into());
        out.send(from, from_node::Body::NodeLost(NodeLost { node, reason }));
    }

    /// Actors that wait at this node: why, which the control service does not know.
    pub(crate) fn say_why_they_wait(&self, actors: &mut [ActorInfo]) {
        for info in actors.iter_mut().filter(|info| info.node == self.number) {
            let id = ActorId::from_slice(&info.actor);
            if let Some(actor) = id.and_then(|id| self.actors.get(&id))
                && let Stage::Waiting(shape, _) = actor.stage
            {
                info.reason = shortened(&self.why(shape));
            }
        }
    }

    fn processes_after(&self, after: &[u8]) -> (Vec<ProcessInfo>, Vec<u8>) {
        let number = |key: &[u8]| Some(ProcessId(u64::from_be_bytes(key.try_into().ok()?)));
        let (alive, dead) = places(after, number);
        let alive = alive.map(|from| self.processes.range((from, Bound::Unbounded)));
        let alive = alive.into_iter().flatten();
        let alive = alive.filter(|(_, process)| is_shown(process));
        let alive = alive
            .map(|(id, process)| (living(&id.0.to_be_bytes()), self.show_process(*id, process)));
        // Processes end in any order.
        let later = |info: &&ProcessInfo| match dead {
            Bound::Excluded(id) => info.process > id.0,
            _ => true,
        };
        let mut ended: Vec<&ProcessInfo> = self.ended_processes.iter().filter(later).collect();
        ended.sort_unstable_by_key(|info| info.process);
        let ended = ended.into_iter();
        part_of(alive.chain(ended.map(|info| (gone(&info.process.to_be_bytes()), info.clone()))))
    }

    /// A process of this node, as people see it.
    pub(crate) fn show_process(&self, id: ProcessId, process: &Process) -> ProcessInfo {
        let actor = match process.role {
            Role::Actor(actor) => actor.0.to_vec(),
            _ => Vec::new(),
        };
        ProcessInfo {
            process: id.0,
            pid: process.pid,
            kind: process.kind as i32,
            job: process.job.map(|job| job.0.to_vec()).unwrap_or_default(),
            actor,
            leased: matches!(process.role, Role::Leased(_)),
            started_ms: self.wall_ms(process.started),
            ended_ms: 0,
            reason: String::new(),
        }
    }

    /// A time of the node's own clock in milliseconds since 1970.
    pub(crate) fn wall_ms(&self, now: u64) -> u64 {
        (self.setup.clock_began_ns + now) / 1_000_000
    }
}

/// Whether people want to see a process: tools that look, and processes of other nodes, they do
/// not.
pub(crate) fn is_shown(process: &Process) -> bool {
    matches!(process.kind, ProcessKind::Driver | ProcessKind::Worker)
}
