//! What can go wrong when a session is looked at.

use std::io;
use std::path::PathBuf;

/// See the module documentation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no session to look at. Retryable once one was started.
    #[error("no Oxiray session of yours is running (looked in {})", .0.display())]
    NothingRuns(PathBuf),
    /// No session was kept that has ended.
    #[error(
        "no session that has ended is kept in {}; the last {} are, unless OXIRAY_KEEP_SESSIONS says \
         otherwise",
        .0.display(),
        oxiray_session::kept_sessions()
    )]
    NothingKept(PathBuf),
    /// The folder of sessions cannot be used; why, and what to do.
    #[error("{0}")]
    Folder(io::Error),
    /// There is none of that address.
    #[error("this machine has no session or node of a cluster at {0}; `oxiray status` shows all")]
    NoSuchSession(String),
    /// The session ended, or cannot be spoken to.
    #[error("the session at {} cannot be asked: {error}", .session.display())]
    Connection {
        /// Its directory.
        session: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The node service refused.
    #[error("{0}")]
    Refused(String),
    /// An answer did not come in time. Retryable.
    #[error("{0} did not answer in time; is it overloaded, or stopped?")]
    NoAnswer(String),
    /// The node is not there any more, and neither are its files.
    #[error("node {node} is gone: {reason}. Its logs and events were on its machine")]
    NodeGone {
        /// Its id, as far as known, else its number.
        node: String,
        /// Why it left.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{0}")]
    File(String),
    /// There is no such file. Retryable where it may come.
    #[error("{0}")]
    NoSuchFile(String),
    /// A file, or standard output, cannot be written.
    #[error("{} cannot be written: {error}", .path.display())]
    Unwritten {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The question makes no sense, for this reason.
    #[error("{0}")]
    BadQuery(String),
    /// A program that is needed is not there; how to get it.
    #[error("{0}")]
    NotInstalled(&'static str),
    /// A program that is needed failed.
    #[error("{0}")]
    Program(String),
}

impl Error {
    /// Whether the session that was asked, and answered before, has ended.
    pub fn is_end_of_session(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::Refused(_))
    }
}

/// What a session answers, or why it does not.
pub type Result<T> = std::result::Result<T, Error>;
