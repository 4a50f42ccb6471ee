//! Who wants to know how an actor fares, and who wants it to end. Both are
//! passed on to the node where it lives, which answers directly.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{Introduce, OfProcess, from_control};
use oxiray_wire::control::{Actor, ActorPhase, ActorState, ToNode, from_node, to_node};

use crate::control::Control;
use crate::dead_actors::state_of;
use crate::event::Outbox;
use crate::record::DeadRecord;

impl Control {
    /// Who watches an actor has heard that it was started again so often, in this stay (C-11).
    pub(crate) fn on_hearsay(
        &mut self,
        id: &[u8],
        stay: u32,
        restarts: u64,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(id) else {
            return;
        };
        let Some(actor) = self.actors.get_mut(&id) else {
            return;
        };
        let record = &mut actor.record;
        if record.stay == stay && record.restarts < restarts {
            record.restarts = restarts;
            self.write(id, out);
        }
    }

    pub(crate) fn on_watch_actor(
        &mut self,
        from: ProcessId,
        id: &[u8],
        about: Option<Introduce>,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(id) else {
            return;
        };
        if let Some(dead) = self.dead.get(&id) {
            return self.tell(from, from_node::Body::ActorState(state_of(id, dead)), out);
        }
        if self.actors.contains_key(&id) {
            return self.watch(from, about, id, out);
        }
        if self.is_alive(id.creator()) {
            // Its creator asks for it when its arguments are there.
            self.expected.entry((id.creator(), id)).or_default().insert(from, about);
            return;
        }
        let was_member = (1..=self.last_number).contains(&id.creator().node());
        let reason = if was_member { "its owner died" } else { "unknown actor" };
        // What it was has been forgotten.
        let restarts = u64::MAX;
        let dead = DeadRecord { reason: reason.into(), restarts, ..DeadRecord::default() };
        self.tell(from, from_node::Body::ActorState(state_of(id, &dead)), out);
    }

    fn watch(
        &mut self,
        from: ProcessId,
        about: Option<Introduce>,
        id: ActorId,
        out: &mut impl Outbox,
    ) {
        let actor = self.actors.get_mut(&id).expect("is alive");
        let node = actor.record.node;
        if node == 0 {
            actor.watchers.insert(from, about.clone());
        }
        if actor.record.moved {
            // Its new node knows nothing of the old one's watchers, nor they of the move.
            let state = ActorState {
                actor: id.0.to_vec(),
                phase: ActorPhase::Restarting.into(),
                reason: actor.record.reason.clone(),
                class_name: actor.record.class_name().into(),
                restarts: actor.record.restarts,
                stay: actor.record.stay,
                ..ActorState::default()
            };
            self.tell(from, from_node::Body::ActorState(state), out);
        }
        if node != 0 {
            self.forward_watch(node, from, about, id, out);
        }
    }

    pub(crate) fn forward_watch(
        &mut self,
        number: u32,
        watcher: ProcessId,
        about: Option<Introduce>,
        id: ActorId,
        out: &mut impl Outbox,
    ) {
        let actor = Actor { actor: id.0.to_vec(), ..Actor::default() };
        self.forward(number, watcher, about, to_node::Body::WatchActor(actor), out);
    }

    /// Passes a process's message on to a node, now or when that is back.
    pub(crate) fn forward(
        &mut self,
        number: u32,
        process: ProcessId,
        about: Option<Introduce>,
        body: to_node::Body,
        out: &mut impl Outbox,
    ) {
        let message = Some(ToNode::from(body));
        let message = OfProcess { process: process.0, message, about, ..OfProcess::default() };
        let is_watch =
            matches!(&message.message, Some(ToNode { body: Some(to_node::Body::WatchActor(_)) }));
        match self.members.get_mut(&number) {
            Some(member) if member.peer.is_none() => return member.held.push(message),
            // That an actor must end is said again in any case.
            Some(member) if is_watch && self.asks_members => member.said(message.clone()),
            _ => {}
        }
        self.send(number, from_control::Body::OfProcess(message), out);
    }

    pub(crate) fn on_kill_actor(
        &mut self,
        from: ProcessId,
        message: Actor,
        about: Option<Introduce>,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(&message.actor) else {
            return;
        };
        if message.no_restart {
            // Its node need not say it again.
            self.send(from.node(), from_control::Body::KillHeard(message.actor.clone()), out);
        }
        let by_user = message.reason.is_empty();
        let reason = if by_user { "it was killed by ray.kill" } else { &message.reason };
        let Some(actor) = self.actors.get_mut(&id) else {
            if self.dead.get(&id).is_none() && self.is_alive(id.creator()) {
                // It must not be made later: its creator hears of its death too.
                self.bury(id, reason, Vec::new(), out);
            }
            return;
        };
        let record = &mut actor.record;
        let node = record.node;
        if node == 0 {
            if message.no_restart || record.restarts_left() == Some(0) {
                self.bury(id, reason, Vec::new(), out);
            }
            return; // Otherwise it is being started already.
        }
        if message.no_restart {
            let first = record.killed.is_none();
            record.killed.get_or_insert_with(|| reason.to_owned());
            if first {
                self.write(id, out);
                // From now on its name is another's to have.
                self.release_name(id, out);
            }
        }
        self.forward(node, from, about, to_node::Body::KillActor(message), out);
    }
}
