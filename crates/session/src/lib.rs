//! Where the sessions of one user live on a machine, and what a session's directory holds.
//!
//! Other users of the machine can make files in `/tmp`, too, and before us. So there is one way to
//! what is ours, and every program goes it:
//!
//! - **F-1** The sessions' folder belongs to our user, and nobody else can enter it. One that does
//!   not is refused: nothing in it is read, changed or removed. ([`Folder`])
//! - **F-2** It is opened once, and what is in it is reached from its descriptor, by one plain name
//!   after the other; no link is followed. ([`Directory`])
//! - **F-3** A session is ours if the process that listens at its socket is, by the kernel's word,
//!   before anything is said to it or heard from it. ([`Session::connect`], [`Service`])
//! - **F-4** What is removed is named by what was found in the folder, never by what is written in
//!   a file; who is ended is who listens at a socket. ([`Started`])
//! - **F-5** A session lives while somebody holds its lock. Numbers of processes say nothing:
//!   containers that share the folder do not share them. ([`Hold`])
//!
//! The parts:
//!
//! - [`Folder`]: all sessions; [`ended`](Folder::tidy): of which the last ones are kept
//! - [`Session`]: one of them, with the names of what is in it
//! - [`Started`]: a node that stays, by `oxiray start`
//! - [`Service`]: who listens at a socket
//! - [`files`]: those of a session that tools may read; [`Record`]: what it was at its end
//! - [`Directory`], [`private_file`]: directories and files for their owner alone
//! - [`tail`]: the end of a log, for messages

mod directory;
pub mod files;
mod folder;
mod hold;
mod kept;
mod place;
mod record;
mod service;
mod session;
mod started;
#[cfg(test)]
mod tests;

pub use directory::{Directory, private_file};
pub use folder::Folder;
pub use hold::Hold;
pub use kept::how_many as kept_sessions;
pub use place::path as folder_path;
pub use record::Record;
pub use service::Service;
pub use session::{Session, tail};
pub use started::{Started, listen_as_control};
