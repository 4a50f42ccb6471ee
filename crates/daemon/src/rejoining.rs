//! A node that was given up begins again: the same process, directory and configuration, and nothing
//! else of what it was.
//!
//! It runs its program anew rather than a second time: so no thread, mapping or socket of the old
//! node is left. What it needs of the old one are two descriptors: its configuration, whose file is
//! gone, and the lock of its session, which would be swept away by others in the moment between.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use oxiray_session::Session;
use oxiray_sys::memory::memory_file;
use oxiray_sys::process;
use oxiray_wire::control::NodeConfig;
use prost::Message;
use rustix::io::{FdFlags, fcntl_setfd, pwrite};

use crate::io::Ending;

/// How long a node that was given up tries to join again, and how often.
const WITHIN: Duration = Duration::from_secs(60);
const TRY_EVERY: Duration = Duration::from_millis(500);

/// What the programs of a node hear that is given up.
pub(crate) fn last_words(why: &str) -> String {
    format!("{why}. It joins the cluster again as a new node: connect to that with init()")
}

/// A session is over; one whose node is to begin again stays, empty but for its logs.
pub(crate) fn end_or_clear(
    ending: Ending,
    config: NodeConfig,
    session: Session,
) -> Option<(NodeConfig, Session)> {
    if ending != Ending::GivenUp {
        session.end();
        return None;
    }
    session.clear();
    Some((config, session))
}

/// Runs this program anew, as a node that is to join again. Comes back only if that cannot be.
pub(crate) fn begin_again(config: &NodeConfig, session: &Session) -> io::Error {
    let attempt = || -> io::Result<Command> {
        let bytes = config.encode_to_vec();
        let file = memory_file("oxiray-config", bytes.len())?;
        pwrite(&file, &bytes, 0)?;
        let hold = session.lock().ok_or_else(|| io::Error::other("the session is not held"))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg("node").arg("--config").arg(format!("/proc/self/fd/{}", file.as_raw_fd()));
        for descriptor in [file.as_fd(), hold] {
            inherit(descriptor)?;
            command.arg("--again").arg(descriptor.as_raw_fd().to_string());
        }
        // The next program has it.
        std::mem::forget(file);
        Ok(command)
    };
    match attempt() {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn inherit(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// The descriptors that an earlier life of this node left, to be closed when they are not needed.
pub(crate) fn left(again: &[i32]) -> io::Result<Vec<OwnedFd>> {
    again.iter().map(|descriptor| process::inherited_fd(*descriptor)).collect()
}

/// Joins as `attempt` does, again and again if this node was one before: the control service may
/// not be to be reached yet.
pub(crate) fn join<T>(
    is_again: bool,
    mut attempt: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let until = Instant::now() + WITHIN;
    loop {
        match attempt() {
            Err(why) if is_again && Instant::now() < until => {
                tracing::warn!(why, "cannot join again yet");
                std::thread::sleep(TRY_EVERY);
            }
            how => return how,
        }
    }
}

/// Where the configuration of a node is read from.
pub(crate) fn read_config(path: &Path) -> io::Result<NodeConfig> {
    NodeConfig::decode(&std::fs::read(path)?[..]).map_err(io::Error::other)
}
