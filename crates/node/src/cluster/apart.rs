//! Members that this node does not reach, though they may live: only the control service says that
//! a node is dead.
//!
//! - **A-1** a node to which no way leads is asked for nothing new: what may go elsewhere does, and
//!   what it was asked for and has not granted is looked for elsewhere.
//! - **A-2** what it has waits. It is given up when the control service says that the node left; or,
//!   if that hears the node all the while, when no way led there for long.
//! - **A-3** actors of a process there live on when that is given up: their owner is not dead. They
//!   end when its node says that it is, or has left.
//! - **A-4** calls of actors there end when that is given up: nobody will say what became of them
//!   before a way leads there. The actors are believed to live.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use oxiray_ids::{ActorId, NodeId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{Introduce, between_nodes};
use oxiray_wire::control::{ActorPhase, ActorState, from_node};

use super::{Member, tell};
use crate::actors::Stage;
use crate::event::Outbox;
use crate::node::Node;

impl Member {
    /// Whether anything new may go to a node, as far as is known.
    pub(super) fn mind(&mut self, node: u32) {
        let is_out = self.unreachable.contains(&node) || self.suspects.contains(&node);
        self.view.set_draining(NodeNumber(node), is_out);
    }
}

impl Node {
    /// No way leads to a member.
    pub(crate) fn on_peer_away(&mut self, node: u32, out: &mut impl Outbox) {
        let member = &mut self.member;
        if !member.infos.contains_key(&node) || node == self.number {
            return;
        }
        member.unreachable.insert(node);
        member.mind(node);
        member.view_changes += 1;
        self.call_back_from(node, out);
    }

    /// A way leads to a member again.
    pub(crate) fn on_peer_back(&mut self, node: u32, out: &mut impl Outbox) {
        let member = &mut self.member;
        if !member.unreachable.remove(&node) {
            return;
        }
        member.mind(node);
        member.view_changes += 1;
        for (owner, process) in self.processes.range(all_of(node)) {
            if !process.actors.is_empty() {
                // Asks to hear of its end, which may have been said in vain.
                tell(node, between_nodes::Body::Knows(owner.0), out);
            }
        }
    }

    /// Whether no way leads to a member.
    pub(crate) fn is_out_of_reach(&self, node: u32) -> bool {
        self.member.unreachable.contains(&node)
    }

    /// Why what must be at such a member waits.
    pub(crate) fn why_out_of_reach(&self, node: u32) -> String {
        let info = self.node_info(node).unwrap_or_default();
        let id = NodeId::from_slice(&info.id).unwrap_or(NodeId::NIL);
        let (there, here) = (id.called(&info.host), &self.setup.member.host);
        format!(
            "its {there} lives, but {here} does not reach it at {}, neither straight nor through \
             other nodes: check the network between the two",
            info.address
        )
    }

    /// Whether the control service hears a member, as far as this node hears the control service
    ///
    pub fn is_known_to_live(&self, node: u32) -> bool {
        let member = &self.member;
        let is_member = member.infos.contains_key(&node) && !member.suspects.contains(&node);
        is_member && self.is_control_there()
    }

    /// What was between this node and a member is lost in part, and so all of it is over.
    pub(crate) fn on_peer_lost(
        &mut self,
        node: u32,
        reason: &str,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let Some(info) = self.node_info(node).filter(|_| node != self.number) else {
            return;
        };
        let member = &self.member;
        let (was_away, was_suspect) =
            (member.unreachable.contains(&node), member.suspects.contains(&node));
        let orphans = self.set_apart(node);
        self.forget_node(node, &format!("the connection with it broke: {reason}"), now, out);
        let member = &mut self.member;
        member.add(info);
        member.view.report(NodeNumber(node), &[], 0);
        member.unreachable.extend(was_away.then_some(node));
        member.suspects.extend(was_suspect.then_some(node));
        member.mind(node);
        for (owner, actors) in orphans {
            match was_away {
                // It is asked for when a way leads there.
                true => self.admit_foreign(&Introduce { process: owner.0, ..Introduce::default() }),
                false => _ = self.get_to_know(owner, out),
            }
            if let Some(process) = self.processes.get_mut(&owner) {
                process.actors = actors;
            }
        }
    }

    /// A member that was given up lives, and so do its actors, as far as is known.
    pub(crate) fn on_peer_lives(&mut self, node: u32, out: &mut impl Outbox) {
        let mut alive = Vec::new();
        for (&id, process) in self.processes.iter().filter(|(_, process)| !process.is_foreign()) {
            let there = process.watched.iter().filter(|(_, watched)| watched.node == node);
            alive.extend(there.filter_map(|(actor, w)| Some((id, *actor, w.worker?, w.restarts))));
        }
        for (id, actor, worker, restarts) in alive {
            if self.get_to_know(worker, out) {
                self.ensure_channel(id, worker, out);
                let (phase, process) = (ActorPhase::Alive as i32, worker.0);
                let actor = actor.0.to_vec();
                let state = ActorState { actor, phase, process, restarts, ..Default::default() };
                out.send(id, from_node::Body::ActorState(state));
            }
        }
    }

    /// Actors that live here, of processes of a node.
    fn set_apart(&mut self, node: u32) -> Vec<(ProcessId, BTreeSet<ActorId>)> {
        let actors = &self.actors;
        let lives = |id: &ActorId| {
            actors.get(id).is_some_and(|actor| matches!(actor.stage, Stage::Alive(_)))
        };
        let mut orphans = Vec::new();
        for (owner, process) in self.processes.range_mut(all_of(node)) {
            let theirs: BTreeSet<ActorId> = process.actors.iter().copied().filter(lives).collect();
            if !theirs.is_empty() {
                process.actors.retain(|id| !theirs.contains(id));
                orphans.push((*owner, theirs));
            }
        }
        orphans
    }
}

/// The processes of a node.
fn all_of(node: u32) -> RangeInclusive<ProcessId> {
    ProcessId::new(node, 0)..=ProcessId::new(node, u32::MAX)
}
