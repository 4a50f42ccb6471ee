//! What becomes of actors that lost their node, or that their node lost.

use oxiray_ids::ActorId;
use oxiray_wire::cluster::KEPT_ACTORS;
use oxiray_wire::control::{Actor, ActorPhase, to_node};

use crate::control::Control;
use crate::event::Outbox;
use crate::record::ActorRecord;

impl Control {
    /// The node of an actor, at this `place`, has left. `drained`: it was to (D-3).
    pub(crate) fn on_actor_stranded(
        &mut self,
        id: ActorId,
        place: &str,
        why: &str,
        drained: bool,
        out: &mut impl Outbox,
    ) {
        let Some(actor) = self.actors.get_mut(&id) else {
            return;
        };
        actor.record.node = 0;
        actor.record.stay += 1;
        self.waiting.insert(id);
        let has_lived = actor.record.was_alive || actor.record.killed.is_some();
        if drained && !has_lived && self.can_be_made(&self.actors[&id].record) {
            // It has not lived there: it waits for another node.
            return self.place(id, true, out);
        }
        let actor = self.actors.get_mut(&id).expect("just seen");
        let pid = actor.record.pid;
        let reason = match pid {
            0 => format!("its {place} left the cluster: {why}"),
            pid => format!("its {place}, where it was process {pid}, left the cluster: {why}"),
        };
        // One that may never be started again dies with its node; else this one is for free.
        let may = actor.record.create.as_ref().is_some_and(|create| create.max_restarts != 0);
        actor.record.uncounted += u64::from(drained && may);
        if self.begin_again(id, reason, out) {
            self.place(id, true, out);
        }
    }

    /// The node of an actor is back and has it not.
    pub(crate) fn on_actor_missing(&mut self, id: ActorId, out: &mut impl Outbox) {
        let record = &self.actors[&id].record;
        if record.was_alive {
            let reason = "its node lost it while the control service was away".to_owned();
            self.actors.get_mut(&id).expect("is missed").record.stay += 1;
            if !self.begin_again(id, reason, out) {
                return;
            }
            self.actors.get_mut(&id).expect("begins again").record.was_alive = false;
            self.write(id, out);
        } else if record.killed.is_some() || !self.can_be_made(record) {
            let reason = record.killed.clone().unwrap_or_else(|| "its owner died".to_owned());
            let creator = record.creator();
            self.bury(id, &reason, Vec::new(), out);
            // Its node never had it, and has told nobody.
            return self.on_watch_actor(creator, &id.0, None, out);
        }
        // A node that remembers how the actor ended says so instead of making it.
        self.send_create(id, out);
    }

    /// The node of an actor is back and has it. It may have missed that the actor must end.
    pub(crate) fn on_actor_found(&mut self, id: ActorId, out: &mut impl Outbox) {
        let record = &self.actors[&id].record;
        if let Some(reason) = record.killed.clone() {
            let (node, creator) = (record.node, record.creator());
            let kill = Actor { actor: id.0.to_vec(), no_restart: true, reason };
            let about = record.about_creator.clone();
            self.forward(node, creator, about, to_node::Body::KillActor(kill), out);
        }
    }

    /// Counts a restart if there may be one, else the actor is dead, and this false.
    fn begin_again(&mut self, id: ActorId, reason: String, out: &mut impl Outbox) -> bool {
        let record = &self.actors[&id].record;
        if let Some(reason) = self.why_not_again(record, &reason) {
            self.bury(id, &reason, Vec::new(), out);
            return false;
        }
        let record = &mut self.actors.get_mut(&id).expect("is alive").record;
        record.restarts += 1;
        record.set_phase(ActorPhase::Restarting);
        record.process = 0;
        record.moved = true;
        record.reason = reason;
        true
    }

    /// Whether somebody has the class and arguments of an actor: its creator, or, if it
    /// may outlive that, the key-value table.
    pub(crate) fn can_be_made(&self, record: &ActorRecord) -> bool {
        let create = record.create.as_ref();
        let kept = create.is_some_and(|create| {
            let key = (KEPT_ACTORS.to_owned(), create.actor.clone());
            create.detached && self.kv.contains_key(&key)
        });
        kept || self.is_alive(record.creator())
    }

    fn why_not_again(&self, record: &ActorRecord, reason: &str) -> Option<String> {
        if let Some(killed) = &record.killed {
            return Some(killed.clone());
        }
        if record.restarts_left() == Some(0) {
            return Some(reason.to_owned());
        }
        (!self.can_be_made(record)).then(|| {
            format!(
                "{reason}. It could not be started again: the process that made it, which alone \
                 had its class and arguments, is gone"
            )
        })
    }
}
