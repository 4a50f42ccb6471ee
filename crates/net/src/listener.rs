//! The port a node listens on.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::error::NetError;

/// Accepts connections without waiting for them.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens there. Port 0 means any that is free.
    pub fn bind(address: SocketAddr) -> Result<Self, NetError> {
        let bound = TcpListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(Self { address: socket.local_addr()?, socket })
        });
        bound.map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => NetError::PortInUse { address },
            ErrorKind::AddrNotAvailable => NetError::NotOurAddress { address },
            _ => NetError::Listen { address, source },
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The next connection, if there is one. An error is this machine's, such as too many open
    /// files, and is best met by trying again later.
    pub fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        loop {
            match self.socket.accept() {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // Somebody who went away before being accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Small messages go at once, and a peer that is gone without a word is found out: a
/// quiet connection is asked after 5 s, and 10 s without an answer end it.
pub(crate) fn watch_over(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(2))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(sockopt::set_tcp_user_timeout(stream, 10_000)?)
}

/// A silence of this length ends it instead; a quiet connection is asked every half of that.
pub(crate) fn give_up_after(stream: BorrowedFd<'_>, silence: Duration) -> io::Result<()> {
    use rustix::net::sockopt;
    // The kernel counts in whole seconds.
    let asked_every = (silence / 2).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(stream, asked_every)?;
    sockopt::set_tcp_keepintvl(stream, asked_every)?;
    Ok(sockopt::set_tcp_user_timeout(stream, silence.as_millis() as u32)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_told() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let error = Listener::bind(listener.local_addr()).unwrap_err().to_string();
        assert!(error.contains(&format!("port {} is in use", listener.local_addr().port())));
        assert!(error.contains("--port") && error.contains("oxiray stop"));
    }

    #[test]
    fn an_address_elsewhere_is_told() {
        // From the block reserved for documentation.
        let error = Listener::bind("192.0.2.1:0".parse().unwrap()).unwrap_err();
        assert!(matches!(error, NetError::NotOurAddress { .. }), "{error}");
    }
}
