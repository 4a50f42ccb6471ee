//! Where objects go when the object store is full: files on disk, or objects behind a URL.
//!
//! - [`Target`]: where to spill to, as the user says it
//! - [`Spillway`]: writes, reads and deletes spilled objects; knows what is there
//! - [`Clerk`]: the threads that do so for an event loop
//! - [`download`]: one file of a bucket
//! - [`SpillError`]: what can go wrong, and what to do about it
//!
//! Several objects go into one file, because small files are slow. A file is written once and
//! never changed; it is removed when its last object is. What is read back is either what was
//! written or an error: `record` says how that is known. Nothing outlives the session: files are
//! removed at its end, and those of a session that crashed by the next one.
//!
//! Inside: `record` (the bytes of a file), `ledger` (what is in which file), `disk` and
//! `directory` (files), `bucket` (URLs).

#[cfg(feature = "url")]
mod bucket;
mod clerk;
mod directory;
mod disk;
#[cfg(feature = "url")]
mod download;
mod error;
mod ledger;
mod record;
mod spillway;
mod target;

pub use clerk::{Clerk, Done, Job};
#[cfg(feature = "url")]
pub use download::download;
pub use error::SpillError;
pub use ledger::Usage;
pub use record::Place;
pub use spillway::Spillway;
pub use target::Target;
