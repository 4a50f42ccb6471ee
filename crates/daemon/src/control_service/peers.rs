//! The connections of the control service: nodes, and tools.

use std::collections::HashMap;

use oxiray_control::{Event, PeerId};
use oxiray_net::{Ended, Links, Listener, Next, Reading, Security};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{FromControl, Heads, Hello, Purpose, ToControl, from_control};
use oxiray_wire::control::Text;
use prost::Message;

use crate::poller::Poller;

/// What is known of a connection.
struct Peer {
    id: PeerId,
    /// It has said what it is.
    known: bool,
    /// It is not spoken with.
    refused: bool,
    /// Why not, until it was told.
    refusal: Option<from_control::Body>,
}

impl Peer {
    fn refuse(&mut self, why: from_control::Body) {
        (self.refused, self.refusal) = (true, Some(why));
    }
}

/// All connections.
pub(super) struct Peers {
    listener: Listener,
    links: Links<Peer>,
    slots: HashMap<PeerId, usize>,
    last_id: u64,
    /// While this service does not reign: who connects is to look there.
    elsewhere: Option<Heads>,
}

impl Peers {
    pub(super) fn new(security: Security, listener: Listener) -> Self {
        let (links, slots) = (Links::new(security), HashMap::new());
        Self { listener, links, slots, last_id: 0, elsewhere: None }
    }

    /// Serves nobody from now on: who connects hears where else to look.
    pub(super) fn send_away(&mut self, addresses: Vec<String>) {
        self.elsewhere = Some(Heads { addresses });
    }

    /// Serves who connects from now on.
    pub(super) fn welcome(&mut self) {
        self.elsewhere = None;
    }

    /// Ends all connections at once: those that have said what they are.
    pub(super) fn end_all(&mut self, poller: &Poller) -> Vec<PeerId> {
        let slots: Vec<usize> = self.links.iter().map(|(slot, _)| slot).collect();
        let ended = slots.into_iter().filter_map(|slot| self.links.end(slot, poller));
        let known = ended.filter(|(_, peer)| peer.known).map(|(_, peer)| peer.id).collect();
        self.slots.clear();
        known
    }

    /// Where it listens.
    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Connections from now on are protected by this.
    pub(super) fn set_security(&mut self, security: Security) {
        self.links.set_security(security);
    }

    pub(super) fn on_listener(&mut self, poller: &Poller) {
        let (slots, last_id) = (&mut self.slots, &mut self.last_id);
        self.links.accept(&self.listener, monotonic_ns(), poller, |slot| {
            *last_id += 1;
            let id = PeerId(*last_id);
            slots.insert(id, slot);
            Peer { id, known: false, refused: false, refusal: None }
        });
        self.forget_gone();
    }

    /// Forgets those whose connections ended without a word.
    fn forget_gone(&mut self) {
        let links = &self.links;
        self.slots.retain(|id, slot| links.whose(*slot).is_some_and(|peer| peer.id == *id));
    }

    /// A connection has something: what it says, and whether it is over.
    pub(super) fn on_link(&mut self, slot: usize, poller: &Poller, events: &mut Vec<Event>) {
        let elsewhere = &self.elsewhere;
        let reading = self.links.read(slot, monotonic_ns(), poller, |peer, frame| {
            if peer.refused {
                Next::Go
            } else if !peer.known {
                greeted(peer, frame, elsewhere.as_ref())
            } else if let Ok(ToControl { body: Some(body) }) = ToControl::decode(frame) {
                events.push(Event::Message(peer.id, body));
                Next::Go
            } else {
                Next::Refuse("a message of it cannot be read".to_owned())
            }
        });
        if let Reading::Over(peer, over) = reading {
            self.slots.remove(&peer.id);
            events.extend(peer.known.then(|| is_over(peer.id, &over)));
        } else if let Some(peer) = self.links.whose_mut(slot)
            && let Some(refusal) = peer.refusal.take()
        {
            let id = peer.id;
            let is_over = matches!(refusal, from_control::Body::Refused(_));
            self.send(&[id], refusal);
            // Who is sent elsewhere goes by itself: a connection that is closed on what it still
            // says might lose the answer.
            if is_over {
                self.close(id);
            }
        }
    }

    /// Says something to peers, those that are there.
    pub(super) fn send(&mut self, to: &[PeerId], body: from_control::Body) {
        let bytes = FromControl::from(body).encode_to_vec();
        for slot in to.iter().filter_map(|id| self.slots.get(id)) {
            if let Err(error) = self.links.send(*slot, &[&bytes]) {
                tracing::error!(%error, "a message is too long to be sent");
            }
        }
    }

    /// Ends a connection once everything was sent.
    pub(super) fn close(&mut self, id: PeerId) {
        if let Some(slot) = self.slots.remove(&id) {
            self.links.close(slot);
        }
    }

    /// Writes what was said: those that are over.
    pub(super) fn flush(&mut self, poller: &Poller) -> Vec<Event> {
        let over = self.links.flush(monotonic_ns(), poller);
        for (peer, _) in &over {
            self.slots.remove(&peer.id);
        }
        over.iter().map(|(peer, over)| is_over(peer.id, over)).collect()
    }

    pub(super) fn on_time(&mut self, now: u64, poller: &Poller) {
        if self.next_wakeup().is_some_and(|at| now >= at) {
            self.links.on_time(now, poller);
            self.forget_gone();
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<u64> {
        self.links.next_wakeup()
    }
}

/// The connection of a peer is over: with it, or only with what was between.
fn is_over(id: PeerId, over: &Ended) -> Event {
    if over.silently { Event::Broken(id) } else { Event::Closed(id) }
}

/// What a peer says first.
fn greeted(peer: &mut Peer, frame: &[u8], elsewhere: Option<&Heads>) -> Next {
    match Hello::decode(frame) {
        Ok(hello) if hello.version != oxiray_wire::VERSION => {
            let text = other_version(hello.version);
            peer.refuse(from_control::Body::Refused(Text { text }));
            Next::Known
        }
        Ok(hello) if matches!(hello.purpose(), Purpose::Control | Purpose::Tool) => {
            match elsewhere.cloned() {
                Some(heads) => peer.refuse(from_control::Body::Standby(heads)),
                None => peer.known = true,
            }
            Next::Known
        }
        _ => Next::Refuse("it wants something that this service has not".to_owned()),
    }
}

fn other_version(theirs: u32) -> String {
    format!(
        "the control service speaks version {} of the protocol, and who connects version {theirs}: \
         install the same version of Oxiray on all machines",
        oxiray_wire::VERSION
    )
}
