//! Where the sessions of one user live on a machine, and what a session's directory holds.
//!
//! - [`Session`]: one directory, with the names of what is in it
//! - [`make_private`], [`write_private`]: directories and files for their owner alone
//! - [`tail`]: the end of a log, for messages

mod private;
mod session;

pub use private::{make_private, write_private};
pub use session::{Session, tail};

/// Set in the environment of a node service whose C library was tuned for its own work.
pub const TUNED: &str = "OXIRAY_TUNED";
