//! Copying into the arena at the speed of memory.
//!
//! The first use of a page by a process costs many times the copy itself, so
//! pages are asked for in bulk, once; and one core does not use all of the
//! memory's bandwidth, so large copies are shared among cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use oxiray_sys::memory::Mapping;
use oxiray_sys::process;

/// Pages are asked for in pieces of this size.
const PIECE: u64 = 256 << 10;

/// From this size on, copies go past the caches.
const STREAM_FROM: usize = 4 << 20;

/// A thread more for each so many bytes.
const BYTES_A_THREAD: usize = 16 << 20;

/// More threads than this, or than half of the cores, find no more bandwidth.
const MOST_THREADS: usize = 4;

/// Which pieces of the arena this process has pages for.
pub(crate) struct Mapped(Vec<AtomicU64>);

impl Mapped {
    pub(crate) fn new(size: u64) -> Self {
        let words = size.div_ceil(PIECE).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Makes ready to write to an extent.
    pub(crate) fn prepare(&self, arena: &Mapping, offset: u64, len: u64) {
        let (first, end) = (offset / PIECE, (offset + len).div_ceil(PIECE));
        let mut begin = None;
        for piece in first..=end {
            let known = piece == end || self.note(piece);
            match (known, begin) {
                (false, None) => begin = Some(piece),
                (true, Some(from)) => {
                    arena.populate((from * PIECE) as usize, ((piece - from) * PIECE) as usize);
                    begin = None;
                }
                _ => {}
            }
        }
    }

    /// Notes that a piece is mapped; whether it was before.
    fn note(&self, piece: u64) -> bool {
        let (word, bit) = (&self.0[piece as usize / 64], 1 << (piece % 64));
        // Most often it was: look before writing.
        word.load(Ordering::Relaxed) & bit != 0 || word.fetch_or(bit, Ordering::Relaxed) & bit != 0
    }
}

/// Copies `bytes` to `offset` of the arena.
pub(crate) fn copy(arena: &Mapping, offset: usize, bytes: &[u8]) {
    if bytes.len() < STREAM_FROM {
        return arena.write(offset, bytes);
    }
    // Asking the system costs files to be read.
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    let most = (cores / 2).clamp(1, MOST_THREADS);
    let threads = (bytes.len() / BYTES_A_THREAD).clamp(1, most);
    let share = bytes.len().div_ceil(threads).next_multiple_of(4096);
    std::thread::scope(|scope| {
        let mut parts = bytes.chunks(share).enumerate();
        let own = parts.next();
        for (index, part) in parts {
            let at = offset + index * share;
            let started =
                std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, move || {
                    process::block_signals_in_this_thread();
                    arena.write_streaming(at, part);
                });
            if started.is_err() {
                arena.write_streaming(at, part);
            }
        }
        if let Some((_, part)) = own {
            arena.write_streaming(offset, part);
        }
    });
}
