//! The files of a session that tools may read: its logs, events and figures, while it runs and
//! afterwards, and the packages of its environments while it runs.
//!
//! A path is a folder and a name, nothing more: no name leads out of its folder, and no link is
//! followed.

use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use oxiray_wire::control::{FileName, FilePart, MOST_OF_FILE, ReadFile};
use rustix::fs::{CWD, Mode, OFlags};

/// Names in one answer.
pub const MOST_NAMES: usize = 500;

/// Where they are.
const FOLDERS: [&str; 4] = ["logs", "events", "metrics", "packages"];

/// What is wanted of a file, or of the names in a folder.
pub fn read(session: &Path, wanted: &ReadFile) -> io::Result<FilePart> {
    match wanted.path.split_once('/') {
        None if FOLDERS.contains(&wanted.path.as_str()) => {
            Ok(names(files_of(&session.join(&wanted.path))?, wanted))
        }
        Some((folder, name)) if FOLDERS.contains(&folder) => {
            open(&session.join(folder), name).and_then(|file| of_file(&file, wanted))
        }
        _ => Err(io::Error::other(
            "only files in `logs`, `events`, `metrics`, `packages` and `machine` can be",
        )),
    }
}

/// The answer to a question: what was read, or why not.
pub fn answer(wanted: &ReadFile, part: io::Result<FilePart>) -> FilePart {
    let refused = |error: io::Error| FilePart {
        refused: match error.kind() {
            io::ErrorKind::NotFound => format!("there is no file {}", wanted.path),
            _ => format!("{} cannot be read: {error}", wanted.path),
        },
        missing: error.kind() == io::ErrorKind::NotFound,
        ..FilePart::default()
    };
    FilePart { request: wanted.request, ..part.unwrap_or_else(refused) }
}

/// What is wanted of these bytes.
pub fn cut(all: &[u8], wanted: &ReadFile) -> FilePart {
    let size = all.len() as u64;
    let offset = begin(wanted, size);
    let bytes = all[offset as usize..].iter().take(most(wanted)).copied().collect();
    FilePart { offset, bytes, size, ..FilePart::default() }
}

/// What is wanted of these names.
pub fn names(mut files: Vec<FileName>, wanted: &ReadFile) -> FilePart {
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let size = files.len() as u64;
    let offset = wanted.offset.min(size);
    let files = files.into_iter().skip(offset as usize).take(MOST_NAMES).collect();
    FilePart { offset, size, files, ..FilePart::default() }
}

/// Opens a file of a folder. Links are not followed, and what is no file is not opened.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(io::Error::other("a file is named by its folder and its name alone"));
    }
    let base = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder =
        rustix::fs::openat(CWD, folder, base | OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
    // Without blocking: opening a pipe would wait for its writer.
    let flags = base | OFlags::RDONLY | OFlags::NONBLOCK;
    let file =
        rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::LOOP => io::Error::other("it is a link, which is not followed"),
            error => error.into(),
        })?;
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(file)
}

fn most(wanted: &ReadFile) -> usize {
    wanted.most.min(MOST_OF_FILE) as usize
}

/// Where to begin in something of `size` bytes.
fn begin(wanted: &ReadFile, size: u64) -> u64 {
    if wanted.from_end { size.saturating_sub(wanted.offset) } else { wanted.offset.min(size) }
}

/// The same as long as a file exists, whatever it is called. The number of its inode alone is soon
/// another's when it is gone; that of an earlier time it can not be. (Where files have no time of
/// birth, as in memory on older systems, numbers are not used again.)
fn identity(about: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    (about.dev(), about.ino(), about.created().ok()).hash(&mut hasher);
    hasher.finish().max(1)
}

fn of_file(file: &File, wanted: &ReadFile) -> io::Result<FilePart> {
    let about = file.metadata()?;
    let (size, identity) = (about.len(), identity(&about));
    let offset = begin(wanted, size);
    let mut bytes = vec![0; most(wanted).min(usize::try_from(size - offset).unwrap_or(usize::MAX))];
    let len = file.read_at(&mut bytes, offset)?;
    bytes.truncate(len);
    Ok(FilePart { offset, bytes, size, identity, ..FilePart::default() })
}

/// The files of a folder; one that does not exist yet has none.
fn files_of(folder: &Path) -> io::Result<Vec<FileName>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let file = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(FileName { name: entry.file_name().into_string().ok()?, size: about.len() })
    };
    Ok(entries.filter_map(file).collect())
}
