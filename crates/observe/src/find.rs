//! Where sessions are: directories of one user on this machine, each with a socket.

use std::fs;
use std::path::{Path, PathBuf};

use oxiray_sys::packet;

use crate::error::{Error, Result};
use crate::session::Session;

/// Where sessions live; `OXIRAY_TMPDIR` overrides it.
pub fn base() -> PathBuf {
    match std::env::var_os("OXIRAY_TMPDIR") {
        Some(path) if !path.is_empty() => path.into(),
        _ => format!("/tmp/oxiray-{}", rustix::process::getuid().as_raw()).into(),
    }
}

/// The directories of all sessions, the newest last. Some may have ended.
pub fn sessions(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().filter_map(std::result::Result::ok);
    let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with("session_"));
    let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The sessions that run, the newest first; of the nodes of one cluster, one.
pub fn running(base: &Path) -> Vec<Session> {
    let mut found: Vec<Session> = Vec::new();
    for path in sessions(base).iter().rev() {
        // A session that ended meanwhile is none.
        let Ok(session) = Session::open(path) else {
            continue;
        };
        let control = session.control();
        if control.is_none() || found.iter().all(|other| other.control() != control) {
            found.push(session);
        }
    }
    found
}

/// Whether something listens in a session's directory. Unlike [`Session::open`] this does not wait
/// for a word of it, which one that hangs never says.
pub fn listens(session: &Path) -> bool {
    packet::connect_to(&session.join("node.sock")).is_ok()
}

/// The session that is meant by an address: the directory of one, its name, or where the head of
/// a cluster is reached; the newest if there is none, or it is `auto`.
pub fn session(address: Option<&str>) -> Result<Session> {
    let base = base();
    let address = address.filter(|address| !matches!(*address, "" | "auto" | "local"));
    let Some(address) = address else {
        let newest = sessions(&base).into_iter().rev().find_map(|path| Session::open(&path).ok());
        return newest.ok_or(Error::NothingRuns(base));
    };
    if address.contains('/') {
        return Session::open(Path::new(address));
    }
    if address.starts_with("session_") {
        return Session::open(&base.join(address));
    }
    let meant = running(&base).into_iter().find(|session| session.control() == Some(address));
    meant.ok_or_else(|| Error::NoSuchSession(address.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_hangs_listens_and_one_that_ended_does_not() {
        let base = std::env::temp_dir().join(format!("oxiray-find-{}", std::process::id()));
        let session = base.join("session_1");
        fs::create_dir_all(&session).expect("a folder");
        assert!(!listens(&session));
        let socket = packet::listen_at(&session.join("node.sock")).expect("a socket");
        assert!(listens(&session), "though nobody takes the connection");
        drop(socket);
        assert!(!listens(&session), "though its file is there");
        assert_eq!(sessions(&base), [session]);
        fs::remove_dir_all(base).expect("it is ours");
    }
}
