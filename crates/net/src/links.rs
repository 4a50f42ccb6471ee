//! The connections of a service: accepted or made, read, written, ended.
//!
//! Each has a slot, by which its owner's event loop knows it, and what its owner says it is for.
//! The loop says which slot is ready; the table reads it, hands out what came, and minds when
//! there is room to write.
//!
//! - **L-1** who connects is a stranger until its owner knows it, and strangers are bounded in
//!   number and time.
//! - **L-2** what is sent goes out in order, at the latest with the next [`Links::flush`].
//! - **L-3** the end of a connection is said once, unless its owner ended it.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use slab::Slab;

use crate::doorkeeper::Doorkeeper;
use crate::error::LinkError;
use crate::identity::Security;
use crate::link::{Link, Progress};
use crate::listener::Listener;

/// The event loop that waits for connections.
pub trait Watch {
    /// Waits for what comes over the connection in this slot.
    fn add(&self, link: BorrowedFd<'_>, slot: usize) -> io::Result<()>;
    /// Whether to wait for room to write, too.
    fn want_write(&self, link: BorrowedFd<'_>, slot: usize, want: bool);
    /// Waits for it no longer.
    fn remove(&self, link: BorrowedFd<'_>);
}

/// What to do after a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Goes on.
    Go,
    /// Goes on, and is no stranger any more.
    Known,
    /// Is no stranger, and not for this table: its owner takes the connection.
    HandOver,
    /// Ends, for this reason.
    Refuse(String),
}

/// How reading went.
#[derive(Debug)]
pub enum Reading<T> {
    /// The connection stays.
    Stays,
    /// Its owner wanted it.
    HandedOver(Link, T),
    /// It is over, for this reason.
    Over(T, Ended),
}

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// In words.
    pub why: String,
    /// Nothing came for long: the other side may live, and know nothing of it.
    pub silently: bool,
}

impl From<&LinkError> for Ended {
    fn from(error: &LinkError) -> Self {
        Self { why: error.to_string(), silently: error.is_silence() }
    }
}

struct Entry<T> {
    link: Link,
    whose: T,
    /// Closed once everything was sent; nothing is read any more.
    closing: bool,
    /// Something was sent since the last flush.
    dirty: bool,
    /// Room to write is waited for.
    writes: bool,
}

/// All connections of a service; `T` says what each is for.
pub struct Links<T> {
    security: Security,
    links: Slab<Entry<T>>,
    doorkeeper: Doorkeeper<usize>,
    dirty: Vec<usize>,
}

impl<T> Links<T> {
    /// None yet; those to come are protected by this.
    pub fn new(security: Security) -> Self {
        let (links, doorkeeper, dirty) = (Slab::new(), Doorkeeper::default(), Vec::new());
        Self { security, links, doorkeeper, dirty }
    }

    /// Connections from now on are protected by this.
    pub fn set_security(&mut self, security: Security) {
        self.security = security;
    }

    /// How new connections are protected.
    pub fn security(&self) -> &Security {
        &self.security
    }

    /// Takes in who connects (L-1); `whose` says what they are until more is known.
    pub fn accept(
        &mut self,
        listener: &Listener,
        now: u64,
        watch: &impl Watch,
        mut whose: impl FnMut(usize) -> T,
    ) {
        while let Ok(Some((stream, address))) = listener.accept() {
            let Ok(link) = Link::accept(stream, &self.security) else {
                continue;
            };
            let slot = self.links.vacant_key();
            if self.adopt(link, whose(slot), watch).is_err() {
                continue;
            }
            if let Some(dropped) = self.doorkeeper.admitted(slot, address.ip(), now) {
                self.end(dropped, watch);
            }
        }
    }

    /// Connects, and says `hello` first.
    pub fn connect(
        &mut self,
        address: SocketAddr,
        hello: &[u8],
        whose: T,
        watch: &impl Watch,
    ) -> io::Result<usize> {
        let mut link = Link::connect(address, &self.security)?;
        link.send(&[hello]).map_err(io::Error::other)?;
        self.adopt(link, whose, watch)
    }

    /// Ends a connection once the other side was not heard for so long while something was said to
    /// it, or asked of it: there may be another way there.
    pub fn hurry(&self, slot: usize, silence: Duration) {
        if let Some(entry) = self.links.get(slot)
            && let Err(error) = crate::listener::give_up_after(entry.link.as_fd(), silence)
        {
            tracing::warn!(%error, "a connection will be waited for longer than it should");
        }
    }

    /// Takes over a connection that was made elsewhere.
    pub fn adopt(&mut self, link: Link, whose: T, watch: &impl Watch) -> io::Result<usize> {
        let entry = self.links.vacant_entry();
        let slot = entry.key();
        watch.add(link.as_fd(), slot)?;
        entry.insert(Entry { link, whose, closing: false, dirty: false, writes: false });
        self.mind_writing(slot, watch);
        Ok(slot)
    }

    /// What a connection is for.
    pub fn whose(&self, slot: usize) -> Option<&T> {
        self.links.get(slot).map(|entry| &entry.whose)
    }

    /// Likewise, to be changed.
    pub fn whose_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.links.get_mut(slot).map(|entry| &mut entry.whose)
    }

    /// All of them, and what they are for.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.links.iter().map(|(slot, entry)| (slot, &entry.whose))
    }

    /// Sends a frame made of these parts (L-2). Fails only for one that is too long.
    pub fn send(&mut self, slot: usize, parts: &[&[u8]]) -> Result<(), LinkError> {
        let Some(entry) = self.links.get_mut(slot) else {
            return Ok(());
        };
        entry.link.send(parts)?;
        self.soil(slot);
        Ok(())
    }

    /// Ends a connection once everything was sent.
    pub fn close(&mut self, slot: usize) {
        if let Some(entry) = self.links.get_mut(slot) {
            entry.closing = true;
            self.soil(slot);
        }
    }

    /// Ends a connection at once.
    pub fn end(&mut self, slot: usize, watch: &impl Watch) -> Option<(Link, T)> {
        let entry = self.links.try_remove(slot)?;
        watch.remove(entry.link.as_fd());
        self.doorkeeper.authenticated(slot);
        Some((entry.link, entry.whose))
    }

    fn soil(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.links[slot].dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// The connection in this slot is ready: what came goes to `take`.
    pub fn read(
        &mut self,
        slot: usize,
        now: u64,
        watch: &impl Watch,
        mut take: impl FnMut(&mut T, &[u8]) -> Next,
    ) -> Reading<T> {
        let Some(Entry { link, whose, closing, .. }) = self.links.get_mut(slot) else {
            return Reading::Stays;
        };
        let (mut known, mut wanted, mut refused) = (false, false, None);
        let progress = link.on_ready(&mut |frame| {
            if *closing {
                return ControlFlow::Continue(());
            }
            match take(whose, frame) {
                Next::Go => return ControlFlow::Continue(()),
                Next::Known => known = true,
                Next::HandOver => (known, wanted) = (true, true),
                Next::Refuse(why) => refused = Some(why),
            }
            match wanted || refused.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if known {
            self.doorkeeper.authenticated(slot);
        }
        let over = match (progress, refused) {
            (_, Some(why)) => Some(Ended { why, silently: false }),
            (Err(error), None) => Some(Ended::from(&error)),
            (Ok(Progress::Idle | Progress::More | Progress::Stopped), None) => None,
        };
        if let Some(over) = over {
            self.doorkeeper.gone(slot, &over.why, now);
            let ended = self.end(slot, watch).map(|(_, whose)| Reading::Over(whose, over));
            return ended.unwrap_or(Reading::Stays);
        }
        if wanted {
            let taken = self.end(slot, watch);
            return taken.map_or(Reading::Stays, |(link, whose)| Reading::HandedOver(link, whose));
        }
        self.mind_writing(slot, watch);
        Reading::Stays
    }

    fn mind_writing(&mut self, slot: usize, watch: &impl Watch) {
        let entry = &mut self.links[slot];
        let wants = entry.link.wants_write();
        if wants != entry.writes {
            entry.writes = wants;
            watch.want_write(entry.link.as_fd(), slot, wants);
        }
    }

    /// Writes what was sent since the last time: whose connections that ended, and why (L-3).
    pub fn flush(&mut self, now: u64, watch: &impl Watch) -> Vec<(T, Ended)> {
        let mut over = Vec::new();
        for slot in std::mem::take(&mut self.dirty) {
            // A slot may have become another's, with nothing to write.
            let Some(entry) = self.links.get_mut(slot).filter(|entry| entry.dirty) else {
                continue;
            };
            entry.dirty = false;
            let flushed = entry.link.flush();
            let (closing, is_done) = (entry.closing, entry.link.queued() == 0);
            match flushed {
                Err(error) => {
                    let reason = Ended::from(&error);
                    self.doorkeeper.gone(slot, &reason.why, now);
                    let ended = self.end(slot, watch).filter(|_| !closing);
                    over.extend(ended.map(|(_, whose)| (whose, reason)));
                }
                Ok(()) if closing && is_done => _ = self.end(slot, watch),
                Ok(()) => {
                    self.mind_writing(slot, watch);
                    if closing {
                        self.soil(slot);
                    }
                }
            }
        }
        over
    }

    /// Ends the connections of strangers that do not say who they are (L-1).
    pub fn on_time(&mut self, now: u64, watch: &impl Watch) {
        for slot in self.doorkeeper.expired(now) {
            self.end(slot, watch);
        }
    }

    /// When [`Self::on_time`] is due.
    pub fn next_wakeup(&self) -> Option<u64> {
        self.doorkeeper.next_wakeup()
    }
}
