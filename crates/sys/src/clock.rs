//! The two clocks: one that never goes back, one that people read.

/// Nanoseconds of the monotonic clock, the same in every process of a machine.
pub fn monotonic_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970, for timelines and logs.
pub fn wall_ns() -> u64 {
    nanoseconds(libc::CLOCK_REALTIME)
}

/// By the C library: it finds the kernel's page for this also where a tool such
/// as valgrind hides the auxiliary vector's.
fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the timespec it is given; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The second of a moment in nanoseconds since 1970 as people here write it: `2026-01-31_23-59-59`.
pub fn local_second(wall_ns: u64) -> String {
    let seconds = (wall_ns / 1_000_000_000) as libc::time_t;
    // SAFETY: a structure of numbers and a pointer that is not followed; all zeroes are valid.
    let mut time = unsafe { std::mem::zeroed::<libc::tm>() };
    // SAFETY: reads and writes what it is given; where it fails, the zeroes stay.
    unsafe { libc::localtime_r(&seconds, &mut time) };
    format!(
        "{:04}-{:02}-{:02}_{:02}-{:02}-{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}
