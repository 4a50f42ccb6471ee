//! What happened to every task, written by every process as it happens, read by whoever looks.
//!
//! Each process of a session appends records to a log in `SESSION/events/`, which it has for itself:
//! its own, or that of a process that has ended. Nothing is sent, nothing is asked: the directory is
//! the node's record, and readers follow its growth. When it has grown as far as it may, its oldest
//! chunks go. Writing a record is a copy of 32 or 64 bytes into a mapped file.
//!
//! Writing:
//! - [`log`]: [`EventLog`], the records of this process
//! - [`texts`]: names and failures, in a file beside the records
//! - `chunk`: one file of records, with its texts
//! - `format`: the bytes of both
//!
//! Reading:
//! - [`files`]: where files come from: this machine, or another
//! - [`history`]: [`History`], what all tasks of all processes went through
//! - [`task`]: one task of it
//! - `reading`, `tables`: how it grows, and what it is made of
//! - `tail`: the growth of one log's files
//! - `lanes`: what a process ran at the same time, side by side
//! - [`timeline`]: what ran when, as many rectangles as fit on a screen
//! - [`trace`]: what ran when, all of it, as a Chrome trace
//!
//! Invariants, cited by the tests:
//! - **E-1** A record counted in the header of its chunk never changes, and the texts it names
//!   were written before it.
//! - **E-2** What a process could not write costs nothing but itself: a full disk loses records,
//!   counts them, and never fails or ends the process.
//! - **E-3** A process that is killed loses no record that it had counted.
//! - **E-4** Whatever the bytes of the files are, reading them ends, does not panic, and takes
//!   memory in proportion to their length.
//! - **E-5** The order in which files are read does not matter, nor in how many steps.
//! - **E-6** Reading again reads only what is new.
//! - **E-7** A log has one writer at a time. A process that goes on with one says so before
//!   anything else, and every record before that is its predecessors'.
//! - **E-8** A chunk can be read without any other of its log.

mod chunk;
pub mod files;
mod format;
pub mod history;
mod lanes;
pub mod log;
mod newest;
mod reading;
mod tables;
mod tail;
pub mod task;
pub mod texts;
pub mod timeline;
pub mod trace;

#[cfg(test)]
mod tests;

pub use files::{FileInfo, Files, LocalFiles};
pub use format::{Role, TaskKind};
pub use history::{Dropped, History, Process, SummaryRow};
pub use log::{EventLog, Label, Ran};
pub use newest::newest_record;
pub use task::{Attempt, Failure, State, Task};
