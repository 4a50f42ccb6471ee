//! Logs of workers that have ended: kept for a while, the oldest go first.
//!
//! A session may go on for months and start a worker a second.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

/// Of this many ended workers at most.
const MOST_WORKERS: usize = 1000;
/// And at most this much of them in all.
const MOST_BYTES: u64 = 1 << 30;

/// One ended worker's.
#[derive(Debug)]
struct Ended {
    pid: u32,
    files: Vec<PathBuf>,
    bytes: u64,
}

/// The logs of all ended workers, oldest first.
#[derive(Debug, Default)]
pub(crate) struct EndedLogs {
    queue: VecDeque<Ended>,
    bytes: u64,
}

impl EndedLogs {
    /// Worker `pid` has ended and left these files.
    pub(crate) fn add(&mut self, pid: u32, files: Vec<PathBuf>) {
        if files.is_empty() {
            return;
        }
        let bytes = files.iter().filter_map(|path| fs::metadata(path).ok()).map(|m| m.len()).sum();
        self.bytes += bytes;
        self.queue.push_back(Ended { pid, files, bytes });
        while self.queue.len() > MOST_WORKERS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.queue.pop_front() else { return };
            self.bytes -= oldest.bytes;
            for path in oldest.files {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// A new worker has the number of an old one, and goes on beside its files: they are not old.
    pub(crate) fn reuse(&mut self, pid: u32) {
        if let Some(at) = self.queue.iter().position(|ended| ended.pid == pid) {
            self.bytes -= self.queue.remove(at).map_or(0, |ended| ended.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_unless_their_number_is_used_again() {
        let directory =
            std::env::temp_dir().join(format!("oxiray-log-expiry-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("can be made");
        let path = |pid: u32| directory.join(format!("worker-{pid}.out"));
        let mut ended = EndedLogs::default();
        let most = MOST_WORKERS as u32;
        for pid in 0..most {
            fs::write(path(pid), "text").expect("can be written");
            ended.add(pid, vec![path(pid)]);
        }
        ended.reuse(0);
        for pid in most..most + 2 {
            fs::write(path(pid), "text").expect("can be written");
            ended.add(pid, vec![path(pid)]);
        }
        assert!(path(0).exists() && !path(1).exists() && path(2).exists());
        assert_eq!(ended.bytes, 4 * u64::from(most));
        fs::remove_dir_all(directory).expect("can be removed");
    }
}
