//! What this process says to its node service, which is never waited for.
//!
//! One that is stopped, or far behind, reads nothing: then the socket is full. What is said is said
//! while the engine is locked, often with the language held up, so it must not sleep there: no Ctrl-C
//! would be heard. It waits here instead, in order, for a thread that lives only as long as there is
//! something to say.
//!
//! - **S-1** What is said arrives in the order in which it was said, whoever says it.
//! - **S-2** Nobody who says something waits for the node service.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use oxiray_sys::{packet, process};
use oxiray_wire::control::{ToNode, to_node};
use parking_lot::Mutex;
use prost::Message;

/// The connection to the node service, as those see it who say something.
pub(crate) struct Line {
    socket: OwnedFd,
    unsaid: Mutex<Unsaid>,
}

#[derive(Default)]
struct Unsaid {
    packets: VecDeque<Vec<u8>>,
    /// A thread says them: whoever has more to say goes behind (S-1).
    has_teller: bool,
}

/// A message that is too large to be sent: so many bytes.
pub(crate) struct TooLarge(pub(crate) usize);

impl Line {
    pub(crate) fn new(socket: OwnedFd) -> Arc<Self> {
        Arc::new(Self { socket, unsaid: Mutex::default() })
    }

    /// Says something. A lost node is noticed by the thread that listens.
    pub(crate) fn say(self: &Arc<Self>, body: to_node::Body) -> Result<(), TooLarge> {
        let packet = ToNode::from(body).encode_to_vec();
        if packet.len() > packet::MAX_PACKET {
            return Err(TooLarge(packet.len()));
        }
        let mut unsaid = self.unsaid.lock();
        if unsaid.packets.is_empty() && !unsaid.has_teller {
            match packet::send_now(&self.socket, &packet) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                _ => return Ok(()),
            }
        }
        unsaid.packets.push_back(packet);
        if !unsaid.has_teller {
            let line = self.clone();
            let teller = thread::Builder::new().name("oxiray-unsaid".into());
            // Without a thread, whoever says something next tries again.
            unsaid.has_teller =
                teller.stack_size(64 << 10).spawn(move || line.say_the_rest()).is_ok();
        }
        Ok(())
    }

    /// Says what waits, as the node service takes it.
    fn say_the_rest(&self) {
        process::block_signals_in_this_thread();
        loop {
            let packet = {
                let mut unsaid = self.unsaid.lock();
                let packet = unsaid.packets.pop_front();
                unsaid.has_teller = packet.is_some();
                packet
            };
            let Some(packet) = packet else { return };
            if packet::send(&self.socket, &packet, &[]).is_err() {
                // It is gone, and so is whoever would hear the others.
                self.unsaid.lock().packets.clear();
            }
        }
    }

    /// Nothing is said or heard any more, whoever else has its descriptor.
    pub(crate) fn cut(&self) {
        packet::shut_down(&self.socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxiray_wire::control::Lease;

    fn told(socket: &OwnedFd) -> u64 {
        let mut buffer = vec![0; packet::MAX_PACKET];
        let (len, _) = packet::receive(socket, &mut buffer).unwrap().expect("it is open");
        match ToNode::decode(&buffer[..len]).unwrap().body {
            Some(to_node::Body::ReturnLease(lease)) => lease.lease,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn s1_s2_what_a_full_socket_does_not_take_arrives_later_and_in_order() {
        let (ours, node) = packet::pair().unwrap();
        let line = Line::new(ours);
        let many = 20_000;
        // Ten times what a socket takes: it would sleep for ever here.
        for lease in 0..many {
            assert!(line.say(to_node::Body::ReturnLease(Lease { lease })).is_ok());
        }
        assert!(line.unsaid.lock().has_teller);
        assert!((0..many).all(|lease| told(&node) == lease));
        assert!(line.say(to_node::Body::ReturnLease(Lease { lease: many })).is_ok());
        assert_eq!(told(&node), many);
    }

    #[test]
    fn a_node_that_is_gone_ends_what_waits() {
        let (ours, node) = packet::pair().unwrap();
        let line = Line::new(ours);
        for lease in 0..20_000 {
            assert!(line.say(to_node::Body::ReturnLease(Lease { lease })).is_ok());
        }
        drop(node);
        while line.unsaid.lock().has_teller {
            thread::yield_now();
        }
        assert!(line.unsaid.lock().packets.is_empty());
    }
}
