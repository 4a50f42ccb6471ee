//! Connections between two other nodes that do not reach each other, but both reach this one: what
//! comes from one side goes to the other.
//!
//! Messages pass in the event loop, frame by frame; bytes of objects have a thread for each
//! connection, as everywhere. Whoever asks for bytes waits for them before it asks again, so one
//! thread carries both directions.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use oxiray_net::{Bulk, Link, LinkError, Security};
use oxiray_wire::cluster::{Hello, ReadRange};
use prost::Message;

use super::peers::{SILENCE, send};
use super::{Net, UNLED, Whose};
use crate::poller::Poller;

/// A node that is not there after so long is not to be reached from here either.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// A node that sends nothing for so long while bytes are due is given up.
const STALLED: Duration = Duration::from_secs(10);
/// Bytes that are passed on at once.
const CHUNK: usize = 256 << 10;

impl Net {
    /// Passes on what one node says to another through this one.
    pub(super) fn pass_onward(&mut self, slot: usize, frames: &[Vec<u8>], poller: &Poller) {
        let Some(&Whose::Relay(other)) = self.links.whose(slot) else {
            return;
        };
        let (led, rest) = match (other, frames) {
            (UNLED, [hello, rest @ ..]) => (self.lead_onward(slot, hello, poller), rest),
            _ => (Some(other), frames),
        };
        let Some(led) = led else {
            return self.links.close(slot);
        };
        rest.iter().for_each(|frame| send(&mut self.links, led, &[frame]));
        if let Some(whose) = self.links.whose_mut(slot) {
            *whose = Whose::Relay(led);
        }
    }

    /// Connects with the node that one wants to speak to through this one.
    fn lead_onward(&mut self, slot: usize, hello: &[u8], poller: &Poller) -> Option<usize> {
        let to = Hello::decode(hello).ok()?.to;
        let address = self.peers.address(to)?;
        let led = self.links.connect(address, hello, Whose::Relay(slot), poller).ok()?;
        self.links.hurry(led, SILENCE);
        Some(led)
    }

    /// One of the two is gone: the other gets what came before, and goes.
    pub(super) fn end_relay(&mut self, other: usize) {
        if let Some(whose) = self.links.whose_mut(other).filter(|w| matches!(w, Whose::Relay(_))) {
            // It leads nowhere, and its place may be another's soon.
            *whose = Whose::Stranger;
            self.links.close(other);
        }
    }

    /// Reads for the node at the other end of `link` what it asks of another, until either goes.
    pub(super) fn pass_bytes(&self, link: Link, hello: Hello) {
        let Some(address) = self.peers.address(hello.to) else {
            return tracing::warn!(node = hello.to, "bytes are asked for of no member");
        };
        let security = self.links.security().clone();
        let spawned = link.into_bulk().and_then(|reader| {
            let pass = move || {
                oxiray_sys::process::block_signals_in_this_thread();
                if let Err(error) = pass(reader, &hello, address, &security) {
                    tracing::debug!(%error, "passing on bytes is over");
                }
            };
            thread::Builder::new().name("oxiray-relay".into()).stack_size(256 << 10).spawn(pass)
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "bytes cannot be passed on");
        }
    }
}

fn pass(
    mut reader: Bulk,
    hello: &Hello,
    address: SocketAddr,
    security: &Security,
) -> Result<(), LinkError> {
    reader.set_write_timeout(STALLED)?;
    let mut source = Bulk::connect(address, security, CONNECT_WITHIN)?;
    source.set_timeout(Some(STALLED))?;
    source.send_frame(&[&hello.encode_to_vec()])?;
    let (mut request, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    loop {
        reader.recv_frame(&mut request)?;
        let Ok(range) = ReadRange::decode(&request[..]) else {
            return Ok(());
        };
        source.send_frame(&[&request])?;
        // The bytes, and one that says that they were lent to the end.
        let mut left = range.len.saturating_add(1);
        while left > 0 {
            let some = left.min(CHUNK as u64) as usize;
            source.read_exact(&mut chunk[..some])?;
            reader.write_all(&chunk[..some])?;
            left -= some as u64;
        }
    }
}
