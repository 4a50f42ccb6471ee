//! The secrets a node knows: the cluster's current one, and those it had before.
//!
//! A token is changed in three steps, without a moment in which nodes cannot talk: `rotate` on the
//! head machine; give the new token to every node, at its own time; `drop_previous`. In between,
//! nodes with either token understand each other (`identity` says how).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::NetError;
use crate::secret::Secret;

/// The secrets a node knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keyring {
    /// By which this node shows that it is a member.
    pub current: Secret,
    /// By which others may still do so, latest first.
    pub previous: Vec<Secret>,
}

impl Keyring {
    /// Of one secret.
    pub fn new(current: Secret) -> Self {
        Self { current, previous: Vec::new() }
    }

    /// Makes a new secret the current one; the one before stays good.
    pub fn rotate(&mut self) {
        let before = std::mem::replace(&mut self.current, Secret::generate());
        self.previous.insert(0, before);
    }

    /// From now on only the current secret is good.
    pub fn drop_previous(&mut self) {
        self.previous.clear();
    }

    /// All secrets, the current one first.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// Writes the file: one token per line, the current one first, for its owner alone. Whoever
    /// reads at the same time sees all of the old file or all of the new.
    pub fn save(&self, path: &Path) -> Result<(), NetError> {
        let text: String = self.secrets().map(|secret| format!("{secret}\n")).collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let written = write_new(&draft, &text).and_then(|()| fs::rename(&draft, path));
        written.map_err(|source| {
            let _ = fs::remove_file(&draft);
            NetError::KeyFile { path: path.to_owned(), source }
        })
    }

    /// Reads the file. Refuses one that others can read, or that somebody else could have written.
    pub fn load(path: &Path) -> Result<Self, NetError> {
        let failed = |source| NetError::KeyFile { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        // Of the open file, not of its name, which may mean another file by now.
        let metadata = file.metadata().map_err(failed)?;
        let us = rustix::process::geteuid().as_raw();
        if metadata.uid() != us {
            return Err(NetError::KeyFileOwner {
                path: path.to_owned(),
                owner: metadata.uid(),
                us,
            });
        }
        if metadata.mode() & 0o077 != 0 {
            let mode = metadata.mode() & 0o777;
            return Err(NetError::KeyFileExposed { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Self::parse(&text, path)
    }

    /// Reads the text of the file; `path` is for what is said about it.
    pub fn parse(text: &str, path: &Path) -> Result<Self, NetError> {
        let mut secrets = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let secret = Secret::parse(line).map_err(|source| NetError::KeyFileLine {
                path: path.to_owned(),
                line: index + 1,
                source,
            })?;
            secrets.push(secret);
        }
        if secrets.is_empty() {
            return Err(NetError::KeyFileEmpty { path: path.to_owned() });
        }
        let current = secrets.remove(0);
        Ok(Self { current, previous: secrets })
    }
}

/// Writes a file that is not there yet, readable by its owner only from the first moment.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    // One that a crashed process of the same number left.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
