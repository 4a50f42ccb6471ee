//! A node is about to leave: nothing more is sent there, and objects have a new place elsewhere.
//!
//! Borrowers go on with the old place until they hear that its node has left; then they ask us.

use oxiray_ids::Origin;

use crate::object::Content;
use crate::owner::{Outbox, Owner};

impl Owner {
    /// A node is about to leave: what its workers have not begun goes elsewhere, and their leases
    /// go back when they are idle.
    pub fn on_node_drains(&mut self, node: u32, out: &mut impl Outbox) {
        let there = self.leases.iter().filter(|(_, lease)| lease.peer.node() == node);
        for index in there.map(|(index, _)| index).collect::<Vec<usize>>() {
            if self.leases[index].in_flight.is_empty() {
                self.end_lease(index, out);
                continue;
            }
            self.leases[index].retiring = true;
            self.take_back_queued(index, 0, out);
            self.dispatch_to(index, out);
        }
    }

    /// An object of ours is at another node now. One that we have let go of meanwhile is not
    /// needed there.
    pub fn on_moved(&mut self, from: Origin, to: Origin, out: &mut impl Outbox) {
        let ours = self.objects.iter_mut().map(|(_, object)| object);
        let mut ours = ours.filter(|object| object.owner.is_none());
        let moved = ours.find_map(|object| match &mut object.content {
            Some(Content::Stored { origin, .. }) if *origin == from => Some(origin),
            _ => None,
        });
        match moved {
            Some(origin) => {
                *origin = to;
                out.take_stored(to);
            }
            None => out.free_stored(to),
        }
    }
}
