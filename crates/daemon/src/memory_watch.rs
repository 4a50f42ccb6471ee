//! Ends the largest worker when the machine's memory is nearly used up, before
//! the kernel ends something that matters more.

use oxiray_ids::ProcessId;

use oxiray_sys::machine::{MemoryReader, own_memory};
use oxiray_words::show_bytes;

const INTERVAL: u64 = 250_000_000;
/// What a worker used takes a while to come back.
const BETWEEN_KILLS: u64 = 1_000_000_000;

/// Looks at the memory every now and then.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    reader: MemoryReader,
    threshold: f64,
    next: u64,
    last_kill: Option<u64>,
}

impl MemoryWatch {
    /// `None` when the threshold says never.
    pub(crate) fn new(threshold: f64, now: u64) -> Option<Self> {
        let wanted = threshold > 0.0 && threshold < 1.0;
        let watch = || Self {
            reader: MemoryReader::new(),
            threshold,
            next: now + INTERVAL,
            last_kill: None,
        };
        wanted.then(watch)
    }

    /// When to look again.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Looks if it is time to; names the worker to end, and why.
    pub(crate) fn look(
        &mut self,
        now: u64,
        workers: impl Iterator<Item = (ProcessId, u32)>,
    ) -> Option<(ProcessId, String)> {
        if now < self.next {
            return None;
        }
        self.next = now + INTERVAL;
        let memory = self.reader.read();
        let recently = self.last_kill.is_some_and(|at| now < at + BETWEEN_KILLS);
        if memory.used_fraction() <= self.threshold || recently {
            return None;
        }
        let sized = workers.map(|(process, pid)| (own_memory(pid), process, pid));
        let (size, process, pid) = sized.max_by_key(|&(size, ..)| size)?;
        self.last_kill = Some(now);
        let reason = format!(
            "it was ended because the machine's memory is nearly used up: worker {pid} used {}, \
             the most of all workers; {:.1} % of {} are in use, the limit is {:.1} % (option \
             memory_usage_threshold)",
            show_bytes(size),
            memory.used_fraction() * 100.0,
            show_bytes(memory.total),
            self.threshold * 100.0,
        );
        tracing::warn!(pid, "{reason}");
        Some((process, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_worker_goes_and_then_there_is_a_pause() {
        let mut watch = MemoryWatch::new(1e-9, 0).unwrap();
        let me = std::process::id();
        let workers = || [(ProcessId(2), 0), (ProcessId(3), me)].into_iter();
        assert!(watch.look(1, workers()).is_none(), "not yet time");
        let (process, reason) = watch.look(INTERVAL, workers()).unwrap();
        assert_eq!(process, ProcessId(3));
        assert!(reason.contains(&format!("worker {me}")), "{reason}");
        assert!(watch.look(2 * INTERVAL, workers()).is_none());
        assert!(watch.look(INTERVAL + BETWEEN_KILLS, workers()).is_some());
        assert!(MemoryWatch::new(0.0, 0).is_none());
    }
}
