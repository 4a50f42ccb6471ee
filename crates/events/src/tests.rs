//! The invariants E-1 to E-8 and T-1 to T-4, and what a history says of what was recorded.

mod damaged;
mod handed_on;
mod lost;
mod merging;
mod overlapping;
mod recording;
mod tracing;
mod viewing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxiray_ids::{ActorId, JobId, ProcessId, TaskId};

use crate::{EventLog, History, LocalFiles, Ran, Role};

/// A session's directory that is gone when the test is over.
struct Session(PathBuf);

static SESSIONS: AtomicU32 = AtomicU32::new(0);

impl Session {
    fn new() -> Self {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let name = format!("oxiray-events-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn log(&self, number: u32, role: Role) -> EventLog {
        EventLog::new(&self.0, ProcessId::new(0, number), role)
    }

    fn files(&self) -> LocalFiles {
        LocalFiles::of_session(&self.0)
    }

    fn history(&self) -> History {
        let mut history = History::new();
        history.update(0, &mut self.files()).unwrap();
        history
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(&self.0).join("events").join(file)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const DRIVER: u32 = 1;

fn task(counter: u64) -> TaskId {
    let driver = ProcessId::new(0, DRIVER);
    TaskId::new(ActorId::home(JobId([1, 0, 0, 0]), driver), driver, counter)
}

fn name(text: &str) -> Arc<str> {
    text.into()
}

fn ran(task: TaskId, name: &Arc<str>, start: u64, execute: u64) -> Ran<'_> {
    Ran { task, attempt: 0, name, start, fetch: 10, execute, store: 20, error: None }
}
