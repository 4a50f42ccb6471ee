//! Nodes that come and go, and what other nodes say.

use std::collections::BTreeMap;

use oxiray_ids::{GroupId, NodeId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{Load, NodeInfo, OfProcess, between_nodes, to_control};
use oxiray_wire::control::{NodeLost, from_node, to_node};

use super::Member;
use crate::actors::Stage;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::Farewell;

/// Nodes that left and are remembered.
const MOST_LEFT: usize = 100;

impl Member {
    pub(super) fn add(&mut self, info: NodeInfo) {
        self.left.retain(|left| left.number != info.number);
        let labels: BTreeMap<String, String> = info.labels.clone().into_iter().collect();
        if let Some(id) = NodeId::from_slice(&info.id).filter(|_| !info.is_draining()) {
            let number = NodeNumber(info.number);
            self.view.join(number, id, &info.total, labels);
            if !info.available.is_empty() {
                self.view.report(number, &info.available, info.waiting as u32);
            }
        }
        self.view_changes += 1;
        self.infos.insert(info.number, info);
    }
}

impl Node {
    /// Another node says something.
    pub(crate) fn on_peer(
        &mut self,
        node: u32,
        body: between_nodes::Body,
        now: u64,
        out: &mut impl Outbox,
    ) {
        use between_nodes::Body;
        if node == self.number {
            return;
        }
        let member = &mut self.member;
        if !member.infos.contains_key(&node) {
            // It left; or the news that it joined, which comes another way, is late.
            if node > member.last_joined {
                member.early.entry(node).or_default().push(body);
            }
            return;
        }
        match body {
            // Of others it cannot know (F-3).
            Body::Introduce(about) if ProcessId(about.process).node() != node => {}
            Body::Ended(died) if ProcessId(died.process).node() != node => {}
            Body::Introduce(about) => self.admit_foreign(&about),
            Body::OfProcess(said) => self.on_routed(said, now, out),
            Body::ForProcess(said) => {
                if let Some(body) = said.message.and_then(|message| message.body) {
                    self.on_answered(node, ProcessId(said.process), body, now, out);
                }
            }
            Body::Ended(died) => self.on_foreign_ended(died, now, out),
            Body::Knows(process) => self.on_knows(node, ProcessId(process), out),
            Body::AskLeases(asked) => self.on_ask_leases(node, asked, out),
            Body::Declined(declined) => self.on_declined(node, &declined),
            Body::Pull(pull) => self.on_pull(node, pull, now, out),
            Body::PullAnswer(answer) => self.on_pull_answer(node, answer, now, out),
            Body::PullDone(done) => self.on_pull_done(node, done, now, out),
            Body::Freed(keys) => self.on_copies_freed(keys, now, out),
            Body::Holds(keys) => self.on_holds(node, &keys, out),
            Body::Adopt(wanted) => self.on_adopt(node, wanted, now, out),
            Body::Adopted(answer) => self.on_adopted(node, answer),
            Body::BundleRoom(group) => {
                if let Some(group) = GroupId::from_slice(&group) {
                    self.note_full(group, node, false);
                }
            }
            // The shell passes frames on by itself.
            Body::Passed(_) => {}
        }
    }

    pub(crate) fn on_node_joined(&mut self, info: NodeInfo, now: u64, out: &mut impl Outbox) {
        let (number, member) = (info.number, &mut self.member);
        if number != self.number {
            out.add_node(&info);
        }
        member.last_joined = member.last_joined.max(number);
        member.add(info);
        for body in member.early.remove(&number).unwrap_or_default() {
            self.on_peer(number, body, now, out);
        }
    }

    pub(crate) fn on_loads(&mut self, loads: Vec<Load>, out: &mut impl Outbox) {
        let (number, member) = (self.number, &mut self.member);
        let mut suspects = Vec::new();
        for load in loads.into_iter().filter(|load| load.node != number) {
            if let Some(info) = member.infos.get_mut(&load.node) {
                member.view.report(
                    NodeNumber(load.node),
                    &load.available,
                    u32::try_from(load.waiting).unwrap_or(u32::MAX),
                );
                match load.suspect {
                    true => {
                        suspects.push(load.node);
                        member.suspects.insert(load.node);
                    }
                    false => _ = member.suspects.remove(&load.node),
                }
                info.available = load.available;
                info.waiting = load.waiting;
                info.store_used = load.store_used;
                info.waiting_for = load.waiting_for;
                info.has_worked = load.has_worked;
                member.mind(load.node);
            }
        }
        member.view_changes += 1;
        for node in suspects {
            self.call_back_from(node, out);
        }
    }

    /// A node is gone, and with it its processes, its objects, and what it was asked for.
    pub(crate) fn on_node_left(
        &mut self,
        node: u32,
        reason: &str,
        now: u64,
        out: &mut impl Outbox,
    ) {
        if node == self.number {
            return;
        }
        out.remove_node(node);
        self.forget_node(node, reason, now, out);
    }

    /// Everything that was between this node and another is over.
    pub(super) fn forget_node(&mut self, node: u32, reason: &str, now: u64, out: &mut impl Outbox) {
        let left_ms = self.wall_ms(now).max(1);
        let member = &mut self.member;
        let Some(info) = member.infos.remove(&node) else {
            return;
        };
        member.left.push_back(NodeInfo { left: reason.to_owned(), left_ms, ..info });
        if member.left.len() > MOST_LEFT {
            member.left.pop_front();
        }
        member.view.leave(NodeNumber(node));
        member.unreachable.remove(&node);
        member.suspects.remove(&node);
        member.view_changes += 1;
        let all = ProcessId::new(node, 0)..=ProcessId::new(node, u32::MAX);
        let theirs: Vec<ProcessId> = self.processes.range(all).map(|(id, _)| *id).collect();
        for id in theirs {
            if let Some(process) = self.processes.get_mut(&id) {
                let reason = format!("its node left the cluster: {reason}");
                process.farewell = Some(Farewell::of(reason));
            }
            self.on_ended(id, "its node left the cluster", Vec::new(), now, out);
        }
        for process in self.processes.values_mut() {
            process.known_at.remove(&node);
        }
        self.forget_placed_at(node);
        self.forget_full(node);
        self.forget_offers_to(node);
        self.end_lending_to(node, now, out);
        self.on_source_lost(node, now, out);
        let lost = NodeLost { node, reason: reason.to_owned() };
        for (id, process) in &self.processes {
            if !process.is_foreign() {
                out.send(*id, from_node::Body::NodeLost(lost.clone()));
            }
        }
        self.watch_again(Some(node), out);
    }

    /// What this node has free and what waits here, for the others.
    pub fn load(&self) -> Load {
        let waiting: u64 = self
            .processes
            .values()
            .flat_map(|process| process.demands.values())
            .map(|demand| demand.here)
            .sum();
        Load {
            node: self.number,
            available: self.ledger.available(),
            waiting: waiting + self.schedule.waiting_actors.len() as u64,
            store_used: self.keeper.usage().used,
            waiting_for: self.waiting(),
            has_worked: self.has_worked,
            suspect: false,
        }
    }

    /// Other members, by number.
    pub fn nodes(&self) -> Vec<u32> {
        self.member.infos.keys().copied().filter(|number| *number != self.number).collect()
    }

    /// Whether a node is a member of which we have not heard yet: numbers are given in order.
    pub fn is_to_join(&self, number: u32) -> bool {
        let member = &self.member;
        member.infos.keys().next_back().is_none_or(|last| number > *last)
            && !member.left.iter().any(|left| left.number == number)
    }

    /// A member.
    pub fn node_info(&self, number: u32) -> Option<NodeInfo> {
        self.member.infos.get(&number).cloned()
    }

    /// The control service is there again: what it may have missed is said once more.
    pub(crate) fn say_again(&mut self, out: &mut impl Outbox) {
        let member = &self.member;
        let again: Vec<_> = member
            .asked
            .iter()
            .map(|((process, _), body)| (*process, body.clone()))
            .chain(member.creating.values().cloned())
            .chain(member.killing.values().cloned())
            .collect();
        for (process, body) in again {
            self.tell_control_of(process, body, out);
        }
        self.watch_again(None, out);
        self.say_groups_again(out);
        self.ask_kv_again(out);
        self.return_again(None);
        let alive = self.actors.iter().filter_map(|(id, actor)| {
            let Stage::Alive(worker) = actor.stage else {
                return None;
            };
            Some(actor.alive_news(*id, worker))
        });
        let dead = self.deaths.iter().map(|(id, death)| death.news(*id));
        for news in alive.chain(dead).collect::<Vec<_>>() {
            self.tell_of_actor(news, out);
        }
    }

    /// Passes on what a process of ours says to the control service.
    pub(crate) fn tell_control_of(
        &mut self,
        process: ProcessId,
        body: to_node::Body,
        out: &mut impl Outbox,
    ) {
        let said = self.of_process(process, body);
        self.tell_control(to_control::Body::OfProcess(said), out);
    }

    pub(super) fn of_process(&self, process: ProcessId, body: to_node::Body) -> OfProcess {
        let about = Some(self.about(process));
        OfProcess { process: process.0, message: Some(body.into()), about, ..OfProcess::default() }
    }
}
