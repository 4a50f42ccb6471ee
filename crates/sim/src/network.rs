//! The network between machines: messages, frames that pass the gateways, connections that break.

use oxiray_ids::ProcessId;
use oxiray_node::Event;
use oxiray_wire::cluster::between_nodes;

use crate::happening::{Happening, Said};
use crate::machine::Machine;
use crate::plan::{MICROSECOND, MILLISECOND};
use crate::rings::{Bridge, Way};
use crate::world::World;

impl World {
    /// A channel is read by a process, or by the gateway of its node.
    pub(crate) fn ring_read(&mut self, way: Way) {
        let Way { node, from, to } = way;
        if to.node() == node {
            if self.lives(to) {
                self.drain(to, from);
                self.go_on(to);
            }
        } else if let Some(&index) = self.by_number.get(&node) {
            self.read_bridge(index, from, to);
        }
    }

    /// Passes on what a process of ours wrote for one of another node.
    pub(crate) fn read_bridge(&mut self, index: usize, local: ProcessId, foreign: ProcessId) {
        let machine = &self.machines[index];
        if !machine.alive || !machine.bridges.contains_key(&(local, foreign)) {
            return;
        }
        let way = Way { node: machine.number(), from: local, to: foreign };
        while let Some(frame) = self.rings.pop(way) {
            if Bridge::passes(&mut self.rings, way, &frame) {
                self.say(index, foreign.node(), Said::Frame(local, foreign, frame));
            }
        }
    }

    pub(crate) fn close_bridge(&mut self, index: usize, local: ProcessId, foreign: ProcessId) {
        self.read_bridge(index, local, foreign);
        if let Some(bridge) = self.machines[index].bridges.remove(&(local, foreign)) {
            let way = Way { node: self.machines[index].number(), from: foreign, to: local };
            for frame in bridge.close(&mut self.rings, way) {
                self.say(index, foreign.node(), Said::Frame(local, foreign, frame));
            }
        }
    }

    /// A frame comes from another machine, at the gateway of this one.
    pub(crate) fn on_passed(
        &mut self,
        index: usize,
        from: ProcessId,
        to: ProcessId,
        frame: Vec<u8>,
    ) {
        let machine = &mut self.machines[index];
        if machine.node.as_ref().is_some_and(|node| node.is_to_join(from.node())) {
            return machine.early_frames.entry(from.node()).or_default().push((from, to, frame));
        }
        if !machine.bridges.contains_key(&(to, from)) {
            self.event(index, Event::FrameCame { from, to });
        }
        let way = Way { node: to.node(), from, to };
        let bridge = self.machines[index].bridges.get_mut(&(to, from));
        let reply = bridge.and_then(|bridge| bridge.write(&mut self.rings, way, frame));
        self.wake_readers();
        if let Some(frame) = reply {
            self.say(index, from.node(), Said::Frame(to, from, frame));
        }
    }

    /// A machine says something to another node.
    pub(crate) fn say(&mut self, from: usize, node: u32, said: Said) {
        if let Said::Message(body) = &said {
            match &**body {
                between_nodes::Body::AskLeases(asked) => {
                    let gone = self.machines[from].left.contains(&node);
                    assert!(!gone, "S-2: node {node} left and is asked for {asked:?}");
                }
                between_nodes::Body::Declined(declined) => self.report.declined += declined.count,
                _ => {}
            }
        }
        let to = self.by_number.get(&node).copied();
        let Some(to) = to.filter(|to| self.machines[*to].alive) else {
            if let Some(of) = to {
                // Nobody is there: the connection cannot be made.
                let epoch = self.epoch(from, of) + 1;
                let at = self.delivery(Some(of), Some(from));
                self.agenda.add(at, Happening::Lost { at: from, of, epoch });
            }
            return;
        };
        let epoch = self.epoch(from, to);
        let at = self.delivery(Some(from), Some(to));
        self.agenda.add(at, Happening::Peer { from, to, epoch, said });
    }

    pub(crate) fn epoch(&self, at: usize, of: usize) -> u64 {
        self.machines[at].epochs.get(&of).copied().unwrap_or(0)
    }

    pub(crate) fn on_peer(&mut self, from: usize, to: usize, epoch: u64, said: Said) {
        let pair = (from.min(to), from.max(to));
        let broken = self.broken.get(&pair).copied().unwrap_or(0);
        let number = self.machines[from].number();
        let left = self.machines[to].left.contains(&number);
        if epoch < broken || epoch < self.epoch(to, from) || left {
            return; // What an older connection carried.
        }
        if self.machines[to].alive && self.machines[to].node.is_none() {
            // It listens already; it takes in what came when it is a member.
            return self.machines[to].early.push(Happening::Peer { from, to, epoch, said });
        }
        if epoch > self.epoch(to, from) {
            self.on_lost(to, from, epoch);
        }
        match said {
            Said::Message(body) => self.event(to, Event::FromPeer(number, *body)),
            Said::Frame(sender, receiver, frame) => self.on_passed(to, sender, receiver, frame),
        }
    }

    /// A machine sees that the connection with another broke.
    pub(crate) fn on_lost(&mut self, at: usize, of: usize, epoch: u64) {
        if epoch <= self.epoch(at, of) {
            return;
        }
        self.machines[at].epochs.insert(of, epoch);
        let number = self.machines[of].number();
        self.on_away(at, of);
        self.event(at, Event::PeerLost(number, "it was reset".into()));
        if self.machines[of].alive {
            let back = self.now + self.random.between(0, 50 * MILLISECOND);
            self.agenda.add(back, Happening::Back { at, of });
        }
    }

    /// A connection between two living nodes that had one breaks.
    pub(crate) fn link_breaks(&mut self) {
        let both = |&&(a, b): &&(usize, usize)| a > 0 && b > 0;
        let mut pairs: Vec<(usize, usize)> =
            self.last_delivery.keys().filter(both).map(|(a, b)| (a - 1, b - 1)).collect();
        pairs.retain(|(a, b)| self.machines[*a].alive && self.machines[*b].alive);
        pairs.sort_unstable();
        if pairs.is_empty() {
            return;
        }
        let (a, b) = pairs[self.random.place(pairs.len())];
        self.faults.links += 1;
        let epoch = self.epoch(a, b).max(self.epoch(b, a)) + 1;
        self.broken.insert((a.min(b), a.max(b)), epoch);
        for (at, of) in [(a, b), (b, a)] {
            let when = self.delivery(Some(of), Some(at));
            self.agenda.add(when, Happening::Lost { at, of, epoch });
        }
    }

    /// When a message that is sent now comes; machines, or `None` for the control service.
    pub(crate) fn delivery(&mut self, from: Option<usize>, to: Option<usize>) -> u64 {
        let mut at = self.now + self.random.between(100 * MICROSECOND, 300 * MICROSECOND);
        if self.random.once_in(200) {
            at += self.random.between(0, 5 * MILLISECOND);
        }
        at = at.max(self.joined_at(from, to));
        let place = |machine: Option<usize>| machine.map_or(0, |machine| machine + 1);
        let last = self.last_delivery.entry((place(from), place(to))).or_default();
        *last = at.max(*last);
        *last
    }

    /// Frames of nodes that a machine has heard of by now come to their processes.
    pub(crate) fn deliver_early(&mut self, index: usize) {
        let Machine { early_frames, node, .. } = &mut self.machines[index];
        let waits = |number: &u32| node.as_ref().is_none_or(|node| node.is_to_join(*number));
        let heard_of: Vec<u32> = early_frames.keys().copied().filter(|n| !waits(n)).collect();
        for number in heard_of {
            let frames = self.machines[index].early_frames.remove(&number).unwrap_or_default();
            for (from, to, frame) in frames {
                self.on_passed(index, from, to, frame);
            }
        }
    }
}
