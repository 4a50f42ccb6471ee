//! Processes, the channels between them, and what must hold at any time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::{ActorId, ObjectId, ProcessId, TaskId};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{Body, FailureCode, Frame, Outcome, Returns, Value};

use super::net::{Net, Side};
use super::node::Mail;
use crate::object::{Content, ObjectKey};
use crate::owner::Owner;

pub(super) const DRIVER: u64 = 0;
pub(super) const SHAPES: u32 = 2;
pub(super) const FUNCTIONS: u32 = 2;

/// A task that a process runs.
pub(super) struct Running {
    /// An argument was lost with its node before it could be read.
    pub(super) unread: bool,
    pub(super) giver: u64,
    pub(super) token: u64,
    pub(super) id: TaskId,
    pub(super) returns: Returns,
    pub(super) cancelled: bool,
    /// Items that it yielded, and what it heard of their reader.
    pub(super) yielded: u32,
    pub(super) read: u32,
    pub(super) no_reader: bool,
    pub(super) held: Vec<ObjectKey>,
    pub(super) constructs: Option<ActorId>,
}

pub(super) struct Queued {
    pub(super) giver: u64,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Process {
    pub(super) owner: Owner,
    /// References that the program holds, one count each.
    pub(super) refs: Vec<ObjectKey>,
    /// Streams that it reads, and how far it is.
    pub(super) readers: Vec<(TaskId, u32)>,
    /// What it put for others to own: it has the reference when they know.
    pub(super) entrusting: Vec<ObjectKey>,
    /// Objects that it waits for, one count each.
    pub(super) watched: BTreeMap<ObjectKey, ObjectId>,
    pub(super) queue: VecDeque<Queued>,
    pub(super) running: Option<Running>,
    /// Whom it told that it sleeps.
    pub(super) blocked: Option<Vec<u64>>,
    pub(super) actor: Option<ActorId>,
    pub(super) unreferenced: bool,
    pub(super) counter: u64,
}

#[derive(Default)]
pub(super) struct World {
    pub(super) processes: BTreeMap<u64, Process>,
    pub(super) net: Net,
    pub(super) now: u64,
    /// What tasks return is in the store, if nothing else is said.
    pub(super) stores: bool,
    /// Which channels are slow: see [`World::is_slow`].
    pub(super) slow: u32,
    /// Of each node, how many processes it had so far. The first is the driver's.
    nodes: Vec<u64>,
    /// What each value contains.
    contains: BTreeMap<ObjectId, Vec<ObjectId>>,
    /// What a process knew when it died, and what that contains: whoever had
    /// been given it and was not registered yet may have lost it.
    tainted: BTreeSet<ObjectId>,
    /// Items that some attempt of a task has yielded.
    pub(super) items: BTreeMap<TaskId, u32>,
    /// How often each task was begun, and how often it may be.
    pub(super) begun: BTreeMap<TaskId, (u32, u32)>,
}

impl World {
    /// A driver and some workers, on one node.
    pub(super) fn new(workers: u32) -> Self {
        Self::on_nodes(1, workers)
    }

    /// A driver and some workers, these in turn on so many nodes.
    pub(super) fn on_nodes(nodes: u32, workers: u32) -> Self {
        let mut world = Self { nodes: vec![0; nodes as usize], ..Self::default() };
        world.spawn(0);
        (0..workers).for_each(|turn| world.spawn_worker((turn + 1) % nodes));
        world
    }

    pub(super) fn spawn(&mut self, node: u32) -> u64 {
        let count = &mut self.nodes[node as usize];
        let number = ProcessId::new(node, *count as u32).0;
        *count += 1;
        let mut owner = Owner::new(ProcessId(number));
        (0..SHAPES).for_each(|number| assert_eq!(owner.shape(), number));
        (0..FUNCTIONS).for_each(|number| assert_eq!(owner.function(), number));
        let process = Process {
            owner,
            refs: Vec::new(),
            readers: Vec::new(),
            entrusting: Vec::new(),
            watched: BTreeMap::new(),
            queue: VecDeque::new(),
            running: None,
            blocked: None,
            actor: None,
            unreferenced: false,
            counter: 0,
        };
        self.processes.insert(number, process);
        number
    }

    pub(super) fn spawn_worker(&mut self, node: u32) {
        let worker = self.spawn(node);
        self.net.node.idle.push(worker);
    }

    /// A node that has not left, by turn.
    pub(super) fn living_node(&self, turn: usize) -> u32 {
        let nodes = 0..self.nodes.len() as u32;
        let living: Vec<u32> = nodes.filter(|node| !self.net.lost.contains(node)).collect();
        living[turn % living.len()]
    }

    /// A node leaves with its processes and its store; a new one comes for it. The end of its
    /// store is heard of after that of its processes.
    pub(super) fn lose_node(&mut self, node: u32) {
        if node == 0 || !self.net.lost.insert(node) {
            return;
        }
        self.forget_stored_at(node);
        self.nodes.push(0);
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            if ProcessId(process).node() == node {
                self.end_process(process, false);
            }
        }
        self.net.node.tell_of_lost_node(node, self.processes.keys().copied());
        self.obey_node();
    }

    /// What only the store of a node had, or nobody had any more, and what nothing makes again.
    fn forget_stored_at(&mut self, node: u32) {
        let stored: Vec<ObjectId> = self.net.stored.keys().copied().collect();
        for id in stored {
            let (begun, most) = self.begun.get(&id.task()).copied().unwrap_or_default();
            if begun >= most {
                self.taint(id);
            }
        }
        self.net.stored.retain(|_, at| *at != node);
    }

    /// Lets a process do something, then checks everything.
    pub(super) fn with<R>(
        &mut self,
        process: u64,
        act: impl FnOnce(&mut Process, &mut Side<'_>) -> R,
    ) -> R {
        let acting = self.processes.get_mut(&process).expect("alive");
        acting.owner.set_now(self.now);
        let mut side = Side { net: &mut self.net, from: process };
        let result = act(acting, &mut side);
        for key in std::mem::take(&mut self.net.ready) {
            let id = acting.watched.remove(&key).expect("O-1: watched, and complete once");
            check_content(id, acting.owner.content(key).expect("O-1: complete"));
            acting.owner.drop_ref(key, &mut Side { net: &mut self.net, from: process });
        }
        let (settled, entrusting) =
            acting.entrusting.iter().partition(|key| acting.owner.is_settled(**key));
        acting.entrusting = entrusting;
        acting.refs.extend::<Vec<ObjectKey>>(settled);
        self.check();
        result
    }

    /// Delivers the next frame of a channel.
    pub(super) fn deliver(&mut self, from: u64, to: u64) {
        let channel = self.net.channels.get_mut(&(from, to));
        let Some(bytes) = channel.and_then(VecDeque::pop_front) else { return };
        match Frame::decode(&bytes) {
            Ok(Frame::Cancel(token, _)) => return self.stop(from, to, token),
            Ok(Frame::Consumed(token, items)) => {
                return self.reader_is_at(from, to, token, Some(items));
            }
            Ok(Frame::NoReader(token)) => return self.reader_is_at(from, to, token, None),
            _ => {}
        }
        let peer = ProcessId(from);
        self.with(to, |process, out| {
            let owner = &mut process.owner;
            match Frame::decode(&bytes).expect("a frame") {
                Frame::Task(task) => {
                    let failed = |value: &Value<'_>| matches!(value.body, Body::Failed { .. });
                    assert!(!task.values.iter().any(failed), "a failed argument fails its task");
                    process.queue.push_back(Queued { giver: from, bytes: bytes.clone() })
                }
                Frame::Answer(answer) => {
                    if matches!(answer.outcome, Outcome::Unread | Outcome::Retryable) {
                        out.net.may_go_again(to, answer.token);
                    }
                    owner.on_answer(peer, answer, out);
                }
                Frame::WantObject(id) => owner.on_want(peer, id, out),
                Frame::Object(id, value) => owner.on_object(id, value, out),
                Frame::Borrow(id) => owner.on_borrow(peer, id, out),
                Frame::Borrowed(id) => owner.on_borrowed(id, out),
                Frame::Release(id) => owner.on_release(peer, id, out),
                Frame::SettledArgs(token) => owner.on_settled_args(peer, token, out),
                Frame::SettledReturns(token, item) => {
                    owner.on_settled_returns(peer, token, item, out);
                }
                Frame::Yield(item) => owner.on_yield(peer, item, out),
                Frame::Blocked => owner.on_blocked(peer, out),
                Frame::Unblocked => owner.on_unblocked(peer, out),
                Frame::ActorUnreferenced(actor) => {
                    assert_eq!(process.actor, Some(actor));
                    process.unreferenced = true;
                }
                Frame::FreeObject(id) => owner.on_free(id, out),
                Frame::CancelObject(id, how) => owner.on_cancel(id, how, out),
                Frame::Entrust(id, value) => owner.on_entrusted(peer, id, value, out),
                Frame::Cancel(..)
                | Frame::Consumed(..)
                | Frame::NoReader(_)
                | Frame::WantFunction(_)
                | Frame::Function(..)
                | Frame::WantConstructor(_)
                | Frame::Constructor(..) => unreachable!("not of the owner"),
                Frame::TakeBack(_) | Frame::TakenBack(_) => unreachable!("all is one node"),
            }
        });
        self.obey_node();
    }

    /// Frames of a slow channel come when nothing else is on its way, or seldom.
    pub(super) fn is_slow(&self, (from, to): (u64, u64)) -> bool {
        self.slow >> ((5 * from + to) % 32) & 1 == 1
    }

    pub(super) fn drain(&mut self, from: u64, to: u64) {
        while self.net.channels.get(&(from, to)).is_some_and(|channel| !channel.is_empty()) {
            self.deliver(from, to);
        }
    }

    /// Ends a process, and the actors that it made.
    pub(super) fn kill(&mut self, number: u64) {
        self.end_process(number, false);
    }

    /// Ends a process; an actor that goes as it was `meant` to is not started again.
    pub(super) fn end_process(&mut self, number: u64, meant: bool) {
        let Some(process) = self.processes.remove(&number) else { return };
        let known: Vec<ObjectId> =
            process.owner.objects.iter().map(|(_, object)| object.id).collect();
        known.into_iter().for_each(|id| self.taint(id));
        self.net.dead.insert(number);
        self.net.channels.retain(|(_, to), _| *to != number);
        let node = &mut self.net.node;
        node.bury(number, meant, self.processes.keys().copied());
        if process.actor.is_none() {
            // Who ended with its node is followed by one on the node that came for it.
            let node = ProcessId(number).node();
            let last = self.nodes.len() as u32 - 1;
            self.spawn_worker(if self.net.lost.contains(&node) { last } else { node });
        }
        self.obey_node();
    }

    /// Ends and starts processes as the node wants it.
    pub(super) fn obey_node(&mut self) {
        while let Some(process) = self.net.node.to_kill.pop() {
            self.end_process(process, true);
        }
        while let Some((actor, giver, bytes)) = self.net.node.to_start.pop() {
            let node = self.living_node(actor.0[0] as usize);
            let process = self.spawn(node);
            self.net.node.placed(actor, process);
            self.processes.get_mut(&process).expect("just made").actor = Some(actor);
            self.begin(process, Queued { giver, bytes }, Some(actor));
        }
    }

    pub(super) fn taint(&mut self, id: ObjectId) {
        if self.tainted.insert(id) {
            for inner in self.contains.get(&id).cloned().unwrap_or_default() {
                self.taint(inner);
            }
        }
    }

    /// Whether it may be lost: by itself, or as the failure of an argument of its task.
    fn is_tainted(&self, id: ObjectId) -> bool {
        let (mut left, mut seen) = (vec![id], BTreeSet::new());
        while let Some(id) = left.pop() {
            if self.tainted.contains(&id) {
                return true;
            }
            if seen.insert(id) {
                left.extend(self.net.arguments.get(&id.task()).into_iter().flatten());
            }
        }
        false
    }

    /// Notes that `outer` contains `inner`; `false`: that would be a cycle,
    /// which no counting ever frees.
    pub(super) fn contain(&mut self, outer: ObjectId, inner: ObjectId) -> bool {
        if outer == inner || self.reaches(inner, outer) {
            return false;
        }
        self.contains.entry(outer).or_default().push(inner);
        if self.tainted.contains(&outer) {
            self.taint(inner);
        }
        true
    }

    fn reaches(&self, from: ObjectId, to: ObjectId) -> bool {
        let inner = self.contains.get(&from).map_or(&[][..], Vec::as_slice);
        inner.iter().any(|id| *id == to || self.reaches(*id, to))
    }

    fn check(&self) {
        for (number, process) in &self.processes {
            process.owner.validate();
            for (_, object) in &process.owner.objects {
                let unknown = |key: &ObjectKey| process.owner.id_of(*key) == object.id;
                if process.entrusting.iter().any(unknown) {
                    continue;
                }
                if object.refs == 0 {
                    continue;
                }
                let lost = matches!(&object.content, Some(Content::Failed(failure))
                    if matches!(failure.code, FailureCode::ObjectLost | FailureCode::Unrecoverable));
                assert!(
                    !lost || self.is_tainted(object.id),
                    "O-3: {} was freed while {number} was to get it",
                    object.id
                );
                let owner = object.owner.and_then(|owner| self.processes.get(&owner.0));
                let known = owner.is_none_or(|owner| owner.owner.by_id.contains_key(&object.id));
                assert!(
                    known || self.is_tainted(object.id) || self.is_yielded(*number, object.id),
                    "O-3: {} was freed while {number} holds it",
                    object.id
                );
            }
        }
    }
}

/// A value says of which return it is.
pub(super) fn value_of(id: ObjectId) -> Content {
    Content::Inline(id.0.as_slice().into())
}

fn check_content(id: ObjectId, content: &Content) {
    if let Content::Inline(bytes) = content {
        assert_eq!(bytes.as_slice(), id.0, "O-1: each return gets its own value");
    }
}

/// Mail is read in order, like everything that comes down one way.
impl World {
    pub(super) fn read_mail(&mut self, process: u64) {
        let Some(mail) = self.net.node.mail.get_mut(&process).and_then(VecDeque::pop_front) else {
            return;
        };
        let ended = match &mail {
            Mail::Died(dead) => Some(*dead),
            Mail::Restarting(_, at, _) => Some(*at),
            Mail::Dead(_, at, _) => *at,
            _ => None,
        };
        if let Some(ended) = ended {
            self.drain(ended, process);
            // What it hears last may be its own end.
            if !self.processes.contains_key(&process) {
                return;
            }
        }
        match mail {
            Mail::Granted { shape, lease, worker } => self.with(process, |process, out| {
                process.owner.on_granted(shape, lease, ProcessId(worker), Vec::new(), out);
            }),
            Mail::Reclaim => self.with(process, |process, out| process.owner.on_reclaim(out)),
            Mail::Died(dead) => self.with(process, |process, out| {
                process.queue.retain(|queued| queued.giver != dead);
                process.owner.on_process_died(ProcessId(dead), MemoryEnd::Not, "died", out);
            }),
            Mail::NodeLost(node) => self.with(process, |process, out| {
                process.owner.on_node_lost(node, "lost", out);
            }),
            Mail::Alive(actor, at, incarnation) => {
                if self.processes[&process].owner.is_news(actor, incarnation) {
                    self.net.forget_order(process, actor);
                }
                self.with(process, |process, out| {
                    process.owner.on_actor_alive(actor, ProcessId(at), incarnation, out);
                });
            }
            Mail::Restarting(actor, _, incarnation) => {
                if self.processes[&process].owner.is_news(actor, incarnation) {
                    self.net.forget_order(process, actor);
                }
                self.with(process, |process, out| {
                    process.owner.on_actor_restarting(actor, incarnation, "died", out);
                });
            }
            Mail::Dead(actor, _, incarnation) => {
                let end = crate::ActorEnd { reason: "died".into(), ..Default::default() };
                self.with(process, |process, out| {
                    process.owner.on_actor_dead(actor, incarnation, end, out);
                });
            }
        }
        self.obey_node();
    }
}
