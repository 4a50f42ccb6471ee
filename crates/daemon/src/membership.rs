//! What comes from the control service and from other machines, on its way to the core; and
//! what the core has said to them, on its way out.

use std::path::Path;

use oxiray_control::{Answers, Now};
use oxiray_ids::ProcessId;
use oxiray_node::Event;
use oxiray_sys::clock::{monotonic_ns, wall_ns};
use oxiray_wire::cluster::from_control;

use crate::io::Io;
use crate::net::Incoming;
use crate::net::bridge::Outgoing;
use crate::poller::Token;
use crate::reach::Reach;
use crate::shell::Shell;

/// Frames that are kept of a node that is about to join.
const MOST_EARLY: usize = 10_000;

fn now() -> Now {
    Now { ns: monotonic_ns(), wall_ms: wall_ns() / 1_000_000 }
}

impl Io {
    /// The control service that is connected is the one: who looks for it from here, now or after
    /// this node was given up, is to find it, and all others.
    pub(crate) fn settle_heads(&mut self, all: &[String]) {
        let (Some(net), Some(cluster)) = (self.reach.net_mut(), &mut self.config.cluster) else {
            return;
        };
        let heads = net.settle_heads(all);
        let before = std::mem::replace(&mut cluster.control, heads.join(","));
        if before == cluster.control {
            return;
        }
        tracing::info!(heads = cluster.control, "where control services are");
        if let Err(error) = self.session.know_heads(&heads) {
            tracing::warn!(%error, "commands of this machine may not find the control service");
        }
    }

    /// The cluster's secret changed.
    pub(crate) fn use_tokens(&mut self, tokens: &[String]) {
        let (Some(net), Some(cluster)) = (self.reach.net_mut(), &self.config.cluster) else {
            return;
        };
        match net.change_tokens(tokens, Path::new(&cluster.keyring)) {
            Ok(()) => tracing::info!("the cluster's secret was changed"),
            Err(error) => tracing::error!(error, "the cluster's new secret cannot be used"),
        }
    }
}

impl Shell {
    /// Lets a node that is alone and its control service speak until neither has more to say.
    pub(crate) fn hear_own_control(&mut self) {
        while let Some(control) = self.io.reach.own_control().filter(|c| c.is_spoken_to()) {
            let answers = control.hear(now());
            self.take_answers(answers);
        }
    }

    fn take_answers(&mut self, answers: Answers) {
        for note in answers.notes {
            tracing::info!("{note}");
        }
        for body in answers.messages {
            self.node.on_event(Event::FromControl(body), monotonic_ns(), &mut self.io);
        }
    }

    /// When [`Self::on_network_time`] is due.
    pub(crate) fn next_network_wakeup(&self) -> Option<u64> {
        match &self.io.reach {
            Reach::Alone(control) => control.next_wakeup(),
            Reach::Others(net) => net.next_wakeup(),
        }
    }

    pub(crate) fn on_network_time(&mut self, now_ns: u64) {
        match &mut self.io.reach {
            Reach::Alone(control) => {
                if control.next_wakeup().is_some_and(|at| now_ns >= at) {
                    let answers = control.on_time(now());
                    self.take_answers(answers);
                    self.hear_own_control();
                }
            }
            Reach::Others(net) => {
                let mut incoming = Vec::new();
                net.on_time(now_ns, &self.io.poller, &mut incoming);
                self.take_incoming(incoming);
            }
        }
    }

    /// Something of the network is ready.
    pub(crate) fn on_network(&mut self, token: Token) {
        let Some(net) = self.io.reach.net_mut() else {
            return;
        };
        let mut incoming = Vec::new();
        match token {
            Token::NetListener => net.on_listener(&self.io.poller),
            Token::NetLink(slot) => net.on_link(slot, &self.io.poller, &mut incoming),
            Token::Gateway => {
                let mut outgoing = Vec::new();
                net.bridge.read(&mut outgoing);
                // What a task printed goes ahead of its answer: with that its driver may leave.
                if !outgoing.is_empty() {
                    self.read_ready_output();
                }
                self.io.pass_on(outgoing);
                self.io.release_held();
            }
            Token::Transfers => {
                for (key, result) in net.transfers.done() {
                    self.event(Event::Transferred(key, result));
                }
            }
            _ => {}
        }
        self.take_incoming(incoming);
    }

    fn take_incoming(&mut self, incoming: Vec<Incoming>) {
        for item in incoming {
            match item {
                Incoming::Said(node, message) => {
                    if let Some(body) = message.body {
                        self.event(Event::FromPeer(node, body));
                    }
                }
                Incoming::Passed(from, to, frame) => {
                    self.deliver(ProcessId(from), ProcessId(to), frame);
                }
                Incoming::Lost(node, why) => self.on_peer_lost(node, why),
                Incoming::Away(node) => {
                    tracing::warn!(node, "no way leads to a node");
                    self.event(Event::PeerAway(node));
                }
                Incoming::Back(node) => {
                    tracing::info!(node, "a way leads to the node again");
                    self.event(Event::PeerBack(node));
                }
                Incoming::Unreached(node) => self.on_unreached(node),
                Incoming::Control(body) => self.on_control(*body),
                Incoming::ControlLost(why) => {
                    tracing::warn!(why, "the control service is away");
                    self.event(Event::ControlLost);
                }
            }
        }
    }

    fn on_control(&mut self, body: from_control::Body) {
        let is_welcome = matches!(body, from_control::Body::Welcome(_));
        if is_welcome {
            tracing::info!("this node is a member");
        }
        self.event(Event::FromControl(body));
        if let Some(cluster) = self.io.config.cluster.as_ref().filter(|_| is_welcome) {
            // Programs are told which it is.
            let reigning = cluster.control.split(',').next().unwrap_or_default();
            reigning.clone_into(&mut self.shared.registered.control);
        }
        if !self.early.is_empty() {
            self.deliver_early();
        }
    }

    /// Frames of nodes that were faster than the news of them.
    fn deliver_early(&mut self) {
        let known: Vec<u32> =
            self.early.keys().copied().filter(|number| !self.node.is_to_join(*number)).collect();
        for number in known {
            let frames = self.early.remove(&number).unwrap_or_default();
            if self.node.node_info(number).is_some() {
                frames.into_iter().for_each(|(from, to, frame)| self.deliver(from, to, frame));
            }
        }
    }

    /// Gives one of our processes what a process of another node says to it.
    fn deliver(&mut self, from: ProcessId, to: ProcessId, frame: Vec<u8>) {
        if self.node.is_to_join(from.node()) {
            let early = self.early.entry(from.node()).or_default();
            if early.len() < MOST_EARLY {
                early.push((from, to, frame));
            }
            return;
        }
        let has = |shell: &Self| shell.io.reach.net().is_some_and(|net| net.bridge.has((to, from)));
        if !has(self) {
            self.event(Event::FrameCame { from, to });
        }
        if let Some(net) = self.io.reach.net_mut() {
            let mut outgoing: Vec<Outgoing> = Vec::new();
            net.bridge.write((to, from), frame, &mut outgoing);
            self.io.pass_on(outgoing);
        }
    }

    fn on_peer_lost(&mut self, node: u32, why: String) {
        tracing::warn!(node, why, "what was between this node and another is over");
        let info = self.node.node_info(node);
        if let (Some(net), Some(info)) = (self.io.reach.net_mut(), &info) {
            // Bytes that are on their way from it are not to be trusted any more.
            net.transfers.remove_node(node);
            net.add_node(info);
        }
        self.event(Event::PeerLost(node, why));
    }

    /// No way has led to a node for long. If the control service hears it, it lives, and what is
    /// between the two would wait for ever.
    fn on_unreached(&mut self, node: u32) {
        let parted = self.node.is_known_to_live(node)
            && self.io.reach.net_mut().is_some_and(|net| net.part_from(node, &self.io.poller));
        if parted {
            self.on_peer_lost(node, "no way leads to it, nor through any other node".into());
            self.event(Event::PeerLives(node));
        }
    }

    /// After every round of the loop: processes see how long they may go on without this service.
    pub(crate) fn show_lease(&mut self) {
        let Some(until) = self.node.lease_until() else {
            return;
        };
        self.lease_end.show(until);
        let is_fenced = self.node.is_fenced();
        match (std::mem::replace(&mut self.was_fenced, is_fenced), is_fenced) {
            (false, true) => tracing::warn!(
                "this node's lease is over: actors that may be started elsewhere end here"
            ),
            (true, false) => tracing::info!("this node has a lease again"),
            _ => {}
        }
    }

    /// After every round of the loop: what was said goes out.
    pub(crate) fn flush_network(&mut self) {
        if self.io.reach.is_alone() {
            return;
        }
        self.io.release_held();
        self.io.wake_written();
        // What fails here leads to more to say.
        for _ in 0..8 {
            let mut incoming = Vec::new();
            if let Some(net) = self.io.reach.net_mut() {
                net.flush(&self.io.poller, &mut incoming);
            }
            if incoming.is_empty() {
                return;
            }
            self.take_incoming(incoming);
            self.io.wake_written();
        }
    }
}
