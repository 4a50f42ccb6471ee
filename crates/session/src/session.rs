//! The directory of a session: socket, logs, and what is left of it afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Logs of this many crashed sessions are kept.
const CRASHED_KEPT: usize = 10;

/// A session's directory, which this program was given and removes.
#[derive(Clone, Debug)]
pub struct Session {
    path: PathBuf,
}

impl Session {
    /// Takes the directory over. It must be ours alone and empty but for
    /// `logs`, because all of it is removed in the end.
    pub fn take(path: &str) -> io::Result<Self> {
        let path = PathBuf::from(path);
        let refuse = |why: &str| Err(io::Error::other(format!("{}: {why}", path.display())));
        let about = fs::symlink_metadata(&path)?;
        if !path.is_absolute() || !about.is_dir() {
            return refuse("is not the absolute path of a directory");
        }
        if about.uid() != rustix::process::getuid().as_raw() || about.mode() & 0o077 != 0 {
            return refuse("others may use this directory: it must be yours with mode 0700");
        }
        let mut entries = fs::read_dir(&path)?.filter_map(Result::ok);
        if entries.any(|entry| entry.file_name() != "logs") {
            return refuse("is not empty");
        }
        fs::create_dir_all(path.join("logs"))?;
        Ok(Self { path })
    }

    /// The directory of a session whose service ended without removing it.
    pub fn left_by(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the services' and workers' logs are.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Where the node service listens.
    pub fn socket(&self) -> PathBuf {
        self.path.join("node.sock")
    }

    /// Without it the dashboard answers nobody.
    pub fn dashboard_token(&self) -> PathBuf {
        self.path.join("dashboard.token")
    }

    /// Where the dashboard is reached, if there is one.
    pub fn dashboard_address(&self) -> PathBuf {
        self.path.join("dashboard.address")
    }

    /// Removes everything.
    pub fn remove(&self) {
        // What was killed a moment ago may just have made one more file.
        for _ in 0..20 {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }

    /// Removes everything but the logs, which move beside the sessions.
    pub fn keep_logs_and_remove(&self) {
        if let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) {
            let crashed = parent.join("crashed");
            if fs::create_dir_all(&crashed).is_ok() {
                let _ = fs::rename(self.logs(), crashed.join(name));
                forget_oldest(&crashed);
            }
        }
        self.remove();
    }
}

/// Removes all but the newest of the crashed sessions' logs.
fn forget_oldest(crashed: &Path) {
    let Ok(entries) = fs::read_dir(crashed) else {
        return;
    };
    let entries = entries.filter_map(Result::ok);
    let mut dated: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    dated.sort_unstable();
    let too_many = dated.len().saturating_sub(CRASHED_KEPT);
    for (_, path) in dated.into_iter().take(too_many) {
        let _ = fs::remove_dir_all(path);
    }
}

/// The end of a file, as text, for messages.
pub fn tail(path: &Path, most: u64) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}
