//! The state of the control service, and which part of it an event concerns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_scheduler::Cluster;
use oxiray_wire::cluster::{ForProcess, Job, NodeInfo, OfProcess, from_control, to_control};
use oxiray_wire::control::{FromNode, from_node, to_node};

use crate::actors::{Actor, Watchers};
use crate::dead_actors::DeadActors;
use crate::event::{Change, Event, Now, Outbox, PeerId, Table};
use crate::groups::Groups;
use crate::health::Health;
use crate::members::Member;
use crate::names::Names;
use crate::record;

/// A cluster's control service, without its input and output.
#[derive(Debug)]
pub struct Control {
    /// Names the cluster.
    pub(crate) cluster: [u8; 16],
    /// The last that was given to a node.
    pub(crate) last_number: u32,
    pub(crate) members: BTreeMap<u32, Member>,
    /// Connections of members that are there.
    pub(crate) peers: BTreeMap<PeerId, u32>,
    /// The last that left, for people.
    pub(crate) left: VecDeque<NodeInfo>,
    /// What is believed to be free, at nodes that are connected.
    pub(crate) room: Cluster,
    /// How often was placed, so that ties go round.
    pub(crate) placements: u64,
    pub(crate) actors: BTreeMap<ActorId, Actor>,
    /// Those of them that wait for a node.
    pub(crate) waiting: BTreeSet<ActorId>,
    /// Who watches actors that their creators, first of the key, have not asked for yet.
    pub(crate) expected: BTreeMap<(ProcessId, ActorId), Watchers>,
    pub(crate) dead: DeadActors,
    pub(crate) names: Names,
    pub(crate) jobs: BTreeMap<Vec<u8>, Job>,
    /// Those of them that ended, the first that did first.
    pub(crate) ended_jobs: VecDeque<Vec<u8>>,
    pub(crate) kv: BTreeMap<(String, Vec<u8>), Vec<u8>>,
    /// What nodes changed in it and may ask for again (K-1).
    pub(crate) kv_done: BTreeMap<u32, crate::kv::Done>,
    /// Nodes whose load changed since it was last passed on.
    pub(crate) changed_loads: BTreeSet<u32>,
    pub(crate) loads_told_at: u64,
    pub(crate) next_beat: u64,
    pub(crate) health: Health,
    /// Until then connections may break without blame: this service itself was away.
    pub(crate) forgiving_until: u64,
    /// Where control services are, this one first; empty: it was not said.
    pub(crate) heads: Vec<String>,
    pub(crate) store: String,
    pub(crate) store_trouble: String,
    /// When the event came that is being taken in.
    pub(crate) now: Now,
    /// Whether members are asked if they are there: one in this very process need not be.
    pub(crate) asks_members: bool,
    /// Actors that began to wait, and when somebody is to hear of it.
    pub(crate) to_warn_of: VecDeque<(u64, ActorId)>,
    /// Programs, and what they were warned of.
    pub(crate) warned: BTreeSet<(ProcessId, String)>,
    pub(crate) groups: Groups,
}

impl Control {
    /// A cluster without nodes.
    pub fn new(cluster: [u8; 16], now: Now, out: &mut impl Outbox) -> Self {
        out.persist(Change::put(Table::Meta, record::CLUSTER, cluster));
        Self::empty(cluster, now)
    }

    pub(crate) fn empty(cluster: [u8; 16], now: Now) -> Self {
        Self {
            cluster,
            last_number: 0,
            members: BTreeMap::new(),
            peers: BTreeMap::new(),
            left: VecDeque::new(),
            room: Cluster::new(),
            placements: 0,
            actors: BTreeMap::new(),
            waiting: BTreeSet::new(),
            expected: BTreeMap::new(),
            dead: DeadActors::default(),
            names: Names::default(),
            jobs: BTreeMap::new(),
            ended_jobs: VecDeque::new(),
            kv: BTreeMap::new(),
            kv_done: BTreeMap::new(),
            changed_loads: BTreeSet::new(),
            loads_told_at: now.ns,
            next_beat: now.ns + Health::default().ask_every(),
            health: Health::default(),
            forgiving_until: 0,
            heads: Vec::new(),
            store: String::new(),
            store_trouble: String::new(),
            now,
            asks_members: true,
            to_warn_of: VecDeque::new(),
            warned: BTreeSet::new(),
            groups: Groups::from(now),
        }
    }

    /// Sixteen bytes that name the cluster.
    pub fn cluster(&self) -> [u8; 16] {
        self.cluster
    }

    /// Where the state is kept and what is wrong with that, for people.
    pub fn set_store(&mut self, store: &str, trouble: &str) {
        store.clone_into(&mut self.store);
        trouble.clone_into(&mut self.store_trouble);
    }

    /// Placement groups that are not removed.
    pub fn group_count(&self) -> usize {
        self.groups.live.len()
    }

    /// The connections of all nodes.
    pub fn node_peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// Takes in one event.
    pub fn on_event(&mut self, event: Event, now: Now, out: &mut impl Outbox) {
        self.now = now;
        self.notice_own_absence(now);
        match event {
            Event::Message(peer, body) => self.on_message(peer, body, now, out),
            Event::Closed(peer) => self.on_closed(peer, now, out),
            Event::Broken(peer) => self.on_broken(peer, out),
            Event::Tick => {
                self.beat(now, out);
                self.tell_loads(now, out);
                self.retry_groups(now, out);
                self.warn(now, out);
            }
        }
        #[cfg(debug_assertions)]
        self.validate();
    }

    /// When to call [`Self::on_event`] with [`Event::Tick`].
    pub fn next_wakeup(&self) -> Option<u64> {
        let beats = self.asks_members && !self.members.is_empty();
        let beat = beats.then_some(self.next_beat);
        let times = [beat, self.next_loads(), self.groups.retry_at, self.next_warning()];
        times.into_iter().flatten().min()
    }

    fn on_message(
        &mut self,
        peer: PeerId,
        body: to_control::Body,
        now: Now,
        out: &mut impl Outbox,
    ) {
        use to_control::Body;
        let Some(&number) = self.peers.get(&peer) else {
            return self.on_stranger(peer, body, now, out);
        };
        if let Some(member) = self.members.get_mut(&number) {
            member.heard_at = now.ns;
            if member.suspect {
                self.set_suspect(number, false, out);
            }
        }
        match body {
            Body::Join(_) => out.note(format!("node {number} joined twice; this is ignored")),
            Body::Pong(pong) => self.on_pong(number, &pong),
            Body::Load(load) => self.on_load(number, load),
            Body::OfProcess(message) => self.on_process_message(number, message, out),
            Body::ActorNews(news) => self.on_actor_news(number, news, out),
            Body::ReturnActor(returned) => self.on_return_actor(number, returned, out),
            Body::Reserved(answer) => self.on_reserved(number, answer, out),
            Body::WatchGroup(group) => self.on_watch_group(number, &group, out),
            Body::Job(job) => self.on_job(number, job, out),
            Body::ProcessGone(process) => {
                self.on_process_gone(number, ProcessId(process), now, out);
            }
            Body::Leave(text) => self.on_leave(number, text.text, now, out),
            Body::Parting(_) => {
                self.on_broken(peer, out);
                out.close(peer);
            }
            body => self.on_question(peer, body, now, out),
        }
    }

    /// From a connection that is no member's: a node that wants to be, or a tool.
    fn on_stranger(
        &mut self,
        peer: PeerId,
        body: to_control::Body,
        now: Now,
        out: &mut impl Outbox,
    ) {
        use to_control::Body;
        match body {
            Body::Join(join) => self.on_join(peer, join, now, out),
            body @ (Body::Kv(_)
            | Body::See(_)
            | Body::Rotate(_)
            | Body::Remove(_)
            | Body::Drain(_)) => {
                self.on_question(peer, body, now, out);
            }
            // What a node says that just was declared gone.
            _ => {}
        }
    }

    /// What both nodes and tools may ask.
    fn on_question(
        &mut self,
        peer: PeerId,
        body: to_control::Body,
        now: Now,
        out: &mut impl Outbox,
    ) {
        use to_control::Body;
        match body {
            Body::Kv(question) => self.on_kv(peer, question, out),
            Body::See(_) => out.send(peer, from_control::Body::State(self.state())),
            Body::Rotate(_) => out.rotate(peer),
            Body::Remove(wanted) => self.on_remove(peer, &wanted.text, now, out),
            Body::Drain(wanted) => self.on_drain(peer, wanted, now, out),
            _ => {}
        }
    }

    fn on_process_message(&mut self, number: u32, message: OfProcess, out: &mut impl Outbox) {
        use to_node::Body;
        let OfProcess { stay, restarts, .. } = message;
        let (process, about) = (ProcessId(message.process), message.about);
        let Some(body) = message.message.and_then(|message| message.body) else {
            return;
        };
        if process.node() != number {
            out.note(format!("node {number} speaks for process {process} of another node"));
            return;
        }
        match body {
            Body::CreateActor(create) => self.on_create_actor(process, create, about, out),
            Body::WatchActor(actor) => {
                self.on_hearsay(&actor.actor, stay, restarts, out);
                self.on_watch_actor(process, &actor.actor, about, out);
            }
            Body::KillActor(actor) => self.on_kill_actor(process, actor, about, out),
            Body::NameActor(wanted) => self.on_name_actor(process, wanted, out),
            Body::FindActor(wanted) => {
                let found = from_node::Body::NamedActor(self.names.find(wanted));
                self.tell(process, found, out);
            }
            Body::ListActors(wanted) => {
                let names = from_node::Body::ActorNames(self.names.list(wanted));
                self.tell(process, names, out);
            }
            Body::ReleaseName(actor) => {
                if let Some(actor) = ActorId::from_slice(&actor.actor) {
                    self.release_name(actor, out);
                }
            }
            Body::CreateGroup(create) => self.on_create_group(process, create, about, out),
            Body::RemoveGroup(group) => self.on_remove_group(&group.group, out),
            Body::FindGroups(wanted) => {
                let found = self.find_groups(wanted);
                self.tell(process, from_node::Body::Groups(found), out);
            }
            Body::Query(query) => self.on_query(process, query, out),
            _ => out.note(format!("node {number} passed on what its service should answer")),
        }
    }

    /// Says something to a node, if it is connected.
    pub(crate) fn send(&self, number: u32, body: from_control::Body, out: &mut impl Outbox) {
        if let Some(peer) = self.members.get(&number).and_then(|member| member.peer) {
            out.send(peer, body);
        }
    }

    /// Says something to a process, through its node. If that one is away, its
    /// process asks again when it is back.
    pub(crate) fn tell(&self, to: ProcessId, body: from_node::Body, out: &mut impl Outbox) {
        if self.is_alive(to) {
            let message = Some(FromNode::from(body));
            let body = from_control::Body::ForProcess(ForProcess { process: to.0, message });
            self.send(to.node(), body, out);
        }
    }
}
