//! Which session is meant: of those in our folder on this machine, by its address.

use std::io;
use std::path::Path;

use oxiray_session::{Folder, Session as Directory, folder_path};

use crate::error::{Error, Result};
use crate::session::Session;

/// The folder of our sessions; none: there are none.
pub fn folder() -> Result<Option<Folder>> {
    Folder::find().map_err(Error::Folder)
}

/// The sessions that run, the newest first; of the nodes of one cluster, one.
pub fn running() -> Result<Vec<Session>> {
    let mut found: Vec<Session> = Vec::new();
    let Some(folder) = folder()? else {
        return Ok(found);
    };
    for there in folder.running().iter().rev() {
        // A session that ended meanwhile is none.
        let Ok(session) = Session::open(there.path()) else {
            continue;
        };
        let control = session.control();
        if control.is_none() || found.iter().all(|other| other.control() != control) {
            found.push(session);
        }
    }
    Ok(found)
}

/// There is nothing to look at.
pub fn nothing_runs() -> Error {
    Error::NothingRuns(folder_path())
}

/// The session that is meant by an address: the directory of one, its name, or where the head of
/// a cluster is reached; the newest if there is none, or it is `auto`; `last` is the one that ended
/// last. By its directory or its name also one that has ended is found.
pub fn session(address: Option<&str>) -> Result<Session> {
    let address = address.filter(|address| !matches!(*address, "" | "auto" | "local"));
    match address {
        Some("last") => {
            let ended = folder()?.map(|folder| folder.ended()).unwrap_or_default();
            let last = ended.last().ok_or_else(|| Error::NothingKept(folder_path()))?;
            Session::open_ended(last.path())
        }
        Some(path) if path.contains('/') => running_or_ended(Path::new(path)),
        Some(name) if name.starts_with("session_") => {
            let folder = folder()?.ok_or_else(|| Error::NoSuchSession(name.to_owned()))?;
            let session = folder.session(name).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::NoSuchSession(name.to_owned()),
                _ => Error::Folder(error),
            })?;
            running_or_ended(session.path())
        }
        Some(address) => {
            let meant = running()?.into_iter().find(|session| session.control() == Some(address));
            meant.ok_or_else(|| Error::NoSuchSession(address.to_owned()))
        }
        None => {
            let running = folder()?.map(|folder| folder.running()).unwrap_or_default();
            let newest = running.iter().rev().find_map(|there| Session::open(there.path()).ok());
            newest.ok_or_else(nothing_runs)
        }
    }
}

fn running_or_ended(path: &Path) -> Result<Session> {
    // One that hangs is there, and has not ended.
    match Directory::at(path) {
        Ok(there) if there.has_ended() => Session::open_ended(path),
        _ => Session::open(path),
    }
}
