//! Sequenced-packet Unix sockets that carry file descriptors.
//!
//! One send is one packet is one receive: a message and its descriptors arrive
//! together or not at all, and no length prefix is needed.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with, socketpair, sockopt,
};

/// The largest packet that is sent. The kernel's default send buffer holds it.
pub const MAX_PACKET: usize = 160 * 1024;

/// Most descriptors in one packet.
const MAX_FDS: usize = 4;

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// A connected pair, blocking, closed on exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Listens at `path`, which must not exist.
pub fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, 1024)?;
    Ok(socket)
}

/// Connects to a listener at `path`.
pub fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Takes the next connection of a listener.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::CLOEXEC)?)
}

/// Who is at the other end: process id and user id, as the kernel saw them connect.
pub fn peer(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let credentials = sockopt::socket_peercred(socket)?;
    Ok((credentials.pid.as_raw_nonzero().get() as u32, credentials.uid.as_raw()))
}

/// Makes receives and sends return `WouldBlock` instead of sleeping.
pub fn set_nonblocking(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, true)?)
}

/// Sends one packet with its descriptors. A broken peer is an error, never a signal.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(sent) if sent == bytes.len() => return Ok(()),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::WriteZero, "packet cut short")),
        }
    }
}

/// Receives one packet into `buffer`: its length and descriptors. `Ok(None)` is
/// the end of the connection.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut slices = [IoSliceMut::new(buffer)];
        match recvmsg(&socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(received) => break received,
        }
    };
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet larger than the buffer"));
    }
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if received.bytes == 0 && fds.is_empty() {
        return Ok(None);
    }
    Ok(Some((received.bytes, fds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_arrives_whole_with_its_descriptors() {
        let (left, right) = pair().unwrap();
        let file = crate::memory::memory_file("test", 4096).unwrap();
        send(&left, b"hello", &[file.as_fd()]).unwrap();
        send(&left, b"again", &[]).unwrap();
        let mut buffer = [0; 64];
        let (len, fds) = receive(&right, &mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..len], fds.len()), (&b"hello"[..], 1));
        let (len, fds) = receive(&right, &mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..len], fds.len()), (&b"again"[..], 0));
        drop(left);
        assert!(receive(&right, &mut buffer).unwrap().is_none());
    }
}
