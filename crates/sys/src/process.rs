//! What a process does to itself and to its children.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Blocks every signal in the calling thread, so that the program's own threads get them.
pub fn block_signals_in_this_thread() {
    // SAFETY: both calls only touch the set they are given and this thread's mask.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Lets every other thread go before the calling one, where there is a choice.
pub fn give_way() {
    // In Linux, of this thread alone.
    let _ = rustix::process::nice(19);
}

/// From now on, a file that would grow beyond its limit is an error: by default that ends a process.
pub fn ignore_file_size_signal() {
    // SAFETY: the signal has no handler that anything of ours could be called by.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// How large files may become.
#[derive(Clone, Copy, Debug)]
pub struct FileSize(pub rustix::process::Rlimit);

/// What `command` starts may have files of this size, whatever we may.
pub fn limit_file_size(command: &mut Command, size: FileSize) {
    // SAFETY: between fork and exec only one async-signal-safe call is made.
    unsafe {
        command.pre_exec(move || {
            Ok(rustix::process::setrlimit(rustix::process::Resource::Fsize, size.0)?)
        });
    }
}

/// Starts `command` in a session of its own, so that Ctrl-C at a terminal does
/// not reach it, with `socket` as its descriptor `number`.
pub fn spawn_detached(command: &mut Command, socket: OwnedFd, number: i32) -> io::Result<Child> {
    let raw = socket.as_raw_fd();
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            if raw == number {
                // Already in place: only its close-on-exec flag must go.
                if libc::fcntl(raw, libc::F_SETFD, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            } else if libc::dup2(raw, number) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let child = command.spawn();
    drop(socket);
    child
}

/// From now on what our descendants leave behind when they end becomes our child.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: this call only sets a flag of this process.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends `signal` to process `pid`. Whether it still lives is not an error here.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: kill touches no memory of ours.
    unsafe {
        libc::kill(pid as libc::pid_t, signal);
    }
}

/// The number of the calling thread, by which it is sent signals.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Sends `signal` to a thread of this process: to that one alone.
pub fn signal_thread(thread: u32, signal: i32) {
    // SAFETY: tgkill touches no memory of ours.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread as libc::pid_t, signal);
    }
}

/// A signal that nothing else uses: the `number`-th of those that are for programs.
pub fn own_signal(number: i32) -> i32 {
    libc::SIGRTMIN() + number
}

/// Kills process `pid` for certain.
pub fn kill(pid: u32) {
    signal(pid, libc::SIGKILL);
}

/// Kills the processes of the group that process `leader` leads, or led: those it started, and
/// they did, unless they made a group of their own. Only to be called while the number cannot be
/// another's: the leader is there, if only as a status that its parent has not taken, or no
/// process has its number.
pub fn kill_group(leader: u32) {
    // Group 0 is our own, and -1 would be everybody's.
    if leader > 1 {
        signal_group(leader as libc::pid_t);
    }
}

/// Kills a group that is left of a process which has ended, and whose status somebody else has
/// taken. A number is not given to a new process while a group has it; so where no process has
/// it, the group is still the old one's.
pub fn kill_group_left_by(leader: u32) {
    if !std::path::Path::new(&format!("/proc/{leader}")).exists() {
        kill_group(leader);
    }
}

fn signal_group(group: libc::pid_t) {
    // SAFETY: killpg touches no memory of ours.
    unsafe {
        libc::killpg(group, libc::SIGKILL);
    }
}

/// Ends this process now, and with it what it has started, if it leads a group of its own.
pub fn end_own_group(code: i32) -> ! {
    // SAFETY: both only ask for a number.
    let (pid, group) = unsafe { (libc::getpid(), libc::getpgrp()) };
    if pid == group {
        signal_group(group);
    }
    exit_now(code)
}

/// Ends this process now: no destructors, no exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Takes descriptor `number`, inherited by this process, as its owner.
pub fn inherited_fd(number: i32) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: fcntl on a number is harmless; it fails for one that is not open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: open, as just seen; the caller says that it is its to own.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
