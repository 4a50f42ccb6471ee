//! Frames over a connection that somebody else's event loop drives.
//!
//! - **L-1 (members only):** no byte of a frame is handed out, and with TLS none is sent, before
//!   the other side has shown that it is of the cluster.
//! - **L-2 (bounded):** for a stranger, rustls holds at most 64 KiB of a handshake, and nothing is
//!   held here. For a member, what is held has come: a length alone takes no memory.
//! - **L-3 (never waits):** nothing here blocks.
//! - **L-4 (last words):** that the other side has gone is told by [`Link::on_ready`] alone, after
//!   everything it has sent was handed out. A write that fails for that reason is no error.
//! - **L-5 (batches):** frames are gathered until [`Link::flush`], and then go out in records of
//!   16 KiB, many to a system call.
//!
//! With TLS 1.3 the side that connects is done first: it is *established* when it has checked the
//! other side, which may yet refuse it. Established on the side that accepts is exact: both have
//! checked each other. So a client that wants to be sure waits for the first frame.
//!
//! That a connection ends without TLS's farewell is no error: frames have lengths, so one that was
//! cut off is never taken for a whole one.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustls::Connection;

use crate::bulk::Bulk;
use crate::error::LinkError;
use crate::frame::{self, Assembler};
use crate::identity::Security;
use crate::refusal::{GREETING, check_greeting, check_protocol, in_plain_words};

/// Bytes read by one system call.
const CHUNK: usize = 32 << 10;

/// Bytes read before others get a turn.
const TURN: usize = 1 << 20;

/// Bytes encrypted before they are written.
const BATCH: usize = 256 << 10;

/// A send buffer that was once as large as this is given back when it is empty.
const KEEP: usize = 1 << 20;

/// How [`Link::on_ready`] went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All that has come was handed out.
    Idle,
    /// More may have come; it is the turn of others. The socket is still readable.
    More,
    /// `on_frame` said stop. Further frames may be here already, of which the socket knows
    /// nothing: call again, or go on as a [`Bulk`].
    Stopped,
}

/// A connection that carries frames.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    peer: SocketAddr,
    /// `None` without TLS.
    tls: Option<Box<Connection>>,
    /// The connection is being made.
    connecting: bool,
    established: bool,
    /// Writing has failed: what is queued is lost, what has come is not.
    broken: bool,
    /// What came of the greeting, without TLS.
    greeting: Vec<u8>,
    incoming: Assembler,
    /// Frames to send, not encrypted.
    outgoing: Vec<u8>,
    /// How many bytes of them are written or encrypted.
    taken: usize,
    /// How many of those may still be on their way to the socket.
    encrypted: usize,
}

impl Link {
    /// Of a connection that was accepted.
    pub fn accept(stream: TcpStream, security: &Security) -> io::Result<Self> {
        let tls = security.server().map_err(io::Error::other)?;
        stream.set_nonblocking(true)?;
        let peer = stream.peer_addr()?;
        Self::new(stream, peer, tls, false)
    }

    /// Begins to connect. How that goes is told by [`Self::on_ready`].
    pub fn connect(address: SocketAddr, security: &Security) -> io::Result<Self> {
        let tls = security.client().map_err(io::Error::other)?;
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        Self::new(TcpStream::from(socket), address, tls, true)
    }

    fn new(
        stream: TcpStream,
        peer: SocketAddr,
        tls: Option<Connection>,
        connecting: bool,
    ) -> io::Result<Self> {
        crate::listener::watch_over(&stream)?;
        let outgoing = if tls.is_some() { Vec::new() } else { GREETING.to_vec() };
        let mut tls = tls.map(Box::new);
        if let Some(tls) = &mut tls {
            tls.set_buffer_limit(Some(BATCH));
        }
        Ok(Self {
            stream,
            peer,
            tls,
            connecting,
            established: false,
            broken: false,
            greeting: Vec::new(),
            incoming: Assembler::default(),
            outgoing,
            taken: 0,
            encrypted: 0,
        })
    }

    /// The other side.
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Whether this side knows that the other one is of the cluster. See the module for what that
    /// means on the side that connects.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether to call [`Self::on_ready`] also when the socket can be written to: the connection
    /// is being made, or not everything has been written.
    pub fn wants_write(&self) -> bool {
        self.connecting || (!self.broken && (self.may_take() || self.tls_wants_write()))
    }

    /// Bytes of frames that are not written yet. With TLS, those of the last batch count until
    /// all of it is written.
    pub fn queued(&self) -> usize {
        self.outgoing.len() - self.taken + self.encrypted
    }

    /// Queues one frame, made of these parts. Nothing is written before [`Self::flush`].
    pub fn send(&mut self, parts: &[&[u8]]) -> Result<(), LinkError> {
        let header = frame::header(parts)?;
        if self.broken {
            return Ok(());
        }
        // Moves no byte more often than it was written.
        if self.taken > self.outgoing.len() / 2 {
            self.outgoing.drain(..self.taken);
            self.taken = 0;
        }
        self.outgoing.extend_from_slice(&header);
        for part in parts {
            self.outgoing.extend_from_slice(part);
        }
        Ok(())
    }

    /// Writes what can be written now.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        if self.connecting || self.broken {
            return Ok(());
        }
        match self.write() {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) if is_end(&error) => {
                self.broken = true;
                self.outgoing = Vec::new();
                (self.taken, self.encrypted) = (0, 0);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// To be called when the socket is ready, in either way, or has an error: reads what has come,
    /// hands out the frames that are complete, and writes what can be written.
    ///
    /// After an error the link is to be dropped.
    pub fn on_ready(
        &mut self,
        on_frame: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Progress, LinkError> {
        if self.connecting && !self.finish_connecting()? {
            return Ok(Progress::Idle);
        }
        // The handshake's first words, and what they give to answer, without another round.
        self.flush()?;
        let progress = self.read(on_frame)?;
        self.flush()?;
        Ok(progress)
    }

    /// Goes on as a connection that blocks and has a thread of its own. Takes along what has come
    /// already and what is queued. The link must be established, and out of the event loop.
    pub fn into_bulk(self) -> io::Result<Bulk> {
        if !self.established {
            return Err(io::Error::new(ErrorKind::NotConnected, "the other side is still unknown"));
        }
        self.stream.set_nonblocking(false)?;
        let unsent = self.outgoing[self.taken..].to_vec();
        Ok(Bulk::resume(self.stream, self.tls, self.incoming.into_rest(), unsent))
    }

    fn tls_wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether there are frames, and they may leave.
    fn may_take(&self) -> bool {
        self.taken < self.outgoing.len() && (self.established || self.tls.is_none())
    }

    /// Whether the connection is made.
    fn finish_connecting(&mut self) -> Result<bool, LinkError> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error.into());
        }
        match self.stream.peer_addr() {
            Ok(_) => self.connecting = false,
            Err(error) if error.kind() == ErrorKind::NotConnected => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!self.connecting)
    }

    /// Writes until nothing is left or the socket is full.
    fn write(&mut self) -> io::Result<()> {
        loop {
            if let Some(tls) = &mut self.tls {
                while tls.wants_write() {
                    match tls.write_tls(&mut &self.stream) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        written => _ = written?,
                    }
                }
                self.encrypted = 0;
            }
            if !self.may_take() {
                break;
            }
            let rest = &self.outgoing[self.taken..];
            let taken = match &mut self.tls {
                Some(tls) => {
                    self.encrypted = tls.writer().write(rest)?;
                    self.encrypted
                }
                None => match (&self.stream).write(rest) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                    written => written?,
                },
            };
            self.taken += taken;
        }
        if self.taken == self.outgoing.len() {
            self.taken = 0;
            self.outgoing.clear();
            if self.outgoing.capacity() > KEEP {
                self.outgoing = Vec::new();
            }
        }
        Ok(())
    }

    /// Reads until nothing is left, or it is somebody else's turn.
    fn read(
        &mut self,
        on_frame: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Progress, LinkError> {
        // After a stop there may be whole frames.
        if self.incoming.feed(&[], on_frame)?.is_break() {
            return Ok(Progress::Stopped);
        }
        let mut chunk = [0; CHUNK];
        let mut budget = TURN;
        while budget > 0 {
            let count = match (&self.stream).read(&mut chunk) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Idle),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if self.established && is_end(&error) => return Err(LinkError::Closed),
                Err(error) => return Err(error.into()),
            };
            let mut stopped = false;
            let mut take = |incoming: &mut Assembler, plain: &[u8]| {
                if stopped {
                    incoming.hold(plain);
                } else {
                    stopped = incoming.feed(plain, on_frame)?.is_break();
                }
                Ok(())
            };
            if self.tls.is_some() {
                self.decrypt(&chunk[..count], &mut take)?;
            } else {
                self.take_plain(&chunk[..count], &mut take)?;
            }
            if stopped {
                return Ok(Progress::Stopped);
            }
            budget = budget.saturating_sub(count);
        }
        Ok(Progress::More)
    }

    /// Without TLS: the greeting, then frames.
    fn take_plain(&mut self, bytes: &[u8], take: &mut Take<'_>) -> Result<(), LinkError> {
        let missing = GREETING.len() - self.greeting.len();
        let (greeting, frames) = bytes.split_at(missing.min(bytes.len()));
        self.greeting.extend_from_slice(greeting);
        check_greeting(&self.greeting)?;
        self.established = self.greeting.len() == GREETING.len();
        take(&mut self.incoming, frames)
    }

    /// With TLS: the handshake, then frames.
    fn decrypt(&mut self, mut bytes: &[u8], take: &mut Take<'_>) -> Result<(), LinkError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while !bytes.is_empty() {
            let before = bytes.len();
            // Fails only if rustls does not want to hold more of a handshake.
            tls.read_tls(&mut bytes).map_err(|error| LinkError::Refused(error.to_string()))?;
            if bytes.len() == before {
                // After the farewell.
                return Err(LinkError::Closed);
            }
            if let Err(error) = tls.process_new_packets() {
                let words = in_plain_words(&error);
                self.say_why();
                return Err(LinkError::Refused(words));
            }
            if !self.established && !tls.is_handshaking() {
                check_protocol(tls)?;
                self.established = true;
            }
            while self.established {
                // Nothing there is `WouldBlock`; nothing more to come is an empty slice.
                let Ok(plain) = tls.reader().into_first_chunk() else { break };
                if plain.is_empty() {
                    break;
                }
                let count = plain.len();
                take(&mut self.incoming, plain)?;
                io::BufRead::consume(&mut tls.reader(), count);
            }
        }
        Ok(())
    }

    /// Sends the alert that tells the other side why, and reads what it may have sent meanwhile:
    /// closing a socket with something unread would take the alert back.
    fn say_why(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        while tls.wants_write() && tls.write_tls(&mut &self.stream).is_ok() {}
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let mut unread = [0; 4096];
        for _ in 0..64 {
            if !matches!((&self.stream).read(&mut unread), Ok(count) if count > 0) {
                break;
            }
        }
    }
}

/// Takes what was decrypted.
type Take<'a> = dyn FnMut(&mut Assembler, &[u8]) -> Result<(), LinkError> + 'a;

/// Whether the error says that the other side is gone.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
