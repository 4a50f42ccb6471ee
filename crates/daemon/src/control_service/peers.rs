//! The connections of the control service: nodes, and tools.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use oxiray_control::{Event, PeerId};
use oxiray_net::{Doorkeeper, Link, Listener, Security};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{FromControl, Hello, Purpose, ToControl, from_control};
use oxiray_wire::control::Text;
use prost::Message;
use slab::Slab;

use crate::poller::{Poller, Token};

/// Frames handed on in one go: a node that says much must not keep others waiting.
const MOST_AT_ONCE: usize = 1000;

struct Peer {
    link: Link,
    id: PeerId,
    /// It has said what it is.
    known: bool,
    /// Closed once everything was sent.
    closing: bool,
    dirty: bool,
    writes: bool,
}

/// All connections.
pub(super) struct Peers {
    security: Security,
    listener: Listener,
    links: Slab<Peer>,
    by_id: HashMap<PeerId, usize>,
    last_id: u64,
    doorkeeper: Doorkeeper<usize>,
    dirty: Vec<usize>,
}

impl Peers {
    pub(super) fn new(security: Security, listener: Listener) -> Self {
        Self {
            security,
            listener,
            links: Slab::new(),
            by_id: HashMap::new(),
            last_id: 0,
            doorkeeper: Doorkeeper::default(),
            dirty: Vec::new(),
        }
    }

    /// Connections from now on are protected by this.
    pub(super) fn set_security(&mut self, security: Security) {
        self.security = security;
    }

    pub(super) fn on_listener(&mut self, poller: &Poller) {
        let now = monotonic_ns();
        while let Ok(Some((stream, address))) = self.listener.accept() {
            let Ok(link) = Link::accept(stream, &self.security) else {
                continue;
            };
            let entry = self.links.vacant_entry();
            let slot = entry.key();
            if poller.add(link.as_fd(), Token::NetLink(slot)).is_err() {
                continue;
            }
            self.last_id += 1;
            let id = PeerId(self.last_id);
            let (known, closing, dirty, writes) = (false, false, false, false);
            entry.insert(Peer { link, id, known, closing, dirty, writes });
            self.by_id.insert(id, slot);
            if let Some(dropped) = self.doorkeeper.admitted(slot, address.ip(), now) {
                self.drop_link(dropped, poller);
            }
        }
    }

    fn drop_link(&mut self, slot: usize, poller: &Poller) -> Option<Peer> {
        let peer = self.links.try_remove(slot)?;
        poller.remove(peer.link.as_fd());
        self.by_id.remove(&peer.id);
        Some(peer)
    }

    /// A connection has something: what it says, and whether it is over.
    pub(super) fn on_link(&mut self, slot: usize, poller: &Poller, events: &mut Vec<Event>) {
        let Some(peer) = self.links.get_mut(slot) else {
            return;
        };
        let Peer { link, id, known, closing, .. } = peer;
        let was_known = *known;
        let mut refusal = None;
        let mut bad = None;
        let mut count = 0;
        let progress = link.on_ready(&mut |frame| {
            count += 1;
            if *closing {
                return ControlFlow::Continue(());
            }
            if !*known {
                match Hello::decode(frame) {
                    Ok(hello) if hello.version != oxiray_wire::VERSION => {
                        refusal = Some(other_version(hello.version));
                    }
                    Ok(hello) if matches!(hello.purpose(), Purpose::Control | Purpose::Tool) => {
                        *known = true;
                    }
                    _ => bad = Some("it wants something that this service has not"),
                }
            } else if let Ok(ToControl { body: Some(body) }) = ToControl::decode(frame) {
                events.push(Event::Message(*id, body));
            } else {
                bad = Some("a message of it cannot be read");
            }
            match bad.is_some() || refusal.is_some() || count >= MOST_AT_ONCE {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        let (id, now_known) = (*id, *known);
        if !was_known && now_known {
            self.doorkeeper.authenticated(slot);
        }
        if let Some(text) = refusal {
            self.doorkeeper.authenticated(slot);
            self.send(&[id], from_control::Body::Refused(Text { text }));
            return self.close(id);
        }
        let over = match (progress, bad) {
            (_, Some(why)) => Some(why.to_owned()),
            (Err(error), None) => Some(error.to_string()),
            (Ok(oxiray_net::Progress::Stopped), None) => {
                // More is here already, of which the socket knows nothing.
                return self.on_link(slot, poller, events);
            }
            (Ok(_), None) => None,
        };
        match over {
            Some(why) => {
                self.doorkeeper.gone(slot, &why, monotonic_ns());
                self.drop_link(slot, poller);
                if now_known {
                    events.push(Event::Closed(id));
                }
            }
            None => self.mind_writing(slot, poller),
        }
    }

    fn mind_writing(&mut self, slot: usize, poller: &Poller) {
        let peer = &mut self.links[slot];
        let wants = peer.link.wants_write();
        if wants != peer.writes {
            peer.writes = wants;
            poller.want_write(peer.link.as_fd(), Token::NetLink(slot), wants);
        }
    }

    /// Says something to peers, those that are there.
    pub(super) fn send(&mut self, to: &[PeerId], body: from_control::Body) {
        let bytes = FromControl::from(body).encode_to_vec();
        for id in to {
            let Some(&slot) = self.by_id.get(id) else {
                continue;
            };
            if let Err(error) = self.links[slot].link.send(&[&bytes]) {
                tracing::error!(%error, "a message is too long to be sent");
            }
            self.soil(slot);
        }
    }

    /// Ends a connection once everything was sent.
    pub(super) fn close(&mut self, id: PeerId) {
        if let Some(&slot) = self.by_id.get(&id) {
            self.links[slot].closing = true;
            self.soil(slot);
        }
    }

    fn soil(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.links[slot].dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// Writes what was said: those that are over.
    pub(super) fn flush(&mut self, poller: &Poller) -> Vec<PeerId> {
        let mut over = Vec::new();
        for slot in std::mem::take(&mut self.dirty) {
            let Some(peer) = self.links.get_mut(slot) else {
                continue;
            };
            peer.dirty = false;
            let failed = peer.link.flush().is_err();
            if failed || (peer.closing && peer.link.queued() == 0) {
                if !peer.closing {
                    over.push(peer.id);
                }
                self.drop_link(slot, poller);
            } else if peer.closing {
                self.soil(slot);
                self.mind_writing(slot, poller);
            } else {
                self.mind_writing(slot, poller);
            }
        }
        over
    }

    pub(super) fn on_time(&mut self, now: u64, poller: &Poller) {
        for slot in self.doorkeeper.expired(now) {
            self.drop_link(slot, poller);
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<u64> {
        self.doorkeeper.next_wakeup()
    }
}

fn other_version(theirs: u32) -> String {
    format!(
        "the control service speaks version {} of the protocol, and who connects version {theirs}: \
         install the same version of Oxiray on all machines",
        oxiray_wire::VERSION
    )
}
