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
use std::path::Path;

use oxiray_net::{Identity, Keyring, Links, Listener, Next, Reading, Secret, Security};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{
    BetweenNodes, FromControl, Hello, Join, NodeInfo, Purpose, ToControl, from_control, to_control,
};
use prost::Message;

use crate::poller::{Poller, Token};
use bridge::Bridge;
use transfer::Transfers;
use uplink::Uplink;

/// First byte of a frame between nodes: a message, or what one process says to another.
const MESSAGE: u8 = 0;
const PASSED: u8 = 1;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// It was accepted, and has not said.
    Stranger,
    /// Messages and frames of another node, or to it.
    Node(u32),
    /// The control service's.
    Control,
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
    listener: Listener,
    links: Links<Whose>,
    /// Over which connection we speak to a node.
    by_node: BTreeMap<u32, usize>,
    addresses: BTreeMap<u32, SocketAddr>,
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
        mut uplink: Uplink,
        bridge: Bridge,
        transfers: Transfers,
        poller: &Poller,
    ) -> io::Result<Self> {
        poller.add(&listener, Token::NetListener)?;
        poller.add(bridge.waker(), Token::Gateway)?;
        poller.add(transfers.bell(), Token::Transfers)?;
        let mut links = Links::new(security);
        uplink.attach(&mut links, poller)?;
        Ok(Self {
            number,
            host: listener.local_addr().ip().to_string(),
            listener,
            links,
            by_node: BTreeMap::new(),
            addresses: BTreeMap::new(),
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
        let theirs = self.links.iter().filter(|(_, whose)| **whose == Whose::Node(node));
        let theirs: Vec<usize> = theirs.map(|(slot, _)| slot).collect();
        for slot in theirs {
            self.links.end(slot, poller);
        }
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
        // Only a message that is too long, which none of ours is.
        if let Err(error) = self.links.send(slot, parts) {
            tracing::error!(%error, "a message to another node is lost");
        }
    }

    fn connect(&mut self, node: u32, poller: &Poller) -> io::Result<usize> {
        let unknown = || io::Error::other("the node is not a member");
        let address = *self.addresses.get(&node).ok_or_else(unknown)?;
        let mut hello =
            Hello { version: oxiray_wire::VERSION, node: self.number, to: node, purpose: 0 };
        hello.set_purpose(Purpose::Node);
        let hello = hello.encode_to_vec();
        let slot = self.links.connect(address, &hello, Whose::Node(node), poller)?;
        self.by_node.insert(node, slot);
        Ok(slot)
    }

    /// The address by which others know this node.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Says good-bye, so that nobody has to find out.
    pub(crate) fn leave(&mut self, reason: &str, poller: &Poller) {
        let text = oxiray_wire::control::Text { text: reason.to_owned() };
        self.tell_control(to_control::Body::Leave(text));
        self.uplink.finish(&mut self.links, poller);
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
        let security = Security::Tls(identity);
        self.links.set_security(security.clone());
        self.transfers.set_security(security);
        Ok(())
    }

    /// Says something to the control service.
    pub(crate) fn tell_control(&mut self, body: to_control::Body) {
        self.uplink.say(&ToControl::from(body), &mut self.links);
    }

    /// Connects with the control service anew.
    pub(crate) fn dial_control(&mut self, join: Join, poller: &Poller) {
        self.uplink.dial(join, &mut self.links, poller);
    }

    /// Somebody connects.
    pub(crate) fn on_listener(&mut self, poller: &Poller) {
        self.links.accept(&self.listener, monotonic_ns(), poller, |_| Whose::Stranger);
    }

    /// A connection has something; what came goes to `incoming`.
    pub(crate) fn on_link(&mut self, slot: usize, poller: &Poller, incoming: &mut Vec<Incoming>) {
        let number = self.number;
        let reading = self.links.read(slot, monotonic_ns(), poller, |whose, frame| match *whose {
            Whose::Stranger => match greeted(frame, number) {
                Ok(Greeting::Node(node)) => {
                    *whose = Whose::Node(node);
                    Next::Known
                }
                Ok(Greeting::Data) => Next::HandOver,
                Err(why) => Next::Refuse(why.to_owned()),
            },
            Whose::Node(node) => match said(node, frame) {
                Some(said) => {
                    incoming.push(said);
                    Next::Go
                }
                None => Next::Refuse("a message of it cannot be read".to_owned()),
            },
            Whose::Control => {
                if let Ok(FromControl { body: Some(body) }) = FromControl::decode(frame) {
                    incoming.push(Incoming::Control(Box::new(body)));
                }
                Next::Go
            }
        });
        match reading {
            Reading::Stays => {}
            Reading::HandedOver(link, _) => self.transfers.serve(link),
            Reading::Over(whose, why) => self.on_over(whose, why, poller, incoming),
        }
    }

    fn on_over(
        &mut self,
        whose: Whose,
        why: String,
        poller: &Poller,
        incoming: &mut Vec<Incoming>,
    ) {
        match whose {
            Whose::Stranger => {}
            Whose::Node(node) => {
                self.disconnect(node, poller);
                incoming.push(Incoming::Lost(node, why));
            }
            Whose::Control => {
                self.uplink.on_lost();
                incoming.push(Incoming::ControlLost(why));
            }
        }
    }

    /// Writes what was said since the last time, and says what failed.
    pub(crate) fn flush(&mut self, poller: &Poller, incoming: &mut Vec<Incoming>) {
        for (whose, why) in self.links.flush(monotonic_ns(), poller) {
            self.on_over(whose, why, poller, incoming);
        }
        let lost = std::mem::take(&mut self.lost).into_iter();
        incoming.extend(lost.map(|(node, why)| Incoming::Lost(node, why)));
        incoming.extend(self.uplink.not_made().map(Incoming::ControlLost));
    }

    /// Ends connections that do not say who they are.
    pub(crate) fn on_time(&mut self, now: u64, poller: &Poller) {
        self.links.on_time(now, poller);
    }

    /// When [`Self::on_time`] is due.
    pub(crate) fn next_wakeup(&self) -> Option<u64> {
        self.links.next_wakeup()
    }
}

/// What somebody who connects wants.
enum Greeting {
    /// To speak for this node.
    Node(u32),
    /// To read objects.
    Data,
}

fn greeted(frame: &[u8], number: u32) -> Result<Greeting, &'static str> {
    match Hello::decode(frame) {
        Ok(hello) if hello.version != oxiray_wire::VERSION => Err("it is of another version"),
        Ok(hello) if hello.to != number => Err("it looks for another node"),
        Ok(hello) => match hello.purpose() {
            Purpose::Node => Ok(Greeting::Node(hello.node)),
            Purpose::Data => Ok(Greeting::Data),
            Purpose::Control | Purpose::Tool => Err("it wants another service"),
        },
        Err(_) => Err("it did not say what it wants"),
    }
}

/// What another node says; none: it cannot be read.
fn said(node: u32, frame: &[u8]) -> Option<Incoming> {
    match frame.split_first()? {
        (&MESSAGE, message) => {
            let message = BetweenNodes::decode(message).ok()?;
            Some(Incoming::Said(node, Box::new(message)))
        }
        (&PASSED, rest) => {
            let (from, rest) = rest.split_first_chunk::<8>()?;
            let (to, rest) = rest.split_first_chunk::<8>()?;
            let (from, to) = (u64::from_le_bytes(*from), u64::from_le_bytes(*to));
            Some(Incoming::Passed(from, to, rest.to_vec()))
        }
        _ => None,
    }
}
