//! The shared-memory arena of a node.
//!
//! - [`Arena`]: which bytes are given out, and to whom. It never touches the
//!   memory itself, so that no process that maps the arena can harm it.

mod arena;

pub use arena::{ALIGNMENT, Arena, ArenaError};
