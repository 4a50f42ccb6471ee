//! Sequenced-packet Unix sockets that carry file descriptors.
//!
//! One send is one packet is one receive: a message and its descriptors arrive
//! together or not at all, and no length prefix is needed.
//!
//! A socket is named by a directory's descriptor and its name in there: so nobody can lead us to
//! another one on the way, and the path may be as long as it likes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with, socketpair,
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

/// The name of a file in an open directory.
fn address(dir: BorrowedFd<'_>, name: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))?)
}

/// Listens at `name` in a directory, where nothing of that name may be. Only the owner can
/// connect, whatever the umask says.
pub fn listen_at(dir: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    bind(&socket, &address(dir.as_fd(), name)?)?;
    rustix::fs::chmodat(dir, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    listen(&socket, 1024)?;
    Ok(socket)
}

/// Connects to the listener at `name` in a directory, if it is of our own user: what another one
/// says is not heard, and they are told nothing.
pub fn connect_at(dir: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &address(dir.as_fd(), name)?)?;
    let (Peer { uid, .. }, ours) = (peer(&socket)?, rustix::process::geteuid().as_raw());
    if uid != ours {
        let what = format!("user {uid} listens at {name}, not you (user {ours}): nothing is said");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(socket)
}

/// Takes the next connection of a listener.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::CLOEXEC)?)
}

/// Who is at the other end, as the kernel saw them connect or begin to listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// None: a process that cannot be seen from here, in another container.
    pub pid: Option<u32>,
    /// The user.
    pub uid: u32,
}

/// Who is at the other end.
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    let into = (&raw mut found).cast();
    // SAFETY: `found` is of the type that this option has, and `len` says how long it is.
    if unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, into, &mut len) } < 0
    {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { pid: u32::try_from(found.pid).ok().filter(|pid| *pid > 0), uid: found.uid })
}

/// Ends a connection, whoever else has its descriptor.
pub fn shut_down(socket: impl AsFd) {
    // One that has ended already needs no end.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
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
    send_as(socket, bytes, &mut ancillary, SendFlags::NOSIGNAL)
}

/// Sends one packet if there is room for it now, else it is `WouldBlock`; whatever the socket's mode.
pub fn send_now(socket: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    send_as(socket, bytes, &mut SendAncillaryBuffer::default(), flags)
}

fn send_as(
    socket: impl AsFd,
    bytes: &[u8],
    ancillary: &mut SendAncillaryBuffer<'_, '_, '_>,
    flags: SendFlags,
) -> io::Result<()> {
    loop {
        match sendmsg(&socket, &[IoSlice::new(bytes)], ancillary, flags) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(sent) if sent == bytes.len() => return Ok(()),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::WriteZero, "packet cut short")),
        }
    }
}

/// Sleeps until there is something to receive, or the other end is gone; whether that came in time.
pub fn await_packet(socket: impl AsFd, within: Duration) -> io::Result<bool> {
    let within = Timespec::try_from(within).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut polled = [PollFd::new(&socket, PollFlags::IN)];
    match poll(&mut polled, Some(&within)) {
        // Whoever waits looks at signals, too.
        Err(rustix::io::Errno::INTR) => Ok(false),
        polled => Ok(polled? > 0),
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
            // The other end went without having read everything. That is said once, and before what
            // it said itself, which is still there.
            Err(rustix::io::Errno::CONNRESET) => continue,
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

    #[test]
    fn last_words_are_heard_of_who_did_not_listen() {
        let (left, right) = pair().unwrap();
        send(&right, b"are you there?", &[]).unwrap();
        send(&left, b"farewell", &[]).unwrap();
        drop(left);
        let mut buffer = [0; 64];
        let (len, _) = receive(&right, &mut buffer).unwrap().unwrap();
        assert_eq!(&buffer[..len], b"farewell");
        assert!(receive(&right, &mut buffer).unwrap().is_none());
    }

    #[test]
    fn a_listener_is_found_in_its_directory() {
        let path = std::env::temp_dir().join(format!("oxiray-packet-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let dir = std::fs::File::open(&path).unwrap();
        let listener = listen_at(&dir, "a.sock").unwrap();
        let mode = rustix::fs::statat(&dir, "a.sock", AtFlags::SYMLINK_NOFOLLOW).unwrap().st_mode;
        assert_eq!(mode & 0o777, 0o600);
        let socket = connect_at(&dir, "a.sock").unwrap();
        assert_eq!(peer(&socket).unwrap().pid, Some(std::process::id()));
        drop(listener);
        assert!(connect_at(&dir, "a.sock").is_err());
        std::fs::remove_dir_all(path).unwrap();
    }
}
