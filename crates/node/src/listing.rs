//! What there is at this node, in parts that go into a packet, for tools. In a cluster
//! the control service knows its nodes, programs and actors; each node knows its processes.

use std::ops::Bound;

use oxiray_control::listing::{gone, living, part_of, places, shortened};
use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{ActorInfo, Job, NodeInfo};
use oxiray_wire::control::{
    ActorPhase, Listing, NodeLost, ProcessInfo, ProcessKind, Query, ReadFile, Topic, from_node,
    to_node,
};

use crate::actors::{Actor, Stage};
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
                for view in self.view(query.request, from) {
                    out.send(from, from_node::Body::ClusterView(view));
                }
            }
            Topic::Objects | Topic::Tasks => self.ask_round(from, query, out),
            Topic::Nodes | Topic::Jobs | Topic::Actors | Topic::Processes => {
                out.send(from, from_node::Body::Listing(self.list(&query)));
            }
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
        let mut left = self.member.iter().flat_map(|member| &member.left);
        let left = left.find(|info| info.number == node).map(|info| info.left.clone());
        let reason = left.unwrap_or_else(|| "there is no such node".into());
        out.send(from, from_node::Body::NodeLost(NodeLost { node, reason }));
    }

    fn list(&self, query: &Query) -> Listing {
        let mut listing = Listing { request: query.request, ..Listing::default() };
        let after = &query.after[..];
        match query.topic() {
            Topic::Nodes => listing.nodes = vec![self.as_node()],
            Topic::Jobs => (listing.jobs, listing.next) = self.jobs_after(after),
            Topic::Actors => (listing.actors, listing.next) = self.actors_after(after),
            _ => (listing.processes, listing.next) = self.processes_after(after),
        }
        listing
    }

    /// This node, if it is alone.
    fn as_node(&self) -> NodeInfo {
        let store = self.keeper.usage();
        NodeInfo {
            number: self.number,
            id: self.setup.node.0.to_vec(),
            host: self.setup.host.clone(),
            pid: self.setup.pid,
            total: self.ledger.total(),
            available: self.ledger.available(),
            is_head: true,
            store_size: store.size,
            store_used: store.used,
            started_ms: self.setup.started_ms,
            ..NodeInfo::default()
        }
    }

    fn jobs_after(&self, after: &[u8]) -> (Vec<Job>, Vec<u8>) {
        let mut jobs = self.jobs_here();
        jobs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        part_of(
            jobs.into_iter()
                .filter(|job| job.id[..] > *after)
                .map(|job| (job.id.clone(), Job { entrypoint: shortened(&job.entrypoint), ..job })),
        )
    }

    fn actors_after(&self, after: &[u8]) -> (Vec<ActorInfo>, Vec<u8>) {
        let (alive, dead) = places(after, ActorId::from_slice);
        let alive = alive.map(|from| self.actors.range((from, Bound::Unbounded)));
        let alive = alive.into_iter().flatten();
        let alive = alive.map(|(id, actor)| {
            let reason = match actor.stage {
                Stage::Waiting(shape, _) => shortened(&self.why(shape)),
                _ => String::new(),
            };
            (living(&id.0), ActorInfo { reason, ..self.show_actor(*id, actor) })
        });
        let dead = self.dead_actors.after(dead).map(|(id, dead)| {
            let reason = shortened(&dead.info.reason);
            (gone(&id.0), ActorInfo { reason, ..dead.info.clone() })
        });
        part_of(alive.chain(dead))
    }

    /// An actor that is not dead, as people see it, but for why it waits.
    pub(crate) fn show_actor(&self, id: ActorId, actor: &Actor) -> ActorInfo {
        let (namespace, name) = self.names.of(&id).unwrap_or(&actor.last_name).clone();
        let worker = actor.worker();
        let phase = match actor.stage {
            Stage::Alive(_) => ActorPhase::Alive,
            _ if actor.restarts > 0 => ActorPhase::Restarting,
            _ => ActorPhase::Pending,
        };
        ActorInfo {
            actor: id.0.to_vec(),
            class_name: shortened(&actor.class_name),
            name,
            namespace,
            phase: phase.into(),
            node: self.number,
            restarts: actor.restarts,
            reason: String::new(),
            process: worker.map_or(0, |worker| worker.0),
            pid: actor.pid,
            detached: actor.detached,
            resources: actor.needs().to_vec(),
            expected: actor.stage == Stage::Expected,
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

    /// A time of the node's own clock in milliseconds since 1970. The driver that a node
    /// belongs to was there before the clock was looked at: its time is 0.
    pub(crate) fn wall_ms(&self, now: u64) -> u64 {
        match now {
            0 => self.setup.started_ms,
            now => (self.setup.clock_began_ns + now) / 1_000_000,
        }
    }
}

/// Whether people want to see a process: tools that look, and processes of other nodes, they do
/// not.
pub(crate) fn is_shown(process: &Process) -> bool {
    matches!(process.kind, ProcessKind::Driver | ProcessKind::Worker)
}
