//! This node and the control service: being its member, losing it, finding it again.
//! What is said while it is away is said when it is there again.
//!
//! - **U-1** before anything else that is said over a connection comes [`Join`], and nothing
//!   but that before the answer.
//! - **U-2** what must be said is said in order, once over a connection that stays.

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::{Join, Load, NodeInfo, Welcome, from_control, to_control};

use crate::event::Outbox;
use crate::node::Node;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;
/// Between two attempts to find the control service again.
const TRY_EVERY: u64 = 100 * MILLISECOND;
/// An attempt that takes longer is given up.
const ATTEMPT_WITHIN: u64 = 2 * SECOND;
/// A node that does not find it for so long ends.
const GIVE_UP_AFTER: u64 = 60 * SECOND;
/// A control service that says nothing for so long is not there: it pings twice a second.
const SILENT_AFTER: u64 = 5 * SECOND;
/// Others hear of this node's load at most this often,
const LOAD_EVERY: u64 = 20 * MILLISECOND;
/// and at least this often, for those who believed something else meanwhile.
const LOAD_AT_LEAST_EVERY: u64 = SECOND;

/// What the control service is to a node at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It answers.
    There,
    /// It was asked to take us, for the first time or again, and is to answer by then.
    Asked(u64),
    /// It is not to be reached; the next attempt is then.
    Away(u64),
}

/// What a node knows of its connection with the control service.
#[derive(Debug)]
pub(crate) struct Uplink {
    state: State,
    /// Names the cluster, once it is known.
    cluster: Vec<u8>,
    /// When it was lost.
    lost_at: Option<u64>,
    heard_at: u64,
    /// Said while it was away.
    backlog: Vec<to_control::Body>,
    told: Told,
}

/// What others were last told of this node.
#[derive(Debug, Default)]
struct Told {
    load: Option<Load>,
    at: u64,
    looked_at: u64,
    /// Something may have changed since.
    look_again: bool,
}

impl Default for Uplink {
    /// Of a node that has asked to be a member.
    fn default() -> Self {
        Self {
            state: State::Asked(u64::MAX),
            cluster: Vec::new(),
            lost_at: None,
            heard_at: 0,
            backlog: Vec::new(),
            told: Told::default(),
        }
    }
}

impl Node {
    /// When [`Self::mind_uplink`] or [`Self::tell_load`] is due, with or without news.
    pub(crate) fn next_uplink_wakeup(&self) -> Option<u64> {
        let Uplink { state, heard_at, told, .. } = &self.uplink;
        match *state {
            State::There => {
                let silent = (!self.setup.alone).then_some(heard_at + SILENT_AFTER);
                // What changed just after the last look is to be told soon.
                let load = match told.look_again {
                    true => Some(told.looked_at + LOAD_EVERY),
                    false => self.has_others().then_some(told.at + LOAD_AT_LEAST_EVERY),
                };
                [silent, load].into_iter().flatten().min()
            }
            State::Asked(at) | State::Away(at) => Some(at),
        }
    }

    fn has_others(&self) -> bool {
        self.member.infos.len() > 1
    }

    /// Says something to the control service, now or when it is there again (U-2).
    pub(crate) fn tell_control(&mut self, body: to_control::Body, out: &mut impl Outbox) {
        match self.uplink.state {
            State::There => out.tell_control(body),
            State::Asked(_) | State::Away(_) => self.uplink.backlog.push(body),
        }
    }

    /// The control service says something.
    pub(crate) fn on_control(&mut self, body: from_control::Body, now: u64, out: &mut impl Outbox) {
        use from_control::Body;
        if matches!(self.uplink.state, State::Away(_)) {
            return; // Of a connection that was given up.
        }
        self.uplink.heard_at = now;
        match body {
            Body::Welcome(welcome) => self.on_welcome(welcome, now, out),
            Body::Refused(why) => out.exclude(why.text),
            Body::Ping(empty) => out.tell_control(to_control::Body::Pong(empty)),
            Body::NodeJoined(info) => self.on_node_joined(info, now, out),
            Body::NodeLeft(info) => self.on_node_left(info.number, &info.left, now, out),
            Body::Loads(loads) => self.on_loads(loads.loads),
            Body::OfProcess(said) => self.on_routed(said, now, out),
            Body::ForProcess(said) => {
                if let Some(body) = said.message.and_then(|message| message.body) {
                    self.on_answered(0, ProcessId(said.process), body, now, out);
                }
            }
            Body::Kv(answer) => self.on_kv_answered(answer, out),
            Body::ActorBuried(id) => self.on_actor_buried(&id),
            Body::KillHeard(id) => self.on_kill_heard(&id),
            Body::Tokens(tokens) => out.change_tokens(tokens),
            Body::State(_) => {}
        }
    }

    /// We are a member, for the first time or again: what changed meanwhile, and what the
    /// control service may have missed.
    fn on_welcome(&mut self, welcome: Welcome, now: u64, out: &mut impl Outbox) {
        let Welcome { cluster, nodes, .. } = welcome;
        self.uplink.state = State::There;
        self.uplink.cluster = cluster;
        self.uplink.lost_at = None;
        self.uplink.told = Told::default();
        for body in std::mem::take(&mut self.uplink.backlog) {
            out.tell_control(body);
        }
        for number in self.nodes() {
            if !nodes.iter().any(|info| info.number == number) {
                self.on_node_left(number, "it left while the head was away", now, out);
            }
        }
        for info in nodes {
            if self.node_info(info.number).is_none() {
                self.on_node_joined(info, now, out);
            }
        }
        self.say_again(out);
    }

    /// The connection with the control service broke, or could not be made.
    pub(crate) fn on_control_lost(&mut self, now: u64) {
        self.uplink.lost_at.get_or_insert(now);
        self.uplink.state = State::Away(now + TRY_EVERY);
    }

    /// Time has passed: looks for a control service that is away, or says nothing.
    pub(crate) fn mind_uplink(&mut self, now: u64, out: &mut impl Outbox) {
        let is_due = match self.uplink.state {
            State::There => !self.setup.alone && now >= self.uplink.heard_at + SILENT_AFTER,
            State::Asked(at) | State::Away(at) => now >= at,
        };
        if !is_due {
            return;
        }
        let lost_at = *self.uplink.lost_at.get_or_insert(now);
        if now >= lost_at + GIVE_UP_AFTER {
            let seconds = GIVE_UP_AFTER / SECOND;
            return out.exclude(format!("the control service has been away for {seconds} s"));
        }
        self.uplink.state = State::Asked(now + ATTEMPT_WITHIN);
        let node = NodeInfo { available: self.ledger.available(), ..self.member.own.clone() };
        out.dial_control(Join {
            node: Some(node),
            actors: self.actors.keys().map(|id| id.0.to_vec()).collect(),
            jobs: self.jobs_here(),
            cluster: self.uplink.cluster.clone(),
            processes: self.processes_here(),
        });
    }

    /// Tells the others, if it is time, what is free here and what waits.
    pub(crate) fn tell_load(&mut self, now: u64, out: &mut impl Outbox) {
        if self.uplink.state != State::There {
            return;
        }
        if now < self.uplink.told.looked_at + LOAD_EVERY {
            self.uplink.told.look_again = true;
            return;
        }
        self.tell_load_now(now, out);
    }

    /// Whoever asks the control service of this node is to hear how it is now.
    pub(crate) fn tell_load_now(&mut self, now: u64, out: &mut impl Outbox) {
        self.refresh_own_room();
        let (load, has_others) = (self.load(), self.has_others());
        let told = &mut self.uplink.told;
        (told.looked_at, told.look_again) = (now, false);
        let is_due = has_others && now >= told.at + LOAD_AT_LEAST_EVERY;
        if self.uplink.state == State::There && (told.load.as_ref() != Some(&load) || is_due) {
            told.at = now;
            told.load = Some(load.clone());
            out.tell_control(to_control::Body::Load(load));
        }
    }

    fn processes_here(&self) -> Vec<u64> {
        let ours = self.processes.iter().filter(|(_, process)| !process.is_foreign());
        std::iter::once(self.gateway().0).chain(ours.map(|(id, _)| id.0)).collect()
    }
}
