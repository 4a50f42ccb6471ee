//! What can go wrong between nodes, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a text is not a token. Never holds the text itself, which may be nearly a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It does not begin like one.
    #[error(
        "this is not a cluster token: a token begins with \"oxiray-\"; run `oxiray token` on the \
         head machine to see it"
    )]
    Prefix,
    /// Part of it is missing, or there is too much.
    #[error(
        "the cluster token has {found} characters where it should have {expected}; copy all of it: \
         run `oxiray token` on the head machine to see it"
    )]
    Length {
        /// Characters it has.
        found: usize,
        /// Characters a token has.
        expected: usize,
    },
    /// A character that no token has.
    #[error(
        "the cluster token has a wrong character at position {position}; run `oxiray token` on the \
         head machine to see it"
    )]
    Character {
        /// Which one, from 1.
        position: usize,
    },
    /// All characters are possible, but not together.
    #[error(
        "the cluster token has a typing error; run `oxiray token` on the head machine and copy it"
    )]
    Checksum,
}

/// Why a node cannot take part in a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The keyring file cannot be read or written.
    #[error("cannot use the cluster's key file {}: {source}", .path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others than its owner can read the keyring file.
    #[error(
        "the cluster's key file {} can be read by other users (its mode is {mode:03o}); run \
         `chmod 600 {}`, and if somebody may have read it, make a new token", .path.display(),
         .path.display()
    )]
    KeyFileExposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The keyring file is somebody else's.
    #[error(
        "the cluster's key file {} belongs to user {owner}, not to user {us} who runs this; run as \
         that user, or make a copy of your own and `chmod 600` it", .path.display()
    )]
    KeyFileOwner {
        /// The file.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// A line of the keyring file is no token.
    #[error("line {line} of the cluster's key file {} is not usable: {source}", .path.display())]
    KeyFileLine {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        source: TokenError,
    },
    /// The keyring file holds no token.
    #[error(
        "the cluster's key file {} holds no token; put into it what `oxiray token` says on the \
         head machine", .path.display()
    )]
    KeyFileEmpty {
        /// The file.
        path: PathBuf,
    },
    /// Certificates could not be made. Not expected.
    #[error("cannot make this node's certificate: {reason}")]
    Certificate {
        /// What the library says.
        reason: String,
    },
    /// Somebody listens there already.
    #[error(
        "port {} is in use on this machine; choose another one with --port (of the control service) \
         or --node-manager-port (of the node), or run `oxiray stop` \
         if an earlier node still runs", .address.port()
    )]
    PortInUse {
        /// Where we wanted to listen.
        address: SocketAddr,
    },
    /// The address is not one of this machine's.
    #[error("{} is not an address of this machine; name one that is, or 0.0.0.0 for all", .address.ip())]
    NotOurAddress {
        /// Where we wanted to listen.
        address: SocketAddr,
    },
    /// One cannot listen there for another reason.
    #[error(
        "cannot listen on {address}: {source}; choose another port with --port or --node-manager-port"
    )]
    Listen {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// Why a connection is over. After any of these it is to be dropped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The other side ended it. Connecting again may help.
    #[error("the other side closed the connection")]
    Closed,
    /// One of the two sides does not accept the other. Connecting again does not help.
    #[error("{0}")]
    Refused(String),
    /// A frame is longer than frames may be.
    #[error("a frame of {length} bytes is longer than frames may be (16 MiB)")]
    BadFrame {
        /// Its length.
        length: u64,
    },
    /// The network, or this machine. Connecting again may help.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LinkError {
    /// Whether nothing came for long, or no way leads there: who is there may live. Otherwise the
    /// other side has ended the connection, or has no more of it.
    pub fn is_silence(&self) -> bool {
        use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable, TimedOut};
        let silent = [HostUnreachable, NetworkDown, NetworkUnreachable, TimedOut];
        matches!(self, Self::Io(error) if silent.contains(&error.kind()))
    }

    /// Whether connecting again may help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Closed | Self::Io(_))
    }
}
