//! Makes the arena's next pages ready in the background: the first use of a page
//! costs many times what a copy into it does.
//!
//! Nothing is made ready before the store is used, and never more than was used
//! so far, within [`MOST_AHEAD`]. The lowest free memory is given out first, so
//! one mark says what is ready.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, mpsc};

use oxiray_sys::memory::Mapping;
use oxiray_sys::process;

use oxiray_sys::machine::MemoryReader;

const LEAST_AHEAD: u64 = 4 << 20;
const MOST_AHEAD: u64 = 1 << 30;
/// Pages are made in steps of this, so that the end of the session is not late.
const STEP: u64 = 2 << 20;

/// See the module documentation.
pub(crate) struct Warmer {
    arena: Arc<Mapping>,
    memory: MemoryReader,
    /// Up to where pages are wanted.
    target: Arc<AtomicU64>,
    /// Tells the thread of a new target; it starts with the first.
    bell: Option<SyncSender<()>>,
}

impl Warmer {
    pub(crate) fn new(arena: Arc<Mapping>) -> Self {
        Self { arena, memory: MemoryReader::new(), target: Arc::default(), bell: None }
    }

    /// The store has been used up to `reached`.
    pub(crate) fn follow(&mut self, reached: u64) {
        let target = self.target.load(Ordering::Relaxed);
        let ahead = reached.clamp(LEAST_AHEAD, MOST_AHEAD);
        // In steps of some size: the machine's memory is asked for each.
        if reached == 0 || reached + ahead / 2 < target {
            return;
        }
        let wanted = (reached + ahead).min(self.arena.len() as u64);
        let memory = self.memory.read();
        let free = memory.total.saturating_sub(memory.used);
        if wanted <= target || free / 4 < wanted - target {
            return;
        }
        self.target.store(wanted, Ordering::Relaxed);
        let bell = self.bell.get_or_insert_with(|| {
            let (bell, rings) = sync_channel(1);
            let (arena, target) = (self.arena.clone(), self.target.clone());
            let thread = std::thread::Builder::new().name("oxiray-warmer".into());
            // Without the thread, whoever uses a page first makes it.
            let _ = thread.stack_size(64 << 10).spawn(move || run(&arena, &target, &rings));
            bell
        });
        let _: Result<(), mpsc::TrySendError<()>> = bell.try_send(());
    }
}

fn run(arena: &Mapping, target: &AtomicU64, rings: &Receiver<()>) {
    process::block_signals_in_this_thread();
    process::give_way();
    let mut ready = 0;
    while rings.recv().is_ok() {
        while ready < target.load(Ordering::Relaxed) {
            arena.populate(ready as usize, STEP as usize);
            ready += STEP;
        }
    }
}
