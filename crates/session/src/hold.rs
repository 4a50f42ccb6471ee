//! The lock of a session's directory: it lives while somebody holds it (F-5).
//!
//! Everybody who needs the directory holds the lock together with the others: whoever makes it,
//! until its node service holds it; that one to its end; and who reads what an ended one left.
//! Whoever removes something takes it alone. The kernel drops it with the process.
//!
//! - **H-1** Nothing is taken out of a directory whose lock another process holds.
//! - **H-2** Whoever has the lock has it only if the file is still there under that name: it may
//!   have been removed in between. Whoever made the directory begins again then.
//! - **H-3** Where the file system has no locks, nobody can take one alone: nothing is removed.
//! - **H-4** On a file system that several machines share, locks may not reach the others: only
//!   what was made on this machine is removed. Containers of one machine share its locks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use oxiray_sys::machine::{is_mark_of_here, mark};
use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use rustix::io::Errno;

use crate::directory::Directory;

/// The file that is locked.
pub(crate) const LOCK: &str = "lock";

/// A lock that is held, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    file: File,
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Hold {
    /// Holds a directory together with others; none: somebody is about to remove it (H-2).
    pub(crate) fn shared(directory: &Directory) -> io::Result<Option<Self>> {
        let mut file = open(directory)?;
        // Any other error: H-3.
        if flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
            return Ok(None);
        }
        if file.metadata()?.len() == 0 {
            file.write_all(mark().as_bytes())?;
        }
        Self::of(file, directory)
    }

    /// Holds a directory alone; none: it is in use, or not this machine's to remove.
    pub(crate) fn alone(directory: &Directory) -> io::Result<Option<Self>> {
        let mut file = open(directory)?;
        // H-1, H-3.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let mut maker = String::new();
        (&mut file).take(4096).read_to_string(&mut maker)?;
        // H-4. Whoever crashed before it wrote anything left nothing worth keeping.
        if !maker.is_empty() && !is_mark_of_here(&maker) {
            return Ok(None);
        }
        Self::of(file, directory)
    }

    /// H-2.
    fn of(file: File, directory: &Directory) -> io::Result<Option<Self>> {
        let ours = fstat(&file)?;
        match directory.about(LOCK) {
            Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => {
                Ok(Some(Self { file }))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(None),
        }
    }
}

/// Made if it is missing: a directory without one was left in the making.
fn open(directory: &Directory) -> io::Result<File> {
    directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)
}
