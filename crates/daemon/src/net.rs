//! A node's connections to other machines: nodes, and the control service.
//!
//! - `bridge`: channels whose other end is a process of another node
//! - `transfer`: bytes of objects, by threads of their own
//! - `uplink`: the connection with the control service
//!
//! A connection to another node is made when there is something to say to it. What
//! this side says goes over one connection, in order; what the other side says may
//! come over another that it made.

pub(crate) mod bridge;
pub(crate) mod transfer;
pub(crate) mod uplink;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;

use oxiray_net::{
    Doorkeeper, Identity, Keyring, Link, LinkError, Listener, Progress, Secret, Security,
};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{
    BetweenNodes, Hello, Join, NodeInfo, Purpose, ToControl, from_control, to_control,
};
use prost::Message;
use slab::Slab;

use crate::poller::{Poller, Token};
use bridge::Bridge;
use transfer::Transfers;
use uplink::Uplink;

/// First byte of a frame between nodes: a message, or what one process says to another.
const MESSAGE: u8 = 0;
const PASSED: u8 = 1;

/// A connection, and what it is for.
struct Connected {
    link: Link,
    /// The node at the other end, once that is known.
    node: Option<u32>,
    accepted: bool,
    dirty: bool,
    writes: bool,
}

/// What came in.
pub(crate) enum Incoming {
    /// A message of another node.
    Said(u32, Box<BetweenNodes>),
    /// What a process of another node says to one of ours: both, and the frame.
    Passed(u64, u64, Vec<u8>),
    /// The connection with a node is over.
    Lost(u32, String),
    /// A message of the control service.
    Control(Box<from_control::Body>),
    /// The connection with the control service is over, or could not be made.
    ControlLost(String),
}

/// Everything a node does with the network.
pub(crate) struct Net {
    pub(crate) number: u32,
    host: String,
    security: Security,
    listener: Listener,
    links: Slab<Connected>,
    /// Over which connection we speak to a node.
    by_node: BTreeMap<u32, usize>,
    addresses: BTreeMap<u32, SocketAddr>,
    doorkeeper: Doorkeeper<usize>,
    dirty: Vec<usize>,
    /// What failed while something was being said.
    lost: Vec<(u32, String)>,
    uplink: Uplink,
    pub(crate) bridge: Bridge,
    pub(crate) transfers: Transfers,
}

impl Net {
    pub(crate) fn new(
        number: u32,
        security: Security,
        listener: Listener,
        uplink: Uplink,
        bridge: Bridge,
        transfers: Transfers,
        poller: &Poller,
    ) -> io::Result<Self> {
        poller.add(&listener, Token::NetListener)?;
        uplink.watch(poller)?;
        poller.add(bridge.waker(), Token::Gateway)?;
        poller.add(transfers.bell(), Token::Transfers)?;
        Ok(Self {
            number,
            host: listener.local_addr().ip().to_string(),
            security,
            listener,
            links: Slab::new(),
            by_node: BTreeMap::new(),
            addresses: BTreeMap::new(),
            doorkeeper: Doorkeeper::default(),
            dirty: Vec::new(),
            lost: Vec::new(),
            uplink,
            bridge,
            transfers,
        })
    }

    /// A node is there from now on.
    pub(crate) fn add_node(&mut self, info: &NodeInfo) {
        match info.address.parse() {
            Ok(address) => {
                self.addresses.insert(info.number, address);
                self.transfers.add_node(info.number, address);
            }
            Err(_) => tracing::warn!(address = info.address, "not an address of a node"),
        }
    }

    /// A node is gone.
    pub(crate) fn remove_node(&mut self, node: u32, poller: &Poller) {
        self.addresses.remove(&node);
        self.transfers.remove_node(node);
        self.disconnect(node, poller);
    }

    /// Ends every connection with a node.
    fn disconnect(&mut self, node: u32, poller: &Poller) {
        self.by_node.remove(&node);
        let theirs: Vec<usize> = self
            .links
            .iter()
            .filter(|(_, connected)| connected.node == Some(node))
            .map(|(slot, _)| slot)
            .collect();
        for slot in theirs {
            self.drop_link(slot, poller);
        }
    }

    fn drop_link(&mut self, slot: usize, poller: &Poller) -> Option<Connected> {
        let connected = self.links.try_remove(slot)?;
        poller.remove(connected.link.as_fd());
        if let Some(node) = connected.node
            && self.by_node.get(&node) == Some(&slot)
        {
            self.by_node.remove(&node);
        }
        Some(connected)
    }

    /// Says something to another node.
    pub(crate) fn tell_peer(&mut self, node: u32, message: &BetweenNodes, poller: &Poller) {
        let bytes = message.encode_to_vec();
        self.say(node, &[&[MESSAGE], &bytes], poller);
    }

    /// Passes on what one of our processes says to one of another node.
    pub(crate) fn pass(&mut self, from: u64, to: u64, frame: &[u8], poller: &Poller) {
        let parts = [&[PASSED][..], &from.to_le_bytes(), &to.to_le_bytes(), frame];
        self.say((to >> 32) as u32, &parts, poller);
    }

    fn say(&mut self, node: u32, parts: &[&[u8]], poller: &Poller) {
        let slot = match self.by_node.get(&node) {
            Some(&slot) => slot,
            None => match self.connect(node, poller) {
                Ok(slot) => slot,
                Err(error) => return self.lost.push((node, error.to_string())),
            },
        };
        let connected = &mut self.links[slot];
        if let Err(error) = connected.link.send(parts) {
            // Only a message that is too long, which none of ours is.
            return tracing::error!(%error, "a message to another node is lost");
        }
        if !connected.dirty {
            connected.dirty = true;
            self.dirty.push(slot);
        }
    }

    fn connect(&mut self, node: u32, poller: &Poller) -> io::Result<usize> {
        let unknown = || io::Error::other("the node is not a member");
        let address = *self.addresses.get(&node).ok_or_else(unknown)?;
        let mut link = Link::connect(address, &self.security)?;
        let mut hello =
            Hello { version: oxiray_wire::VERSION, node: self.number, to: node, purpose: 0 };
        hello.set_purpose(Purpose::Node);
        link.send(&[&hello.encode_to_vec()]).map_err(io::Error::other)?;
        let entry = self.links.vacant_entry();
        let slot = entry.key();
        poller.add(link.as_fd(), Token::NetLink(slot))?;
        poller.want_write(link.as_fd(), Token::NetLink(slot), true);
        entry.insert(Connected {
            link,
            node: Some(node),
            accepted: false,
            dirty: false,
            writes: true,
        });
        self.by_node.insert(node, slot);
        Ok(slot)
    }

    /// The address by which others know this node.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Says good-bye, so that nobody has to find out.
    pub(crate) fn leave(&mut self, reason: &str) {
        let text = oxiray_wire::control::Text { text: reason.to_owned() };
        self.tell_control(to_control::Body::Leave(text));
        self.uplink.finish();
    }

    /// Uses new tokens for connections from now on, and keeps them.
    pub(crate) fn change_tokens(&mut self, tokens: &[String], path: &Path) -> Result<(), String> {
        let mut secrets = tokens.iter().map(|token| Secret::parse(token));
        let current = secrets.next().ok_or("no token")?.map_err(|error| error.to_string())?;
        let mut keyring = Keyring::new(current);
        for secret in secrets {
            keyring.previous.push(secret.map_err(|error| error.to_string())?);
        }
        keyring.save(path).map_err(|error| error.to_string())?;
        let identity = Identity::new(&keyring).map_err(|error| error.to_string())?;
        self.security = Security::Tls(identity);
        self.transfers.set_security(self.security.clone());
        Ok(())
    }

    /// Says something to the control service.
    pub(crate) fn tell_control(&mut self, body: to_control::Body) {
        self.uplink.say(&ToControl::from(body));
    }

    /// Connects with the control service anew.
    pub(crate) fn dial_control(&mut self, join: Join, poller: &Poller) {
        self.uplink.dial(join, &self.security, poller);
    }

    /// The control service says something, or is gone.
    pub(crate) fn on_control(&mut self, poller: &Poller, incoming: &mut Vec<Incoming>) {
        self.uplink.on_ready(poller, incoming);
    }

    /// Somebody connects.
    pub(crate) fn on_listener(&mut self, poller: &Poller) {
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
            entry.insert(Connected {
                link,
                node: None,
                accepted: true,
                dirty: false,
                writes: false,
            });
            if let Some(dropped) = self.doorkeeper.admitted(slot, address.ip(), now) {
                self.drop_link(dropped, poller);
            }
        }
    }

    /// A connection has something; what came goes to `incoming`.
    pub(crate) fn on_link(&mut self, slot: usize, poller: &Poller, incoming: &mut Vec<Incoming>) {
        let Some(connected) = self.links.get_mut(slot) else {
            return;
        };
        let Connected { link, node, accepted, .. } = connected;
        let number = self.number;
        let (was_unknown, mut refused, mut is_data) = (node.is_none(), None, false);
        let progress = link.on_ready(&mut |frame| {
            let Some(from) = *node else {
                match Hello::decode(frame) {
                    Ok(hello) if hello.version != oxiray_wire::VERSION => {
                        refused = Some("it is of another version");
                    }
                    Ok(hello) if hello.to != number => refused = Some("it looks for another node"),
                    Ok(hello) => match hello.purpose() {
                        Purpose::Node => *node = Some(hello.node),
                        Purpose::Data => is_data = true,
                        Purpose::Control | Purpose::Tool => {
                            refused = Some("it wants another service")
                        }
                    },
                    Err(_) => refused = Some("it did not say what it wants"),
                }
                return match refused.is_some() || is_data {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
            };
            match frame.split_first() {
                Some((&MESSAGE, message)) => match BetweenNodes::decode(message) {
                    Ok(message) => incoming.push(Incoming::Said(from, Box::new(message))),
                    Err(_) => refused = Some("a message of it cannot be read"),
                },
                Some((&PASSED, rest)) if rest.len() >= 16 => {
                    let word = |at: usize| {
                        u64::from_le_bytes(rest[at..at + 8].try_into().expect("eight bytes"))
                    };
                    incoming.push(Incoming::Passed(word(0), word(8), rest[16..].to_vec()));
                }
                _ => refused = Some("a message of it cannot be read"),
            }
            match refused {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        let (accepted, known) = (*accepted, *node);
        if accepted && was_unknown && (known.is_some() || is_data) {
            self.doorkeeper.authenticated(slot);
        }
        let over = match (progress, refused) {
            (Ok(Progress::Stopped), None) if is_data => {
                if let Some(connected) = self.drop_link(slot, poller) {
                    self.transfers.serve(connected.link);
                }
                return;
            }
            (_, Some(why)) => Some(why.to_owned()),
            (Err(error), None) => Some(describe(&error)),
            (Ok(_), None) => None,
        };
        match over {
            Some(why) => self.end_link(slot, why, poller, incoming),
            None => self.mind_writing(slot, poller),
        }
    }

    fn end_link(
        &mut self,
        slot: usize,
        why: String,
        poller: &Poller,
        incoming: &mut Vec<Incoming>,
    ) {
        self.doorkeeper.gone(slot, &why, monotonic_ns());
        if let Some(Connected { node: Some(node), .. }) = self.drop_link(slot, poller) {
            self.disconnect(node, poller);
            incoming.push(Incoming::Lost(node, why));
        }
    }

    fn mind_writing(&mut self, slot: usize, poller: &Poller) {
        let connected = &mut self.links[slot];
        let wants = connected.link.wants_write();
        if wants != connected.writes {
            connected.writes = wants;
            poller.want_write(connected.link.as_fd(), Token::NetLink(slot), wants);
        }
    }

    /// Writes what was said since the last time, and says what failed.
    pub(crate) fn flush(&mut self, poller: &Poller, incoming: &mut Vec<Incoming>) {
        self.uplink.flush(poller, incoming);
        for slot in std::mem::take(&mut self.dirty) {
            let Some(connected) = self.links.get_mut(slot) else {
                continue;
            };
            connected.dirty = false;
            match connected.link.flush() {
                Ok(()) => self.mind_writing(slot, poller),
                Err(error) => self.end_link(slot, describe(&error), poller, incoming),
            }
        }
        for (node, why) in std::mem::take(&mut self.lost) {
            incoming.push(Incoming::Lost(node, why));
        }
    }

    /// Ends connections that do not say who they are.
    pub(crate) fn on_time(&mut self, now: u64, poller: &Poller) {
        for slot in self.doorkeeper.expired(now) {
            self.drop_link(slot, poller);
        }
    }

    /// When [`Self::on_time`] is due.
    pub(crate) fn next_wakeup(&self) -> Option<u64> {
        self.doorkeeper.next_wakeup()
    }
}

fn describe(error: &LinkError) -> String {
    error.to_string()
}
