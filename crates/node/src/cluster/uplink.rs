//! This node and the control service: being its member, losing it, finding it again.
//! What is said while it is away is said when it is there again.
//!
//! - **U-1** before anything else that is said over a connection comes [`Join`], and nothing
//!   but that before the answer.
//! - **U-2** what must be said is said in order, once over a connection that stays.
//! - **U-3** over one connection a question of a name is asked once: between two the name may come free,
//!   and be given to an actor whose maker was told that it is another's.

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::{Drain, Join, Load, NodeInfo, Pong, Welcome, from_control, to_control};

use super::lease::Lease;
use crate::event::Outbox;
use crate::node::Node;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;
/// Between two attempts to find the control service again.
const TRY_EVERY: u64 = 100 * MILLISECOND;
/// An attempt that takes longer is given up,
const ATTEMPT_WITHIN: u64 = 2 * SECOND;
/// and sooner where another may have taken over.
const ATTEMPT_WITHIN_OF_SEVERAL: u64 = SECOND;
/// A node that does not find it for so long ends, unless it finds some that wait to be it.
const GIVE_UP_AFTER: u64 = 60 * SECOND;
/// A control service that says nothing for so long is not there: it pings twice a second.
const SILENT_AFTER: u64 = 5 * SECOND;
/// Likewise where another may have taken over: if not, coming back costs little.
const SILENT_AFTER_OF_SEVERAL: u64 = 1500 * MILLISECOND;
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
    /// There are others that wait to take over.
    has_several: bool,
    /// Said while it was away.
    backlog: Vec<to_control::Body>,
    told: Told,
    pub(super) lease: Lease,
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

impl Uplink {
    /// Of a node that has asked to be a member, then.
    pub(crate) fn new(asked_at: u64) -> Self {
        Self {
            state: State::Asked(u64::MAX),
            cluster: Vec::new(),
            lost_at: None,
            heard_at: 0,
            has_several: false,
            backlog: Vec::new(),
            told: Told::default(),
            lease: Lease::asked(asked_at),
        }
    }
}

impl Uplink {
    fn silent_after(&self) -> u64 {
        if self.has_several { SILENT_AFTER_OF_SEVERAL } else { SILENT_AFTER }
    }

    fn attempt_within(&self) -> u64 {
        if self.has_several { ATTEMPT_WITHIN_OF_SEVERAL } else { ATTEMPT_WITHIN }
    }
}

impl Node {
    /// When [`Self::mind_uplink`] or [`Self::tell_load`] is due, with or without news.
    pub(crate) fn next_uplink_wakeup(&self) -> Option<u64> {
        let Uplink { state, heard_at, told, lease, .. } = &self.uplink;
        let next = match *state {
            State::There => {
                let silent = (!self.setup.alone).then_some(heard_at + self.uplink.silent_after());
                // What changed just after the last look is to be told soon.
                let load = match told.look_again {
                    true => Some(told.looked_at + LOAD_EVERY),
                    false => self.has_others().then_some(told.at + LOAD_AT_LEAST_EVERY),
                };
                [silent, load].into_iter().flatten().min()
            }
            State::Asked(at) | State::Away(at) => Some(at),
        };
        next.into_iter().chain(lease.ends_at()).min()
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

    /// Whether what is said to the control service is said now.
    pub(crate) fn is_control_there(&self) -> bool {
        self.uplink.state == State::There
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
            Body::GivenUp(why) => out.rejoin(why.text),
            Body::Ping(ping) => {
                self.renew_lease(ping.heard, now);
                let pong = Pong { mark: now, answers: ping.number };
                out.tell_control(to_control::Body::Pong(pong));
            }
            Body::NodeJoined(info) => self.on_node_joined(info, now, out),
            Body::NodeLeft(info) => self.on_node_left(info.number, &info.left, now, out),
            Body::Loads(loads) => self.on_loads(loads.loads, out),
            Body::OfProcess(said) => self.on_routed(said, now, out),
            Body::ForProcess(said) => {
                if let Some(body) = said.message.and_then(|message| message.body) {
                    self.on_answered(0, ProcessId(said.process), body, now, out);
                }
            }
            Body::Kv(answer) => self.on_kv_answered(answer, out),
            Body::ActorBuried(id) => self.on_actor_buried(&id),
            Body::KillHeard(id) => self.on_kill_heard(&id),
            Body::ActorTaken(id) => self.on_actor_taken(&id),
            Body::Reserve(asked) => self.on_reserve(asked, out),
            Body::CommitGroup(group) => self.on_commit_group(&group),
            Body::ReleaseBundles(said) => self.on_release_bundles(said, out),
            Body::GroupNews(info) => self.on_group_news(info, out),
            Body::WantRoom(room) => self.on_want_room(room, now),
            Body::Tokens(tokens) => out.change_tokens(tokens),
            Body::Drains(said) => self.on_drains(said, now, out),
            Body::Heads(heads) => self.on_heads(&heads.addresses, out),
            Body::Standby(_) => self.on_standby(now),
            Body::State(_) => {}
        }
    }

    /// We are a member, for the first time or again: what changed meanwhile, and what the
    /// control service may have missed.
    fn on_welcome(&mut self, welcome: Welcome, now: u64, out: &mut impl Outbox) {
        let Welcome { cluster, nodes, heads, lease_ms, .. } = welcome;
        self.begin_lease(lease_ms, now);
        self.uplink.state = State::There;
        self.on_heads(&heads, out);
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
            } else if info.is_draining() && info.number != self.number {
                // That may have been said while we did not hear.
                self.on_drains(Drain { info: Some(info), ..Drain::default() }, now, out);
            }
        }
        self.say_again(out);
    }

    fn on_heads(&mut self, heads: &[String], out: &mut impl Outbox) {
        self.uplink.has_several = heads.len() > 1;
        out.know_heads(heads);
    }

    /// Who was asked waits to be the control service. As long as there is such a one, there will be
    /// a control service again.
    fn on_standby(&mut self, now: u64) {
        self.uplink.lost_at = Some(now);
        self.uplink.state = State::Away(now + TRY_EVERY);
    }

    /// The connection with the control service broke, or could not be made.
    pub(crate) fn on_control_lost(&mut self, now: u64) {
        self.uplink.lost_at.get_or_insert(now);
        self.uplink.state = State::Away(now + TRY_EVERY);
    }

    /// What it says now may have been said long ago: it is asked again over another connection.
    pub(super) fn distrust_uplink(&mut self, now: u64) {
        if self.uplink.state == State::There {
            self.uplink.lost_at.get_or_insert(now);
            self.uplink.state = State::Away(now);
        }
    }

    /// Time has passed: looks for a control service that is away, or says nothing.
    pub(crate) fn mind_uplink(&mut self, now: u64, out: &mut impl Outbox) {
        let is_due = match self.uplink.state {
            State::There => {
                !self.setup.alone && now >= self.uplink.heard_at + self.uplink.silent_after()
            }
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
        self.uplink.state = State::Asked(now + self.uplink.attempt_within());
        self.uplink.lease.asked_at = now;
        let node = NodeInfo { available: self.ledger.available(), ..self.member.own.clone() };
        out.dial_control(Join {
            node: Some(node),
            actors: self.actors.keys().map(|id| id.0.to_vec()).collect(),
            jobs: self.jobs_here(),
            cluster: self.uplink.cluster.clone(),
            processes: self.processes_here(),
            bundles: self.bundles_here(),
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

    /// The control service believes that something was taken or given back here: it is to hear how
    /// much is free, also if that is as before.
    pub(crate) fn tell_load_again(&mut self) {
        self.uplink.told.load = None;
        self.uplink.told.look_again = true;
    }

    fn processes_here(&self) -> Vec<u64> {
        let ours = self.processes.iter().filter(|(_, process)| !process.is_foreign());
        std::iter::once(self.gateway().0).chain(ours.map(|(id, _)| id.0)).collect()
    }
}
