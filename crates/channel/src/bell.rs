//! How a process sleeps until somebody has written to it.
//!
//! All bells of a node are in one memory file that every process maps. A bell
//! is a word to sleep on, the number of sleepers, and a bit for each channel
//! that has news. A sender sets its bit, then wakes only if there are sleepers;
//! a receiver counts itself among the sleepers, then looks at the bits once
//! more before it sleeps. One of the two sees the other:
//!
//! A service that waits for other things as well sleeps elsewhere: it counts itself
//! among the sleepers with [`Bell::begin_sleep`], and is woken by a descriptor.
//!
//! - **B-1** A bit set while the receiver goes to sleep keeps it awake or wakes it.
//! - **B-2** A bit is cleared before its channel is drained, so a frame written
//!   after the drain began sets it again.

#[cfg(not(feature = "shuttle"))]
use oxiray_sys::eventfd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use oxiray_sys::futex::Woken;
use oxiray_sys::memory::Mapping;

use crate::layout::{BELL_BITS, BELL_BYTES, BELLS_BYTES, MAX_PROCESSES};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, futex};

pub(crate) const WORDS: usize = BELL_BITS / 64;

/// The memory of one bell: a mapping, or plain memory in tests.
pub(crate) trait BellMemory {
    fn word(&self) -> &AtomicU32;
    fn sleepers(&self) -> &AtomicU32;
    fn pending(&self) -> &[AtomicU64; WORDS];
}

/// Every bell of the node, as this process maps them.
#[derive(Clone)]
pub struct Bells(Arc<Mapping>);

impl Bells {
    /// Maps the memory file of a node's bells.
    pub fn map(file: impl std::os::fd::AsFd) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Mapping::new(file, BELLS_BYTES)?)))
    }

    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn memory(&self) -> &Mapping {
        &self.0
    }

    /// The bell at `place`, which another process may have said.
    pub fn bell(&self, place: u32) -> std::io::Result<Bell> {
        if place as usize >= MAX_PROCESSES {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        Ok(Bell { memory: self.0.clone(), offset: place as usize * BELL_BYTES, waker: None })
    }
}

/// One process's bell: its own, or that of a process it writes to.
#[derive(Clone)]
pub struct Bell {
    memory: Arc<Mapping>,
    offset: usize,
    /// An eventfd to write to instead of waking who sleeps on the word.
    waker: Option<Arc<OwnedFd>>,
}

#[cfg(not(feature = "shuttle"))]
impl BellMemory for Bell {
    fn word(&self) -> &AtomicU32 {
        self.memory.atomic_u32(self.offset)
    }

    fn sleepers(&self) -> &AtomicU32 {
        self.memory.atomic_u32(self.offset + 4)
    }

    #[inline]
    fn pending(&self) -> &[AtomicU64; WORDS] {
        self.memory.atomic_u64s(self.offset + 64)
    }
}

#[cfg(not(feature = "shuttle"))]
impl Bell {
    /// Forgets what a former owner of this place left behind.
    pub fn reset(&self) {
        self.sleepers().store(0, Ordering::SeqCst);
        self.set_processor(None);
        self.pending().iter().for_each(|word| word.store(0, Ordering::SeqCst));
    }

    /// Says on which processor this process is, for those who had best be near.
    pub fn set_processor(&self, processor: Option<u32>) {
        let number = processor.map_or(0, |processor| processor + 1);
        self.memory.atomic_u32(self.offset + 8).store(number, Ordering::Relaxed);
    }

    /// See [`Self::set_processor`].
    pub fn processor(&self) -> Option<u32> {
        self.memory.atomic_u32(self.offset + 8).load(Ordering::Relaxed).checked_sub(1)
    }

    /// See [`mark`].
    pub fn mark(&self, bit: u32) {
        mark(self, bit);
    }

    /// This bell, whose process is woken by an eventfd.
    pub fn woken_by(self, waker: Arc<OwnedFd>) -> Self {
        Self { waker: Some(waker), ..self }
    }

    /// See [`wake`].
    pub fn wake(&self) -> bool {
        let Some(waker) = &self.waker else {
            return wake(self);
        };
        let sleeps = has_sleepers(self);
        if sleeps {
            eventfd::ring(waker);
        }
        sleeps
    }

    /// This process is about to sleep elsewhere, until its eventfd is written to. Says
    /// whether there is news already, so that it must not (B-1).
    pub fn begin_sleep(&self) -> bool {
        self.sleepers().fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        has_news(self)
    }

    /// It is awake.
    pub fn end_sleep(&self) {
        self.sleepers().fetch_sub(1, Ordering::SeqCst);
    }

    /// See [`take`].
    #[inline]
    pub fn take(&self, visit: impl FnMut(u32)) {
        take(self, visit);
    }

    /// Whether any channel has news.
    pub fn has_news(&self) -> bool {
        has_news(self)
    }

    /// The word to give to [`Self::sleep`], read before the last look around.
    pub fn ticket(&self) -> u32 {
        self.word().load(Ordering::SeqCst)
    }

    /// Sleeps until woken, unless there is news or `ticket` is no longer current.
    pub fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> Woken {
        sleep(self, ticket, timeout)
    }

    /// Wakes this process's own sleepers: something else than a frame has come.
    pub fn ring(&self) {
        self.word().fetch_add(1, Ordering::SeqCst);
        futex::wake_all(self.word());
    }
}

/// Says that the channel with `bit` has news. Frames are published before this.
pub(crate) fn mark(bell: &impl BellMemory, bit: u32) {
    let bit = bit as usize % BELL_BITS;
    let word = &bell.pending()[bit / 64];
    let mask = 1 << (bit % 64);
    // The fence puts the tail's publication before the look at the bit: if it
    // is still set, whoever clears it drains after that and sees the frame (B-2).
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) & mask == 0 {
        word.fetch_or(mask, Ordering::SeqCst);
    }
}

/// Wakes the receiver if it sleeps. Says whether it did.
pub(crate) fn wake(bell: &impl BellMemory) -> bool {
    if !has_sleepers(bell) {
        return false;
    }
    bell.word().fetch_add(1, Ordering::SeqCst);
    futex::wake_all(bell.word());
    true
}

/// Clears the set bits and names them.
#[inline]
pub(crate) fn take(bell: &impl BellMemory, mut visit: impl FnMut(u32)) {
    for (index, word) in bell.pending().iter().enumerate() {
        if word.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut bits = word.swap(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while bits != 0 {
            visit(index as u32 * 64 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

fn has_sleepers(bell: &impl BellMemory) -> bool {
    fence(Ordering::SeqCst);
    bell.sleepers().load(Ordering::Relaxed) != 0
}

pub(crate) fn has_news(bell: &impl BellMemory) -> bool {
    bell.pending().iter().any(|word| word.load(Ordering::SeqCst) != 0)
}

pub(crate) fn sleep(bell: &impl BellMemory, ticket: u32, timeout: Option<Duration>) -> Woken {
    bell.sleepers().fetch_add(1, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    let woken =
        if has_news(bell) { Woken::Maybe } else { futex::wait(bell.word(), ticket, timeout) };
    bell.sleepers().fetch_sub(1, Ordering::SeqCst);
    woken
}
