//! Frames get across, whole and in order, whatever their sizes and however the bytes come.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;

use oxiray_net::{Link, LinkError, MAX_FRAME, Progress, Security};
use proptest::prelude::*;
use support::{End, accept_one, drive, listener, new_cluster, pair};

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 256 + length) as u8).collect()
}

fn sizes_get_across(security: &Security) {
    let sizes =
        [0, 1, 3, 0, 16_379, 16_384, 16_385, 70_000, 1 << 20, MAX_FRAME - 1, MAX_FRAME, 0, 5];
    let (mut client, mut server) = pair(security, security);
    for size in sizes {
        client.send(&payload(size));
        server.send(&payload(size + 1)[1..]);
    }
    assert!(client.link.queued() > 2 * MAX_FRAME);
    drive(&mut client, &mut server, |client, server| {
        client.frames.len() == sizes.len() && server.frames.len() == sizes.len()
    });
    for (index, size) in sizes.into_iter().enumerate() {
        assert!(server.frames[index] == payload(size), "to the server, {size} bytes");
        assert!(client.frames[index] == payload(size + 1)[1..], "to the client, {size} bytes");
    }
    assert!(client.link.is_established() && server.link.is_established());
    assert_eq!((client.link.queued(), server.link.queued()), (0, 0));
    assert!(!client.link.wants_write() && !server.link.wants_write());
}

#[test]
fn all_sizes_get_across_with_tls() {
    sizes_get_across(&new_cluster());
}

#[test]
fn all_sizes_get_across_without_tls() {
    sizes_get_across(&Security::Insecure);
}

#[test]
fn parts_become_one_frame() {
    let security = new_cluster();
    let (mut client, mut server) = pair(&security, &security);
    client.link.send(&[b"to", b"", b"gether"]).unwrap();
    drive(&mut client, &mut server, |_, server| server.frames == [b"together"]);
}

#[test]
fn a_frame_too_long_is_not_sent() {
    let (mut client, _server) = pair(&Security::Insecure, &Security::Insecure);
    let refused = client.link.send(&[&vec![0; MAX_FRAME], b"x"]);
    assert!(
        matches!(refused, Err(LinkError::BadFrame { length }) if length as usize == MAX_FRAME + 1)
    );
}

/// Exercises L-4.
#[test]
fn last_words_are_heard() {
    for security in [new_cluster(), Security::Insecure] {
        let (mut client, mut server) = pair(&security, &security);
        drive(&mut client, &mut server, |client, server| {
            client.link.is_established() && server.link.is_established()
        });
        server.send(b"bye");
        drop(server);
        // One of these fails to be written, which is no error yet.
        for _ in 0..100 {
            client.send(b"too late");
        }
        assert!(matches!(client.run_to_end(), LinkError::Closed));
        assert_eq!(client.frames, [b"bye"]);
    }
}

#[test]
fn nobody_there_is_told() {
    let listener = listener();
    let address = listener.local_addr();
    drop(listener);
    let error = match Link::connect(address, &Security::Insecure) {
        Ok(link) => End::new(link).run_to_end(),
        Err(error) => error.into(),
    };
    assert!(matches!(error, LinkError::Io(error) if error.kind() == ErrorKind::ConnectionRefused));
}

#[test]
fn a_stop_keeps_what_follows() {
    let security = new_cluster();
    let (mut client, server) = pair(&security, &security);
    let mut server = End::new(server.link);
    drive(&mut client, &mut server, |client, server| {
        client.link.is_established() && server.link.is_established()
    });
    for frame in [b"1", b"2", b"3"] {
        client.link.send(&[frame]).unwrap();
    }
    client.link.flush().unwrap();
    let mut got = Vec::new();
    while got.len() < 3 {
        if got.is_empty() {
            support::wait(&[server.interest()]);
        }
        let before = got.len();
        let progress = server.link.on_ready(&mut |frame| {
            got.push(frame.to_vec());
            ControlFlow::Break(())
        });
        assert_eq!(progress.unwrap() == Progress::Stopped, got.len() == before + 1);
    }
    assert_eq!(got, [b"1", b"2", b"3"]);
}

/// Passes on what comes, in pieces of these sizes.
struct Relay {
    from: TcpStream,
    to: TcpStream,
    waiting: Vec<u8>,
}

impl Relay {
    fn pass(&mut self, size: usize) {
        let mut buffer = [0; 4096];
        if let Ok(count) = self.from.read(&mut buffer) {
            self.waiting.extend_from_slice(&buffer[..count]);
        }
        let size = size.min(self.waiting.len());
        let written = self.to.write(&self.waiting[..size]).unwrap_or(0);
        self.waiting.drain(..written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pieces_do_not_matter(
        there in prop::collection::vec(0usize..20_000, 0..6),
        back in prop::collection::vec(0usize..20_000, 0..6),
        pieces in prop::collection::vec(1usize..5000, 1..10),
        tls: bool,
    ) {
        let security = if tls { new_cluster() } else { Security::Insecure };
        let (outer, inner) = (listener(), listener());
        let mut client = End::new(Link::connect(outer.local_addr(), &security).unwrap());
        support::wait(&[rustix::event::PollFd::new(&outer, rustix::event::PollFlags::IN)]);
        let near = outer.accept().unwrap().unwrap().0;
        let far = TcpStream::connect(inner.local_addr()).unwrap();
        let mut server = End::new(accept_one(&inner, &security));
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let copy = |stream: &TcpStream| stream.try_clone().unwrap();
        let mut relays = [
            Relay { from: copy(&near), to: copy(&far), waiting: Vec::new() },
            Relay { from: far, to: near, waiting: Vec::new() },
        ];
        there.iter().for_each(|size| client.send(&payload(*size)));
        back.iter().for_each(|size| server.send(&payload(*size)));
        for piece in pieces.iter().cycle() {
            relays.iter_mut().for_each(|relay| relay.pass(*piece));
            client.turn();
            server.turn();
            prop_assert!(client.end.is_none() && server.end.is_none());
            if server.frames.len() == there.len() && client.frames.len() == back.len() {
                break;
            }
        }
        prop_assert!(server.frames.iter().map(Vec::len).eq(there.iter().copied()));
        prop_assert!(server.frames.iter().all(|frame| *frame == payload(frame.len())));
        prop_assert!(client.frames.iter().map(Vec::len).eq(back.iter().copied()));
        prop_assert!(client.frames.iter().all(|frame| *frame == payload(frame.len())));
    }
}
