//! The shared-memory store of a node.
//!
//! - [`table`]: what every process knows of the objects, in shared memory; how
//!   they look at one without asking
//! - [`word`]: one entry's state
//! - [`arena`]: which bytes are given out. It never touches the memory itself,
//!   so that no process that maps the arena can harm it.
//! - [`keeper`]: the node's side: who gets memory, what goes to disk, what is freed
//! - [`slots`]: which slots of the table are in use
//! - [`carver`]: a process's side: small objects from slabs, without asking

// Under shuttle only the protocol of the table is there, for its tests.
#![cfg_attr(feature = "shuttle", allow(dead_code, unused_imports))]

mod arena;
#[cfg(not(feature = "shuttle"))]
mod carver;
#[cfg(not(feature = "shuttle"))]
mod keeper;
mod slots;
mod sync;
mod table;
mod word;

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;

pub use arena::{ALIGNMENT, Arena, ArenaError};
#[cfg(not(feature = "shuttle"))]
pub use carver::{Carver, SlabGrant};
#[cfg(not(feature = "shuttle"))]
pub use keeper::{Keeper, Lack, Orders, Refusal, ToMove, Usage};
pub use table::{Extent, MAX_ROWS, MAX_SLOTS, Miss, TABLE_BYTES, Table};
pub use word::{State, Word};
