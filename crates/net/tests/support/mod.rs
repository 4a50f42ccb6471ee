//! Two ends of a connection on this machine, driven until something is so.
#![allow(dead_code, reason = "each test program uses its part")]

use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;

use oxiray_net::{Identity, Keyring, Link, LinkError, Listener, Progress, Secret, Security};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) fn member(keyring: &Keyring) -> Security {
    Security::Tls(Identity::new(keyring).unwrap())
}

pub(crate) fn new_cluster() -> Security {
    member(&Keyring::new(Secret::generate()))
}

pub(crate) fn listener() -> Listener {
    Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap()
}

/// A connection by whatever, and the link that accepts it.
pub(crate) fn accept_one(listener: &Listener, security: &Security) -> Link {
    wait(&[PollFd::new(listener, PollFlags::IN)]);
    let (stream, _): (TcpStream, SocketAddr) = listener.accept().unwrap().unwrap();
    Link::accept(stream, security).unwrap()
}

/// A link that connects, and the one that accepts it.
pub(crate) fn pair(client: &Security, server: &Security) -> (End, End) {
    let listener = listener();
    let client = Link::connect(listener.local_addr(), client).unwrap();
    let server = accept_one(&listener, server);
    (End::new(client), End::new(server))
}

/// Waits for one of these, and not for ever.
pub(crate) fn wait(of: &[PollFd<'_>]) {
    let mut of = of.to_vec();
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_ne!(poll(&mut of, Some(&limit)).unwrap(), 0, "nothing happens any more");
}

/// A link, and what it gave.
pub(crate) struct End {
    pub(crate) link: Link,
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) end: Option<LinkError>,
}

impl End {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, frames: Vec::new(), end: None }
    }

    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.link.send(&[frame]).unwrap();
        self.link.flush().unwrap();
    }

    pub(crate) fn interest(&self) -> PollFd<'_> {
        let out = if self.link.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::new(&self.link, PollFlags::IN | out)
    }

    pub(crate) fn turn(&mut self) {
        if self.end.is_some() {
            return;
        }
        let frames = &mut self.frames;
        let turned = self.link.on_ready(&mut |frame| {
            frames.push(frame.to_vec());
            ControlFlow::Continue(())
        });
        match turned {
            Ok(progress) => assert_ne!(progress, Progress::Stopped),
            Err(error) => self.end = Some(error),
        }
    }

    /// Drives this side until it has ended; says why.
    pub(crate) fn run_to_end(&mut self) -> LinkError {
        while self.end.is_none() {
            wait(&[self.interest()]);
            self.turn();
        }
        self.end.take().unwrap()
    }
}

/// Drives both until it is so.
pub(crate) fn drive(one: &mut End, other: &mut End, mut until: impl FnMut(&End, &End) -> bool) {
    while !until(one, other) {
        let mut of = Vec::new();
        of.extend([&*one, &*other].into_iter().filter(|end| end.end.is_none()).map(End::interest));
        wait(&of);
        one.turn();
        other.turn();
    }
}

/// Why a side was refused.
pub(crate) fn refusal(end: &mut End) -> String {
    match end.end.take() {
        Some(LinkError::Refused(words)) => words,
        other => panic!("not refused: {other:?}"),
    }
}
