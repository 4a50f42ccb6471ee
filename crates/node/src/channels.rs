//! Which processes have a channel, and by which index each end knows it.

use oxiray_ids::ProcessId;
use oxiray_wire::control::from_node;

use crate::event::{Endpoint, Outbox};
use crate::node::Node;

impl Node {
    /// Opens a channel unless there is one, or an end has no bell or is the other.
    pub(crate) fn ensure_channel(&mut self, a: ProcessId, b: ProcessId, out: &mut impl Outbox) {
        if a == b || self.processes.get(&a).is_none_or(|p| p.channels.contains_key(&b)) {
            return;
        }
        if self.is_elsewhere(a) && self.is_elsewhere(b) {
            return;
        }
        // Whoever answers must be known where the answer goes.
        self.introduce(a, b.node(), out);
        self.introduce(b, a.node(), out);
        let bell = |id| self.processes.get(&id).and_then(|process| process.bell);
        let (Some(bell_a), Some(bell_b)) = (bell(a), bell(b)) else {
            return;
        };
        let a = self.channel_end(a, b, bell_a);
        let b = self.channel_end(b, a.process, bell_b);
        out.open_channel([a, b]);
    }

    fn channel_end(&mut self, id: ProcessId, peer: ProcessId, bell: u32) -> Endpoint {
        let process = self.processes.get_mut(&id).expect("has a bell");
        let index = match process.is_foreign() {
            true => self.member.indexes.take(),
            false => process.indexes.take(),
        };
        process.channels.insert(peer, index);
        Endpoint { process: id, pid: process.pid, bell, index }
    }

    pub(crate) fn on_connect(&mut self, from: ProcessId, peer: ProcessId, out: &mut impl Outbox) {
        let dead = self.dead_processes.iter().any(|died| died.process == peer.0);
        if self.is_elsewhere(peer) && !dead {
            self.get_to_know(peer, out);
        }
        if self.processes.get(&peer).is_some_and(|process| process.bell.is_some()) {
            self.ensure_channel(from, peer, out);
            return;
        }
        out.send(from, from_node::Body::ProcessDied(self.how_it_died(peer)));
    }
}
