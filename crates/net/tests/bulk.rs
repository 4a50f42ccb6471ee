//! Bytes get across, also those that were under way while a link became a bulk connection.

mod support;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use oxiray_net::{Bulk, Link, LinkError, Progress, Security};
use support::{accept_one, listener, new_cluster, wait};

const LONG: Duration = Duration::from_secs(20);

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 1000) as u8).collect()
}

/// Accepts a link, and makes it a bulk connection at its first frame.
fn hand_over(mut link: Link) -> (Bulk, Vec<u8>) {
    let mut first = None;
    loop {
        wait(&[rustix::event::PollFd::new(&link, rustix::event::PollFlags::IN)]);
        let progress = link.on_ready(&mut |frame| {
            first = Some(frame.to_vec());
            ControlFlow::Break(())
        });
        if progress.unwrap() == Progress::Stopped {
            break;
        }
    }
    // Queued by the event loop, written by the thread.
    link.send(&[b"welcome"]).unwrap();
    let bulk = link.into_bulk().unwrap();
    bulk.set_timeout(Some(LONG)).unwrap();
    (bulk, first.unwrap())
}

#[test]
fn a_link_becomes_bulk_with_bytes_in_flight() {
    for security in [new_cluster(), Security::Insecure] {
        for length in [0, 1, 100, 20_000, 5_000_000] {
            let listener = listener();
            let address = listener.local_addr();
            let sent = bytes(length);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut bulk = Bulk::connect(address, &security, LONG).unwrap();
                    bulk.send_frame(&[b"for ", b"bytes"]).unwrap();
                    // Looks like the length of a frame that is much too long.
                    bulk.write_all(&[0xff; 8]).unwrap();
                    bulk.write_all(&sent).unwrap();
                    let mut frame = Vec::new();
                    bulk.recv_frame(&mut frame).unwrap();
                    assert_eq!(frame, b"welcome");
                    let mut back = vec![0; sent.len()];
                    bulk.read_exact(&mut back).unwrap();
                    assert!(back == sent);
                });
                let (mut bulk, first) = hand_over(accept_one(&listener, &security));
                assert_eq!(first, b"for bytes");
                let mut mark = [0; 8];
                bulk.read_exact(&mut mark).unwrap();
                assert_eq!(mark, [0xff; 8]);
                let mut got = vec![0; length];
                for part in got.chunks_mut(33_333) {
                    bulk.read_exact(part).unwrap();
                }
                assert!(got == sent);
                bulk.write_all(&got).unwrap();
            });
        }
    }
}

fn bulk_pair(security: &Security) -> (Bulk, Bulk) {
    let listener = listener();
    let address = listener.local_addr();
    thread::scope(|scope| {
        let client = scope.spawn(move || Bulk::connect(address, security, LONG).unwrap());
        wait(&[rustix::event::PollFd::new(&listener, rustix::event::PollFlags::IN)]);
        let stream = listener.accept().unwrap().unwrap().0;
        let server = Bulk::accept(stream, security, LONG).unwrap();
        (client.join().unwrap(), server)
    })
}

#[test]
fn frames_are_bounded() {
    for security in [new_cluster(), Security::Insecure] {
        let (mut client, mut server) = bulk_pair(&security);
        client.write_all(&u32::MAX.to_le_bytes()).unwrap();
        let mut frame = Vec::new();
        let refused = server.recv_frame(&mut frame);
        assert!(matches!(refused, Err(LinkError::BadFrame { .. })));
        assert_eq!(frame.capacity(), 0);
    }
}

#[test]
fn a_peer_that_stalls_is_given_up() {
    for security in [new_cluster(), Security::Insecure] {
        let (mut client, _server) = bulk_pair(&security);
        client.set_timeout(Some(Duration::from_millis(20))).unwrap();
        let timed_out = |result| matches!(result, Err(LinkError::Io(error)) if error.kind() == ErrorKind::TimedOut);
        assert!(timed_out(client.read_exact(&mut [0])));
        // More than the socket's buffers take.
        assert!(timed_out(client.write_all(&vec![0; 64 << 20])));
    }
}

#[test]
fn another_thread_can_stop_it() {
    for security in [new_cluster(), Security::Insecure] {
        let (mut client, _server) = bulk_pair(&security);
        client.set_timeout(None).unwrap();
        let stopper = client.stopper().unwrap();
        thread::scope(|scope| {
            let reader = scope.spawn(|| client.read_exact(&mut [0]));
            stopper.stop();
            assert!(matches!(reader.join().unwrap(), Err(LinkError::Closed)));
        });
    }
}

#[test]
fn the_other_side_gone_is_told() {
    for security in [new_cluster(), Security::Insecure] {
        let (mut client, mut server) = bulk_pair(&security);
        server.write_all(b"abc").unwrap();
        let _stopper = server.stopper().unwrap();
        drop(server);
        let mut got = [0; 4];
        assert!(matches!(client.read_exact(&mut got), Err(LinkError::Closed)));
    }
}

#[test]
fn another_token_is_refused() {
    let listener = listener();
    let address = listener.local_addr();
    let client = thread::spawn(move || Bulk::connect(address, &new_cluster(), LONG).map(|_| ()));
    let mut link = support::End::new(accept_one(&listener, &new_cluster()));
    assert!(matches!(link.run_to_end(), LinkError::Refused(_)));
    let error = client.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("its token differs"), "{error}");
    assert!(!error.is_retryable());
}

#[test]
fn a_stranger_does_not_become_bulk() {
    let listener = listener();
    let _client = std::net::TcpStream::connect(listener.local_addr()).unwrap();
    let link = accept_one(&listener, &new_cluster());
    assert_eq!(link.into_bulk().unwrap_err().kind(), ErrorKind::NotConnected);
}
