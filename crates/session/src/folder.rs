//! The folder of all sessions of our user on this machine.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use oxiray_sys::clock::{local_second, wall_ns};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};

use crate::directory::{Directory, ours, refused};
use crate::hold::Hold;
use crate::place::Place;
use crate::session::Session;

/// How the name of each session begins.
pub(crate) const PREFIX: &str = "session_";
/// How often what may still be written to is tried to be removed, and a lost race is run again.
const ATTEMPTS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(5);

/// See the module documentation.
#[derive(Debug)]
pub struct Folder {
    directory: Directory,
}

impl Folder {
    /// The folder, if there is one.
    pub fn find() -> io::Result<Option<Self>> {
        Ok(Place::of_environment().open()?.map(|directory| Self { directory }))
    }

    /// The folder, made if there is none.
    pub fn open_or_make() -> io::Result<Self> {
        Ok(Self { directory: Place::of_environment().open_or_make()? })
    }

    /// A directory in which the user wants a session to be, instead of in the folder. It may be for
    /// others, too, as long as they cannot replace what is in it.
    pub fn of_user(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let unusable = |error: io::Error| {
            io::Error::new(error.kind(), format!("{} cannot be used: {error}", path.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(unusable)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            openat(CWD, &path, flags, Mode::empty()).map_err(|error| unusable(error.into()))?;
        let about = fstat(&fd)?;
        let is_trusted = about.st_uid == ours() || about.st_uid == 0;
        let (writable, sticky) = (about.st_mode & 0o022 != 0, about.st_mode & 0o1000 != 0);
        if !is_trusted || (writable && !sticky) {
            return Err(refused(format!(
                "{} belongs to user {} with mode {:o}: others could put something else in the \
                 place of a session. Choose a directory of your own",
                path.display(),
                about.st_uid,
                about.st_mode & 0o7777
            )));
        }
        Ok(Self { directory: Directory::new(fd, path) })
    }

    /// Whatever a session's directory is in.
    pub(crate) fn around(session: &Directory) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(session.as_fd(), "..", flags, Mode::empty())?;
        let path = session.path().parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self { directory: Directory::new(fd, path) })
    }

    /// Where it is, for people.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The folder itself.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Waits until no other command changes what is started here, until the file is dropped.
    pub fn lock(&self) -> io::Result<File> {
        // Of its own: the folder's descriptor may be shared.
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = openat(&self.directory, ".", flags, Mode::empty())?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file.into())
    }

    /// The names of all sessions, the newest last; some have ended.
    pub fn sessions(&self) -> Vec<String> {
        let mut names = self.directory.names();
        names.retain(|name| name.starts_with(PREFIX));
        names
    }

    /// Looks at the session of that name.
    pub fn session(&self, name: &str) -> io::Result<Session> {
        Ok(Session::seen(self.directory.open(name)?))
    }

    /// Those whose node service is there, the newest last.
    pub fn running(&self) -> Vec<Session> {
        let all = self.sessions().into_iter().filter_map(|name| self.session(&name).ok());
        all.filter(Session::is_there).collect()
    }

    /// A name for a session that begins now.
    pub fn new_name() -> String {
        let now = wall_ns();
        let micros = now / 1000 % 1_000_000;
        format!("{PREFIX}{}_{micros:06}_{}", local_second(now), std::process::id())
    }

    /// Makes the directory of a session, which lives as long as it is held.
    pub fn make_session(&self, name: &str) -> io::Result<Session> {
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(BETWEEN);
            }
            let directory = match self.directory.make(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            // H-2: somebody may have taken it for one that was left.
            match Hold::shared(&directory) {
                Ok(Some(hold)) => return Session::made(directory, hold),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!(
            "{} cannot be made: it is there",
            self.path().join(name).display()
        )))
    }

    /// Removes a session, which nobody uses. What was killed a moment ago may just make one more
    /// file.
    pub(crate) fn remove(&self, name: &str) {
        for _ in 0..ATTEMPTS {
            if self.directory.remove(name) {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}
