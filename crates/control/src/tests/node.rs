//! A node service, as far as the control service can tell.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{
    ActorNews, Job, Join, Kv, KvVerb, Load, NodeInfo, OfProcess, Pong, from_control, to_control,
};
use oxiray_wire::control::{
    Actor, ActorPhase, ActorState, Amount, CreateActor, NamedActor, Text, UNIT, from_node, to_node,
};

/// An actor that lives here.
#[derive(Clone, Debug)]
pub(super) struct Hosted {
    pub(super) create: CreateActor,
    pub(super) creator: ProcessId,
    pub(super) stay: u32,
    pub(super) restarts: u64,
    pub(super) alive: bool,
    pub(super) watchers: BTreeSet<ProcessId>,
}

/// What a process of this node last heard of an actor.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Watched {
    pub(super) node: u32,
    pub(super) stay: u32,
    pub(super) restarts: u64,
}

/// What nodes say to each other.
#[derive(Clone, Debug)]
pub(super) enum Said {
    State(ProcessId, ActorState),
    Ended(ProcessId),
    Knows(ProcessId),
}

#[derive(Default, Debug)]
pub(super) struct SimNode {
    pub(super) id: u8,
    pub(super) number: u32,
    pub(super) cluster: Vec<u8>,
    pub(super) peer: Option<u64>,
    pub(super) to_control: VecDeque<to_control::Body>,
    pub(super) from_control: VecDeque<from_control::Body>,
    /// To nodes by their numbers.
    pub(super) to_nodes: VecDeque<(u32, Said)>,
    last_process: u32,
    pub(super) processes: BTreeSet<ProcessId>,
    pub(super) hosted: BTreeMap<ActorId, Hosted>,
    dead: BTreeMap<ActorId, String>,
    pub(super) watching: BTreeMap<(ProcessId, ActorId), Watched>,
    /// Deaths that were heard of, and from which node; 0: from control.
    pub(super) heard_dead: BTreeMap<ActorId, u32>,
    creating: BTreeMap<ActorId, (ProcessId, CreateActor)>,
    killing: BTreeMap<ActorId, ProcessId>,
    pub(super) asked: BTreeMap<(ProcessId, u64), to_node::Body>,
    pub(super) jobs: BTreeMap<Vec<u8>, Job>,
    view: BTreeSet<u32>,
    left: BTreeSet<u32>,
    /// It does nothing, and nobody knows.
    pub(super) frozen: bool,
    pub(super) leaving: bool,
    pub(super) refused: Option<String>,
}

impl SimNode {
    pub(super) fn new(id: u8) -> Self {
        Self { id, ..Self::default() }
    }

    pub(super) fn node_id(id: u8) -> Vec<u8> {
        vec![id; 28]
    }

    fn info(&self) -> NodeInfo {
        let total = vec![Amount { name: "CPU".into(), amount: 4 * UNIT }];
        NodeInfo {
            number: self.number,
            id: Self::node_id(self.id),
            address: format!("10.0.0.{}:1", self.id),
            available: total.clone(),
            total,
            is_head: self.id == 1,
            python: "3.11".into(),
            ..NodeInfo::default()
        }
    }

    pub(super) fn connect(&mut self, peer: u64) {
        self.peer = Some(peer);
        self.to_control.clear();
        self.from_control.clear();
        let processes = self.processes.iter().map(|process| process.0);
        let own = ProcessId::new(self.number, 0).0;
        let join = Join {
            node: Some(self.info()),
            actors: self.hosted.keys().map(|id| id.0.to_vec()).collect(),
            jobs: self.jobs.values().cloned().collect(),
            cluster: self.cluster.clone(),
            processes: processes.chain([own]).collect(),
            bundles: Vec::new(),
        };
        self.to_control.push_back(to_control::Body::Join(join));
    }

    pub(super) fn disconnect(&mut self) {
        self.peer = None;
        self.to_control.clear();
        self.from_control.clear();
    }

    fn tell_control(&mut self, body: to_control::Body) {
        if self.peer.is_some() && self.number != 0 {
            self.to_control.push_back(body);
        }
    }

    fn tell_of(&mut self, process: ProcessId, body: to_node::Body) {
        let message = Some(body.into());
        let said = OfProcess { process: process.0, message, ..OfProcess::default() };
        self.tell_control(to_control::Body::OfProcess(said));
    }

    // What its processes do.

    pub(super) fn spawn(&mut self) -> ProcessId {
        self.last_process += 1;
        let process = ProcessId::new(self.number, self.last_process);
        self.processes.insert(process);
        process
    }

    pub(super) fn create(&mut self, from: ProcessId, create: CreateActor) {
        let id = ActorId::from_slice(&create.actor).expect("an id");
        self.watching.entry((from, id)).or_default();
        self.creating.insert(id, (from, create.clone()));
        self.tell_of(from, to_node::Body::CreateActor(create));
    }

    pub(super) fn watch(&mut self, from: ProcessId, id: ActorId) {
        let Watched { stay, restarts, .. } = *self.watching.entry((from, id)).or_default();
        let actor = Actor { actor: id.0.to_vec(), ..Actor::default() };
        let message = Some(to_node::Body::WatchActor(actor).into());
        let said = OfProcess { process: from.0, message, stay, restarts, ..OfProcess::default() };
        self.tell_control(to_control::Body::OfProcess(said));
    }

    pub(super) fn kill(&mut self, from: ProcessId, id: ActorId, no_restart: bool) {
        if no_restart {
            self.killing.insert(id, from);
        }
        let actor = Actor { actor: id.0.to_vec(), no_restart, ..Actor::default() };
        self.tell_of(from, to_node::Body::KillActor(actor));
    }

    pub(super) fn ask(&mut self, from: ProcessId, request: u64, body: to_node::Body) {
        self.asked.insert((from, request), body.clone());
        self.tell_of(from, body);
    }

    pub(super) fn name(&mut self, from: ProcessId, id: ActorId, name: &str, request: u64) {
        let wanted = NamedActor {
            request,
            name: name.into(),
            namespace: "n".into(),
            actor: id.0.to_vec(),
            ..NamedActor::default()
        };
        self.ask(from, request, to_node::Body::NameActor(wanted));
    }

    pub(super) fn release_name(&mut self, from: ProcessId, id: ActorId) {
        let actor = Actor { actor: id.0.to_vec(), ..Actor::default() };
        self.tell_of(from, to_node::Body::ReleaseName(actor));
    }

    pub(super) fn put(&mut self, key: u8, value: u8) {
        let kv = Kv {
            verb: KvVerb::Put.into(),
            namespace: "n".into(),
            key: vec![key],
            value: Some(vec![value]),
            wide: true,
            ..Kv::default()
        };
        self.tell_control(to_control::Body::Kv(kv));
    }

    pub(super) fn job(&mut self, job: Job) {
        if job.ended_ms == 0 {
            self.jobs.insert(job.id.clone(), job.clone());
        } else {
            self.jobs.remove(&job.id);
        }
        self.tell_control(to_control::Body::Job(job));
    }

    pub(super) fn load(&mut self, free: u64) {
        let available = vec![Amount { name: "CPU".into(), amount: free * UNIT }];
        let load = Load { node: self.number, available, ..Load::default() };
        self.tell_control(to_control::Body::Load(load));
    }

    pub(super) fn leave(&mut self) {
        self.tell_control(to_control::Body::Leave(Text::default()));
        self.leaving = true;
    }

    pub(super) fn end(&mut self, process: ProcessId) {
        self.processes.remove(&process);
        self.watching.retain(|&(from, _), _| from != process);
        self.asked.retain(|&(from, _), _| from != process);
        self.creating.retain(|_, (from, _)| *from != process);
        self.jobs.retain(|_, job| job.driver != process.0);
        self.tell_control(to_control::Body::ProcessGone(process.0));
        for node in self.view.clone() {
            self.to_nodes.push_back((node, Said::Ended(process)));
        }
        self.on_creator_gone(process);
        for hosted in self.hosted.values_mut() {
            hosted.watchers.remove(&process);
        }
    }

    // What its actors do.

    /// The constructor of an actor is done, or its worker dies.
    pub(super) fn progress(&mut self, id: ActorId, well: bool) {
        let Some(hosted) = self.hosted.get_mut(&id) else { return };
        if !hosted.alive && well {
            hosted.alive = true;
            self.tell_watchers(id, ActorPhase::Alive, "");
        } else if !hosted.alive {
            self.bury(id, "its constructor raised an exception");
        } else if !well {
            self.on_worker_died(id);
        }
    }

    fn on_worker_died(&mut self, id: ActorId) {
        let Some(hosted) = self.hosted.get_mut(&id) else { return };
        let most = hosted.create.max_restarts;
        let creator = hosted.creator;
        let local = self.processes.contains(&creator);
        if (most < 0 || hosted.restarts < most as u64) && (local || creator.node() != self.number) {
            hosted.restarts += 1;
            hosted.alive = false;
            self.tell_watchers(id, ActorPhase::Restarting, "its process ended");
        } else {
            self.bury(id, "its process ended");
        }
    }

    fn bury(&mut self, id: ActorId, reason: &str) {
        if self.hosted.contains_key(&id) {
            self.tell_watchers(id, ActorPhase::Dead, reason);
            self.hosted.remove(&id);
            self.dead.insert(id, reason.into());
        }
    }

    fn state(&self, id: ActorId, phase: ActorPhase, reason: &str) -> ActorState {
        ActorState {
            actor: id.0.to_vec(),
            phase: phase.into(),
            reason: reason.into(),
            restarts: self.hosted.get(&id).map_or(0, |hosted| hosted.restarts),
            stay: self.hosted.get(&id).map_or(0, |hosted| hosted.stay),
            ..ActorState::default()
        }
    }

    fn tell_watchers(&mut self, id: ActorId, phase: ActorPhase, reason: &str) {
        self.tell_news(id, phase, reason);
        let state = self.state(id, phase, reason);
        for watcher in self.hosted[&id].watchers.clone() {
            self.tell_process(watcher, state.clone());
        }
    }

    fn tell_news(&mut self, id: ActorId, phase: ActorPhase, reason: &str) {
        let news = ActorNews {
            actor: id.0.to_vec(),
            phase: phase.into(),
            reason: reason.into(),
            restarts: self.hosted.get(&id).map_or(0, |hosted| hosted.restarts),
            stay: self.hosted.get(&id).map_or(0, |hosted| hosted.stay),
            ..ActorNews::default()
        };
        self.tell_control(to_control::Body::ActorNews(news));
    }

    fn tell_process(&mut self, to: ProcessId, state: ActorState) {
        if to.node() == self.number {
            self.on_state(self.number, to, &state);
        } else if self.view.contains(&to.node()) {
            self.to_nodes.push_back((to.node(), Said::State(to, state)));
        }
    }

    fn on_creator_gone(&mut self, process: ProcessId) {
        let its = self.hosted.iter().filter(|(_, hosted)| {
            hosted.creator == process && !(hosted.create.detached && hosted.alive)
        });
        for id in its.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.bury(id, "its owner died");
        }
    }

    // What it hears.

    pub(super) fn on_said(&mut self, from: u32, said: Said) {
        // One that is not known yet joined a moment ago: control is about to say so.
        if self.left.contains(&from) {
            return;
        }
        match said {
            Said::State(to, state) => self.on_state(from, to, &state),
            Said::Ended(process) => {
                self.on_creator_gone(process);
                for hosted in self.hosted.values_mut() {
                    hosted.watchers.remove(&process);
                }
            }
            Said::Knows(process) if !self.processes.contains(&process) => {
                self.to_nodes.push_back((from, Said::Ended(process)));
            }
            Said::Knows(_) => {}
        }
    }

    fn on_state(&mut self, node: u32, to: ProcessId, state: &ActorState) {
        if !self.processes.contains(&to) {
            return;
        }
        let id = ActorId::from_slice(&state.actor).expect("an id");
        self.creating.remove(&id);
        if state.phase() == ActorPhase::Dead {
            self.killing.remove(&id);
            self.watching.remove(&(to, id));
            self.heard_dead.insert(id, node);
            return;
        }
        if self.heard_dead.contains_key(&id) {
            return; // Old news, that went another way.
        }
        let watched = self.watching.entry((to, id)).or_default();
        (watched.stay, watched.restarts) =
            (watched.stay, watched.restarts).max((state.stay, state.restarts));
        watched.node = node;
    }

    /// Whether it counts what that node said: one that died may have told others
    /// of a death that control never heard of.
    pub(super) fn is_member(&self, node: u32) -> bool {
        node == 0 || self.view.contains(&node)
    }

    fn on_node_left(&mut self, node: u32) {
        if !self.view.remove(&node) {
            return;
        }
        self.left.insert(node);
        for process in self.foreign_creators(|creator| creator.node() == node) {
            self.on_creator_gone(process);
        }
        for hosted in self.hosted.values_mut() {
            hosted.watchers.retain(|watcher| watcher.node() != node);
        }
        self.watch_again(Some(node));
    }

    fn foreign_creators(&self, which: impl Fn(&ProcessId) -> bool) -> Vec<ProcessId> {
        self.hosted.values().map(|hosted| hosted.creator).filter(which).collect()
    }

    fn watch_again(&mut self, node: Option<u32>) {
        let lost =
            |watched: &Watched| node.is_none_or(|node| watched.node == node) || watched.node == 0;
        let again = self.watching.iter().filter(|(_, watched)| lost(watched));
        let again: Vec<(ProcessId, ActorId)> = again.map(|(key, _)| *key).collect();
        for (from, id) in again {
            self.watch(from, id);
        }
    }

    pub(super) fn on_control(&mut self, body: from_control::Body) {
        use from_control::Body;
        match body {
            Body::Welcome(welcome) => {
                let again = self.number != 0;
                self.number = welcome.number;
                self.cluster = welcome.cluster;
                let members: BTreeSet<u32> = welcome.nodes.iter().map(|info| info.number).collect();
                assert!(members.contains(&self.number));
                let left: Vec<u32> = self.view.difference(&members).copied().collect();
                self.view.extend(members);
                left.into_iter().for_each(|node| self.on_node_left(node));
                if again {
                    self.on_reattached();
                } else {
                    self.spawn();
                }
            }
            Body::Refused(text) | Body::GivenUp(text) => self.refused = Some(text.text),
            Body::Ping(_) => self.tell_control(to_control::Body::Pong(Pong::default())),
            Body::NodeJoined(info) => _ = self.view.insert(info.number),
            Body::NodeLeft(info) => self.on_node_left(info.number),
            Body::OfProcess(said) => self.on_routed(said),
            Body::ForProcess(said) => {
                let to = ProcessId(said.process);
                match said.message.and_then(|message| message.body) {
                    Some(from_node::Body::ActorState(state)) => self.on_state(0, to, &state),
                    Some(from_node::Body::NamedActor(found)) => {
                        self.asked.remove(&(to, found.request));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn on_reattached(&mut self) {
        for ((from, _), body) in self.asked.clone() {
            self.tell_of(from, body);
        }
        for (from, create) in self.creating.clone().into_values() {
            self.tell_of(from, to_node::Body::CreateActor(create));
        }
        for (id, from) in self.killing.clone() {
            self.kill(from, id, true);
        }
        for (id, hosted) in self.hosted.clone() {
            let phase = if hosted.alive { ActorPhase::Alive } else { ActorPhase::Pending };
            self.tell_news(id, phase, "");
        }
        self.watch_again(None);
    }

    fn on_routed(&mut self, said: OfProcess) {
        let from = ProcessId(said.process);
        match said.message.and_then(|message| message.body) {
            Some(to_node::Body::CreateActor(create)) => {
                let id = ActorId::from_slice(&create.actor).expect("an id");
                if let Some(reason) = self.dead.get(&id).cloned() {
                    self.tell_news(id, ActorPhase::Dead, &reason);
                } else if !self.hosted.contains_key(&id) {
                    self.on_create(from, id, create, (said.stay, said.restarts));
                }
            }
            Some(to_node::Body::WatchActor(actor)) => {
                let id = ActorId::from_slice(&actor.actor).expect("an id");
                self.on_watch(from, id);
            }
            Some(to_node::Body::KillActor(actor)) => {
                let id = ActorId::from_slice(&actor.actor).expect("an id");
                match actor.no_restart {
                    true => self.bury(id, "it was killed by ray.kill"),
                    false => self.on_worker_died(id),
                }
            }
            _ => panic!("nothing else is passed on"),
        }
    }

    fn on_create(
        &mut self,
        creator: ProcessId,
        id: ActorId,
        create: CreateActor,
        (stay, restarts): (u32, u64),
    ) {
        let watchers = BTreeSet::from([creator]);
        let hosted = Hosted { create, creator, stay, restarts, alive: false, watchers };
        self.hosted.insert(id, hosted);
        if creator.node() == self.number {
            if !self.processes.contains(&creator) {
                self.bury(id, "its owner died");
            }
        } else if self.view.contains(&creator.node()) {
            self.to_nodes.push_back((creator.node(), Said::Knows(creator)));
        } else {
            self.bury(id, "its owner died");
        }
    }

    fn on_watch(&mut self, from: ProcessId, id: ActorId) {
        let own = from.node() == self.number;
        if if own { !self.processes.contains(&from) } else { !self.view.contains(&from.node()) } {
            return;
        }
        if let Some(hosted) = self.hosted.get_mut(&id) {
            hosted.watchers.insert(from);
            let phase = if hosted.alive { ActorPhase::Alive } else { ActorPhase::Pending };
            let state = self.state(id, phase, "");
            self.tell_process(from, state);
            if !own {
                self.to_nodes.push_back((from.node(), Said::Knows(from)));
            }
        } else {
            let reason = self.dead.get(&id).cloned();
            let reason = reason.unwrap_or_else(|| panic!("a watch of {id} went astray"));
            self.tell_process(from, self.state(id, ActorPhase::Dead, &reason));
        }
    }
}
