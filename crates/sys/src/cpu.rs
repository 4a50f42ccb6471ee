//! On which processors a thread runs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processor that the calling thread is on.
pub fn current() -> u32 {
    // SAFETY: takes nothing and touches no memory of ours.
    unsafe { libc::sched_getcpu() as u32 }
}

/// The processors that the calling thread may use.
pub struct Allowed(CpuSet);

impl Allowed {
    /// As they are now.
    pub fn now() -> io::Result<Self> {
        Ok(Self(sched_getaffinity(None)?))
    }

    /// Keeps the calling thread to processor `cpu`; `false` if it may not use that.
    pub fn only(&self, cpu: u32) -> bool {
        let cpu = cpu as usize;
        if cpu >= CpuSet::MAX_CPU || !self.0.is_set(cpu) {
            return false;
        }
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).is_ok()
    }

    /// Lets the calling thread use them all again.
    pub fn restore(&self) {
        // Fails only if all of them were taken away meanwhile; then the kernel has chosen.
        let _ = sched_setaffinity(None, &self.0);
    }
}
