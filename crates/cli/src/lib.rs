//! The native programs: `oxirayd`, a machine's node service, and `oxiray`, the
//! tool that people use.
//!
//! `oxirayd` is one thread around the pure core of `oxiray_node`. It sleeps in
//! one poll and wakes only when something happens:
//!
//! - [`daemon`]: from the driver's first packet to the end of the session
//! - `shell`: the loop; it turns what happens into events of the core
//! - `registration`, `departure`: how processes come and go
//! - `io`: does what the core asks for
//! - `connection`: a packet socket with a queue for what it cannot take yet
//! - `zygote`: the process that workers are forked from
//! - `output`, `lines`, `log_file`, `task_notes`, `log_expiry`: what workers print
//! - `memory_watch`, `machine`: the machine's memory, and who uses too much
//! - `disk`: the disk behind the object store
//! - `files`: files that tools may read
//! - `warmer`: makes the store's next pages ready
//! - `session`: the session's directory
//! - `activation`: the dashboard's port, and the process that serves it while somebody looks
//! - `net`, `membership`: other machines, and what comes from them
//! - `poller`: what is being waited for
//! - [`status`], [`memory`], [`why`]: `oxiray status`, `oxiray memory`, `oxiray why`
//! - [`state`]: `oxiray list`, `get`, `summary`, `logs`, `stack`
//! - [`print`], `table`, `words`, `exit`: how commands print and end
//! - [`control_service`]: the control service of a cluster
//! - [`commands`]: `oxiray start`, `stop` and `token`

// Commands print by `print`, which fails if that does.
#![warn(clippy::print_stdout)]

mod activation;
pub mod commands;
mod connection;
pub mod control_service;
pub mod daemon;
mod departure;
mod disk;
mod exit;
mod files;
mod io;
mod lines;
mod log_expiry;
mod log_file;
mod machine;
mod membership;
pub mod memory;
mod memory_watch;
mod net;
mod output;
mod poller;
pub mod print;
mod registration;
mod session;
mod shell;
pub mod state;
pub mod status;
mod table;
mod task_notes;
mod warmer;
pub mod why;
mod words;
mod zygote;
