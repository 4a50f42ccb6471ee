//! One directory to spill to: this session's own sub-directory of it, and the files therein.
//!
//! Sub-directories of sessions that crashed are removed by the next session that spills to the same
//! directory. A live session holds a lock on a file in its sub-directory; the kernel drops it with
//! the process. The rules that keep two processes from harming each other here:
//!
//! - **D-1** A sub-directory whose lock is held is never removed by others.
//! - **D-2** Whoever removes one takes its lock first, then renames it, so that nobody can come to
//!   own it meanwhile under its old name.
//! - **D-3** Whoever makes one owns it only once it holds the lock on the file that is still there
//!   under that name; otherwise it lost against a remover and begins again.
//! - **D-4** On a file system shared by several machines locks may not reach the others: only
//!   sub-directories made on this machine are removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxiray_sys::machine::{is_mark_of_here, mark};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::record::{CHUNK, Check, Piece, Records, SEAL, file_len};
use crate::{Place, SpillError};

const PREFIX: &str = "oxiray-spill-";
const LOCK: &str = "lock";
/// How often a lost race (D-3) is tried again.
const ATTEMPTS: u32 = 20;
/// For how long a directory that failed is used only if no other works.
const REST: Duration = Duration::from_secs(5);
/// Bytes and pieces collected for one system call.
const GATHER_BYTES: usize = 16 * CHUNK;
const GATHER_PIECES: usize = 512;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Directory {
    /// As the user named it.
    named: PathBuf,
    /// This session's own.
    path: PathBuf,
    /// Held as long as the session lives (D-1).
    _lock: File,
    /// When it last failed, unless it worked since.
    failed: Mutex<Option<Instant>>,
}

impl Directory {
    /// Makes this session's sub-directory of `named`, which may lack its last component.
    pub(crate) fn make(named: &Path, session: &str) -> Result<Self, SpillError> {
        let unusable =
            |reason: String| SpillError::Directory { directory: named.to_owned(), reason };
        match fs::metadata(named) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(unusable("it is a file".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Err(error) = DirBuilder::new().mode(0o700).create(named)
                    && error.kind() != io::ErrorKind::AlreadyExists
                {
                    return Err(unusable(match error.kind() {
                        io::ErrorKind::NotFound => {
                            "neither it nor the directory it is in exists".to_owned()
                        }
                        _ => format!("it does not exist and cannot be made ({error})"),
                    }));
                }
            }
            Err(error) => return Err(unusable(error.to_string())),
        }
        remove_abandoned(named);
        let path = named.join(format!("{PREFIX}{session}"));
        let lock = claim(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                unusable(format!("another session named {session} spills there"))
            }
            _ => unusable(format!("a sub-directory and a file cannot be made in it ({error})")),
        })?;
        Ok(Self { named: named.to_owned(), path, _lock: lock, failed: Mutex::new(None) })
    }

    /// As the user named it.
    pub(crate) fn named(&self) -> &Path {
        &self.named
    }

    /// Whether it failed a moment ago.
    pub(crate) fn rests(&self) -> bool {
        self.failed.lock().is_some_and(|since| since.elapsed() < REST)
    }

    /// Writes a file, all or nothing.
    pub(crate) fn write(&self, file: u64, objects: &[&[u8]]) -> io::Result<Vec<Place>> {
        let path = self.file(file);
        let written = self.write_file(&path, file, objects);
        if written.is_err() {
            // It may not even exist. If it cannot be removed now, it is when the session ends.
            let _ = fs::remove_file(&path);
        }
        *self.failed.lock() = written.is_err().then(Instant::now);
        written
    }

    fn write_file(&self, path: &Path, file: u64, objects: &[&[u8]]) -> io::Result<Vec<Place>> {
        self.refuse_if_full(file_len(objects))?;
        let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut records = Records::new(file, objects);
        let mut pieces = Vec::new();
        let mut bytes = 0;
        for piece in &mut records {
            bytes += piece.bytes().len();
            pieces.push(piece);
            if bytes >= GATHER_BYTES || pieces.len() >= GATHER_PIECES {
                write_pieces(&target, &pieces)?;
                pieces.clear();
                bytes = 0;
            }
        }
        write_pieces(&target, &pieces)?;
        Ok(records.into_places())
    }

    /// Looks at the free space first: filling a disk to the brim only to find that the last object
    /// does not fit takes long and disturbs everybody on it. Only a hint, writing can still fail.
    fn refuse_if_full(&self, len: u64) -> io::Result<()> {
        if let Ok(space) = rustix::fs::statvfs(&self.path)
            // Some network file systems do not know their size.
            && space.f_blocks > 0
            && space.f_bavail.saturating_mul(space.f_frsize) < len
        {
            return Err(Errno::NOSPC.into());
        }
        Ok(())
    }

    /// Reads an object back, and checks it.
    pub(crate) fn read(&self, place: &Place, into: &mut [u8]) -> Result<(), SpillError> {
        let path = self.file(place.file);
        let lost = |what: &str| SpillError::Lost { reason: format!("{} {what}", path.display()) };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => lost("was removed"),
            io::ErrorKind::UnexpectedEof => lost("was truncated"),
            _ if is_shortage(&error) => {
                SpillError::NotRead { reason: format!("{}: {error}", path.display()) }
            }
            _ => lost(&format!("cannot be read ({error})")),
        };
        let source = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&path)
            .map_err(failed)?;
        let mut check = Check::new(place);
        let mut seal = [0; SEAL];
        // The seal first: a wrong file is then found out before gigabytes of it are read.
        source.read_exact_at(&mut seal, place.offset + place.len).map_err(failed)?;
        check.seal(&seal).map_err(lost)?;
        let mut offset = place.offset;
        for chunk in into.chunks_mut(CHUNK) {
            source.read_exact_at(chunk, offset).map_err(failed)?;
            check.update(chunk);
            offset += chunk.len() as u64;
        }
        check.finish().map_err(lost)
    }

    /// Removes a file. If that fails it goes at the end of the session.
    pub(crate) fn remove(&self, file: u64) {
        let path = self.file(file);
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove the spill file {}: {error}", path.display());
        }
    }

    /// Removes all that this session made.
    pub(crate) fn clear(&self) {
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove the spill directory {}: {error}", self.path.display());
        }
    }

    fn file(&self, file: u64) -> PathBuf {
        self.path.join(format!("{file:08}"))
    }
}

/// Whether a failure to write says that the disk, or the user's share of it, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
}

/// Whether a failure to read says nothing about the file, only about this moment.
fn is_shortage(error: &io::Error) -> bool {
    let passing = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN, Errno::TIMEDOUT];
    Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

fn write_pieces(mut target: &File, pieces: &[Piece<'_>]) -> io::Result<()> {
    let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece.bytes())).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match target.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes the sub-directory `path` and holds its lock. That also shows that files can be made there.
fn claim(path: &Path) -> io::Result<File> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        let made = hold(path).and_then(|held| match held {
            Some(mut lock) => lock.write_all(mark().as_bytes()).map(|()| Some(lock)),
            None => Ok(None),
        });
        match made {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let _ = fs::remove_dir_all(path);
                return Err(error);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Opens a lock file. Made if it is missing: a sub-directory without one was left in the making.
fn open_lock(name: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(name)
}

/// Takes the lock of the sub-directory `path`, unless somebody else holds it or the sub-directory
/// was removed meanwhile (D-3).
fn hold(path: &Path) -> io::Result<Option<File>> {
    let name = path.join(LOCK);
    let lock = open_lock(&name)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        // Some file systems have no locks. Nobody can take one there, so nobody removes (D-1).
        Err(fs::TryLockError::Error(error)) => tracing::debug!("{}: {error}", name.display()),
    }
    let (ours, there) = (lock.metadata()?, fs::symlink_metadata(&name)?);
    let same = (ours.dev(), ours.ino()) == (there.dev(), there.ino());
    Ok(same.then_some(lock))
}

/// Removes the sub-directories of sessions that are gone. What cannot be removed stays.
fn remove_abandoned(named: &Path) {
    let Ok(entries) = fs::read_dir(named) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX))
            && let Err(error) = remove_if_abandoned(&entry.path())
        {
            tracing::debug!("cannot remove {}: {error}", entry.path().display());
        }
    }
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    // In a directory that all may write to, somebody else's is not ours to remove, and a link
    // could lead anywhere.
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let mut lock = open_lock(&path.join(LOCK))?;
    // Unlike an owner's, a remover's lock must be a real one.
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let mut maker = String::new();
    (&mut lock).take(4096).read_to_string(&mut maker)?;
    // D-4. An owner that crashed before it wrote anything left nothing worth keeping.
    if !maker.is_empty() && !is_mark_of_here(&maker) {
        return Ok(());
    }
    let gone = path.with_added_extension(format!("gone-{}", std::process::id()));
    fs::rename(path, &gone)?;
    fs::remove_dir_all(&gone)?;
    tracing::info!("removed {}, left behind by a session that crashed", path.display());
    Ok(())
}
