//! How a worker takes a queued task and its owner takes it back.
//!
//! Every task pushed down a channel has a number, counted up by its owner, and
//! a place in the claims of that direction. The place holds the number and a
//! state; both sides change it by one compare-and-swap.
//!
//! - **C-1** Of `take` and `take_back` for one number, at most one succeeds.
//! - **C-2** A number whose place was used again can no longer be taken.

use crate::layout::CLAIMS;
use crate::sync::{AtomicU64, Ordering};

const QUEUED: u64 = 0;
const TAKEN: u64 = 1;
const TAKEN_BACK: u64 = 2;

const fn cell(number: u64, state: u64) -> u64 {
    number << 2 | state
}

pub(crate) const fn place(number: u64) -> usize {
    (number % CLAIMS as u64) as usize
}

/// The owner offers task `number`; before its frame is published.
pub(crate) fn offer(cells: &AtomicU64, number: u64) {
    cells.store(cell(number, QUEUED), Ordering::Release);
}

/// The worker takes task `number`, unless its owner was first.
pub(crate) fn take(cells: &AtomicU64, number: u64) -> bool {
    change(cells, number, TAKEN)
}

/// The owner takes task `number` back, unless the worker was first.
pub(crate) fn take_back(cells: &AtomicU64, number: u64) -> bool {
    change(cells, number, TAKEN_BACK)
}

fn change(cells: &AtomicU64, number: u64, state: u64) -> bool {
    let queued = cell(number, QUEUED);
    let changed = cell(number, state);
    cells.compare_exchange(queued, changed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}
