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
//! - [`Standby`]: one that waits until nobody uses the state in Redis any more
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

use std::time::Duration;

use oxiray_control::{Change, Record};

pub use error::PersistError;
pub use file::File;
pub use memory::Memory;
pub use open::open;
pub use redis::{Redis, Standby};

/// A control service, as those hear of it that may take over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Where others reach it.
    pub address: String,
    /// Of the protocol that it speaks.
    pub version: u32,
}

/// A place where state is kept. Calls may take a while: they are made from a
/// thread that has nothing else to do.
pub trait Persist: Send {
    /// Everything that is kept, in no particular order.
    fn load(&mut self) -> Result<Vec<Record>, PersistError>;

    /// Keeps all changes, in their order, or none.
    fn write(&mut self, changes: &[Change]) -> Result<(), PersistError>;

    /// To be called every [`Self::tend_every`], so that others see that the place is in use.
    fn tend(&mut self) -> Result<(), PersistError> {
        Ok(())
    }

    /// See [`Self::tend`].
    fn tend_every(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// How long after [`Self::write`] or [`Self::tend`] was begun, and went well, nobody else can
    /// have begun to use the place; none: for as long as this lives.
    fn lasts(&self) -> Option<Duration> {
        None
    }

    /// Says where the control service is that uses the place. Where all are that do or wait to;
    /// none, where nobody can wait. To be called every second or so.
    fn announce(&mut self, _head: &Head) -> Result<Vec<String>, PersistError> {
        Ok(Vec::new())
    }

    /// Where that is, for people: no passwords.
    fn describe(&self) -> String;
}
