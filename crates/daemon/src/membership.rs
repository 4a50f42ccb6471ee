//! What comes from the control service and from other machines, on its way to the core; and
//! what the core has said to them, on its way out.

use oxiray_control::{Answers, Now};
use oxiray_ids::ProcessId;
use oxiray_node::Event;
use oxiray_sys::clock::{monotonic_ns, wall_ns};
use oxiray_wire::cluster::from_control;

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
            Reach::Others(net) => net.on_time(now_ns, &self.io.poller),
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
                Incoming::Control(body) => self.on_control(*body),
                Incoming::ControlLost(why) => {
                    tracing::warn!(why, "the control service is away");
                    self.event(Event::ControlLost);
                }
            }
        }
    }

    fn on_control(&mut self, body: from_control::Body) {
        if matches!(body, from_control::Body::Welcome(_)) {
            tracing::info!("this node is a member");
        }
        self.event(Event::FromControl(body));
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
        tracing::warn!(node, why, "the connection with a node broke");
        let info = self.node.node_info(node);
        if let (Some(net), Some(info)) = (self.io.reach.net_mut(), &info) {
            // What is on its way from it is not to be trusted any more.
            net.remove_node(node, &self.io.poller);
            net.add_node(info);
        }
        self.event(Event::PeerLost(node, why));
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
