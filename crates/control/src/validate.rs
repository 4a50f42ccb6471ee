//! The invariants of the control service. Those of one state are checked here,
//! those of a history by the tests' world.
//!
//! - **C-1 (one place)** an actor is recorded at one member, which lists it, or
//!   waits here; two members never both have it.
//! - **C-2 (numbers)** a node's number is given once, and never again.
//! - **C-3 (watches)** every watch is answered or passed on; what is kept until
//!   then is of actors that wait or are expected, or for nodes that are away or were just told.
//! - **C-4 (names)** a name has one bearer, a bearer one name.
//! - **C-5 (kept before told)** what is kept is at any time what
//!   [`Control::restore`] needs to know all that was said.
//! - **C-6 (connections)** a connected member has one connection, and it is its.
//! - **C-7 (dead is dead)** a dead actor is not recorded, has no name and stays dead.
//! - **C-9 (all or nothing)** a group's bundle is at one member, or the group waits, or it is being
//!   reserved; of a group that is neither created nor lost bundles none is recorded anywhere.
//! - **C-10 (stays)** each stay of an actor at a node has a number of its own, the later the higher,
//!   that is written before the node hears of it. News name it first, so that whatever a node told
//!   others of an actor that it then lost, and this service never heard, is older than what is said
//!   of the next stay, or of its end.
//! - **C-11 (restarts)** how often an actor was started again is what its node said; or those who
//!   watch it, if they heard more from that node and say so before it is given up.
//! - **C-8 (living creators)** who waits can be made, who is expected has a creator that
//!   may live.

use crate::control::Control;
use crate::members::Member;

impl Control {
    /// Panics when an invariant of the module documentation does not hold.
    pub fn validate(&self) {
        self.validate_members();
        self.validate_actors();
        self.names.validate();
        self.groups.validate(&self.members);
        self.room.validate();
        for (_, bearer) in self.names.iter() {
            assert!(self.dead.get(&bearer.actor).is_none(), "C-7: {} is called", bearer.actor);
        }
        for id in &self.ended_jobs {
            assert_ne!(self.jobs[id].ended_ms, 0, "job {id:?} ended");
        }
    }

    fn validate_members(&self) {
        let mut connected = 0;
        for (&number, member) in &self.members {
            assert!((1..=self.last_number).contains(&number), "C-2: {number}");
            assert_eq!(member.info.number, number, "C-2");
            assert!(member.info.left.is_empty(), "{number} left");
            if let Some(peer) = member.peer {
                connected += 1;
                assert_eq!(self.peers.get(&peer), Some(&number), "C-6: {number}");
                assert!(member.held.is_empty(), "C-3: {number}");
            }
            for id in &member.actors {
                assert_eq!(self.actors[id].record.node, number, "C-1: {id}");
            }
        }
        assert_eq!(self.peers.len(), connected, "C-6");
        let is_open = |member: &&Member| member.peer.is_some() && !member.info.is_draining();
        let open = self.members.values().filter(is_open).count();
        assert_eq!(self.room.len(), open, "D-1: room is known of those that take work");
        assert!(self.changed_loads.iter().all(|number| self.members.contains_key(number)));
    }

    fn validate_actors(&self) {
        for (id, actor) in &self.actors {
            let node = actor.record.node;
            assert_eq!(node == 0, self.waiting.contains(id), "C-1: {id}");
            assert!(self.dead.get(id).is_none(), "C-7: {id}");
            if node == 0 {
                assert!(self.can_be_made(&actor.record), "C-8: {id}");
                assert!(!actor.waits_because.is_empty(), "{id} waits without reason");
            } else {
                assert!(self.members[&node].actors.contains(id), "C-1: {id}");
                assert!(actor.watchers.is_empty(), "C-3: {id}");
            }
        }
        assert!(self.waiting.iter().all(|id| self.actors.contains_key(id)), "C-1");
        for (creator, id) in self.expected.keys() {
            assert!(self.is_alive(*creator), "C-8: {id}");
            assert!(!self.actors.contains_key(id) && self.dead.get(id).is_none(), "C-3: {id}");
        }
    }
}
