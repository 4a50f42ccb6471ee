//! Sees that memory is short before the kernel does, and what the kernel did when it was first.
//!
//! How soon it looks again follows from the room that is left: never later than it would take all
//! cores together to fill it, so that a hog is met however fast it is. While everything stands still
//! for want of memory (the kernel's pressure), the limit is a little lower.

use std::path::Path;

use oxiray_ids::ProcessId;
use oxiray_node::Shortage;
use oxiray_sys::machine::{Memory, MemoryReader};
use oxiray_words::show_bytes;

const SECOND: u64 = 1_000_000_000;
/// It looks no sooner than this, however little room is left.
const SOONEST: u64 = SECOND / 100;
/// How often it looks when nobody is to be ended: at what the kernel does.
const UNHURRIED: u64 = SECOND;
/// What one core can fill in a second: new pages cost more than their copying.
const FILLED_BY_CORE: u64 = 4 << 30;
/// Whoever was told to end has so long before another is.
const TO_END: u64 = SECOND;
/// The share of time that everything stands still from which memory counts as pressed.
const PRESSED: f64 = 0.2;
/// What the limit is multiplied by then.
const LOWER: f64 = 0.95;
/// So long after the kernel killed something, a worker's death is told as that.
const KILLED_LATELY: u64 = 2 * SECOND;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    reader: MemoryReader,
    /// Share above which workers are ended; none: they are not.
    threshold: Option<f64>,
    refresh: u64,
    cores: u64,
    next: u64,
    before: Option<Look>,
    /// Who was told to end last, and when.
    ending: Option<(ProcessId, u64)>,
    kernel_kills: u64,
    kernel_killed_at: Option<u64>,
}

/// What was seen at one time.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: u64,
    memory: Memory,
    stalled_us: u64,
}

impl MemoryWatch {
    /// Workers are ended above `threshold`, unless it, or how often to look, is said to be nothing.
    pub(crate) fn new(threshold: f64, refresh_ms: u64, groups_at: &Path, now: u64) -> Self {
        let reader = MemoryReader::of_groups_at(groups_at);
        let wanted = threshold > 0.0 && threshold < 1.0 && refresh_ms > 0;
        Self {
            threshold: wanted.then_some(threshold),
            refresh: refresh_ms * 1_000_000,
            cores: std::thread::available_parallelism().map_or(1, usize::from) as u64,
            next: now,
            before: None,
            ending: None,
            kernel_kills: reader.kernel_kills(),
            kernel_killed_at: None,
            reader,
        }
    }

    /// When to look again.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Looks if it is time to: whether a worker is to be ended.
    pub(crate) fn look(&mut self, now: u64) -> Option<Shortage> {
        if now < self.next {
            return None;
        }
        self.see_kernel(now);
        let Some(threshold) = self.threshold else {
            self.next = now + UNHURRIED;
            return None;
        };
        let memory = self.reader.read();
        let look = Look { at: now, memory, stalled_us: self.reader.stalled_us() };
        let is_short = self.judge(look, threshold);
        let is_ending = self.ending.is_some_and(|(_, at)| now < at + TO_END);
        let Memory { used, total } = memory;
        (is_short && !is_ending).then_some(Shortage { used, total, threshold })
    }

    /// Whether memory is short, and when to look again.
    fn judge(&mut self, look: Look, threshold: f64) -> bool {
        let before = self.before.replace(look);
        let passed = before.map_or(0, |before| look.at.saturating_sub(before.at)).max(1);
        let stalled = before.map_or(0, |before| look.stalled_us.saturating_sub(before.stalled_us));
        let is_pressed = stalled as f64 * 1000.0 / passed as f64 > PRESSED;
        let threshold = if is_pressed { threshold * LOWER } else { threshold };
        let Memory { used, total } = look.memory;
        let limit = (total as f64 * threshold) as u64;
        let room = limit.saturating_sub(used);
        let to_fill = room as f64 / (self.cores * FILLED_BY_CORE) as f64 * SECOND as f64;
        let soonest = SOONEST.min(self.refresh);
        let pause = (to_fill as u64).clamp(soonest, self.refresh);
        self.next = look.at + if is_pressed { soonest } else { pause };
        // As it grows now, there would be none left when it is looked at again.
        let grown = before.map_or(0, |before| used.saturating_sub(before.memory.used));
        let by_then = grown as f64 * (self.next - look.at) as f64 / passed as f64;
        used > limit || (room < total / 10 && used as f64 + by_then >= total as f64)
    }

    /// This one was told to end: it has some time before another is.
    pub(crate) fn told_to_end(&mut self, process: ProcessId, now: u64) {
        self.ending = Some((process, now));
    }

    /// A process is gone, and its memory is back.
    pub(crate) fn ended(&mut self, process: ProcessId) {
        self.ending.take_if(|(ending, _)| *ending == process);
    }

    fn see_kernel(&mut self, now: u64) {
        let kills = self.reader.kernel_kills();
        if kills > self.kernel_kills {
            self.kernel_killed_at = Some(now);
        }
        self.kernel_kills = kills;
    }

    /// Why a worker that SIGKILL ended just now was killed, if that was the kernel for want of
    /// memory.
    pub(crate) fn killed_by_kernel(&mut self, now: u64) -> Option<String> {
        self.see_kernel(now);
        let lately = self.kernel_killed_at.is_some_and(|at| now < at + KILLED_LATELY);
        lately.then(|| {
            format!(
                "it was killed by the kernel (SIGKILL) because memory ran out: this node may use \
                 {}. Remedies: ask for fewer at once (num_cpus=, memory=), for a machine with more \
                 memory, or for a lower RAY_memory_usage_threshold",
                show_bytes(self.reader.limit()),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn watch(threshold: f64, cores: u64) -> MemoryWatch {
        let watch = MemoryWatch::new(threshold, 250, Path::new("/nowhere"), 0);
        MemoryWatch { cores, ..watch }
    }

    fn look(at_ms: u64, used: u64, total: u64, stalled_ms: u64) -> Look {
        let memory = Memory { total, used };
        Look { at: at_ms * 1_000_000, memory, stalled_us: stalled_ms * 1000 }
    }

    #[test]
    fn it_looks_again_before_the_room_could_be_filled() {
        let mut watch = watch(0.95, 2);
        assert!(!watch.judge(look(0, 10 * GIB, 100 * GIB, 0), 0.95));
        assert_eq!(watch.next(), 250_000_000, "there is much room");
        watch.before = None; // How fast it grew is another test's.
        assert!(!watch.judge(look(250, 94 * GIB, 100 * GIB, 0), 0.95));
        assert_eq!(watch.next(), 250_000_000 + SECOND / 8, "1 GiB at 8 GiB a second");
        assert!(!watch.judge(look(500, 95 * GIB - 1, 100 * GIB, 0), 0.95));
        assert_eq!(watch.next(), 500_000_000 + SOONEST);
        assert!(watch.judge(look(510, 95 * GIB + 1, 100 * GIB, 0), 0.95));
    }

    #[test]
    fn what_would_be_full_by_the_next_look_is_short_already() {
        let mut watch = watch(0.95, 1);
        let total = GIB;
        assert!(!watch.judge(look(0, total * 80 / 100, total, 0), 0.95));
        // 14 % more within 10 ms: the next look would find nothing left.
        assert!(watch.judge(look(10, total * 94 / 100, total, 0), 0.95));
        watch.before = None;
        assert!(!watch.judge(look(0, total * 93 / 100, total, 0), 0.95));
        assert!(!watch.judge(look(10, total * 94 / 100, total, 0), 0.95), "slowly");
    }

    #[test]
    fn pressure_lowers_the_limit_and_hastens_the_look() {
        let mut watch = watch(0.9, 2);
        assert!(!watch.judge(look(0, 87 * GIB, 100 * GIB, 0), 0.9));
        assert!(
            watch.judge(look(100, 87 * GIB, 100 * GIB, 50), 0.9),
            "half the time it stood still"
        );
        assert!(!watch.judge(look(200, 87 * GIB, 100 * GIB, 50), 0.9), "and goes on");
    }

    #[test]
    fn whoever_was_told_to_end_has_time_to() {
        let mut watch = MemoryWatch::new(1e-9, 250, Path::new("/nowhere"), 0);
        assert!(watch.look(0).is_some());
        watch.told_to_end(ProcessId(3), 0);
        assert!(watch.look(watch.next()).is_none());
        watch.ended(ProcessId(4));
        assert!(watch.look(watch.next()).is_none());
        watch.ended(ProcessId(3));
        assert!(watch.look(watch.next()).is_some(), "its memory did not suffice");
        let mut never = MemoryWatch::new(0.0, 250, Path::new("/nowhere"), 0);
        assert!(never.look(0).is_none());
        assert_eq!(never.next(), UNHURRIED, "what the kernel does is seen all the same");
    }

    #[test]
    fn a_kill_of_the_kernel_is_told_for_a_while() {
        let mut watch = watch(0.95, 2);
        watch.kernel_kills = watch.reader.kernel_kills();
        assert!(watch.killed_by_kernel(0).is_none());
        watch.kernel_killed_at = Some(0);
        assert!(watch.killed_by_kernel(SECOND).unwrap().contains("killed by the kernel"));
        assert!(watch.killed_by_kernel(9 * SECOND).is_none());
    }
}
