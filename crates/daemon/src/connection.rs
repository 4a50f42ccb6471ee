//! A packet socket with a queue for what it cannot take yet.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use oxiray_ids::ProcessId;
use oxiray_sys::packet;

/// A peer that takes nothing while this much waits for it is given up.
const MOST_QUEUED: usize = 256 << 20;

/// One process, before and after it has registered.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    queue: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    queued_bytes: usize,
    /// What the kernel says about the other end.
    pub(crate) pid: u32,
    /// Refers to the very process, even after its id was used again.
    pub(crate) pidfd: Option<OwnedFd>,
    /// Once registered.
    pub(crate) process: Option<ProcessId>,
    /// Slot of what it prints, for workers.
    pub(crate) output: Option<usize>,
    /// It is a user's program.
    pub(crate) is_driver: bool,
}

impl Connection {
    /// A process of our own user, and of this container: no other may be here.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let peer = packet::peer(&socket)?;
        if peer.uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(format!("user {} may not connect", peer.uid)));
        }
        let pid = peer.pid.ok_or_else(|| io::Error::other("a process of another container"))?;
        packet::set_nonblocking(&socket)?;
        let pidfd = rustix::process::Pid::from_raw(pid as i32).and_then(|pid| {
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
        });
        let (queue, queued_bytes) = (VecDeque::new(), 0);
        Ok(Self {
            socket,
            queue,
            queued_bytes,
            pid,
            pidfd,
            process: None,
            output: None,
            is_driver: false,
        })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Bytes that the peer has not taken.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Sends at once, or queues. `Ok(true)` when the queue has just begun. An
    /// error means that the peer is gone or hopeless; reading will tell.
    pub(crate) fn send(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let begins = self.queue.is_empty();
        if begins {
            match packet::send(&self.socket, bytes, fds) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done.map(|()| false),
            }
        }
        if self.queued_bytes + bytes.len() > MOST_QUEUED {
            return Err(io::Error::other("the peer does not take its messages"));
        }
        let fds = fds.iter().map(|fd| fd.try_clone_to_owned()).collect::<io::Result<_>>()?;
        self.queued_bytes += bytes.len();
        self.queue.push_back((bytes.to_vec(), fds));
        Ok(begins)
    }

    /// Sends what is queued; true when nothing is left.
    pub(crate) fn flush(&mut self) -> bool {
        while let Some((bytes, fds)) = self.queue.front() {
            let borrowed: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
            match packet::send(&self.socket, bytes, &borrowed) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Broken: reading will tell. What is queued will never arrive.
                Err(_) => {
                    self.queue.clear();
                    self.queued_bytes = 0;
                    return true;
                }
                Ok(()) => {
                    self.queued_bytes -= bytes.len();
                    self.queue.pop_front();
                }
            }
        }
        true
    }

    /// The next packet, if one is there.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Received {
        match packet::receive(&self.socket, buffer) {
            Ok(Some((len, fds))) => Received::Packet(len, fds),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
            Ok(None) | Err(_) => Received::End,
        }
    }

    /// Kills the process at the other end for certain.
    pub(crate) fn kill(&self) {
        match &self.pidfd {
            Some(pidfd) => {
                let kill = rustix::process::Signal::KILL;
                let _ = rustix::process::pidfd_send_signal(pidfd, kill);
            }
            None => oxiray_sys::process::kill(self.pid),
        }
    }

    /// Kills it with all that it has started, which is in its group. It may have ended.
    pub(crate) fn kill_with_group(&self) {
        // As long as it can be signalled, be it as a status that nobody has taken, its number is no
        // other's.
        let is_there = self.pidfd.as_ref().is_some_and(|pidfd| {
            rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::STOP).is_ok()
        });
        match is_there {
            true => oxiray_sys::process::kill_group(self.pid),
            false => oxiray_sys::process::kill_group_left_by(self.pid),
        }
        self.kill();
    }
}

/// What [`Connection::receive`] found.
#[derive(Debug)]
pub(crate) enum Received {
    /// A packet of this length, and its descriptors.
    Packet(usize, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The peer is gone.
    End,
}
