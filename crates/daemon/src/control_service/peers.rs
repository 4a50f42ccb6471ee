//! The connections of the control service: nodes, and tools.

use std::collections::HashMap;

use oxiray_control::{Event, PeerId};
use oxiray_net::{Links, Listener, Next, Reading, Security};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{FromControl, Hello, Purpose, ToControl, from_control};
use oxiray_wire::control::Text;
use prost::Message;

use crate::poller::Poller;

/// What is known of a connection.
struct Peer {
    id: PeerId,
    /// It has said what it is.
    known: bool,
    /// Why it is not spoken with: it is to hear that.
    refusal: Option<String>,
}

/// All connections.
pub(super) struct Peers {
    listener: Listener,
    links: Links<Peer>,
    slots: HashMap<PeerId, usize>,
    last_id: u64,
}

impl Peers {
    pub(super) fn new(security: Security, listener: Listener) -> Self {
        Self { listener, links: Links::new(security), slots: HashMap::new(), last_id: 0 }
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
            Peer { id, known: false, refusal: None }
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
        let reading = self.links.read(slot, monotonic_ns(), poller, |peer, frame| {
            if peer.refusal.is_some() {
                Next::Go
            } else if !peer.known {
                greeted(peer, frame)
            } else if let Ok(ToControl { body: Some(body) }) = ToControl::decode(frame) {
                events.push(Event::Message(peer.id, body));
                Next::Go
            } else {
                Next::Refuse("a message of it cannot be read".to_owned())
            }
        });
        if let Reading::Over(peer, _) = reading {
            self.slots.remove(&peer.id);
            events.extend(peer.known.then_some(Event::Closed(peer.id)));
        } else if let Some(peer) = self.links.whose(slot)
            && let Some(text) = peer.refusal.clone()
        {
            let id = peer.id;
            self.send(&[id], from_control::Body::Refused(Text { text }));
            self.close(id);
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
    pub(super) fn flush(&mut self, poller: &Poller) -> Vec<PeerId> {
        let over: Vec<PeerId> =
            self.links.flush(monotonic_ns(), poller).into_iter().map(|(peer, _)| peer.id).collect();
        for id in &over {
            self.slots.remove(id);
        }
        over
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

/// What a peer says first.
fn greeted(peer: &mut Peer, frame: &[u8]) -> Next {
    match Hello::decode(frame) {
        Ok(hello) if hello.version != oxiray_wire::VERSION => {
            peer.refusal = Some(other_version(hello.version));
            Next::Known
        }
        Ok(hello) if matches!(hello.purpose(), Purpose::Control | Purpose::Tool) => {
            peer.known = true;
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
