//! Control, its store and its nodes, and what must hold at any time.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{from_control, to_control};

use super::node::SimNode;
use crate::{Change, Control, Event, Now, Outbox, PeerId, Record, Table};

/// How much a world may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) processes: usize,
    pub(super) actors: usize,
}

/// What one event asked for.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) sent: Vec<(PeerId, from_control::Body)>,
    pub(super) closed: Vec<PeerId>,
    pub(super) changes: Vec<Change>,
    pub(super) rotations: Vec<PeerId>,
    pub(super) notes: Vec<String>,
}

impl Outbox for Asked {
    fn send(&mut self, to: PeerId, body: from_control::Body) {
        assert!(!self.closed.contains(&to), "nothing is sent after the end");
        self.sent.push((to, body));
    }

    fn close(&mut self, peer: PeerId) {
        self.closed.push(peer);
    }

    fn persist(&mut self, change: Change) {
        self.changes.push(change);
    }

    fn rotate(&mut self, peer: PeerId) {
        self.rotations.push(peer);
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

/// What is kept.
#[derive(Clone, Default)]
pub(super) struct Store(pub(super) BTreeMap<(Table, Vec<u8>), Vec<u8>>);

impl Store {
    pub(super) fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Put(Record { table, key, value }) => self.0.insert((table, key), value),
                Change::Delete { table, key } => self.0.remove(&(table, key)),
            };
        }
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let record = |((table, key), value): (&(Table, Vec<u8>), &Vec<u8>)| Record {
            table: *table,
            key: key.clone(),
            value: value.clone(),
        };
        self.0.iter().map(record).collect()
    }
}

/// How far the control service gets with an event before it is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Crash {
    /// Nothing was written.
    BeforeWriting,
    /// Nothing was sent.
    BeforeSending,
}

pub(super) struct World {
    pub(super) size: Size,
    pub(super) now: Now,
    pub(super) store: Store,
    /// None: it was killed.
    pub(super) control: Option<Control>,
    pub(super) nodes: Vec<SimNode>,
    pub(super) actors: Vec<ActorId>,
    pub(super) counter: u32,
    next_peer: u64,
    next_id: u8,
    numbers: BTreeSet<u32>,
    /// The next event is the last one.
    pub(super) crash: Option<Crash>,
}

impl World {
    pub(super) fn new(size: Size) -> Self {
        let now = Now { ns: 1_000_000_000, wall_ms: 1_000 };
        let mut out = Asked::default();
        let control = Control::new([7; 16], now, &mut out);
        let mut store = Store::default();
        store.apply(out.changes);
        Self {
            size,
            now,
            store,
            control: Some(control),
            nodes: Vec::new(),
            actors: Vec::new(),
            counter: 0,
            next_peer: 0,
            next_id: 0,
            numbers: BTreeSet::new(),
            crash: None,
        }
    }

    /// Lets the control service take in an event, all of it or a part.
    pub(super) fn event(&mut self, event: Event) {
        let Some(control) = &mut self.control else { return };
        let mut asked = Asked::default();
        control.on_event(event, self.now, &mut asked);
        let crash = self.crash.take();
        if crash == Some(Crash::BeforeWriting) {
            return self.kill_control();
        }
        self.store.apply(asked.changes);
        self.check_kept();
        if crash == Some(Crash::BeforeSending) {
            return self.kill_control();
        }
        for (peer, body) in asked.sent {
            if let from_control::Body::Welcome(welcome) = &body {
                let node = self.nodes.iter().find(|node| node.peer == Some(peer.0));
                if node.is_some_and(|node| node.number == 0) {
                    assert!(self.numbers.insert(welcome.number), "C-2: {}", welcome.number);
                }
            }
            if let Some(node) = self.node_of(peer) {
                node.from_control.push_back(body);
            }
        }
        for peer in asked.closed {
            // What was sent before is read; then the end.
            if let Some(node) = self.node_of(peer) {
                node.from_control.push_back(from_control::Body::Refused(Default::default()));
            }
        }
        self.check_places();
    }

    fn node_of(&mut self, peer: PeerId) -> Option<&mut SimNode> {
        self.nodes.iter_mut().find(|node| node.peer == Some(peer.0))
    }

    /// C-5.
    fn check_kept(&self) {
        let control = self.control.as_ref().expect("runs");
        let mut store = self.store.clone();
        let mut should = Store::default();
        should.apply(control.records().into_iter().map(Change::Put).collect());
        for store in [&mut store, &mut should] {
            // Loads are not kept: only that it is a member.
            let nodes = store.0.iter_mut().filter(|((table, _), _)| *table == Table::Node);
            nodes.for_each(|(_, value)| value.clear());
        }
        assert!(store.0 == should.0, "C-5: kept {:?}\nshould be {:?}", store.0, should.0);
    }

    /// C-1, as the machines see it.
    fn check_places(&self) {
        let control = self.control.as_ref().expect("runs");
        let mut places: BTreeMap<ActorId, u32> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| control.members.contains_key(&node.number)) {
            for &id in node.hosted.keys() {
                let other = places.insert(id, node.number);
                assert_eq!(other, None, "C-1: {id} is at two nodes");
            }
        }
    }

    pub(super) fn kill_control(&mut self) {
        self.control = None;
        self.nodes.retain(|node| !node.leaving);
        for node in &mut self.nodes {
            node.disconnect();
        }
    }

    /// The control service stands still until all others have given it up.
    pub(super) fn stall_control(&mut self) {
        self.now.ns += 6_000_000_000;
        let mut peers = Vec::new();
        for node in &mut self.nodes {
            peers.extend(node.peer);
            node.disconnect();
        }
        self.nodes.retain(|node| !node.leaving);
        for peer in peers {
            self.event(Event::Closed(PeerId(peer)));
        }
    }

    pub(super) fn start_control(&mut self) {
        if self.control.is_none() {
            let control = Control::restore(self.store.records(), self.now).expect("is whole");
            let control = control.expect("was begun");
            control.validate();
            self.control = Some(control);
            self.check_kept();
        }
    }

    pub(super) fn add_node(&mut self) {
        if self.nodes.len() < self.size.nodes && self.next_id < 250 {
            self.next_id += 1;
            self.nodes.push(SimNode::new(self.next_id));
        }
    }

    pub(super) fn connect(&mut self, index: usize) {
        if self.control.is_some() && self.nodes[index].peer.is_none() {
            self.next_peer += 1;
            self.nodes[index].connect(self.next_peer);
        }
    }

    /// A machine dies. Its connection breaks, if it had one.
    pub(super) fn remove_node(&mut self, index: usize) {
        let node = self.nodes.remove(index);
        if let Some(peer) = node.peer {
            self.event(Event::Closed(PeerId(peer)));
        }
    }

    /// One message of a node reaches the control service.
    pub(super) fn deliver_up(&mut self, index: usize) -> bool {
        let node = &mut self.nodes[index];
        if self.control.is_none() || node.frozen {
            return false;
        }
        let (Some(peer), Some(body)) = (node.peer, node.to_control.pop_front()) else {
            return false;
        };
        let joins = matches!(body, to_control::Body::Join(_));
        assert!(joins || node.number != 0, "who is no member says nothing");
        self.event(Event::Message(PeerId(peer), body));
        true
    }

    /// One message of the control service reaches a node.
    pub(super) fn deliver_down(&mut self, index: usize) -> bool {
        let node = &mut self.nodes[index];
        if node.frozen {
            return false;
        }
        let Some(body) = node.from_control.pop_front() else { return false };
        node.on_control(body);
        if node.refused.is_some() {
            // It ends, as it must.
            self.remove_node(index);
        } else {
            self.check_if_running();
        }
        true
    }

    /// One message of a node reaches another.
    pub(super) fn deliver_across(&mut self, index: usize) -> bool {
        let node = &mut self.nodes[index];
        if node.frozen {
            return false;
        }
        let Some((to, said)) = node.to_nodes.pop_front() else { return false };
        let from = node.number;
        if let Some(receiver) = self.nodes.iter_mut().find(|node| node.number == to) {
            receiver.on_said(from, said);
        }
        self.check_if_running();
        true
    }

    fn check_if_running(&self) {
        if self.control.is_some() {
            self.check_places();
        }
    }

    /// Time passes.
    pub(super) fn advance(&mut self, nanoseconds: u64) {
        self.now.ns += nanoseconds;
        self.now.wall_ms += nanoseconds / 1_000_000;
        let wakeup = self.control.as_ref().and_then(Control::next_wakeup);
        if wakeup.is_some_and(|at| self.now.ns >= at) {
            self.event(Event::Tick);
        }
    }

    /// Processes of members, with the place of their node.
    pub(super) fn processes(&self) -> Vec<(usize, ProcessId)> {
        let of = |(index, node): (usize, &SimNode)| {
            node.processes.iter().map(move |process| (index, *process)).collect::<Vec<_>>()
        };
        self.nodes.iter().enumerate().flat_map(of).collect()
    }
}
