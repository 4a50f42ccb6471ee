//! A directory of this machine, by `fjall`: a log, which the kernel has once
//! it is written, so that nothing is lost when the process is killed and no
//! write waits for the disk. (When the machine itself loses power the last
//! moments may be missing; its nodes are gone then, too.)
//!
//! Of rusqlite, redb and fjall: the first needs a C compiler; the second keeps
//! nothing over a kill without an fsync each, milliseconds instead of microseconds.
//! fjall refuses everything after a write that failed, such as on a full disk; it
//! is then closed and, at the next write, opened again.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use oxiray_control::{Change, Record, Table};

use crate::{Persist, PersistError};

/// Ends a table's name in a key.
const SEPARATOR: u8 = 0;

struct Opened {
    database: Database,
    all: Keyspace,
}

/// Keeps state in a directory.
pub struct File {
    path: PathBuf,
    /// None after a write failed.
    opened: Option<Opened>,
}

impl File {
    /// Opens the directory, or makes it, for its owner alone.
    pub fn open(path: PathBuf) -> Result<Self, PersistError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| of_io(&path, source))?;
        let opened = Some(Self::open_database(&path)?);
        Ok(Self { path, opened })
    }

    fn open_database(path: &Path) -> Result<Opened, PersistError> {
        let failed = |error| of_fjall(path, error);
        let database = Database::builder(path).worker_threads(1).open().map_err(failed)?;
        let all = database.keyspace("control", KeyspaceCreateOptions::default).map_err(failed)?;
        Ok(Opened { database, all })
    }

    fn opened(&mut self) -> Result<&Opened, PersistError> {
        if self.opened.is_none() {
            self.opened = Some(Self::open_database(&self.path)?);
        }
        Ok(self.opened.as_ref().expect("was just opened"))
    }
}

impl Persist for File {
    fn load(&mut self) -> Result<Vec<Record>, PersistError> {
        let path = self.path.clone();
        let mut records = Vec::new();
        for item in self.opened()?.all.iter() {
            let (key, value) = item.into_inner().map_err(|error| of_fjall(&path, error))?;
            let (table, key) = split_key(&key).ok_or_else(|| PersistError::Unreadable {
                path: path.clone(),
                why: "it contains what no version of oxiray wrote".into(),
            })?;
            records.push(Record { table, key: key.to_vec(), value: value.to_vec() });
        }
        Ok(records)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), PersistError> {
        let Opened { database, all } = self.opened()?;
        let mut batch = database.batch().durability(Some(PersistMode::Buffer));
        for change in changes {
            let (table, key) = change.place();
            match change {
                Change::Put(record) => batch.insert(all, join_key(table, key), &record.value[..]),
                Change::Delete { .. } => batch.remove(all, join_key(table, key)),
            }
        }
        batch.commit().map_err(|error| {
            // It accepts nothing any more, and what it has is as before.
            self.opened = None;
            of_fjall(&self.path, error)
        })
    }

    fn describe(&self) -> String {
        self.path.display().to_string()
    }
}

fn join_key(table: Table, key: &[u8]) -> Vec<u8> {
    let mut joined = table.name().as_bytes().to_vec();
    joined.push(SEPARATOR);
    joined.extend_from_slice(key);
    joined
}

fn split_key(joined: &[u8]) -> Option<(Table, &[u8])> {
    let at = joined.iter().position(|&byte| byte == SEPARATOR)?;
    let table = Table::of_name(std::str::from_utf8(&joined[..at]).ok()?)?;
    Some((table, &joined[at + 1..]))
}

fn of_fjall(path: &Path, error: fjall::Error) -> PersistError {
    let path = path.to_owned();
    match error {
        fjall::Error::Io(source) => of_io(&path, source),
        fjall::Error::Storage(fjall::LsmError::Io(source)) => of_io(&path, source),
        fjall::Error::Locked => PersistError::Locked { path },
        // A thread of its own failed to write; opening it again says why.
        fjall::Error::Poisoned => {
            let source = io::Error::other("an earlier write failed");
            PersistError::Directory { path, source }
        }
        other => PersistError::Unreadable { path, why: other.to_string() },
    }
}

fn of_io(path: &Path, source: io::Error) -> PersistError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => PersistError::DiskFull { path },
        _ => PersistError::Directory { path, source },
    }
}
