//! Which process writes which log of events.
//!
//! A log of a process that has ended is given to the next that starts, so that a thousand workers
//! that follow each other leave the files of one. A log has one writer at a time (E-7 of
//! `oxiray_events`): it is given away only when its last writer is gone from the system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oxiray_ids::ProcessId;
use rustix::process::{Pid, test_kill_process};

/// So many of the logs that nobody writes are tried before a new one is begun.
const TRIED: usize = 8;

/// A log, and its newest chunk as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Log {
    pub(crate) number: u32,
    pub(crate) chunk: u32,
}

/// All logs of this node but its own.
#[derive(Debug)]
pub(crate) struct EventLogs {
    directory: PathBuf,
    written: BTreeMap<ProcessId, Log>,
    /// Those that nobody writes, with the process that did: the last to end comes last.
    left: Vec<(Log, u32)>,
}

impl EventLogs {
    pub(crate) fn new(session: &Path) -> Self {
        Self { directory: session.join("events"), written: BTreeMap::new(), left: Vec::new() }
    }

    /// The log that a new process is to write: another's, if there is one to be had.
    pub(crate) fn give(&mut self, process: ProcessId) -> Option<Log> {
        let gone = |(_, pid): &(Log, u32)| is_gone(*pid);
        let found = self.left.iter().rev().take(TRIED).position(gone);
        let found = found.map(|back| self.left.remove(self.left.len() - 1 - back).0);
        let own = Log { number: process.number(), chunk: 0 };
        self.written.insert(process, found.unwrap_or(own));
        found
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, process: ProcessId, pid: u32) {
        let Some(mut log) = self.written.remove(&process) else { return };
        while self.directory.join(format!("{}.{}", log.number, log.chunk + 1)).exists() {
            log.chunk += 1;
        }
        self.left.push((log, pid));
    }

    /// Whether a process writes a log, or wrote it and is not gone.
    pub(crate) fn is_written(&self, number: u32) -> bool {
        self.written.values().any(|log| log.number == number)
            || self.left.iter().any(|(log, pid)| log.number == number && !is_gone(*pid))
    }

    /// Nothing is left of a log: nobody goes on with it.
    pub(crate) fn forget(&mut self, number: u32) {
        self.left.retain(|(log, _)| log.number != number);
    }
}

fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of processes that there are not: beyond what the system gives.
    const GONE: u32 = 1 << 23;

    fn process(number: u32) -> ProcessId {
        ProcessId::new(0, number)
    }

    #[test]
    fn a_log_is_given_to_the_next_process_from_its_newest_chunk() {
        let session = std::env::temp_dir().join(format!("oxiray-logs-{}", std::process::id()));
        let directory = session.join("events");
        std::fs::create_dir_all(&directory).expect("can be made");
        let mut logs = EventLogs::new(&session);
        assert_eq!((logs.give(process(1)), logs.give(process(2))), (None, None));
        for file in ["1.0", "1.1", "1.2", "1.2.text"] {
            std::fs::write(directory.join(file), "").expect("can be written");
        }
        logs.ended(process(1), GONE);
        assert!(!logs.is_written(1) && logs.is_written(2));
        let log = Log { number: 1, chunk: 2 };
        assert_eq!((logs.give(process(3)), logs.give(process(4))), (Some(log), None));
        assert!(logs.is_written(1));
        std::fs::write(directory.join("1.3"), "").expect("can be written");
        logs.ended(process(3), GONE);
        assert_eq!(logs.give(process(5)), Some(Log { number: 1, chunk: 3 }));
        std::fs::remove_dir_all(session).expect("can be removed");
    }

    #[test]
    fn a_log_whose_writer_may_still_write_is_not_given_away() {
        let mut logs = EventLogs::new(Path::new("/nowhere"));
        logs.give(process(1));
        logs.ended(process(1), std::process::id());
        assert!(logs.is_written(1));
        assert_eq!(logs.give(process(2)), None);
    }

    #[test]
    fn a_log_that_was_dropped_is_not_given_away() {
        let mut logs = EventLogs::new(Path::new("/nowhere"));
        logs.give(process(1));
        logs.ended(process(1), GONE);
        logs.forget(1);
        assert_eq!(logs.give(process(2)), None);
    }
}
