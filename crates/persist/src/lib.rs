//! Where the control service keeps its state, so that it can be killed and
//! started again without anybody noticing.
//!
//! All of the state is in the control service's memory anyhow: it is read once,
//! by [`Persist::load`], and from then on only changes are written.
//!
//! - [`open`]: a place by its URL
//! - [`Persist`]: what all of them do
//! - [`Memory`]: nowhere; a new process begins anew
//! - [`File`]: a directory of this machine
//! - [`Redis`]: elsewhere, so that another machine can take over
//! - [`PersistError`]: what can go wrong, and what to do about it
//!
//! Invariants, checked by `tests/conformance.rs` for all of them:
//!
//! - **S-1 (all or nothing)** of one [`Persist::write`] all changes are kept or none,
//!   also when the process is killed meanwhile.
//! - **S-2 (kept is kept)** what was written is there when the process is killed
//!   right afterwards.
//! - **S-3 (again is once)** a write that failed may have been kept; to write it
//!   again is right in either case.
//! - **S-4 (one at a time)** while one uses a place, another is told so and who that is.

mod error;
mod file;
mod memory;
mod open;
mod redis;

use oxiray_control::{Change, Record};

pub use error::PersistError;
pub use file::File;
pub use memory::Memory;
pub use open::open;
pub use redis::Redis;

/// A place where state is kept. Calls may take a while: they are made from a
/// thread that has nothing else to do.
pub trait Persist: Send {
    /// Everything that is kept, in no particular order.
    fn load(&mut self) -> Result<Vec<Record>, PersistError>;

    /// Keeps all changes, in their order, or none.
    fn write(&mut self, changes: &[Change]) -> Result<(), PersistError>;

    /// To be called every second or so, so that others see that the place is in use.
    fn tend(&mut self) -> Result<(), PersistError> {
        Ok(())
    }

    /// Where that is, for people: no passwords.
    fn describe(&self) -> String;
}
