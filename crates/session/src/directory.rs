//! A directory of ours, open, and what is in it: by plain names, with no link followed (F-2), and
//! made for its owner alone, whatever the umask says.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

/// What a file of ours may be.
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Files that are read whole are notes; one that is longer than this is none.
const LONGEST_NOTE: u64 = 1 << 20;

/// See the module documentation.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Takes an open directory, reached at `path`. Whose it is was looked at already.
    pub(crate) fn new(fd: OwnedFd, path: PathBuf) -> Self {
        Self { fd, path }
    }

    /// Opens a directory of ours by its path. The last step must not be a link; those before are
    /// the business of whoever named the path: what they lead to must be ours, and private.
    pub fn at(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, &path, flags, Mode::empty())?;
        require_private(&rustix::fs::fstat(&fd)?, &path)?;
        Ok(Self { fd, path })
    }

    /// A directory in it, which must be ours, too.
    pub fn open(&self, name: &str) -> io::Result<Self> {
        let path = self.path.join(plain(name)?);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        require_private(&rustix::fs::fstat(&fd)?, &path)?;
        Ok(Self { fd, path })
    }

    /// Makes a directory in it, which must not be there.
    pub fn make(&self, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.fd, plain(name)?, Mode::RWXU)?;
        // A umask can only have taken something away from us.
        rustix::fs::chmodat(&self.fd, name, Mode::RWXU, AtFlags::empty())?;
        self.open(name)
    }

    /// A directory in it, made if it is not there.
    pub fn open_or_make(&self, name: &str) -> io::Result<Self> {
        match self.make(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(name),
            made => made,
        }
    }

    /// What is in it, sorted. What has no name in UTF-8 is not ours.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.own_path()).into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// What is known of something in it; a link is one.
    pub fn about(&self, name: &str) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.fd, plain(name)?, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens a file of ours in it: a plain one, and no link.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // Without blocking: opening a pipe would wait for its writer.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::openat(&self.fd, plain(name)?, flags, FILE)?);
        let about = rustix::fs::fstat(&file)?;
        if about.st_uid != ours() || !file.metadata()?.is_file() {
            return Err(refused(format!("{} is no file of yours", self.path.join(name).display())));
        }
        if flags.contains(OFlags::CREATE) && about.st_mode & 0o777 != 0o600 {
            rustix::fs::fchmod(&file, FILE)?;
        }
        Ok(file)
    }

    /// The text of a file.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(name, OFlags::RDONLY)?.take(LONGEST_NOTE).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes a file, at once or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let draft = format!(".{}.{}", plain(name)?, std::process::id());
        // One that a crashed process of the same number left.
        self.remove(&draft);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let written = self.file(&draft, flags).and_then(|mut file| file.write_all(bytes));
        let written =
            written.and_then(|()| Ok(rustix::fs::renameat(&self.fd, &*draft, &self.fd, name)?));
        if written.is_err() {
            self.remove(&draft);
        }
        written
    }

    /// Removes a file, or a directory with all that is in it; true: it is gone.
    pub fn remove(&self, name: &str) -> bool {
        if plain(name).is_err() {
            return false;
        }
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => true,
            // What it is not: a directory. The standard library follows no links in there.
            Err(_) => match fs::remove_dir_all(self.own_path().join(name)) {
                Ok(()) => true,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            },
        }
    }

    /// Removes a directory in it, if that is empty.
    pub fn remove_if_empty(&self, name: &str) {
        if plain(name).is_ok() {
            let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR);
        }
    }

    /// Where it is, for people, and for programs that are told of it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where this process finds it, whatever happens to its path.
    fn own_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a file for its owner alone, whatever the umask says and whatever it was before.
pub fn private_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let no_links = OFlags::NOFOLLOW.bits() as i32;
    let file = options.mode(0o600).custom_flags(no_links).open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// The user whose files and processes are ours.
pub(crate) fn ours() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(crate) fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// Refuses a directory that is not ours, or that others may enter.
fn require_private(about: &Stat, path: &Path) -> io::Result<()> {
    let (owner, mode) = (about.st_uid, about.st_mode & 0o777);
    let path = path.display();
    if owner != ours() {
        return Err(refused(format!(
            "{path} belongs to user {owner}, not to you: it is not used. Have it removed"
        )));
    }
    if mode & 0o077 != 0 {
        return Err(refused(format!("others may use {path} (mode {mode:o}): `chmod 700 {path}`")));
    }
    Ok(())
}

/// A name that leads nowhere else.
fn plain(name: &str) -> io::Result<&str> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(io::Error::other(format!("{name:?} is not the name of a file")));
    }
    Ok(name)
}
