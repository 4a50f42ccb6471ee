//! The files that one stream of a worker is kept in.
//!
//! `worker-7.out` is the newest part. When it is long enough it becomes
//! `worker-7.out.1`, what that was becomes `.2`, and the last part goes.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How much of what a worker prints is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Of one part; 0: there is only one, of any length.
    part_bytes: u64,
    /// Parts that are kept beside the newest.
    older_parts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { part_bytes: 16 << 20, older_parts: 3 }
    }
}

impl Limits {
    /// As `RAY_ROTATION_MAX_BYTES` and `RAY_ROTATION_BACKUP_COUNT` say, which may also begin
    /// with `OXIRAY_`.
    pub(crate) fn from_environment() -> Self {
        let default = Self::default();
        Self {
            part_bytes: setting("ROTATION_MAX_BYTES").unwrap_or(default.part_bytes),
            older_parts: setting("ROTATION_BACKUP_COUNT").unwrap_or(default.older_parts),
        }
    }
}

/// A log is no reason not to start: what is no number is said and not used.
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let names = [format!("OXIRAY_{name}"), format!("RAY_{name}")];
    let set = names.into_iter().find_map(|name| Some((std::env::var(&name).ok()?, name)));
    let (text, name) = set?;
    let value = text.trim().parse().ok();
    if value.is_none() {
        tracing::warn!(name, text, "is not a whole number, and is not used");
    }
    value
}

/// One stream's files. Nothing is made before something is printed: most workers print nothing.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    limits: Limits,
    newest: Option<File>,
    in_newest: u64,
}

impl LogFile {
    pub(crate) fn new(path: PathBuf, limits: Limits) -> Self {
        Self { path, limits, newest: None, in_newest: 0 }
    }

    /// Adds whole lines. A log that cannot be written must not end the session: it is cut short.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let most = self.limits.part_bytes;
        if most > 0 && self.in_newest > 0 && self.in_newest + bytes.len() as u64 > most {
            self.rotate();
        }
        if self.newest.is_none() {
            let file = OpenOptions::new().create(true).append(true).open(&self.path);
            // An earlier worker may have had the same number.
            self.in_newest =
                file.as_ref().ok().and_then(|file| file.metadata().ok()).map_or(0, |m| m.len());
            self.newest = file.ok();
        }
        let Some(file) = &mut self.newest else { return };
        self.in_newest += bytes.len() as u64;
        let _ = file.write_all(bytes);
    }

    fn rotate(&mut self) {
        self.newest = None;
        self.in_newest = 0;
        let older = self.limits.older_parts;
        for number in (1..older).rev() {
            let _ = fs::rename(part(&self.path, number), part(&self.path, number + 1));
        }
        // If the newest cannot be moved, it goes: what is kept stays bounded.
        if older == 0 || fs::rename(&self.path, part(&self.path, 1)).is_err() {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Every part there may be.
    pub(crate) fn parts(&self) -> impl Iterator<Item = PathBuf> {
        let older = (1..=self.limits.older_parts).map(|number| part(&self.path, number));
        std::iter::once(self.path.clone()).chain(older).filter(|path| path.exists())
    }
}

fn part(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(test: &str, limits: Limits, lines: &[&str]) -> Vec<(String, String)> {
        let directory =
            std::env::temp_dir().join(format!("oxiray-log-file-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("can be made");
        let mut file = LogFile::new(directory.join("worker-1.out"), limits);
        for line in lines {
            file.write(line.as_bytes());
        }
        let read = |path: PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("can be read"))
        };
        let found = file.parts().map(read).collect();
        fs::remove_dir_all(directory).expect("can be removed");
        found
    }

    fn part_of(name: &str, text: &str) -> (String, String) {
        (name.into(), text.into())
    }

    #[test]
    fn long_files_are_cut_into_parts_and_the_oldest_goes() {
        let limits = Limits { part_bytes: 4, older_parts: 2 };
        let found = written("parts", limits, &["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n"]);
        let expected = [
            part_of("worker-1.out", "g\n"),
            part_of("worker-1.out.1", "e\nf\n"),
            part_of("worker-1.out.2", "c\nd\n"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn without_older_parts_only_the_newest_is_kept() {
        let found =
            written("newest", Limits { part_bytes: 4, older_parts: 0 }, &["aaa\n", "b\n", "c\n"]);
        assert_eq!(found, [part_of("worker-1.out", "b\nc\n")]);
    }

    #[test]
    fn without_a_limit_there_is_one_part() {
        let found = written("one", Limits { part_bytes: 0, older_parts: 2 }, &["aaa\n", "bbb\n"]);
        assert_eq!(found, [part_of("worker-1.out", "aaa\nbbb\n")]);
    }

    #[test]
    fn what_is_longer_than_a_part_is_a_part() {
        let found = written(
            "long",
            Limits { part_bytes: 2, older_parts: 1 },
            &["first\n", "second\n", "third\n"],
        );
        let expected = [part_of("worker-1.out", "third\n"), part_of("worker-1.out.1", "second\n")];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_directory_that_is_gone_costs_the_log_only() {
        let mut file = LogFile::new("/nowhere/at/all".into(), Limits::default());
        file.write(b"lost\n");
        assert_eq!(file.parts().count(), 0);
    }
}
