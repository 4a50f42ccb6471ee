//! Connections of which it is not known yet whether they are of the cluster.
//!
//! Pure: decides, and writes log lines; the caller closes. `K` is by what the caller knows a
//! connection; times are nanoseconds of a clock that never goes back.
//!
//! - **D-1 (bounded):** at most [`MAX_STRANGERS`] are kept. One more, and the oldest of the address
//!   that has most has to go: strangers who only sit there cannot keep members out, nor can a
//!   flood from one address.
//! - **D-2 (patience):** after `expired(now)`, none is kept that came [`PATIENCE_NS`] or longer
//!   before `now`.
//! - **D-3 (wake-up):** `next_wakeup` is the earliest time at which `expired` returns something,
//!   and none if nobody is kept.
//! - **D-4 (once):** each connection leaves exactly once: authenticated, gone, expired, or to make
//!   room.
//! - **D-5 (quiet):** a source has at most one log line a minute.
//! - **D-6 (bounded log):** all sources together have at most [`LINES_PER_MINUTE`] log lines in
//!   any minute, and that many addresses are remembered at most.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Connections that may be unauthenticated at the same time.
pub const MAX_STRANGERS: usize = 64;

/// How long a connection may take to authenticate itself: 5 s.
pub const PATIENCE_NS: u64 = 5_000_000_000;

/// How many refusals are logged in a minute, each of another source.
pub const LINES_PER_MINUTE: usize = 1024;

const MINUTE_NS: u64 = 60_000_000_000;

/// Watches connections until they have authenticated themselves.
#[derive(Debug)]
pub struct Doorkeeper<K> {
    /// In the order in which they came.
    strangers: VecDeque<Stranger<K>>,
    lines: Lines,
}

#[derive(Debug)]
struct Stranger<K> {
    key: K,
    address: IpAddr,
    came: u64,
}

impl<K: Copy + Eq> Default for Doorkeeper<K> {
    fn default() -> Self {
        Self { strangers: VecDeque::new(), lines: Lines::default() }
    }
}

impl<K: Copy + Eq> Doorkeeper<K> {
    /// A connection was accepted. The one that is returned is to be closed.
    #[must_use]
    pub fn admitted(&mut self, key: K, address: IpAddr, now: u64) -> Option<K> {
        debug_assert!(self.strangers.iter().all(|stranger| stranger.key != key));
        let dropped = match self.strangers.len() == MAX_STRANGERS {
            true => self.crowded_out(),
            false => None,
        };
        self.strangers.push_back(Stranger { key, address, came: now });
        let dropped = dropped?;
        self.refused(dropped.address, "too many others connect at the same time", now);
        Some(dropped.key)
    }

    fn crowded_out(&mut self) -> Option<Stranger<K>> {
        let count = |address| {
            let same = self.strangers.iter().filter(|stranger| stranger.address == address);
            same.count()
        };
        let ranked = self.strangers.iter().enumerate();
        let (index, _) = ranked
            .max_by_key(|(index, stranger)| (count(stranger.address), std::cmp::Reverse(*index)))?;
        self.strangers.remove(index)
    }

    /// A connection has shown that it is of the cluster.
    pub fn authenticated(&mut self, key: K) {
        self.take(key);
    }

    /// A connection is over. Logs why if it had not authenticated itself.
    pub fn gone(&mut self, key: K, why: &str, now: u64) {
        if let Some(stranger) = self.take(key) {
            self.refused(stranger.address, why, now);
        }
    }

    /// Those whose time is up, which are to be closed.
    #[must_use]
    pub fn expired(&mut self, now: u64) -> Vec<K> {
        let mut expired = Vec::new();
        while let Some(stranger) =
            self.strangers.pop_front_if(|stranger| stranger.came + PATIENCE_NS <= now)
        {
            self.refused(stranger.address, "it did not authenticate itself within 5 s", now);
            expired.push(stranger.key);
        }
        expired
    }

    /// When to ask for those whose time is up.
    pub fn next_wakeup(&self) -> Option<u64> {
        self.strangers.front().map(|stranger| stranger.came + PATIENCE_NS)
    }

    fn take(&mut self, key: K) -> Option<Stranger<K>> {
        let index = self.strangers.iter().position(|stranger| stranger.key == key)?;
        self.strangers.remove(index)
    }

    fn refused(&mut self, address: IpAddr, why: &str, now: u64) {
        if self.lines.may_log(address, now) {
            tracing::warn!(%address, "refused a connection: {why}");
        }
    }
}

/// Who had a log line in the last minute.
#[derive(Default, Debug)]
struct Lines {
    last: HashMap<IpAddr, u64>,
}

impl Lines {
    /// Whether this source may have a line now. If so it had one.
    fn may_log(&mut self, address: IpAddr, now: u64) -> bool {
        let recent = |at: u64| now < at + MINUTE_NS;
        if self.last.get(&address).is_some_and(|&at| recent(at)) {
            return false;
        }
        if self.last.len() >= LINES_PER_MINUTE {
            self.last.retain(|_, at| recent(*at));
        }
        let room = self.last.len() < LINES_PER_MINUTE || self.last.contains_key(&address);
        if room {
            self.last.insert(address, now);
        }
        room
    }
}

#[cfg(test)]
mod tests;
