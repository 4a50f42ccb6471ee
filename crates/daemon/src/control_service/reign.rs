//! Whether the state is still this service's to speak for, where others wait to take it over.
//!
//! - **R-1** where others wait, nothing is said to anybody after the time for which the store is
//!   surely ours: another may speak for the state by then. Members are sent to the others, as they
//!   are to be found whoever reigns.
//! - **R-2** if nobody has taken over when the store can be used again, this service goes on with what
//!   it has in memory; members come back.
//! - **R-3** if somebody has, it waits in its turn: its program runs anew, so that nothing is left of
//!   what it knew. Where nobody waited it ends, as somebody has put another in its place by hand.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use oxiray_control::{Event, PeerId};
use oxiray_persist::Persist;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::memory::memory_file;
use prost::Message;
use rustix::io::{FdFlags, fcntl_setfd, pwrite};

use super::Service;
use super::ground::Ground;

/// How often to look whether the store is ours again.
const LOOK_EVERY_NS: u64 = 50_000_000;

/// What is known of others that would reign.
#[derive(Default)]
pub(super) struct Reign {
    /// Those that wait.
    others: Vec<String>,
    /// Members that were sent away, while it is not sure who reigns.
    sent_away: Option<Vec<PeerId>>,
    /// Why the state is another's now.
    lost: Option<String>,
}

impl Reign {
    /// It is not sure who reigns.
    pub(super) fn has_lapsed(&self) -> bool {
        self.sent_away.is_some()
    }

    /// The state is another's, for this reason.
    pub(super) fn lose(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// The service has ended: what is left to do.
    pub(super) fn end(self, ground: Ground) -> io::Result<()> {
        match self.lost {
            None => Ok(()),
            Some(_) if ground.config.standby || !self.others.is_empty() => {
                tracing::info!("another control service reigns; this one waits from now on");
                Err(wait_anew(ground))
            }
            Some(why) => Err(io::Error::other(why)),
        }
    }
}

impl Service {
    /// All that reign or wait, as the store has it.
    pub(super) fn on_heads(&mut self, mut all: Vec<String>) {
        all.retain(|address| *address != self.ground.address);
        self.reign.others.clone_from(&all);
        all.insert(0, self.ground.address.clone());
        let mut asked = super::Asked::default();
        self.control.set_heads(all, &mut asked);
        self.carry_out(asked);
    }

    /// Looks whether the store is still ours, before anything else is done.
    pub(super) fn mind_reign(&mut self) {
        let is_ours = monotonic_ns() < self.writer.ours_until();
        if !is_ours && !self.reign.others.is_empty() && !self.reign.has_lapsed() {
            tracing::warn!("the store is not surely ours; members are sent to the others");
            self.reign.sent_away = Some(self.ground.peers.end_all(&self.ground.poller));
            self.ground.peers.send_away(self.reign.others.clone());
        } else if is_ours && let Some(peers) = self.reign.sent_away.take() {
            tracing::info!("nobody has taken over; members may come back");
            self.ground.peers.welcome();
            for peer in peers {
                self.event(Event::Broken(peer));
            }
        }
    }

    /// When [`Self::mind_reign`] is due, whatever happens.
    pub(super) fn next_reign_wakeup(&self) -> Option<u64> {
        match self.reign.has_lapsed() {
            true => Some(monotonic_ns() + LOOK_EVERY_NS),
            false => Some(self.writer.ours_until()).filter(|_| !self.reign.others.is_empty()),
        }
    }
}

/// A standby has the state, and reigns from now on. If the state cannot be read, others may try, and
/// this one again.
pub(super) fn take_over(ground: Ground, mut store: Box<dyn Persist>) -> io::Result<()> {
    match store.load() {
        Ok(records) => Service::on(ground, store, records)?.run(),
        Err(error) => {
            tracing::error!(%error, "the state cannot be read");
            // Gives it back.
            drop(store);
            Err(wait_anew(ground))
        }
    }
}

/// Runs this program anew, as a standby. Comes back only if that cannot be.
fn wait_anew(ground: Ground) -> io::Error {
    let attempt = || -> io::Result<Command> {
        let bytes = ground.into_standby().encode_to_vec();
        let file = memory_file("oxiray-config", bytes.len())?;
        pwrite(&file, &bytes, 0)?;
        fcntl_setfd(&file, FdFlags::empty())?;
        let mut command = Command::new("/proc/self/exe");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        command.args(["control", "--again", "--config", &path]);
        // The next program has it.
        std::mem::forget(file);
        Ok(command)
    };
    match attempt() {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}
