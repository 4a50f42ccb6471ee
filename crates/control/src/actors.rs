//! Where actors live: being made, placed, alive, dead.

use std::collections::BTreeMap;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{ActorInfo, ActorNews, Introduce, OfProcess, from_control};
use oxiray_wire::control::{ActorPhase, CreateActor, ToNode, from_node, to_node};
use oxiray_wire::frame::FailureCode;
use prost::Message;

use crate::control::Control;
use crate::dead_actors::state_of;
use crate::event::{Change, Outbox, Table};
use crate::names::Name;
use crate::placement::Placement;
use crate::record::{ActorRecord, DeadRecord};

/// Who wants to know of an actor, with what a node that does not know them needs.
pub(crate) type Watchers = BTreeMap<ProcessId, Option<Introduce>>;

/// An actor that is not dead.
#[derive(Debug, Default)]
pub(crate) struct Actor {
    pub(crate) record: ActorRecord,
    /// Who is to be told, while it waits for a node.
    pub(crate) watchers: Watchers,
    /// Why it waits, if it does.
    pub(crate) waits_because: String,
    /// What it was called, once that may be another's name.
    pub(crate) last_name: Name,
}

impl Control {
    pub(crate) fn on_create_actor(
        &mut self,
        creator: ProcessId,
        create: CreateActor,
        about: Option<Introduce>,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(&create.actor) else {
            return;
        };
        if self.actors.contains_key(&id) || self.dead.get(&id).is_some() {
            // Its node asks again, because this service was away: it wants to know.
            let bytes = id.0;
            return self.on_watch_actor(creator, &bytes, about, out);
        }
        let record = ActorRecord {
            create: Some(create),
            creator: creator.0,
            about_creator: about,
            ..ActorRecord::default()
        };
        if !self.can_be_made(&record) {
            return;
        }
        let watchers = self.expected.remove(&(id.creator(), id)).unwrap_or_default();
        self.actors.insert(id, Actor { record, watchers, ..Actor::default() });
        self.waiting.insert(id);
        self.place(id, true, out);
    }

    /// Looks for a node. `changed`: what is recorded must be written anyhow.
    pub(crate) fn place(&mut self, id: ActorId, changed: bool, out: &mut impl Outbox) {
        let record = self.actors[&id].record.clone();
        match self.find_node(&record) {
            Placement::At(number) => self.settle(id, number, out),
            Placement::Nowhere(reason) => {
                self.bury_as(id, FailureCode::ActorUnschedulable, reason, out);
            }
            Placement::GroupRemoved => self.bury_with_group(id, out),
            Placement::NotYet(why) => {
                let actor = self.actors.get_mut(&id).expect("waits");
                let begins = std::mem::replace(&mut actor.waits_because, why).is_empty();
                if begins {
                    self.warn_later(id);
                }
                if changed {
                    self.write(id, out);
                }
            }
        }
    }

    /// Tries again what waits: nodes came or went.
    pub(crate) fn place_waiting(&mut self, out: &mut impl Outbox) {
        let waiting: Vec<ActorId> = self.waiting.iter().copied().collect();
        for id in waiting {
            self.place(id, false, out);
        }
    }

    /// Sends an actor that waits to a node, with those who watch it.
    fn settle(&mut self, id: ActorId, number: u32, out: &mut impl Outbox) {
        self.waiting.remove(&id);
        self.members.get_mut(&number).expect("was chosen").actors.insert(id);
        let actor = self.actors.get_mut(&id).expect("waits");
        actor.record.node = number;
        actor.record.was_alive = false;
        actor.waits_because.clear();
        let watchers = std::mem::take(&mut actor.watchers);
        self.write(id, out);
        self.send_create(id, out);
        for (watcher, about) in watchers {
            self.forward_watch(number, watcher, about, id, out);
        }
    }

    /// Has an actor made at its node. Twice is once: the node knows it then.
    pub(crate) fn send_create(&self, id: ActorId, out: &mut impl Outbox) {
        let record = &self.actors[&id].record;
        let mut create = record.create.clone().unwrap_or_default();
        if create.max_restarts > 0 {
            // Its node counts all of its restarts.
            create.max_restarts = create.max_restarts.saturating_add_unsigned(record.uncounted);
        }
        let create = to_node::Body::CreateActor(create);
        let message = OfProcess {
            process: record.creator,
            message: Some(ToNode::from(create)),
            restarts: record.restarts,
            stay: record.stay,
            about: record.about_creator.clone(),
            gone: !self.is_alive(record.creator()),
        };
        self.send(record.node, from_control::Body::OfProcess(message), out);
    }

    /// Keeps what is recorded of an actor.
    pub(crate) fn write(&self, id: ActorId, out: &mut impl Outbox) {
        out.persist(Change::put(Table::Actor, id.0, self.actors[&id].record.encode_to_vec()));
    }

    /// How an actor fares, from the node where it lives. Others are not believed.
    pub(crate) fn on_actor_news(&mut self, number: u32, news: ActorNews, out: &mut impl Outbox) {
        let Some(id) = ActorId::from_slice(&news.actor) else {
            return;
        };
        let phase = news.phase();
        let Some(actor) = self.actors.get_mut(&id).filter(|actor| actor.record.node == number)
        else {
            if phase == ActorPhase::Dead {
                self.send(number, from_control::Body::ActorBuried(news.actor), out);
            }
            return;
        };
        if phase == ActorPhase::Dead {
            actor.record.restarts = actor.record.restarts.max(news.restarts);
            self.bury(id, &news.reason, news.creation_error, out);
            // Its node need not remember it any longer.
            return self.send(number, from_control::Body::ActorBuried(news.actor), out);
        }
        let record = &mut actor.record;
        if news.incarnation() < record.incarnation() {
            return; // Of a life that is over.
        }
        let before = record.clone();
        record.restarts = news.restarts;
        record.set_phase(phase);
        record.process = news.process;
        record.pid = news.pid;
        record.was_alive |= phase == ActorPhase::Alive;
        if phase == ActorPhase::Restarting {
            record.reason = news.reason;
        }
        let is_made = phase == ActorPhase::Alive && record.restarts_left() == Some(0);
        if *record != before {
            self.write(id, out);
        }
        if is_made {
            // It is never made again: nobody asks for its class and arguments.
            self.forget_kept(id, out);
        }
    }

    /// An actor is dead for good, or will never be made. Who watches it hears of
    /// it from its node, if it has one, and otherwise from here.
    pub(crate) fn bury(
        &mut self,
        id: ActorId,
        reason: &str,
        creation_error: Vec<u8>,
        out: &mut impl Outbox,
    ) {
        let reason = reason.to_owned();
        self.bury_record(id, DeadRecord { reason, creation_error, ..Default::default() }, out);
    }

    /// As [`Self::bury`]; its calls fail with this.
    pub(crate) fn bury_as(
        &mut self,
        id: ActorId,
        failure: FailureCode,
        reason: String,
        out: &mut impl Outbox,
    ) {
        let failure = failure as u32;
        self.bury_record(id, DeadRecord { reason, failure, ..Default::default() }, out);
    }

    fn bury_record(&mut self, id: ActorId, mut dead: DeadRecord, out: &mut impl Outbox) {
        let mut told = self.expected.remove(&(id.creator(), id)).unwrap_or_default();
        self.release_name(id, out);
        let info = self.actors.get(&id).map(|actor| self.show(id, actor));
        // What the record has anyhow need not be there twice.
        dead.info = info.map(|info| ActorInfo {
            actor: Vec::new(),
            class_name: String::new(),
            reason: String::new(),
            ..info
        });
        match self.actors.remove(&id) {
            Some(Actor { record, watchers, .. }) => {
                self.leave_group(id, &record);
                out.persist(Change::delete(Table::Actor, id.0));
                record.class_name().clone_into(&mut dead.class_name);
                (dead.stay, dead.restarts) = (record.stay, record.restarts);
                told.extend(watchers);
                if self.waiting.remove(&id) {
                    told.insert(record.creator(), None);
                } else if let Some(member) = self.members.get_mut(&record.node) {
                    member.actors.remove(&id);
                }
            }
            None => {
                told.insert(id.creator(), None);
            }
        }
        self.forget_kept(id, out);
        for watcher in told.into_keys() {
            self.tell(watcher, from_node::Body::ActorState(state_of(id, &dead)), out);
        }
        self.dead.remember(id, dead, out);
        self.end_groups_of_actor(id, out);
    }
}
