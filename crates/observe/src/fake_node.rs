//! A node for tests: it answers an observer as the test says, and counts what it is asked.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use oxiray_events::History;
use oxiray_sys::packet;
use oxiray_wire::control::{FromNode, ToNode, from_node, to_node};
use prost::Message;

use crate::machine::Machines;
use crate::observer::Observer;
use crate::session::Session;

/// An observer, and the socket of the node that it asks.
pub(crate) fn connected(patience: Duration) -> (Observer, OwnedFd) {
    let (ours, theirs) = packet::pair().expect("sockets");
    (Observer::over(ours, patience), theirs)
}

/// A session of that observer's.
pub(crate) fn session(observer: Observer) -> Session {
    Session {
        dir: PathBuf::new(),
        observer,
        machines: Machines::default(),
        history: History::new(),
        missing: Vec::new(),
        gaps: Vec::new(),
        last_node: None,
    }
}

/// See the module documentation.
pub(crate) struct FakeNode(JoinHandle<usize>);

impl FakeNode {
    /// `answer` is told how many questions came before; none: it says nothing.
    pub(crate) fn start(
        socket: OwnedFd,
        mut answer: impl FnMut(usize, to_node::Body) -> Option<from_node::Body> + Send + 'static,
    ) -> Self {
        Self(spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            let mut asked = 0;
            while let Ok(Some((len, _))) = packet::receive(&socket, &mut buffer) {
                let question = ToNode::decode(&buffer[..len]).expect("ours").body;
                if let Some(body) = answer(asked, question.expect("a question")) {
                    let message = FromNode::from(body).encode_to_vec();
                    packet::send(&socket, &message, &[]).expect("somebody listens");
                }
                asked += 1;
            }
            asked
        }))
    }

    /// How many questions came; the observer must be gone.
    pub(crate) fn asked(self) -> usize {
        self.0.join().expect("it answered all")
    }
}
