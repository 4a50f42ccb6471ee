//! How nodes become members, for the first time or again.

use std::collections::BTreeSet;

use oxiray_ids::{ActorId, NodeId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{Job, Join, NodeInfo, Welcome, from_control};
use oxiray_wire::control::Text;
use prost::Message;

use crate::control::Control;
use crate::event::{Change, Now, Outbox, PeerId, Table};
use crate::gone::Gone;
use crate::health::MILLISECOND;
use crate::jobs::UNSEEN_END;
use crate::members::Member;
use crate::record;
use crate::tools::REMOVED_BY_HAND;

impl Control {
    pub(crate) fn on_join(&mut self, peer: PeerId, join: Join, now: Now, out: &mut impl Outbox) {
        let Join { node, actors, jobs, cluster, processes, bundles } = join;
        let node = node.unwrap_or_default();
        if let Err(why) = self.may_join(&node, &cluster) {
            out.note(format!("a node at {} was refused: {why}", node.address));
            let text = Text { text: why };
            out.send(
                peer,
                match self.was_given_up(&node, &cluster) {
                    true => from_control::Body::GivenUp(text),
                    false => from_control::Body::Refused(text),
                },
            );
            return out.close(peer);
        }
        let number = if node.number == 0 {
            self.welcome_new(peer, node, now, out)
        } else {
            self.welcome_back(peer, node, now, out)
        };
        let running: BTreeSet<&[u8]> = jobs.iter().map(|job| &job.id[..]).collect();
        let is_over =
            |job: &Job| ProcessId(job.driver).node() == number && !running.contains(&job.id[..]);
        self.end_jobs(is_over, UNSEEN_END, now, out);
        for job in jobs {
            self.on_job(number, job, out);
        }
        if !processes.is_empty() {
            self.reconcile_processes(number, &processes, out);
        }
        self.reconcile_bundles(number, &bundles, out);
        self.reconcile_actors(number, &actors, out);
        self.place_waiting(out);
        self.place_groups(out);
    }

    /// Why a node may not be a member, with the remedy.
    fn may_join(&self, node: &NodeInfo, cluster: &[u8]) -> Result<(), String> {
        if NodeId::from_slice(&node.id).is_none() {
            return Err("a node's id must be 28 bytes".into());
        }
        if node.number != 0 {
            if cluster != self.cluster {
                return Err(
                    "the cluster that this node was a member of is no more: another one is \
                            at this address now. Start the node again to join that"
                        .into(),
                );
            }
            let member = self.members.get(&node.number);
            if member.is_none_or(|member| member.info.id != node.id) {
                return Err(
                    "this node was given up, and its work was given to others: a node that comes \
                     back is a new node"
                        .into(),
                );
            }
        } else if self.members.values().any(|member| member.info.id == node.id) {
            return Err("a node of this id is a member already".into());
        }
        if node.number != 0 {
            return Ok(());
        }
        let mut infos = self.members.values().map(|member| &member.info);
        let head = infos.clone().find(|info| info.is_head).or_else(|| infos.next());
        let Some(head) = head else {
            return Ok(());
        };
        let (own, wanted) = (version(&node.python), version(&head.python));
        if own.is_empty() || wanted.is_empty() || own == wanted {
            return Ok(());
        }
        Err(format!(
            "this node has Python {own}, and the cluster has Python {wanted}: functions and \
             values cannot be exchanged between them. Start the node with Python {wanted}"
        ))
    }

    /// Whether a node that is none of ours any more was one that may come back as another.
    fn was_given_up(&self, node: &NodeInfo, cluster: &[u8]) -> bool {
        let removed = |left: &NodeInfo| left.id == node.id && left.left == REMOVED_BY_HAND;
        node.number != 0 && cluster == self.cluster && !self.left.iter().any(removed)
    }

    fn welcome_new(
        &mut self,
        peer: PeerId,
        mut node: NodeInfo,
        now: Now,
        out: &mut impl Outbox,
    ) -> u32 {
        self.last_number += 1;
        let number = self.last_number;
        out.persist(Change::put(Table::Meta, record::LAST_NUMBER, number.to_be_bytes()));
        node.number = number;
        node.left.clear();
        node.draining.clear();
        node.patience_ms = self.health.given_up_after() / MILLISECOND;
        out.note(format!("node {number} at {} ({}) joined", node.address, node.host));
        let member = Member::new(node.clone(), Some(peer), now);
        self.admit(peer, member.not_judged_for(self.health.initial_delay()), out);
        self.broadcast(Some(number), from_control::Body::NodeJoined(node), out);
        number
    }

    fn welcome_back(
        &mut self,
        peer: PeerId,
        mut node: NodeInfo,
        now: Now,
        out: &mut impl Outbox,
    ) -> u32 {
        let number = node.number;
        node.left.clear();
        out.note(format!("node {number} at {} came back", node.address));
        let mut before = self.members.remove(&number).expect("may join");
        if let Some(old) = before.lose_connection() {
            // Its side of the connection broke, and ours did not notice yet.
            self.peers.remove(&old);
            out.close(old);
        }
        // What it is to do it may have missed, and it does not say so itself.
        node.draining.clone_from(&before.info.draining);
        node.drain_until_ms = before.info.drain_until_ms;
        // It may not hear of another lease than the one that it has.
        let patience_ms = self.health.given_up_after() / MILLISECOND;
        node.patience_ms = before.info.patience_ms.max(patience_ms);
        (before.info, before.peer, before.heard_at) = (node, Some(peer), now.ns);
        self.admit(peer, before, out);
        if self.members[&number].suspect {
            self.set_suspect(number, false, out);
        }
        self.drain_again(number, now, out);
        number
    }

    fn admit(&mut self, peer: PeerId, member: Member, out: &mut impl Outbox) {
        let info = &member.info;
        let number = info.number;
        let id = NodeId::from_slice(&info.id).expect("may join");
        let labels = info.labels.clone().into_iter().collect();
        if !info.is_draining() {
            self.room.join(NodeNumber(number), id, &info.total, labels);
        }
        if !info.available.is_empty() {
            self.room.report(NodeNumber(number), &info.available, info.waiting as u32);
        }
        out.persist(Change::put(Table::Node, record::node_key(number), info.encode_to_vec()));
        self.peers.insert(peer, number);
        self.members.insert(number, member);
        let nodes = self.members.values().map(|member| member.info.clone()).collect();
        let (cluster, lease_ms) = (self.cluster.to_vec(), self.lease_ms());
        let heads = self.heads.clone();
        let welcome = Welcome { number, cluster, nodes, lease_ms, heads };
        out.send(peer, from_control::Body::Welcome(welcome));
    }

    /// Of the processes that matter here, those that the node does not name are gone;
    /// but one that only others have spoken of may have begun since the node said so.
    fn reconcile_processes(&mut self, number: u32, living: &[u64], out: &mut impl Outbox) {
        let living = living.iter().map(|&process| ProcessId(process).number());
        let living: BTreeSet<u32> = living.collect();
        let highest = living.last().copied().unwrap_or(0);
        let known = self.actors.values().map(|actor| actor.record.creator());
        let known = known.chain(self.names.creators()).chain(self.groups.drivers());
        let hearsay = self.expected.keys().map(|&(creator, _)| creator);
        let all = known.chain(hearsay.filter(|creator| creator.number() <= highest));
        let is_gone =
            |creator: &ProcessId| creator.node() == number && !living.contains(&creator.number());
        let gone: BTreeSet<ProcessId> = all.filter(is_gone).collect();
        if let Some(member) = self.members.get_mut(&number) {
            member.gone = Gone::all_but(living);
            for process in &gone {
                member.gone.insert(process.number());
            }
        }
        for process in gone {
            self.forget_process(process, out);
        }
    }

    /// What is recorded there and is not there was never made, or got lost.
    fn reconcile_actors(&mut self, number: u32, there: &[Vec<u8>], out: &mut impl Outbox) {
        let there = there.iter().filter_map(|id| ActorId::from_slice(id));
        let there: BTreeSet<ActorId> = there.collect();
        let recorded = self.members[&number].actors.clone();
        for &id in there.difference(&recorded) {
            out.note(format!("node {number} has actor {id}, which is not recorded there"));
        }
        for &id in recorded.difference(&there) {
            self.on_actor_missing(id, out);
        }
        for &id in recorded.intersection(&there) {
            self.on_actor_found(id, out);
        }
        let member = self.members.get_mut(&number).expect("joins");
        for message in std::mem::take(&mut member.held) {
            self.hear_again(message, out);
        }
    }
}

/// `3.11` of `3.11.4`.
fn version(python: &str) -> &str {
    let end = python.match_indices('.').nth(1).map_or(python.len(), |(at, _)| at);
    &python[..end]
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_major_and_minor() {
        assert_eq!(super::version("3.11.4"), "3.11");
        assert_eq!(super::version("3.11"), "3.11");
        assert_eq!(super::version(""), "");
    }
}
