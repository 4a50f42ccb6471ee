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
