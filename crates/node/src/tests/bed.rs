//! A node that is alone, with an outbox that remembers, and short words for what tests say.

use std::collections::VecDeque;

use oxiray_control::{Alone, Now};
use oxiray_ids::{JobId, ProcessId, StoreKey};
use oxiray_store::{Extent, TABLE_BYTES, Table};
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{
    BetweenNodes, Join, KEPT_ACTORS, Kv, KvVerb, NodeInfo, Tokens, to_control,
};
use oxiray_wire::control::from_node::Body;
use oxiray_wire::control::{
    Actor, ActorCreated, ActorState, Amount, CreateActor, JobConfig, NamedActor, ProcessDied,
    ProcessKind, ReadFile, SetDemand, Shape, StartAnswer, UNIT, to_node,
};

use crate::event::{AdmitError, Endpoint, Event, Outbox, Setup, Transfer};
use crate::node::Node;

pub(super) const DRIVER: ProcessId = ProcessId::new(1, 1);
pub(super) const MILLISECOND: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1000 * MILLISECOND;

pub(super) fn shape(amounts: &[(&str, u64)]) -> Shape {
    let some = amounts.iter().filter(|(_, amount)| *amount > 0);
    let amount = |&(name, units): &(&str, u64)| Amount { name: name.into(), amount: units * UNIT };
    Shape { resources: some.map(amount).collect(), ..Shape::default() }
}

pub(super) fn cpus(count: u64) -> Shape {
    shape(&[("CPU", count)])
}

pub(super) fn gpus(count: u64) -> Shape {
    shape(&[("GPU", count)])
}

/// A lease as its holder saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) to: ProcessId,
    pub(super) lease: u64,
    pub(super) worker: ProcessId,
}

pub(super) struct Bed {
    pub(super) node: Node,
    control: Alone,
    pub(super) now: u64,
    pub(super) starting: usize,
    /// Workers to come that are not plain, by their environments.
    pub(super) starting_elsewise: Vec<u32>,
    pub(super) templates: Vec<u32>,
    pub(super) ended_templates: Vec<u32>,
    pub(super) killed: Vec<ProcessId>,
    pub(super) channels: Vec<(u64, u64)>,
    pub(super) shut_down: Option<bool>,
    sent: VecDeque<(ProcessId, Body)>,
}

/// What a node asked for during one event.
#[derive(Default)]
struct Asked {
    sent: Vec<(ProcessId, Body)>,
    channels: Vec<[Endpoint; 2]>,
    starts: Vec<u32>,
    templates: Vec<u32>,
    ended_templates: Vec<u32>,
    killed: Vec<ProcessId>,
    spilling: Vec<StoreKey>,
    shut_down: Option<bool>,
    to_control: Vec<to_control::Body>,
}

impl Outbox for Asked {
    fn send(&mut self, to: ProcessId, body: Body) {
        self.sent.push((to, body));
    }
    fn open_channel(&mut self, ends: [Endpoint; 2]) {
        assert_ne!(ends[0].process, ends[1].process);
        self.channels.push(ends);
    }
    fn start_worker(&mut self, environment: u32) {
        self.starts.push(environment);
    }
    fn make_template(&mut self, environment: u32, _text: &str) {
        self.templates.push(environment);
    }
    fn end_template(&mut self, environment: u32) {
        self.ended_templates.push(environment);
    }
    fn kill(&mut self, process: ProcessId) {
        self.killed.push(process);
    }
    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.spilling.extend(batch.into_iter().map(|(key, _)| key));
    }
    fn restore(&mut self, _key: StoreKey, _extent: Extent) {}
    fn forget_copy(&mut self, _key: StoreKey) {}
    fn tell_user(&mut self, _text: String) {}
    fn tell_peer(&mut self, node: u32, message: BetweenNodes) {
        unreachable!("there is no node {node} to tell {message:?}");
    }
    fn tell_control(&mut self, body: to_control::Body) {
        self.to_control.push(body);
    }
    fn dial_control(&mut self, join: Join) {
        unreachable!("it is never away: {join:?}");
    }
    fn add_node(&mut self, info: &NodeInfo) {
        unreachable!("there is no other node: {info:?}");
    }
    fn remove_node(&mut self, number: u32) {
        unreachable!("there is no other node: {number}");
    }
    fn change_tokens(&mut self, _tokens: Tokens) {
        unreachable!("there is no secret");
    }
    fn leave(&mut self, why: String) {
        unreachable!("nobody drains this node: {why}");
    }
    fn rejoin(&mut self, why: String) {
        unreachable!("it is the only member: {why}");
    }
    fn exclude(&mut self, why: String) {
        unreachable!("it is the only member: {why}");
    }
    fn close_channel(&mut self, _local: ProcessId, foreign: ProcessId) {
        unreachable!("{foreign} is of another node");
    }
    fn transfer(&mut self, transfer: Transfer) {
        unreachable!("{transfer:?}");
    }
    fn lend(&mut self, _grant: u64, _extent: Extent) {
        unreachable!("nobody borrows");
    }
    fn read_file(&mut self, _asker: ProcessId, _wanted: ReadFile) {}
    fn end_lending(&mut self, _grant: u64) {
        unreachable!("nobody borrows");
    }
    fn shut_down(&mut self, asked: bool) {
        self.shut_down = Some(asked);
    }
}

fn named(number: u8) -> Actor {
    Actor { actor: vec![number; 16], no_restart: true, ..Actor::default() }
}

impl Bed {
    /// A node with a driver whose workers have not arrived.
    pub(super) fn new(cpu_count: u64, prestart: usize) -> Self {
        Self::with(cpus(cpu_count), prestart)
    }

    pub(super) fn with(total: Shape, prestart: usize) -> Self {
        let info = NodeInfo {
            number: 1,
            id: vec![7; 28],
            total: total.resources.clone(),
            available: total.resources.clone(),
            ..NodeInfo::default()
        };
        let setup = Setup {
            resources: total.resources,
            store_size: 1 << 20,
            store_patience: SECOND,
            prestart_workers: prestart,
            max_starting: 4,
            max_processes: 32,
            limited_by: String::new(),
            clock_began_ns: 0,
            job: Some(JobId([1; 4])),
            member: info.clone(),
            alone: true,
            asked_at: 0,
        };
        let control = Alone::new([1; 16], NodeInfo { number: 0, ..info }, Now::default());
        let table = memory_file("table", TABLE_BYTES).and_then(Table::map).expect("memory");
        let node = Node::new(setup, table);
        let mut bed = Self {
            node,
            control,
            now: SECOND,
            starting: 0,
            starting_elsewise: Vec::new(),
            templates: Vec::new(),
            ended_templates: Vec::new(),
            killed: Vec::new(),
            channels: Vec::new(),
            shut_down: None,
            sent: VecDeque::new(),
        };
        bed.converse();
        assert_eq!(bed.admit(ProcessKind::Driver).unwrap(), DRIVER);
        bed.event(Event::Ready(DRIVER));
        bed
    }

    /// A node whose first workers are there.
    pub(super) fn ready(cpu_count: u64, prestart: usize) -> Self {
        let mut bed = Self::new(cpu_count, prestart);
        bed.workers_arrive();
        bed
    }

    /// Lets a process register.
    pub(super) fn admit(&mut self, kind: ProcessKind) -> Result<ProcessId, AdmitError> {
        let admitted = self.node.admit(kind, 1000, JobConfig::default(), 0);
        admitted.map(|admitted| admitted.process)
    }

    pub(super) fn event(&mut self, event: Event) {
        self.node_event(event);
        self.converse();
    }

    /// The node and its control service speak until nobody has anything to say.
    fn converse(&mut self) {
        let now = Now { ns: self.now, wall_ms: self.now / MILLISECOND };
        let answers = self.control.on_time(now);
        answers.messages.into_iter().for_each(|body| self.node_event(Event::FromControl(body)));
        while self.control.is_spoken_to() {
            for body in self.control.hear(now).messages {
                self.node_event(Event::FromControl(body));
            }
        }
    }

    fn node_event(&mut self, event: Event) {
        let mut asked = Asked::default();
        self.node.on_event(event, self.now, &mut asked);
        self.node.validate();
        asked.to_control.into_iter().for_each(|body| self.control.say(body));
        self.sent.extend(asked.sent);
        let plain = asked.starts.iter().filter(|environment| **environment == 0).count();
        self.starting += plain;
        self.starting_elsewise.extend(asked.starts.into_iter().filter(|number| *number != 0));
        self.templates.extend(asked.templates);
        self.ended_templates.extend(asked.ended_templates);
        self.killed.extend(asked.killed);
        let number = |end: Endpoint| u64::from(end.process.number());
        let pair = |[a, b]: [Endpoint; 2]| (number(a), number(b));
        self.channels.extend(asked.channels.into_iter().map(pair));
        self.shut_down = asked.shut_down.or(self.shut_down);
    }

    pub(super) fn say(&mut self, from: ProcessId, body: to_node::Body) {
        self.event(Event::Message(from, body));
    }

    pub(super) fn tick_after(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.event(Event::Tick);
    }

    pub(super) fn worker_arrives(&mut self) -> Option<ProcessId> {
        self.starting = self.starting.checked_sub(1)?;
        let worker = self.admit(ProcessKind::Worker).unwrap();
        self.event(Event::Ready(worker));
        Some(worker)
    }

    /// The next worker that is not plain is there.
    pub(super) fn other_worker_arrives(&mut self) -> Option<ProcessId> {
        let environment = self.starting_elsewise.pop()?;
        let admitted =
            self.node.admit(ProcessKind::Worker, 1000, JobConfig::default(), environment);
        let worker = admitted.unwrap().process;
        self.event(Event::Ready(worker));
        Some(worker)
    }

    pub(super) fn workers_arrive(&mut self) {
        while self.worker_arrives().is_some() {}
    }

    pub(super) fn starts_fail(&mut self) {
        for _ in 0..std::mem::take(&mut self.starting) {
            self.event(Event::StartFailed { environment: 0, reason: "no reason".into() });
        }
    }

    pub(super) fn end(&mut self, process: ProcessId, reason: &str) {
        let last_lines = vec!["last words".into()];
        self.event(Event::Ended { process, reason: reason.into(), last_lines });
    }

    pub(super) fn demand(&mut self, from: ProcessId, key: u64, shape: Shape, total: u64) {
        let demand = SetDemand {
            shape_key: key,
            shape: Some(shape),
            requested_total: total,
            ..Default::default()
        };
        self.say(from, to_node::Body::SetDemand(demand));
    }

    pub(super) fn create_actor(&mut self, from: ProcessId, number: u8, need: Shape, held: Shape) {
        self.create_lasting(from, number, need, held, 0, false);
    }

    /// Makes an actor that is started again, or outlives its creator.
    pub(super) fn create_lasting(
        &mut self,
        from: ProcessId,
        number: u8,
        need: Shape,
        held: Shape,
        max_restarts: i64,
        detached: bool,
    ) {
        if detached {
            let (verb, namespace) = (KvVerb::Put as i32, KEPT_ACTORS.to_owned());
            let (key, value) = (vec![number; 16], Some(b"class and arguments".to_vec()));
            let put = Kv { verb, namespace, key, value, wide: true, ..Kv::default() };
            self.say(from, to_node::Body::Kv(put));
        }
        self.say(
            from,
            to_node::Body::CreateActor(CreateActor {
                actor: vec![number; 16],
                class_name: "Counter".into(),
                placement: Some(need),
                held: Some(held),
                max_restarts,
                detached,
                kept: detached,
            }),
        );
    }

    pub(super) fn kill_actor(&mut self, from: ProcessId, number: u8) {
        self.say(from, to_node::Body::KillActor(named(number)));
    }

    pub(super) fn watch(&mut self, from: ProcessId, number: u8) {
        self.say(from, to_node::Body::WatchActor(named(number)));
    }

    pub(super) fn find_actor_worker(&self, number: u8) -> Option<ProcessId> {
        self.node.actors.get(&oxiray_ids::ActorId([number; 16]))?.worker()
    }

    pub(super) fn actor_worker(&self, number: u8) -> ProcessId {
        self.find_actor_worker(number).expect("the actor has a worker")
    }

    pub(super) fn say_created(&mut self, number: u8) {
        self.say_failed(number, b"");
    }

    /// A worker that was asked to be an actor answers.
    pub(super) fn answer_start(&mut self, worker: ProcessId, number: u8, declined: bool) {
        let answer = StartAnswer { actor: vec![number; 16], declined };
        self.say(worker, to_node::Body::StartAnswer(answer));
    }

    pub(super) fn say_failed(&mut self, number: u8, error: &[u8]) {
        let created = ActorCreated { actor: vec![number; 16], error: error.to_vec() };
        self.say(self.actor_worker(number), to_node::Body::ActorCreated(created));
    }

    /// Takes those of the sent messages that are wanted.
    pub(super) fn take<T>(
        &mut self,
        mut wanted: impl FnMut(ProcessId, &Body) -> Option<T>,
    ) -> Vec<T> {
        let mut taken = Vec::new();
        self.sent.retain(|(to, body)| match wanted(*to, body) {
            Some(found) => {
                taken.push(found);
                false
            }
            None => true,
        });
        taken
    }

    pub(super) fn grants(&mut self) -> Vec<Grant> {
        self.take(|to, body| match body {
            Body::Granted(granted) => {
                Some(Grant { to, lease: granted.lease, worker: ProcessId(granted.worker) })
            }
            _ => None,
        })
    }

    pub(super) fn reclaims(&mut self) -> usize {
        self.take(|_, body| matches!(body, Body::Reclaim(_)).then_some(())).len()
    }

    pub(super) fn warnings(&mut self) -> Vec<String> {
        self.take(|_, body| match body {
            Body::Warning(text) => Some(text.text.clone()),
            _ => None,
        })
    }

    pub(super) fn deaths(&mut self, told: ProcessId) -> Vec<ProcessDied> {
        self.take(|to, body| match body {
            Body::ProcessDied(died) if to == told => Some(died.clone()),
            _ => None,
        })
    }

    /// Asks for a name for an actor: whose it is.
    pub(super) fn name(&mut self, from: ProcessId, number: u8, name: &str) -> Vec<u8> {
        let wanted =
            NamedActor { name: name.into(), actor: vec![number; 16], ..NamedActor::default() };
        self.say(from, to_node::Body::NameActor(wanted));
        let answers = self.take(|_, body| match body {
            Body::NamedActor(found) => Some(found.actor.clone()),
            _ => None,
        });
        answers.into_iter().next().unwrap_or_default()
    }

    pub(super) fn states(&mut self, told: ProcessId) -> Vec<ActorState> {
        self.take(|to, body| match body {
            Body::ActorState(state) if to == told => Some(state.clone()),
            _ => None,
        })
    }
}
