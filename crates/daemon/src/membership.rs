//! What comes from other machines, on its way to the core; and what the core says
//! to them between two rounds of the loop.

use oxiray_ids::ProcessId;
use oxiray_node::Event;
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{Join, Load, Welcome, from_control, to_control};

use crate::io::Ending;
use crate::net::Incoming;
use crate::net::bridge::Outgoing;
use crate::net::uplink::Heard;
use crate::poller::Token;
use crate::shell::Shell;

/// Others hear of this node's load at most this often,
const LOAD_EVERY: u64 = 20_000_000;
/// and at least this often, for those who believed something else meanwhile.
const LOAD_AT_LEAST_EVERY: u64 = 1_000_000_000;

/// Frames that are kept of a node that is about to join.
const MOST_EARLY: usize = 10_000;

/// What others were last told of this node.
#[derive(Default)]
pub(crate) struct Told {
    load: Option<Load>,
    at: u64,
    looked_at: u64,
    /// Something may have changed since.
    look_again: bool,
}

impl Shell {
    /// Something of the network is ready.
    pub(crate) fn on_network(&mut self, token: Token) {
        let Some(net) = &mut self.io.net else {
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
            Token::Control => {
                let mut heard = Vec::new();
                net.uplink.on_ready(&self.io.poller, &mut heard);
                self.take_heard(heard);
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
        let has =
            |shell: &Self| shell.io.net.as_ref().is_some_and(|net| net.bridge.has((to, from)));
        if !has(self) {
            self.event(Event::FrameCame { from, to });
        }
        if let Some(net) = &mut self.io.net {
            let mut outgoing: Vec<Outgoing> = Vec::new();
            net.bridge.write((to, from), frame, &mut outgoing);
            self.io.pass_on(outgoing);
        }
    }

    fn on_peer_lost(&mut self, node: u32, why: String) {
        tracing::warn!(node, why, "the connection with a node broke");
        let info = self.node.node_info(node);
        if let (Some(net), Some(info)) = (&mut self.io.net, &info) {
            // What is on its way from it is not to be trusted any more.
            net.remove_node(node, &self.io.poller);
            net.add_node(info);
        }
        self.event(Event::PeerLost(node, why));
    }

    fn take_heard(&mut self, heard: Vec<Heard>) {
        for item in heard {
            match item {
                Heard::Said(body) => self.on_control(*body),
                Heard::Back(welcome) => self.on_back(welcome),
                Heard::Over(why) => {
                    tracing::error!(why, "this node is no member any more");
                    crate::complain(&format!("this node ends: {why}"));
                    self.io.last_words = format!("this machine is no longer in the cluster: {why}");
                    self.io.ending = Some(Ending::Excluded);
                }
            }
        }
    }

    fn on_control(&mut self, body: from_control::Body) {
        use from_control::Body;
        match body {
            Body::NodeJoined(info) => {
                if let Some(net) = &mut self.io.net {
                    net.add_node(&info);
                }
                let number = info.number;
                self.event(Event::NodeJoined(info));
                // It may have been faster than the news of it.
                for (from, to, frame) in self.early.remove(&number).unwrap_or_default() {
                    self.deliver(from, to, frame);
                }
            }
            Body::NodeLeft(info) => {
                self.early.remove(&info.number);
                if let Some(net) = &mut self.io.net {
                    net.remove_node(info.number, &self.io.poller);
                }
                self.event(Event::NodeLeft(info.number, info.left));
            }
            Body::Loads(loads) => self.event(Event::Loads(loads.loads)),
            Body::OfProcess(said) => self.event(Event::Routed(said)),
            Body::ForProcess(said) => {
                if let Some(body) = said.message.and_then(|message| message.body) {
                    self.event(Event::Answered(ProcessId(said.process), body));
                }
            }
            Body::Tokens(tokens) => self.io.on_tokens(tokens),
            Body::Kv(answer) => self.event(Event::KvAnswered(answer)),
            Body::Welcome(_) | Body::Refused(_) | Body::Ping(_) | Body::State(_) => {}
        }
    }

    /// The control service was away: what changed meanwhile, and what it may have missed.
    fn on_back(&mut self, welcome: Welcome) {
        let known = self.node.nodes();
        for number in known {
            if !welcome.nodes.iter().any(|info| info.number == number) {
                if let Some(net) = &mut self.io.net {
                    net.remove_node(number, &self.io.poller);
                }
                self.event(Event::NodeLeft(number, "it left while the head was away".into()));
            }
        }
        for info in welcome.nodes {
            if self.node.node_info(info.number).is_none() {
                if let Some(net) = &mut self.io.net {
                    net.add_node(&info);
                }
                self.event(Event::NodeJoined(info));
            }
        }
        self.told = Told::default();
        self.event(Event::Reattached);
    }

    /// After every round of the loop: what was said goes out.
    pub(crate) fn flush_network(&mut self) {
        if self.io.net.is_none() {
            return;
        }
        self.io.release_held();
        self.io.wake_written();
        self.tell_load();
        // What fails here leads to more to say.
        for _ in 0..8 {
            let mut incoming = Vec::new();
            if let Some(net) = &mut self.io.net {
                net.flush(&self.io.poller, &mut incoming);
            }
            if incoming.is_empty() {
                return;
            }
            self.take_incoming(incoming);
            self.io.wake_written();
        }
    }

    fn tell_load(&mut self) {
        let now = monotonic_ns();
        if now < self.told.looked_at + LOAD_EVERY {
            self.told.look_again = true;
            return;
        }
        self.told.looked_at = now;
        self.told.look_again = false;
        let load = self.node.load();
        if self.told.load.as_ref() != Some(&load) || now >= self.told.at + LOAD_AT_LEAST_EVERY {
            self.told.load = Some(load.clone());
            self.told.at = now;
            if let Some(net) = &mut self.io.net {
                net.tell_control(to_control::Body::Load(load));
            }
        }
    }

    /// When [`Self::on_network_time`] is due.
    pub(crate) fn next_network_wakeup(&self) -> Option<u64> {
        let net = self.io.net.as_ref()?;
        // What changed just after the last look is to be told soon.
        let load = match self.told.look_again {
            true => self.told.looked_at + LOAD_EVERY,
            false => self.told.at + LOAD_AT_LEAST_EVERY,
        };
        Some(net.next_wakeup().map_or(load, |at| at.min(load)))
    }

    pub(crate) fn on_network_time(&mut self, now: u64) {
        let Some(net) = &mut self.io.net else {
            return;
        };
        net.on_time(now, &self.io.poller);
        let (node, cluster) = (&self.node, &self.cluster);
        let join = || Join {
            node: node.member_info(),
            actors: node.actors_here(),
            jobs: node.jobs_here(),
            cluster: cluster.clone(),
            processes: node.processes_here(),
        };
        let mut heard = Vec::new();
        let security = net.security.clone();
        net.uplink.on_time(now, &security, &self.io.poller, join, &mut heard);
        self.take_heard(heard);
    }
}
