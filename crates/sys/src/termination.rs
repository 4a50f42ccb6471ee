//! Being asked to end: SIGTERM and SIGINT as something to poll.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

static WRITE_END: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(_: libc::c_int) {
    let byte = 0u8;
    // SAFETY: write is async-signal-safe, the pointer is to one live byte, and
    // errno is left as it was found.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(WRITE_END.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
        *errno = saved;
    }
}

/// Catches SIGTERM and SIGINT for good: the pipe becomes readable with the first
/// of them. Handlers, unlike a blocked mask, are not inherited by programs that
/// this one starts.
pub fn termination_pipe() -> io::Result<OwnedFd> {
    let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    WRITE_END.store(write_end.into_raw_fd(), Ordering::Relaxed);
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler makes async-signal-safe calls only.
        let before = unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(read_end)
}
