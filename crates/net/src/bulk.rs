//! Bytes over a connection that blocks and has a thread of its own.
//!
//! Made for megabytes: what is written is encrypted straight from the caller's memory, and what is
//! read is copied once, from the record just decrypted, into the caller's. In between there is
//! rustls alone, which copies a record once each way. A read buffer of ours before it, for fewer
//! system calls, was measured to be no faster. The kernel sizes the socket's buffers, since those
//! set by hand are not grown any more. `examples/throughput.rs` measures.
//!
//! That a connection ends without TLS's farewell is no error: the reader knows how many bytes it
//! wants, and gets an error if they do not come.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustls::Connection;

use crate::error::LinkError;
use crate::frame;
use crate::identity::Security;
use crate::refusal::{GREETING, check_greeting, check_protocol, in_plain_words};

/// Bytes encrypted before they are written.
const BATCH: usize = 128 << 10;

/// By how much a frame's buffer grows while its bytes arrive.
const STEP: usize = 64 << 10;

/// A connection that carries bytes, and frames between them.
#[derive(Debug)]
pub struct Bulk {
    stream: TcpStream,
    /// `None` without TLS.
    tls: Option<Box<Connection>>,
    /// Plain bytes that came while this was a link.
    early: VecDeque<u8>,
    /// Plain bytes that were queued while this was a link.
    unsent: Vec<u8>,
}

impl Bulk {
    /// Connects. `timeout` is for connecting, and then for each single read or write, until
    /// [`Self::set_timeout`]. The other side may still refuse; that is told by the first read.
    pub fn connect(
        address: SocketAddr,
        security: &Security,
        timeout: Duration,
    ) -> Result<Self, LinkError> {
        let tls = security.client().map_err(io::Error::other)?;
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        Self::begin(stream, tls, timeout)
    }

    /// Of a connection that was accepted and of which it is known that it is for bytes. One of
    /// which it is not is first a link: see [`crate::Link::into_bulk`].
    pub fn accept(
        stream: TcpStream,
        security: &Security,
        timeout: Duration,
    ) -> Result<Self, LinkError> {
        let tls = security.server().map_err(io::Error::other)?;
        stream.set_nonblocking(false)?;
        Self::begin(stream, tls, timeout)
    }

    fn begin(
        stream: TcpStream,
        tls: Option<Connection>,
        timeout: Duration,
    ) -> Result<Self, LinkError> {
        crate::listener::watch_over(&stream)?;
        let mut bulk = Self::resume(stream, tls.map(Box::new), Vec::new(), Vec::new());
        bulk.set_timeout(Some(timeout))?;
        bulk.shake_hands()?;
        Ok(bulk)
    }

    /// Goes on with a connection on which hands were shaken.
    pub(crate) fn resume(
        stream: TcpStream,
        mut tls: Option<Box<Connection>>,
        early: Vec<u8>,
        unsent: Vec<u8>,
    ) -> Self {
        if let Some(tls) = &mut tls {
            tls.set_buffer_limit(Some(BATCH));
        }
        Self { stream, tls, early: early.into(), unsent }
    }

    /// How long a single read or write may wait for the other side before it is an error.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(timeout)?;
        self.stream.set_write_timeout(timeout)
    }

    /// Like [`Self::set_timeout`], for writing alone: reading waits for as long as it takes.
    pub fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(Some(timeout))
    }

    /// What ends this connection from another thread.
    pub fn stopper(&self) -> io::Result<Stopper> {
        Ok(Stopper(self.stream.try_clone()?))
    }

    /// The other side.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// Writes all of it. It is on its way when this returns: there is nothing to flush.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.send_unsent()?;
        self.write(bytes)
    }

    /// Reads as many bytes as there is room for.
    pub fn read_exact(&mut self, mut into: &mut [u8]) -> Result<(), LinkError> {
        self.send_unsent()?;
        // In one piece, as it was made from one.
        let count = self.early.read(into)?;
        into = &mut into[count..];
        let Some(tls) = &mut self.tls else {
            return (&self.stream).read_exact(into).map_err(in_words);
        };
        let mut tls = tls;
        while !into.is_empty() {
            match tls.reader().read(into) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(count) => into = &mut into[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.decrypt_some()?;
                    tls = self.tls.as_mut().expect("it was there");
                }
                Err(error) => return Err(in_words(error)),
            }
        }
        Ok(())
    }

    /// Writes one frame, made of these parts.
    pub fn send_frame(&mut self, parts: &[&[u8]]) -> Result<(), LinkError> {
        let header = frame::header(parts)?;
        let bytes = [&header[..], &parts.concat()].concat();
        self.write_all(&bytes)
    }

    /// Reads one frame, into a buffer whose memory is used again.
    pub fn recv_frame(&mut self, payload: &mut Vec<u8>) -> Result<(), LinkError> {
        let mut header = [0; frame::HEADER];
        self.read_exact(&mut header)?;
        let length = frame::length(header)?;
        payload.clear();
        // No memory is set aside for what a length promises.
        while payload.len() < length {
            let start = payload.len();
            payload.resize(length.min(start + STEP), 0);
            self.read_exact(&mut payload[start..])?;
        }
        Ok(())
    }

    fn shake_hands(&mut self) -> Result<(), LinkError> {
        if self.tls.is_none() {
            self.write(GREETING)?;
            let mut greeting = [0; GREETING.len()];
            (&self.stream).read_exact(&mut greeting).map_err(in_words)?;
            return check_greeting(&greeting);
        }
        while let Some(tls) = &mut self.tls
            && tls.is_handshaking()
        {
            self.write_records()?;
            self.decrypt_some()?;
        }
        self.write_records()?;
        self.tls.as_ref().map_or(Ok(()), |tls| check_protocol(tls))
    }

    fn send_unsent(&mut self) -> Result<(), LinkError> {
        self.write_records()?;
        if self.unsent.is_empty() {
            return Ok(());
        }
        let unsent = std::mem::take(&mut self.unsent);
        self.write(&unsent)
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), LinkError> {
        if self.tls.is_none() {
            return (&self.stream).write_all(bytes).map_err(in_words);
        }
        while let Some(tls) = &mut self.tls
            && !bytes.is_empty()
        {
            let count = tls.writer().write(bytes)?;
            bytes = &bytes[count..];
            self.write_records()?;
        }
        Ok(())
    }

    /// Writes what is encrypted.
    fn write_records(&mut self) -> Result<(), LinkError> {
        while let Some(tls) = &mut self.tls
            && tls.wants_write()
        {
            match tls.write_tls(&mut &self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.last_words(error)),
            }
        }
        Ok(())
    }

    /// Reads some, and decrypts what is complete.
    fn decrypt_some(&mut self) -> Result<(), LinkError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        match tls.read_tls(&mut &self.stream) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(in_words(error)),
        }
        if let Err(error) = tls.process_new_packets() {
            let _ = tls.write_tls(&mut &self.stream);
            return Err(LinkError::Refused(in_plain_words(&error)));
        }
        Ok(())
    }

    /// Why a write failed: if the other side has refused this one, its alert is there to be read.
    fn last_words(&mut self, error: io::Error) -> LinkError {
        if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            // Ends: the other side is gone, so nothing more comes.
            loop {
                match self.decrypt_some() {
                    Ok(()) => {}
                    Err(refused @ LinkError::Refused(_)) => return refused,
                    Err(_) => break,
                }
            }
        }
        in_words(error)
    }
}

/// Tells the other side, even while a [`Stopper`] keeps the socket open.
impl Drop for Bulk {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Ends a [`Bulk`] from another thread.
#[derive(Debug)]
pub struct Stopper(TcpStream);

impl Stopper {
    /// Whoever reads or writes gets an error now.
    pub fn stop(&self) {
        // Fails only if it is over already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// The error of a socket that blocks, for as long as its timeout.
fn in_words(error: io::Error) -> LinkError {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            LinkError::Closed
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "the other side does not answer in time").into()
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, Keyring, Secret};

    /// What rustls does by itself after some hundred gigabytes.
    #[test]
    fn keys_may_change_under_way() {
        let identity = Identity::new(&Keyring::new(Secret::generate())).unwrap();
        let security = &Security::Tls(identity);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let long = Duration::from_secs(20);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut client = Bulk::connect(address, security, long).unwrap();
                for number in 0..100 {
                    client.tls.as_mut().unwrap().refresh_traffic_keys().unwrap();
                    client.write_all(&[number; 1000]).unwrap();
                }
                let mut answer = [0; 4];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"done");
            });
            let mut server = Bulk::accept(listener.accept().unwrap().0, security, long).unwrap();
            let mut got = [0; 1000];
            for number in 0..100 {
                server.read_exact(&mut got).unwrap();
                assert_eq!(got, [number; 1000]);
            }
            server.write_all(b"done").unwrap();
        });
    }
}
