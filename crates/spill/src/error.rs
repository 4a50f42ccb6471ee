//! What can go wrong when spilling, and what to do about it.

use std::path::PathBuf;

use oxiray_words::show_bytes;

/// Why something was not spilled or not restored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The setting names no place to spill to.
    #[error(
        "cannot spill objects to {entry:?}: {reason}; give one or more directories, or exactly one \
         URL such as s3://bucket/prefix"
    )]
    BadTarget {
        /// The setting, or the entry of it that is wrong.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory cannot be used at all.
    #[error(
        "cannot spill objects to the directory {}: {reason}; make it a directory that this user \
         may write to, or name another one", .directory.display()
    )]
    Directory {
        /// The directory as the user named it.
        directory: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A URL cannot be used at all.
    #[error(
        "cannot spill objects to {url}: {reason}; check the URL, the credentials and the endpoint, \
         which come from environment variables such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT"
    )]
    Url {
        /// The URL, without user and password.
        url: String,
        /// Why not.
        reason: String,
    },
    /// Every directory is full.
    #[error(
        "cannot spill {}: no space is left in {directories}; free some space there, name a directory \
         on another disk as well, or keep fewer objects alive",
        show_bytes(*bytes)
    )]
    OutOfDisk {
        /// Bytes that were to be written.
        bytes: u64,
        /// The directories tried, separated by commas.
        directories: String,
    },
    /// Nothing was written, for another reason than a full disk.
    #[error(
        "cannot spill {}: {reason}; the objects stay in memory and it is tried again",
        show_bytes(*bytes)
    )]
    NotWritten {
        /// Bytes that were to be written.
        bytes: u64,
        /// What was tried, and how it failed.
        reason: String,
    },
    /// What was spilled is not there any more, or is not what was written.
    #[error(
        "a spilled object is lost: {reason}; leave the files in the spill directory alone while the \
         session runs"
    )]
    Lost {
        /// What was found instead.
        reason: String,
    },
    /// It could not be read now. It may still be there: trying again can help.
    #[error("cannot read a spilled object back: {reason}; trying again can help")]
    NotRead {
        /// What failed.
        reason: String,
    },
    /// The session is over.
    #[error("the session is over and its spilled objects are removed; start a new session")]
    Closed,
}

impl SpillError {
    /// Whether the same can succeed later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::OutOfDisk { .. } | Self::NotWritten { .. } | Self::NotRead { .. })
    }
}
