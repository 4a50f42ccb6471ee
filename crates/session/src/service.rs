//! Who listens at a socket in a directory of ours: the kernel says it, not a file (F-3, F-4).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use oxiray_sys::packet;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::directory::Directory;

/// A process of ours that listens.
#[derive(Debug)]
pub struct Service {
    process: OwnedFd,
}

impl Service {
    /// The one that listens at `name`; none: nobody does, or somebody who cannot be seen from here.
    pub fn at(directory: &Directory, name: &str) -> io::Result<Option<Self>> {
        let Some(pid) = listener(directory, name)? else {
            return Ok(None);
        };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(None);
        };
        // Its number may have been given to another before that was opened. Not if it still listens.
        Ok((listener(directory, name)? == Some(pid)).then_some(Self { process }))
    }
}

/// Who listens at `name` now.
fn listener(directory: &Directory, name: &str) -> io::Result<Option<Pid>> {
    match packet::connect_at(directory, name) {
        Ok(socket) => Ok(packet::peer(&socket)?.pid.and_then(|pid| Pid::from_raw(pid as i32))),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

/// A descriptor of the process: readable at its end.
impl AsFd for Service {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}
