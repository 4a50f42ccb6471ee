//! The two clocks: one that never goes back, one that people read.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock, the same in every process of a machine.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds since 1970, for timelines and logs.
pub fn wall_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
