//! A node's connections to other machines: nodes, and the control service.
//!
//! - `bridge`: channels whose other end is a process of another node
//! - `transfer`: bytes of objects, by threads of their own
//! - `uplink`, `heads`: the connection with the control service, and which one that is
//! - `peers`: what is said to other nodes, whichever way leads there
//! - `relay`: what others say to each other through this one
//!
//! A connection to another node is made when there is something to say to it. What
//! this side says goes over one connection, in order; what the other side says may
//! come over another that it made.

pub(crate) mod bridge;
mod heads;
mod peers;
mod relay;
pub(crate) mod transfer;
pub(crate) mod uplink;

use std::io;
use std::path::Path;

use oxiray_net::{
    Cursor, Ended, Identity, Keyring, Links, Listener, Next, Reading, Receipt, Secret, Security,
    Way,
};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{
    BetweenNodes, FromControl, Hello, Join, NodeInfo, Purpose, ToControl, from_control, to_control,
};
use prost::Message;

use crate::poller::{Poller, Token};
use bridge::Bridge;
use peers::{Peers, Wires};
use transfer::Transfers;
use uplink::Uplink;

/// First byte of a frame between nodes: a message, or what one process says to another.
const MESSAGE: u8 = 0;
const PASSED: u8 = 1;
/// Or what the conversation needs: where it goes on, how far it was heard, and the question.
const OPENING: u8 = 2;
const RECEIPT: u8 = 3;
const ASKED: u8 = 4;
/// The other connection of a relay that has none yet.
const UNLED: usize = usize::MAX;

/// What a connection is for.
#[derive(Clone, PartialEq, Debug)]
enum Whose {
    /// It was accepted, and has not said.
    Stranger,
    /// What another node says, and how far that is, once it has said.
    From(u32, Option<Cursor>),
    /// What is said to another node.
    To(u32),
    /// The same, once it is known to work.
    Trial(u32),
    /// Between two other nodes: the connection with the other of the two.
    Relay(usize),
    /// Bytes of another node's objects, for who has said this.
    Bytes(Hello),
    /// The control service's.
    Control,
}

impl Whose {
    /// The node at its other end.
    fn node(&self) -> Option<u32> {
        match self {
            Self::From(node, _) | Self::To(node) | Self::Trial(node) => Some(*node),
            Self::Stranger | Self::Relay(_) | Self::Bytes(_) | Self::Control => None,
        }
    }
}

/// What came in.
pub(crate) enum Incoming {
    /// A message of another node.
    Said(u32, Box<BetweenNodes>),
    /// What a process of another node says to one of ours: both, and the frame.
    Passed(u64, u64, Vec<u8>),
    /// What was between this node and another is over: some of it is lost.
    Lost(u32, String),
    /// No way leads to a node at the moment;
    Away(u32),
    /// one does again;
    Back(u32),
    /// none does for so long that it is not worth waiting for, if the node lives.
    Unreached(u32),
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
    peers: Peers,
    /// What came while something was being said.
    came: Vec<Incoming>,
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
            peers: Peers::new(number),
            came: Vec::new(),
            uplink,
            bridge,
            transfers,
        })
    }

    /// A node is there from now on.
    pub(crate) fn add_node(&mut self, info: &NodeInfo) {
        match info.address.parse() {
            Ok(address) => {
                self.peers.add(info.number, address, info.is_head);
                let reached_at = self.peers.reached_at(info.number).unwrap_or(address);
                self.transfers.add_node(info.number, reached_at);
            }
            Err(_) => tracing::warn!(address = info.address, "not an address of a node"),
        }
    }

    /// A node is gone.
    pub(crate) fn remove_node(&mut self, node: u32, poller: &Poller) {
        self.transfers.remove_node(node);
        let (peers, mut wires) = self.wires(poller);
        peers.remove(node, &mut wires);
    }

    fn wires<'a>(&'a mut self, poller: &'a Poller) -> (&'a mut Peers, Wires<'a>) {
        let (links, incoming) = (&mut self.links, &mut self.came);
        (&mut self.peers, Wires { links, poller, incoming, now: monotonic_ns() })
    }

    /// Says something to another node.
    pub(crate) fn tell_peer(&mut self, node: u32, message: &BetweenNodes, poller: &Poller) {
        let bytes = message.encode_to_vec();
        let (peers, mut wires) = self.wires(poller);
        peers.say(node, &[&[MESSAGE], &bytes], &mut wires);
    }

    /// Passes on what one of our processes says to one of another node.
    pub(crate) fn pass(&mut self, from: u64, to: u64, frame: &[u8], poller: &Poller) {
        let parts = [&[PASSED][..], &from.to_le_bytes(), &to.to_le_bytes(), frame];
        let (peers, mut wires) = self.wires(poller);
        peers.say((to >> 32) as u32, &parts, &mut wires);
    }

    /// Ends what is between this node and one that it does not reach; whether there was anything.
    pub(crate) fn part_from(&mut self, node: u32, poller: &Poller) -> bool {
        let (peers, mut wires) = self.wires(poller);
        peers.end(node, &mut wires)
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

    /// The control service that is connected is the one: all that may be, the one first.
    pub(crate) fn settle_heads(&mut self, all: &[String]) -> Vec<String> {
        self.uplink.settle(all)
    }

    /// Somebody connects.
    pub(crate) fn on_listener(&mut self, poller: &Poller) {
        self.links.accept(&self.listener, monotonic_ns(), poller, |_| Whose::Stranger);
    }

    /// A connection has something; what came goes to `incoming`.
    pub(crate) fn on_link(&mut self, slot: usize, poller: &Poller, incoming: &mut Vec<Incoming>) {
        let (number, peers, came) = (self.number, &mut self.peers, &mut self.came);
        // What is to be answered, and passed on, once the connection was read.
        let (mut answers, mut receipts, mut onward) = (Answers::default(), Vec::new(), Vec::new());
        let reading = self.links.read(slot, monotonic_ns(), poller, |whose, frame| match whose {
            Whose::Stranger => match greeted(frame, number) {
                Ok((next, is_for)) => {
                    if is_for == Whose::Relay(UNLED) {
                        onward.push(frame.to_vec());
                    }
                    *whose = is_for;
                    next
                }
                Err(why) => Next::Refuse(why.to_owned()),
            },
            Whose::From(node, cursor) => match heard(*node, cursor, frame, peers, came) {
                Some(more) => {
                    answers.add(*node, more);
                    Next::Go
                }
                None => Next::Refuse("a message of it cannot be read".to_owned()),
            },
            Whose::To(node) | Whose::Trial(node) => match numbers(frame) {
                Some((RECEIPT, epoch, heard)) => {
                    receipts.push((*node, Receipt { epoch, heard }));
                    Next::Go
                }
                _ => Next::Refuse("a message of it cannot be read".to_owned()),
            },
            Whose::Relay(_) => {
                onward.push(frame.to_vec());
                Next::Go
            }
            Whose::Bytes(_) => Next::Go,
            Whose::Control => {
                if let Ok(FromControl { body: Some(body) }) = FromControl::decode(frame) {
                    came.push(Incoming::Control(Box::new(body)));
                }
                Next::Go
            }
        });
        self.answer(slot, &answers, poller);
        for (node, receipt) in receipts {
            self.on_receipt(node, slot, receipt, poller);
        }
        if !onward.is_empty() {
            self.pass_onward(slot, &onward, poller);
        }
        match reading {
            Reading::Stays => {}
            Reading::HandedOver(link, Whose::Bytes(hello)) if hello.to != number => {
                self.pass_bytes(link, hello);
            }
            Reading::HandedOver(link, _) => self.transfers.serve(link),
            Reading::Over(whose, over) => self.on_over(whose, over, poller),
        }
        incoming.append(&mut self.came);
    }

    /// Says how far a node was heard, and begins anew where it has.
    fn answer(&mut self, slot: usize, answers: &Answers, poller: &Poller) {
        let (peers, mut wires) = self.wires(poller);
        if let Some(node) = answers.anew {
            peers.reopen(node, &mut wires);
        }
        if let Some(node) = answers.receipt_to {
            let Receipt { epoch, heard } = peers.receipt(node);
            let parts = [&[RECEIPT][..], &epoch.to_le_bytes(), &heard.to_le_bytes()];
            peers::send(wires.links, slot, &parts);
        }
    }

    fn on_receipt(&mut self, node: u32, slot: usize, receipt: Receipt, poller: &Poller) {
        let (peers, mut wires) = self.wires(poller);
        let Some(way) = peers.on_receipt((node, slot), receipt, &mut wires) else {
            return;
        };
        match way {
            Way::Straight => tracing::info!(node, "a node is reached straight"),
            Way::Through(other) => {
                tracing::warn!(node, other, "a node is reached through another alone");
            }
        }
        if let Some(address) = self.peers.reached_at(node) {
            self.transfers.lead(node, address);
        }
    }

    fn on_over(&mut self, whose: Whose, over: Ended, poller: &Poller) {
        match whose {
            Whose::Relay(other) => self.end_relay(other),
            Whose::Control => {
                self.uplink.on_lost();
                self.came.push(Incoming::ControlLost(over.why));
            }
            Whose::Stranger | Whose::Bytes(_) => {}
            Whose::From(..) | Whose::To(_) | Whose::Trial(_) => {
                tracing::info!(?whose, why = over.why, "a connection with a node is over");
                let (peers, mut wires) = self.wires(poller);
                peers.on_over(&whose, over.silently, &mut wires);
            }
        }
    }

    /// Writes what was said since the last time, and says what failed.
    pub(crate) fn flush(&mut self, poller: &Poller, incoming: &mut Vec<Incoming>) {
        for (whose, over) in self.links.flush(monotonic_ns(), poller) {
            self.on_over(whose, over, poller);
        }
        incoming.append(&mut self.came);
        incoming.extend(self.uplink.not_made().map(Incoming::ControlLost));
    }

    /// Ends connections that do not say who they are, and looks for ways to nodes.
    pub(crate) fn on_time(&mut self, now: u64, poller: &Poller, incoming: &mut Vec<Incoming>) {
        self.links.on_time(now, poller);
        let (peers, mut wires) = self.wires(poller);
        peers.on_time(&mut wires);
        incoming.append(&mut self.came);
    }

    /// When [`Self::on_time`] is due.
    pub(crate) fn next_wakeup(&self) -> Option<u64> {
        self.links.next_wakeup().into_iter().chain(self.peers.next_wakeup()).min()
    }
}

/// What a node is to be told that has said something.
#[derive(Default)]
struct Answers {
    receipt_to: Option<u32>,
    /// It has begun anew.
    anew: Option<u32>,
}

/// What follows from a frame.
#[derive(Default)]
struct More {
    receipt: bool,
    anew: bool,
}

impl Answers {
    fn add(&mut self, node: u32, more: More) {
        self.receipt_to = self.receipt_to.or(more.receipt.then_some(node));
        self.anew = self.anew.or(more.anew.then_some(node));
    }
}

/// What another node says is taken in; `None`: it cannot be read.
fn heard(
    node: u32,
    cursor: &mut Option<Cursor>,
    frame: &[u8],
    peers: &mut Peers,
    incoming: &mut Vec<Incoming>,
) -> Option<More> {
    match *frame.first()? {
        OPENING => {
            let (_, epoch, next) = numbers(frame)?;
            let opening = Cursor { epoch, next };
            *cursor = Some(opening);
            Some(More { receipt: true, anew: peers.on_opening(node, opening, incoming) })
        }
        ASKED => Some(More { receipt: true, anew: false }),
        _ => {
            let said = said(node, frame)?;
            let (is_new, receipt) = peers.hear(node, cursor.as_mut()?, frame.len());
            incoming.extend(is_new.then_some(said));
            Some(More { receipt, anew: false })
        }
    }
}

/// The kind of a frame that is nothing but two numbers, and these.
fn numbers(frame: &[u8]) -> Option<(u8, u64, u64)> {
    let (kind, rest) = frame.split_first()?;
    let (first, rest) = rest.split_first_chunk::<8>()?;
    let (second, rest) = rest.split_first_chunk::<8>()?;
    rest.is_empty().then(|| (*kind, u64::from_le_bytes(*first), u64::from_le_bytes(*second)))
}

/// What somebody who connects wants: to speak, to read objects, or to reach another node.
fn greeted(frame: &[u8], number: u32) -> Result<(Next, Whose), &'static str> {
    let hello = Hello::decode(frame).map_err(|_| "it did not say what it wants")?;
    if hello.version != oxiray_wire::VERSION {
        return Err("it is of another version");
    }
    match hello.purpose() {
        Purpose::Node if hello.to == number => Ok((Next::Known, Whose::From(hello.node, None))),
        Purpose::Node => Ok((Next::Known, Whose::Relay(UNLED))),
        Purpose::Data => Ok((Next::HandOver, Whose::Bytes(hello))),
        Purpose::Control | Purpose::Tool => Err("it wants another service"),
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
