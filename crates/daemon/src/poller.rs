//! What is being waited for: a poll set whose entries know what they are.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// Somebody connects.
    Listener,
    /// This program was asked to end.
    Termination,
    /// The driver's process ended.
    DriverEnded,
    /// The zygote of an environment speaks or is gone.
    Zygote(u32),
    /// The disk has news.
    Disk,
    /// The connection in this slot.
    Connection(usize),
    /// Somebody connects from another machine.
    NetListener,
    /// The connection with another machine in this slot.
    NetLink(usize),
    /// Processes have written to processes of other nodes.
    Gateway,
    /// Objects have come from other nodes.
    Transfers,
    /// Files that tools asked for were read.
    Files,
    /// Whoever started this is gone.
    Starter,
    /// Somebody looks at the dashboard, which nobody serves yet.
    Dashboard,
    /// The process that serves the dashboard has ended.
    DashboardEnded,
    /// A stream (0 output, 1 error) of the worker output in this slot.
    Output(usize, usize),
}

impl Token {
    fn pack(self) -> u64 {
        let (kind, index, part) = match self {
            Self::Listener => (0, 0, 0),
            Self::Termination => (1, 0, 0),
            Self::DriverEnded => (2, 0, 0),
            Self::Zygote(number) => (3, number as usize, 0),
            Self::Disk => (6, 0, 0),
            Self::Connection(index) => (4, index, 0),
            Self::NetListener => (7, 0, 0),
            Self::NetLink(index) => (8, index, 0),
            Self::Gateway => (10, 0, 0),
            Self::Transfers => (11, 0, 0),
            Self::Starter => (12, 0, 0),
            Self::Files => (13, 0, 0),
            Self::Dashboard => (14, 0, 0),
            Self::DashboardEnded => (15, 0, 0),
            Self::Output(index, part) => (5, index, part),
        };
        (kind << 40) | ((part as u64) << 32) | index as u64
    }

    fn unpack(data: u64) -> Self {
        let index = (data & 0xffff_ffff) as usize;
        match data >> 40 {
            0 => Self::Listener,
            1 => Self::Termination,
            2 => Self::DriverEnded,
            3 => Self::Zygote(index as u32),
            4 => Self::Connection(index),
            6 => Self::Disk,
            7 => Self::NetListener,
            8 => Self::NetLink(index),
            10 => Self::Gateway,
            11 => Self::Transfers,
            12 => Self::Starter,
            13 => Self::Files,
            14 => Self::Dashboard,
            15 => Self::DashboardEnded,
            _ => Self::Output(index, ((data >> 32) & 0xff) as usize),
        }
    }
}

/// The poll set. Level-triggered: what was not read is reported again.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(256) })
    }

    pub(crate) fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.pack());
        Ok(epoll::add(&self.epoll, source, data, epoll::EventFlags::IN)?)
    }

    /// Whether to wait for room to write, too.
    pub(crate) fn want_write(&self, source: impl AsFd, token: Token, want: bool) {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, want);
        let data = epoll::EventData::new_u64(token.pack());
        // Fails only for a source that is not in the set, which then needs no event.
        let _ = epoll::modify(&self.epoll, source, data, flags);
    }

    /// Forgets a source. Needed before closing it: another process may hold the
    /// same open file, which would keep it in the set.
    pub(crate) fn remove(&self, source: impl AsFd) {
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Sleeps until something happens or the time is up.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Token>) {
        self.events.clear();
        into.clear();
        let timeout = timeout.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        // An interrupted wait is one in which nothing happened.
        if epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()).is_ok() {
            into.extend(self.events.iter().map(|event| Token::unpack(event.data.u64())));
        }
    }
}

impl oxiray_net::Watch for Poller {
    fn add(&self, link: BorrowedFd<'_>, slot: usize) -> io::Result<()> {
        self.add(link, Token::NetLink(slot))
    }

    fn want_write(&self, link: BorrowedFd<'_>, slot: usize, want: bool) {
        self.want_write(link, Token::NetLink(slot), want);
    }

    fn remove(&self, link: BorrowedFd<'_>) {
        self.remove(link);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_both_ways() {
        let tokens = [
            Token::Listener,
            Token::Disk,
            Token::Termination,
            Token::DriverEnded,
            Token::Zygote(0),
            Token::Zygote(70_000),
            Token::NetListener,
            Token::NetLink(5),
            Token::Gateway,
            Token::Transfers,
            Token::Starter,
            Token::Files,
            Token::Dashboard,
            Token::DashboardEnded,
            Token::Connection(0),
            Token::Connection(70_000),
            Token::Output(3, 0),
            Token::Output(70_000, 1),
        ];
        for token in tokens {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
