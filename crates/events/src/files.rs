//! Where event files come from: a directory of this machine, or whatever gives their bytes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file of an event directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Its name in that directory.
    pub name: String,
    /// Bytes, as far as known.
    pub size: u64,
}

/// The files of one node's event directory.
pub trait Files {
    /// All of them, in any order. A directory that is not there has none.
    fn list(&mut self) -> io::Result<Vec<FileInfo>>;
    /// Bytes of a file from `offset`: at most `most`, fewer only where the file ends or where
    /// the giver gives no more at once. Nothing means the end.
    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>>;
}

/// A directory of this machine.
#[derive(Clone, Debug)]
pub struct LocalFiles(PathBuf);

impl LocalFiles {
    /// The event files of a session.
    pub fn of_session(session: &Path) -> Self {
        Self::in_folder(session, "events")
    }

    /// The files of one of its folders.
    pub fn in_folder(session: &Path, folder: &str) -> Self {
        Self(session.join(folder))
    }
}

impl Files for LocalFiles {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match entry.metadata() {
                Ok(about) if about.is_file() => found.push(FileInfo { name, size: about.len() }),
                // Gone since, or nothing of ours.
                _ => {}
            }
        }
        Ok(found)
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let file = match File::open(self.0.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; most];
        let mut len = 0;
        while len < most {
            match file.read_at(&mut bytes[len..], offset + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(len);
        Ok(bytes)
    }
}

/// Reads `len` bytes, in as many steps as it takes; fewer where the file ends.
pub(crate) fn read_up_to(
    files: &mut dyn Files,
    name: &str,
    offset: u64,
    len: usize,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let at = offset.saturating_add(bytes.len() as u64);
        let more = files.read(name, at, len - bytes.len())?;
        if more.is_empty() {
            break;
        }
        bytes.extend_from_slice(&more);
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// Reads exactly `len` bytes; `None`: there are not so many.
pub(crate) fn read_exactly(
    files: &mut dyn Files,
    name: &str,
    offset: u64,
    len: usize,
) -> io::Result<Option<Vec<u8>>> {
    Ok(Some(read_up_to(files, name, offset, len)?).filter(|bytes| bytes.len() == len))
}
