//! The control service of a node that is the only one of its cluster. It runs in the node's
//! process and ends with it: nothing is kept, and nobody asks whether the member is there.
//!
//! - **A-1** what the node says is heard in order, and so is what it is answered.

use std::collections::VecDeque;

use oxiray_wire::cluster::{Join, NodeInfo, from_control, to_control};

use crate::control::Control;
use crate::event::{Change, Event, Now, Outbox, PeerId};

/// The only peer there is.
const NODE: PeerId = PeerId(1);

/// A control service and its only member's messages to it.
#[derive(Debug)]
pub struct Alone {
    control: Control,
    said: VecDeque<to_control::Body>,
}

/// What the service answers, and its notes for the log.
#[derive(Debug, Default)]
pub struct Answers {
    /// For the node, in order.
    pub messages: Vec<from_control::Body>,
    /// Sentences.
    pub notes: Vec<String>,
}

impl Outbox for Answers {
    fn send(&mut self, _to: PeerId, body: from_control::Body) {
        self.messages.push(body);
    }
    fn note(&mut self, text: String) {
        self.notes.push(text);
    }
    // The state is in memory, and need not outlive the process.
    fn persist(&mut self, _change: Change) {}
    // There is no connection, and no secret.
    fn close(&mut self, _peer: PeerId) {}
    fn rotate(&mut self, _peer: PeerId) {}
}

impl Alone {
    /// The number that its only node gets.
    pub const NUMBER: u32 = 1;

    /// A service that this node has asked to join; its answer comes first.
    pub fn new(cluster: [u8; 16], node: NodeInfo, now: Now) -> Self {
        let mut control = Control::empty(cluster, now);
        control.asks_members = false;
        let join = Join { node: Some(node), ..Join::default() };
        Self { control, said: VecDeque::from([to_control::Body::Join(join)]) }
    }

    /// The node says something.
    pub fn say(&mut self, body: to_control::Body) {
        self.said.push_back(body);
    }

    /// Whether there is something to hear.
    pub fn is_spoken_to(&self) -> bool {
        !self.said.is_empty()
    }

    /// Hears what the node has said.
    pub fn hear(&mut self, now: Now) -> Answers {
        let mut answers = Answers::default();
        for body in self.said.drain(..) {
            self.control.on_event(Event::Message(NODE, body), now, &mut answers);
        }
        answers
    }

    /// When to call [`Self::on_time`].
    pub fn next_wakeup(&self) -> Option<u64> {
        self.control.next_wakeup()
    }

    /// Time has passed.
    pub fn on_time(&mut self, now: Now) -> Answers {
        let mut answers = Answers::default();
        if self.next_wakeup().is_some_and(|at| now.ns >= at) {
            self.control.on_event(Event::Tick, now, &mut answers);
        }
        answers
    }
}
