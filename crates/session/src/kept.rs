//! What stays of sessions that have ended: logs, events and the record of the end, of the last ones.
//!
//! A directory whose lock nobody holds is one of an ended session. Whoever ends one, and whoever
//! starts the next one, leaves only what can be looked at in there, and removes the oldest that are
//! too many, or too much together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use oxiray_settings::KEEP_SESSIONS;

use crate::directory::Directory;
use crate::folder::Folder;
use crate::hold::{Hold, LOCK};
use crate::record::RECORD;
use crate::session::{SOCKET, Session};

/// All of them together have no more than this, nor than this part of the file system, which may
/// be a small one in memory.
const MOST_BYTES: u64 = 1 << 30;
const MOST_OF_FILE_SYSTEM: u64 = 10;
/// What stays of one.
const STAYS: [&str; 3] = ["events", "logs", RECORD];

/// How many ended sessions are kept.
pub fn how_many() -> usize {
    let many = KEEP_SESSIONS.count().unwrap_or_else(|_| KEEP_SESSIONS.default_count());
    many.try_into().unwrap_or(usize::MAX)
}

/// Removes what nobody looks at when a session has ended.
pub(crate) fn strip(directory: &Directory) {
    for name in directory.names() {
        if name != LOCK && !STAYS.contains(&name.as_str()) {
            directory.remove(&name);
        }
    }
}

/// A session that has ended, and is ours to remove.
struct Ended {
    /// In seconds and nanoseconds: nothing of its directory itself was changed since.
    at: (i64, u64),
    name: String,
    bytes: u64,
    _hold: Hold,
}

impl Folder {
    /// The sessions that have ended, the one that ended last at the end.
    pub fn ended(&self) -> Vec<Session> {
        let all = self.sessions().into_iter().filter_map(|name| {
            let session = self.session(&name).ok()?;
            let about = self.directory().about(&name).ok()?;
            // It may be in the making, or hang: then it is none of these.
            let directory = self.directory().open(&name).ok()?;
            Hold::alone(&directory).ok()??;
            Some(((about.st_mtime, about.st_mtime_nsec), session))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, session)| session).collect()
    }

    /// Ends what a session left that nobody is there to end: its node service was killed.
    pub fn sweep(&self) {
        for name in self.sessions() {
            // One that was ended has no socket any more.
            let left = self.directory().open(&name);
            if left.is_ok_and(|directory| directory.about(SOCKET).is_ok()) {
                self.end_left(&name);
            }
        }
    }

    /// Ends what is left of a session; true: there is no such session any more, or it has ended.
    pub fn end_left(&self, name: &str) -> bool {
        let Ok(directory) = self.directory().open(name) else {
            return self.directory().about(name).is_err();
        };
        let Ok(Some(_hold)) = Hold::alone(&directory) else {
            return false;
        };
        strip(&directory);
        if how_many() == 0 || is_empty(&directory) {
            self.remove(name);
        }
        true
    }

    /// Removes the oldest of the ended sessions that are too many, or too much.
    pub fn tidy(&self) {
        self.keep(how_many(), self.budget());
    }

    /// Keeps the last so many ended sessions, with no more than so many bytes.
    pub(crate) fn keep(&self, most: usize, budget: u64) {
        let mut ended: Vec<Ended> =
            self.sessions().into_iter().filter_map(|name| self.take_ended(name)).collect();
        ended.sort_unstable_by(|a, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
        let mut bytes: u64 = ended.iter().map(|ended| ended.bytes).sum();
        let mut left = ended.len();
        for ended in &ended {
            if left <= most && (bytes <= budget || left == 1) {
                break;
            }
            self.remove(&ended.name);
            bytes -= ended.bytes;
            left -= 1;
        }
        if let (true, Some(last)) = (left == 1 && bytes > budget, ended.last()) {
            cut(&self.path().join(&last.name), bytes - budget);
        }
    }

    fn take_ended(&self, name: String) -> Option<Ended> {
        let directory = self.directory().open(&name).ok()?;
        let hold = Hold::alone(&directory).ok()??;
        strip(&directory);
        if is_empty(&directory) {
            self.remove(&name);
            return None;
        }
        let about = self.directory().about(&name).ok()?;
        let bytes = files(directory.path()).iter().map(|file| file.bytes).sum();
        Some(Ended { at: (about.st_mtime, about.st_mtime_nsec), name, bytes, _hold: hold })
    }

    fn budget(&self) -> u64 {
        let space = rustix::fs::fstatvfs(self.directory());
        let part = space.map_or(u64::MAX, |space| {
            space.f_blocks.saturating_mul(space.f_frsize) / MOST_OF_FILE_SYSTEM
        });
        MOST_BYTES.min(part)
    }
}

fn is_empty(directory: &Directory) -> bool {
    let mut names = directory.names();
    names.retain(|name| name != LOCK);
    names.is_empty()
}

/// One file of an ended session.
struct Kept {
    written: (i64, i64),
    bytes: u64,
    path: PathBuf,
}

/// All files of an ended session: those of its folders, which have no folders.
fn files(session: &Path) -> Vec<Kept> {
    let folders = STAYS.iter().filter_map(|name| fs::read_dir(session.join(name)).ok());
    let kept = |entry: fs::DirEntry| {
        let about = entry.metadata().ok()?;
        let (written, bytes) = ((about.mtime(), about.mtime_nsec()), about.blocks() * 512);
        Some(Kept { written, bytes, path: entry.path() })
    };
    folders.flatten().filter_map(Result::ok).filter_map(kept).collect()
}

/// Removes the oldest files of a session, until so many bytes are gone.
fn cut(session: &Path, mut bytes: u64) {
    let mut files = files(session);
    files.sort_unstable_by_key(|file| file.written);
    for file in files {
        if bytes == 0 {
            return;
        }
        if fs::remove_file(&file.path).is_ok() {
            bytes = bytes.saturating_sub(file.bytes);
        }
    }
}
