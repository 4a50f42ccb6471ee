//! Descriptors that become readable when somebody rings them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::EventfdFlags;

/// A new one, not rung.
pub fn new() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes it readable. One that was rung very often stays so.
pub fn ring(eventfd: impl AsFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Makes it not readable until it is rung again.
pub fn quiet(eventfd: impl AsFd) {
    let _ = rustix::io::read(eventfd, &mut [0; 8]);
}
