//! A file that is there whole or not at all: whoever is interrupted, or finds the disk full, leaves
//! what was there before and nothing else.
//!
//! It has no name while it is written, where the file system can do that; so even a process that is
//! killed leaves nothing. Elsewhere it is a draft beside, which is removed unless all went well.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};

/// See the module documentation.
pub(crate) struct WholeFile {
    file: File,
    /// Where it will be.
    path: PathBuf,
    /// The name it has meanwhile.
    draft: PathBuf,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Unnamed,
    /// Beside, under the name of the draft.
    Drafted,
    /// A pipe or a device is written as it is.
    InPlace,
}

impl WholeFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        // A link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let before = fs::metadata(&path).ok();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = folder.join(format!(".{name}.{}", std::process::id()));
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok(Self { file, path, draft, how: How::InPlace });
        }
        let unnamed = OFlags::TMPFILE.bits() as i32;
        let (file, how) =
            match OpenOptions::new().write(true).custom_flags(unnamed).mode(0o666).open(&folder) {
                Ok(file) => (file, How::Unnamed),
                Err(error) if is_unsupported(&error) => (File::create_new(&draft)?, How::Drafted),
                Err(error) => match before {
                    // In a folder where nothing may be made, but this may be written.
                    Some(_) => (File::create(&path)?, How::InPlace),
                    None => return Err(error),
                },
            };
        let this = Self { file, path, draft, how };
        if let Some(before) = before {
            this.file.set_permissions(before.permissions())?;
        }
        Ok(this)
    }

    /// All is written: from now on it is there.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.how {
            How::InPlace => return Ok(()),
            How::Unnamed => {
                // One that a crashed process of the same number left.
                let _ = fs::remove_file(&self.draft);
                let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, unnamed, CWD, &self.draft, AtFlags::SYMLINK_FOLLOW)?;
                self.how = How::Drafted;
            }
            How::Drafted => {}
        }
        fs::rename(&self.draft, &self.path)?;
        self.how = How::InPlace;
        Ok(())
    }
}

/// What file systems and kernels say that have no unnamed files.
fn is_unsupported(error: &io::Error) -> bool {
    let codes = [rustix::io::Errno::OPNOTSUPP, rustix::io::Errno::ISDIR, rustix::io::Errno::INVAL];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.how == How::Drafted {
            let _ = fs::remove_file(&self.draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("oxiray-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it is there");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_not_finished_leaves_what_was_there() {
        let folder = folder("unfinished");
        let path = folder.join("x");
        fs::write(&path, "before").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        let mut file = WholeFile::create(&path).expect("created");
        file.write_all(b"half").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "before");
        drop(file);
        assert_eq!(names(&folder), ["x"]);
        let mut file = WholeFile::create(&path).expect("created");
        file.write_all(b"whole").expect("written");
        file.finish().expect("finished");
        assert_eq!(fs::read_to_string(&path).expect("there"), "whole");
        assert_eq!(names(&folder), ["x"]);
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "who may read it stays as it was");
        fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn a_draft_is_removed_too() {
        let folder = folder("draft");
        let (path, draft) = (folder.join("x"), folder.join(".x.1"));
        let drafted = || {
            let file = File::create(&draft).expect("created");
            WholeFile { file, path: path.clone(), draft: draft.clone(), how: How::Drafted }
        };
        drop(drafted());
        assert!(names(&folder).is_empty());
        drafted().finish().expect("finished");
        assert_eq!(names(&folder), ["x"]);
        fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn links_stay_and_devices_are_written() {
        let folder = folder("links");
        let (path, link) = (folder.join("x"), folder.join("link"));
        fs::write(&path, "before").expect("written");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let mut file = WholeFile::create(&link).expect("created");
        file.write_all(b"whole").expect("written");
        file.finish().expect("finished");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("there"), "whole");
        let mut null = WholeFile::create(Path::new("/dev/null")).expect("opened");
        null.write_all(b"x").expect("written");
        null.finish().expect("finished");
        assert!(WholeFile::create(&folder.join("none/x")).is_err());
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
