//! Which directory the sessions' folder is, and whether it may be.
//!
//! `OXIRAY_TMPDIR` if it is set; else `oxiray` in `XDG_RUNTIME_DIR`, where that is there and ours;
//! else `/tmp/oxiray-UID`. Names that we choose ourselves are known to everybody, so that anybody
//! may have put something there: a link is not followed, and what is ours is made private. A
//! directory that the user named may have another purpose, too: the links on its path are theirs,
//! and its mode is changed only if it is empty.
//!
//! A folder counts for whose it is and who may enter, not for its path: whoever could lead us
//! astray on the way could only lead us to another folder that is ours, and private (F-1).

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use oxiray_settings::TMPDIR;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::directory::{Directory, ours, refused};

/// Where the folder is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// By the user; otherwise the name is our own.
    is_named: bool,
}

/// Where the sessions' folder is, or would be made.
pub fn path() -> PathBuf {
    Place::of_environment().path
}

impl Place {
    pub(crate) fn of_environment() -> Self {
        if let Some(named) = TMPDIR.path() {
            let named = PathBuf::from(named);
            return Self { path: std::path::absolute(&named).unwrap_or(named), is_named: true };
        }
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| is_ours(path));
        let path = match runtime {
            Some(runtime) => runtime.join("oxiray"),
            None => format!("/tmp/oxiray-{}", ours()).into(),
        };
        Self { path, is_named: false }
    }

    #[cfg(test)]
    pub(crate) fn named(path: PathBuf) -> Self {
        Self { path, is_named: true }
    }

    #[cfg(test)]
    pub(crate) fn our_own(path: PathBuf) -> Self {
        Self { path, is_named: false }
    }

    /// Opens it; none: there is none.
    pub(crate) fn open(&self) -> io::Result<Option<Directory>> {
        let links = if self.is_named { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = links | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match openat(CWD, &self.path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.unusable(&error.into())),
        };
        let about = fstat(&fd)?;
        if about.st_uid != ours() {
            return Err(self.foreign(about.st_uid));
        }
        let directory = Directory::new(fd, self.path.clone());
        if about.st_mode & 0o077 != 0 {
            if self.is_named && !directory.names().is_empty() {
                let (path, mode) = (self.path.display(), about.st_mode & 0o7777);
                let by = TMPDIR.name;
                return Err(refused(format!(
                    "others may use {path} (mode {mode:o}), which {by} names, and it has files: \
                     sessions are not kept there. Name a directory that only you can enter, or a \
                     new one; `chmod 700 {path}` makes this one so"
                )));
            }
            rustix::fs::fchmod(&directory, Mode::RWXU)?;
        }
        Ok(Some(directory))
    }

    /// Opens it, made if there is none.
    pub(crate) fn open_or_make(&self) -> io::Result<Directory> {
        if let Some(directory) = self.open()? {
            return Ok(directory);
        }
        let made = DirBuilder::new().mode(0o700).recursive(self.is_named).create(&self.path);
        match made {
            // Somebody was quicker: who, is seen when it is opened.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let path = self.path.display();
                return Err(io::Error::new(
                    error.kind(),
                    format!("cannot make {path}, where sessions are kept: {error}. {REMEDY}"),
                ));
            }
            _ => {}
        }
        let gone = || io::Error::other(format!("{} is removed all the time", self.path.display()));
        self.open()?.ok_or_else(gone)
    }

    fn foreign(&self, owner: u32) -> io::Error {
        refused(format!(
            "{} belongs to user {owner}, not to you (user {}): it is not used. Have it removed, or \
             s{}",
            self.path.display(),
            ours(),
            &REMEDY[1..]
        ))
    }

    /// What is there cannot be opened: says whose it is, if that is the reason.
    fn unusable(&self, error: &io::Error) -> io::Error {
        let path = self.path.display();
        match fs::symlink_metadata(&self.path) {
            Ok(about) if about.uid() != ours() => self.foreign(about.uid()),
            Ok(about) if !about.is_dir() => {
                let what = if about.is_symlink() { "a link" } else { "a file" };
                refused(format!(
                    "{path} is {what}, not a directory. Remove it, or s{}",
                    &REMEDY[1..]
                ))
            }
            _ => {
                io::Error::new(error.kind(), format!("{path} cannot be opened: {error}. {REMEDY}"))
            }
        }
    }
}

const REMEDY: &str = "Set OXIRAY_TMPDIR to a directory of your own";

/// A directory of ours that nobody else can enter.
fn is_ours(path: &Path) -> bool {
    path.is_absolute()
        && fs::symlink_metadata(path)
            .is_ok_and(|about| about.is_dir() && about.uid() == ours() && about.mode() & 0o077 == 0)
}
