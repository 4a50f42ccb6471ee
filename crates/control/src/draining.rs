//! Members that are to leave in an orderly way: no new work goes there, and they leave by
//! themselves once what they have is elsewhere, or when their time is over.
//!
//! - **D-1** a member that drains is in nobody's view of what is free: nothing is placed there.
//! - **D-2** the last member that takes work does not drain.
//! - **D-3** an actor whose node was draining is started again elsewhere, and that is not one of its
//!   `max_restarts`: nothing went wrong with it.
//! - **D-4** an actor that waits for a worker at such a node is another node's from then on, before
//!   the node leaves: what keeps that from leaving may be waiting for the actor.

use oxiray_ids::{ActorId, NodeId, ProcessId};
use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{Drain, NodeInfo, ReturnActor, from_control};
use oxiray_wire::control::Text;
use prost::Message;

use crate::control::Control;
use crate::event::{Change, Now, Outbox, PeerId, Table};
use crate::record;

impl Control {
    /// Somebody wants a node to leave in an orderly way.
    pub(crate) fn on_drain(
        &mut self,
        peer: PeerId,
        wanted: Drain,
        now: Now,
        out: &mut impl Outbox,
    ) {
        let answer = match self.drain(wanted, now, out) {
            Ok(said) => from_control::Body::Drains(said),
            Err(text) => from_control::Body::Refused(Text { text }),
        };
        out.send(peer, answer);
    }

    fn drain(&mut self, wanted: Drain, now: Now, out: &mut impl Outbox) -> Result<Drain, String> {
        let number = self.meant(&wanted.node)?;
        let takes_work =
            |info: &NodeInfo| info.number != number && !info.is_draining() && info.left.is_empty();
        if !self.members.values().any(|member| takes_work(&member.info)) {
            return Err(
                "it is the last node that takes work, so that nothing of it could go elsewhere: \
                 start another node first, or end the cluster with `oxiray stop`"
                    .into(),
            );
        }
        let member = self.members.get_mut(&number).expect("is meant");
        let reason = wanted.reason.trim();
        let info = &mut member.info;
        info.draining = if reason.is_empty() { "asked to".into() } else { reason.to_owned() };
        info.drain_until_ms = match wanted.within_ms {
            0 => 0,
            within => now.wall_ms.saturating_add(within),
        };
        let info = info.clone();
        out.note(format!("node {number} at {} drains: {}", info.address, info.draining));
        out.persist(Change::put(Table::Node, record::node_key(number), info.encode_to_vec()));
        // D-1.
        self.room.leave(NodeNumber(number));
        self.give_up_attempts_at(number, out);
        let said = Drain { within_ms: wanted.within_ms, info: Some(info), ..Drain::default() };
        self.broadcast(None, from_control::Body::Drains(said.clone()), out);
        self.place_waiting(out);
        self.place_groups(out);
        Ok(said)
    }

    /// Says once more to a node that came back that it is to leave.
    pub(crate) fn drain_again(&self, number: u32, now: Now, out: &mut impl Outbox) {
        let info = &self.members[&number].info;
        if info.is_draining() {
            let within_ms = match info.drain_until_ms {
                0 => 0,
                until => until.saturating_sub(now.wall_ms).max(1),
            };
            let said = Drain { within_ms, info: Some(info.clone()), ..Drain::default() };
            self.send(number, from_control::Body::Drains(said), out);
        }
    }

    /// A node that drains has an actor that waits, and is to wait elsewhere (D-4). It says so until
    /// it hears that we know; and whoever asked it meanwhile asks us.
    pub(crate) fn on_return_actor(
        &mut self,
        number: u32,
        returned: ReturnActor,
        out: &mut impl Outbox,
    ) {
        let Some(id) = ActorId::from_slice(&returned.actor) else {
            return;
        };
        self.send(number, from_control::Body::ActorTaken(returned.actor), out);
        if self.actors.get(&id).is_some_and(|actor| actor.record.node == number) {
            self.take_back(number, id, returned.restarts, out);
        }
        for about in returned.watchers {
            self.on_watch_actor(ProcessId(about.process), &id.0, Some(about), out);
        }
    }

    /// An actor is not its node's any more, and goes to another, unless it must end.
    fn take_back(&mut self, number: u32, id: ActorId, restarts: u64, out: &mut impl Outbox) {
        self.members.get_mut(&number).expect("is spoken with").actors.remove(&id);
        self.waiting.insert(id);
        let record = &mut self.actors.get_mut(&id).expect("just seen").record;
        record.node = 0;
        record.stay += 1;
        record.restarts = record.restarts.max(restarts);
        let record = record.clone();
        match record.killed {
            Some(reason) => self.bury(id, &reason, Vec::new(), out),
            None if !self.can_be_made(&record) => self.bury(id, "its owner died", Vec::new(), out),
            None => self.place(id, true, out),
        }
    }

    /// The member that somebody means: by the beginning of its id in hexadecimal, by its address
    /// or by its host.
    pub(crate) fn meant(&self, wanted: &str) -> Result<u32, String> {
        let wanted = wanted.trim().to_ascii_lowercase();
        if wanted.is_empty() {
            return Err("say which node: `oxiray status` shows all".into());
        }
        let is_meant = |info: &NodeInfo| {
            let hex = NodeId::from_slice(&info.id).map(|id| id.to_string());
            let ip =
                info.address.rsplit_once(':').map_or("", |(ip, _)| ip.trim_matches(['[', ']']));
            hex.is_some_and(|hex| hex.starts_with(&wanted))
                || [info.address.as_str(), ip, info.host.as_str()].contains(&wanted.as_str())
        };
        let infos = self.members.values().map(|member| &member.info);
        let meant: Vec<u32> = infos.filter(|info| is_meant(info)).map(|info| info.number).collect();
        match meant[..] {
            [number] => Ok(number),
            [] => Err(format!("no node's id begins with {wanted}: `oxiray status` shows all")),
            _ => Err(format!("{} nodes are called {wanted:?}: give more of its id", meant.len())),
        }
    }
}
