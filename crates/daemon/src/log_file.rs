//! The files that one stream of a worker is kept in.
//!
//! `worker-7.out` is the newest part. When it is long enough it becomes
//! `worker-7.out.1`, what that was becomes `.2`, and the last part goes. Each has notes
//! beside it that say which task printed what.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use oxiray_session::private_file;
use oxiray_settings::{ROTATION_BACKUP_COUNT, ROTATION_MAX_BYTES};

use crate::setting::count;
use crate::task_notes::{TaskNotes, Turn, beside};

/// Each is renamed when a new one is begun.
const MOST_PARTS: u64 = 10_000;

/// How much of what a worker prints is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Of one part; 0: there is only one, of any length.
    part_bytes: u64,
    /// Parts that are kept beside the newest.
    older_parts: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            part_bytes: ROTATION_MAX_BYTES.default_count(),
            older_parts: ROTATION_BACKUP_COUNT.default_count(),
        }
    }
}

impl Limits {
    /// As they are set.
    pub(crate) fn from_environment() -> Self {
        let older_parts = count(&ROTATION_BACKUP_COUNT).min(MOST_PARTS);
        Self { part_bytes: count(&ROTATION_MAX_BYTES), older_parts }
    }
}

/// One stream's files. Nothing is made before something is printed: most workers print nothing.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    limits: Limits,
    newest: Option<File>,
    in_newest: u64,
    /// Bytes in all parts before the newest, those that are gone included.
    before_newest: u64,
    notes: TaskNotes,
}

impl LogFile {
    pub(crate) fn new(path: PathBuf, limits: Limits) -> Self {
        Self {
            path,
            limits,
            newest: None,
            in_newest: 0,
            before_newest: 0,
            notes: TaskNotes::default(),
        }
    }

    /// Adds whole lines; `turns` says which tasks printed them. A log that cannot be written must
    /// not end the session: it is cut short.
    pub(crate) fn write(&mut self, bytes: &[u8], turns: &[Turn]) {
        if bytes.is_empty() {
            return;
        }
        let most = self.limits.part_bytes;
        let kept = self.in_newest + self.notes.bytes();
        if most > 0 && self.in_newest > 0 && kept + bytes.len() as u64 > most {
            self.rotate();
        }
        if self.newest.is_none() {
            // An earlier worker may have had the same number: what it printed is an older part.
            if self.path.exists() {
                self.rotate();
            }
            let options = &mut OpenOptions::new();
            self.newest = private_file(options.create(true).append(true), &self.path).ok();
        }
        let Some(file) = &mut self.newest else { return };
        self.notes.add(&self.path, self.in_newest, turns);
        self.in_newest += bytes.len() as u64;
        if file.write_all(bytes).is_err() {
            // As on a full disk. Notes that follow are right again.
            self.in_newest = file.metadata().map_or(self.in_newest, |metadata| metadata.len());
        }
    }

    fn rotate(&mut self) {
        self.newest = None;
        self.before_newest += std::mem::take(&mut self.in_newest);
        self.notes.begin_part(self.before_newest);
        let older = self.limits.older_parts;
        for number in (1..older).rev() {
            move_part(&part(&self.path, number), &part(&self.path, number + 1));
        }
        if older == 0 {
            remove_part(&self.path);
        } else {
            move_part(&self.path, &part(&self.path, 1));
        }
    }

    /// Every file that there is.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let older = (1..=self.limits.older_parts).map(|number| part(&self.path, number));
        let parts = std::iter::once(self.path.clone()).chain(older);
        parts.flat_map(|part| [beside(&part), part]).filter(|path| path.exists())
    }
}

/// If it cannot be moved, it goes: what is kept stays bounded, and notes stay beside what they are of.
fn move_part(from: &Path, to: &Path) {
    remove_part(to);
    let moved = fs::rename(beside(from), beside(to)).or_else(absence_is_fine);
    if moved.is_err() || fs::rename(from, to).is_err() {
        remove_part(from);
        remove_part(to);
    }
}

fn remove_part(part: &Path) {
    let _ = fs::remove_file(part);
    let _ = fs::remove_file(beside(part));
}

fn absence_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn part(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(test: &str, limits: Limits, lines: &[&str]) -> Vec<(String, String)> {
        let lines: Vec<_> = lines.iter().map(|line| ("", *line)).collect();
        written_by(test, limits, &lines)
    }

    /// Files and what is in them after some tasks printed some lines.
    fn written_by(test: &str, limits: Limits, lines: &[(&str, &str)]) -> Vec<(String, String)> {
        let directory =
            std::env::temp_dir().join(format!("oxiray-log-file-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("can be made");
        let mut file = LogFile::new(directory.join("worker-1.out"), limits);
        for (task, line) in lines {
            let turn = Turn { start: 0, task: (*task).to_owned() };
            file.write(line.as_bytes(), &[turn]);
        }
        let read = |path: PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("can be read"))
        };
        let found = file.files().map(read).collect();
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
    fn notes_say_which_task_printed_what() {
        let lines = [("", "a\n"), ("t1", "b\n"), ("t1", "c\n"), ("", "d\n"), ("t2", "e\n")];
        let found = written_by("notes", Limits::default(), &lines);
        let notes = part_of("worker-1.out.tasks", "0 -\n2 t1\n6 -\n8 t2\n");
        assert_eq!(found, [notes, part_of("worker-1.out", "a\nb\nc\nd\ne\n")]);
    }

    #[test]
    fn notes_go_on_from_part_to_part_and_go_with_them() {
        let limits = Limits { part_bytes: 14, older_parts: 1 };
        let lines = [("t1", "aaaa\n"), ("t1", "bbbb\n"), ("", "c\n"), ("", "dddddddd\n")];
        let found = written_by("go_on", limits, &lines);
        let expected = [
            part_of("worker-1.out", "dddddddd\n"),
            part_of("worker-1.out.1.tasks", "5 t1\n10 -\n"),
            part_of("worker-1.out.1", "bbbb\nc\n"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_earlier_worker_of_the_same_number_has_an_older_part() {
        let directory =
            std::env::temp_dir().join(format!("oxiray-log-file-again-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("can be made");
        let path = directory.join("worker-1.out");
        for task in ["t1", "t2"] {
            let turn = Turn { start: 0, task: task.into() };
            LogFile::new(path.clone(), Limits::default()).write(b"x\n", &[turn]);
        }
        let read = |path: PathBuf| fs::read_to_string(path).expect("can be read");
        let notes = [read(beside(&path)), read(beside(&part(&path, 1)))];
        fs::remove_dir_all(directory).expect("can be removed");
        assert_eq!(notes, ["0 t2\n", "0 t1\n"]);
    }

    #[test]
    fn a_directory_that_is_gone_costs_the_log_only() {
        let mut file = LogFile::new("/nowhere/at/all".into(), Limits::default());
        file.write(b"lost\n", &[]);
        assert_eq!(file.files().count(), 0);
    }
}
