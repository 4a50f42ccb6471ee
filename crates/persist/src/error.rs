//! What can go wrong with the place where state is kept, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why state cannot be read or written. Never holds a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PersistError {
    /// The URL is none, or of an unknown kind.
    #[error(
        "the store {url} is not understood: {why}. Use `memory:`, a directory, \
         `redis://HOST:PORT` or `rediss://:PASSWORD@HOST:PORT`"
    )]
    Url {
        /// Without a password.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// Another process of this machine uses the directory.
    #[error(
        "the state in {} is in use by another control service of this machine; stop that one \
         first (`oxiray stop`), or keep the state elsewhere", .path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The disk is full. Retryable once there is space.
    #[error("the disk of {} is full; make room there", .path.display())]
    DiskFull {
        /// The directory.
        path: PathBuf,
    },
    /// The directory cannot be used. Retryable.
    #[error("cannot keep state in {}: {source}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What is in the directory is damaged, or not ours.
    #[error(
        "the state in {} cannot be read: {why}. If it is of no value, remove the directory",
        .path.display()
    )]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// What the library says.
        why: String,
    },
    /// Nobody answers there. Retryable.
    #[error("cannot reach Redis at {at}: {why}. Does it run there, and may this machine connect?")]
    Unreachable {
        /// Host and port.
        at: String,
        /// What the system says.
        why: String,
    },
    /// What Redis shows is not trusted.
    #[error(
        "Redis at {at} is not trusted: {why}. If its certificate is signed by an authority of your \
         own, name the authority's file in SSL_CERT_FILE"
    )]
    Certificate {
        /// Host and port.
        at: String,
        /// What is wrong with its certificate.
        why: String,
    },
    /// Something else is there.
    #[error("what is at {at} is not Redis: it answers something else. Check the host and the port")]
    NotRedis {
        /// Host and port.
        at: String,
    },
    /// Redis wants another password.
    #[error(
        "Redis at {at} refuses us: {why}. Give the password in the URL: \
         redis://:PASSWORD@HOST:PORT, or redis://USER:PASSWORD@HOST:PORT"
    )]
    Password {
        /// Host and port.
        at: String,
        /// What Redis says.
        why: String,
    },
    /// Redis does not do what it is asked, such as when its memory is full. Retryable.
    #[error("Redis at {at} does not keep the state: {why}")]
    Redis {
        /// Host and port.
        at: String,
        /// What Redis says.
        why: String,
    },
    /// Another control service uses it.
    #[error(
        "the state in Redis at {at} is in use by the control service on {by}; stop that one \
         first, wait to take over from it (--standby), or keep the state elsewhere (add \
         ?cluster=NAME to the URL for a place of its own)"
    )]
    Taken {
        /// Host and port.
        at: String,
        /// Host and process id.
        by: String,
    },
    /// Another control service used it while this one was away.
    #[error(
        "another control service took over the state in Redis at {at} while this one was away, \
         and has changed it since; start this one again to go on from there"
    )]
    Succeeded {
        /// Host and port.
        at: String,
    },
    /// A place that no other machine reaches cannot be waited for.
    #[error(
        "a standby takes over what its head has kept, so that both must reach it: {url} is of one \
         machine. Give the head's Redis, `redis://HOST:PORT`"
    )]
    NotShared {
        /// Without a password.
        url: String,
    },
    /// There is nothing to wait for.
    #[error(
        "Redis at {at} has the state of no cluster that could be taken over: start the head first, \
         with the same --store, or check the address and ?cluster=NAME"
    )]
    NothingKept {
        /// Host and port.
        at: String,
    },
    /// What was kept is gone: Redis was emptied, or lost its data. Everything must be written anew.
    #[error("Redis at {at} has lost what was kept there")]
    Emptied {
        /// Host and port.
        at: String,
    },
}

impl PersistError {
    /// Whether the same may work later, without anybody changing the settings.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::DiskFull { .. }
            | Self::Directory { .. }
            | Self::Unreachable { .. }
            | Self::Redis { .. } => true,
            Self::Url { .. }
            | Self::Locked { .. }
            | Self::Unreadable { .. }
            | Self::Certificate { .. }
            | Self::NotRedis { .. }
            | Self::Password { .. }
            | Self::Taken { .. }
            | Self::Succeeded { .. }
            | Self::NotShared { .. }
            | Self::NothingKept { .. }
            | Self::Emptied { .. } => false,
        }
    }
}
