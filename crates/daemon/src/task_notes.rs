//! Which task printed what of a log, noted beside each part of it.
//!
//! `worker-7.out.tasks` has lines `OFFSET TASK`: from that byte on it is that task's, and no
//! task's with `-`. Offsets count what the worker has printed in all, so that they go on from
//! part to part; the first line says where the part begins. Only parts that tasks printed in
//! have notes.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use oxiray_session::private_file;

/// From a byte on, what is printed is this task's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    pub(crate) start: usize,
    /// Its id; empty: no task's.
    pub(crate) task: String,
}

/// The notes beside the newest part.
#[derive(Debug, Default)]
pub(crate) struct TaskNotes {
    part_start: u64,
    task: String,
    bytes: u64,
}

impl TaskNotes {
    /// A new part begins, after so many bytes.
    pub(crate) fn begin_part(&mut self, part_start: u64) {
        *self = Self { part_start, ..Self::default() };
    }

    /// How long they are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notes whose the bytes are that follow the first `printed` of a part.
    pub(crate) fn add(&mut self, log: &Path, printed: u64, turns: &[Turn]) {
        let mut text = String::new();
        for turn in turns.iter().filter(|turn| !turn.task.contains(char::is_whitespace)) {
            if turn.task == self.task {
                continue;
            }
            let offset = self.part_start + printed + turn.start as u64;
            if self.bytes == 0 && text.is_empty() && offset > self.part_start {
                let _ = writeln!(text, "{} -", self.part_start);
            }
            let task = if turn.task.is_empty() { "-" } else { &turn.task };
            let _ = writeln!(text, "{offset} {task}");
            self.task.clone_from(&turn.task);
        }
        if text.is_empty() {
            return;
        }
        self.bytes += text.len() as u64;
        // A line or two for each task that prints: not worth a descriptor that stays open.
        let file = private_file(OpenOptions::new().create(true).append(true), &beside(log));
        if file.and_then(|mut file| file.write_all(text.as_bytes())).is_err() {
            // As on a full disk. What is noted so far goes: with a gap in it, it would be wrong.
            let _ = fs::remove_file(beside(log));
            self.begin_part(self.part_start);
        }
    }
}

/// The notes of a part of a log.
pub(crate) fn beside(part: &Path) -> PathBuf {
    let mut name = OsString::from(part);
    name.push(".tasks");
    name.into()
}
