//! How members leave, and what that means for all others.

use oxiray_ids::{ActorId, NodeId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{OfProcess, from_control};
use oxiray_wire::control::{Text, to_node};

use crate::control::Control;
use crate::event::{Change, Now, Outbox, PeerId, Table};
use crate::record;

/// What a node hears that is no member any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing: it is gone, or knows.
    Nothing,
    /// That it must end.
    Removed,
    /// That it may come back as a new one.
    GivenUp,
}

/// Nodes that left which are still shown.
const MOST_SHOWN: usize = 100;

impl Control {
    pub(crate) fn on_closed(&mut self, peer: PeerId, now: Now, out: &mut impl Outbox) {
        if let Some(&number) = self.peers.get(&peer) {
            if now.ns < self.forgiving_until {
                return self.await_return(number, now, out);
            }
            if self.was_silent(number, now) {
                return self.on_broken(peer, out);
            }
            let why = "its node service ended or its connection broke";
            self.remove_member(number, why, Told::Nothing, now, out);
        }
    }

    pub(crate) fn on_leave(&mut self, number: u32, why: String, now: Now, out: &mut impl Outbox) {
        let why = if why.is_empty() { "it was stopped".to_owned() } else { why };
        if let Some(peer) = self.members.get(&number).and_then(|member| member.peer) {
            // That the connection ends is the answer.
            out.close(peer);
        }
        self.remove_member(number, &why, Told::Nothing, now, out);
    }

    /// A node is not a member any more. One that may still be there is `told`.
    pub(crate) fn remove_member(
        &mut self,
        number: u32,
        why: &str,
        told: Told,
        now: Now,
        out: &mut impl Outbox,
    ) {
        let Some(mut member) = self.members.remove(&number) else {
            return;
        };
        out.note(format!("node {number} at {} left: {why}", member.info.address));
        out.persist(Change::delete(Table::Node, record::node_key(number)));
        if let Some(peer) = member.lose_connection() {
            self.peers.remove(&peer);
            let text = format!("this node is not a member of the cluster any more: {why}");
            match told {
                Told::Nothing => {}
                Told::Removed => out.send(peer, from_control::Body::Refused(Text { text })),
                Told::GivenUp => out.send(peer, from_control::Body::GivenUp(Text { text })),
            }
            if told != Told::Nothing {
                out.close(peer);
            }
        }
        self.room.leave(NodeNumber(number));
        self.changed_loads.remove(&number);
        self.forget_questions_of(number, out);
        why.clone_into(&mut member.info.left);
        member.info.left_ms = now.wall_ms;
        self.broadcast(None, from_control::Body::NodeLeft(member.info.clone()), out);
        let id = NodeId::from_slice(&member.info.id).unwrap_or(NodeId::NIL);
        let place = id.called(&member.info.host);
        let drained = member.info.is_draining();
        self.left.push_back(member.info);
        if self.left.len() > MOST_SHOWN {
            self.left.pop_front();
        }
        let lost = format!("its node left the cluster: {why}");
        self.end_jobs(|job| ProcessId(job.driver).node() == number, &lost, now, out);
        self.lose_bundles(number, &format!("its {place} left the cluster: {why}"), out);
        for id in member.actors {
            self.on_actor_stranded(id, &place, why, drained, out);
        }
        self.forget_processes_of(number, out);
        for message in member.held {
            self.hear_again(message, out);
        }
        // Some may have waited for this one in particular.
        self.place_waiting(out);
        self.place_groups(out);
    }

    /// What was to be passed on to a node that was away: what is it for now?
    pub(crate) fn hear_again(&mut self, message: OfProcess, out: &mut impl Outbox) {
        let (process, about) = (ProcessId(message.process), message.about);
        match message.message.and_then(|message| message.body) {
            Some(to_node::Body::WatchActor(actor)) => {
                self.on_watch_actor(process, &actor.actor, about, out);
            }
            Some(to_node::Body::KillActor(actor)) => self.on_kill_actor(process, actor, about, out),
            _ => {}
        }
    }

    /// Every process of a node that left is gone.
    fn forget_processes_of(&mut self, number: u32, out: &mut impl Outbox) {
        let waiting = self.waiting.iter().map(|id| self.actors[id].record.creator());
        let all = waiting
            .chain(self.names.creators())
            .chain(self.groups.drivers())
            .chain(self.expected.keys().map(|&(creator, _)| creator));
        let mut gone: Vec<ProcessId> = all.filter(|process| process.node() == number).collect();
        gone.sort_unstable();
        gone.dedup();
        for process in gone {
            self.forget_process(process, out);
        }
        self.warned.retain(|(process, _)| process.node() != number);
    }

    pub(crate) fn on_process_gone(
        &mut self,
        number: u32,
        process: ProcessId,
        now: Now,
        out: &mut impl Outbox,
    ) {
        if process.node() != number {
            out.note(format!("node {number} speaks of process {process} of another node"));
            return;
        }
        if let Some(member) = self.members.get_mut(&number) {
            member.gone.insert(process.number());
        }
        // How it ended would have been said before.
        self.end_jobs(|job| job.driver == process.0, "its program ended, nobody saw how", now, out);
        self.forget_process(process, out);
    }

    /// A process is gone: what it would have made will not be.
    pub(crate) fn forget_process(&mut self, process: ProcessId, out: &mut impl Outbox) {
        self.forget_warned(process);
        self.end_groups_of(process, out);
        let its = |id: &&ActorId| {
            let record = &self.actors[*id].record;
            record.creator() == process && !self.can_be_made(record)
        };
        let waiting: Vec<ActorId> = self.waiting.iter().filter(its).copied().collect();
        for id in waiting {
            self.bury(id, "its owner died", Vec::new(), out);
        }
        let all = (process, ActorId([0; 16]))..=(process, ActorId::NIL);
        let expected: Vec<ActorId> = self.expected.range(all).map(|(&(_, id), _)| id).collect();
        for id in expected {
            self.bury(id, "its owner died", Vec::new(), out);
        }
        self.forget_kept_in_vain(process, out);
        let actors = &self.actors;
        for actor in self.names.release_unmade(process, |id| actors.contains_key(id)) {
            out.persist(Change::delete(Table::Name, record::name_key(actor)));
        }
    }
}
