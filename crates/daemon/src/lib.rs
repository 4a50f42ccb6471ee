//! `oxirayd`: the services of one machine.
//!
//! The node service is one thread around the pure core of `oxiray_node`. It sleeps in
//! one poll and wakes only when something happens:
//!
//! - [`daemon`]: from the driver's first packet to the end of the session
//! - `shell`: the loop; it turns what happens into events of the core
//! - `registration`, `departure`: how processes come and go
//! - `io`: does what the core asks for
//! - `labels`: those that a node has by itself
//! - `connection`: a packet socket with a queue for what it cannot take yet
//! - `zygote`: the process that workers are forked from
//! - `output`, `lines`, `log_file`, `task_notes`, `log_expiry`: what workers print
//! - `event_logs`, `event_budget`: who writes which log of events, and how much of them is kept
//! - `setting`: numbers that the environment sets
//! - `memory_watch`: who uses too much of the machine's memory
//! - `disk`: the disk behind the object store
//! - `files`: files that tools may read
//! - `warmer`: makes the store's next pages ready
//! - `activation`: the dashboard's port, and the process that serves it while somebody looks
//! - `reach`: whether there are others
//! - `rejoining`: a node that was given up begins again
//! - `net`, `membership`: other machines, the control service, and what comes from them
//! - `poller`: what is being waited for
//!
//! The control service of a cluster is [`control_service`], likewise around `oxiray_control`.

// By `complain`: the macros panic where a stream takes nothing, and that would be everyone's end.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod activation;
mod connection;
pub mod control_service;
pub mod daemon;
mod departure;
mod disk;
mod enforcement;
mod event_budget;
mod event_logs;
mod files;
mod io;
mod labels;
mod last_record;
mod limits;
mod lines;
mod log_expiry;
mod log_file;
mod membership;
mod memory_watch;
mod net;
mod output;
mod poller;
mod reach;
mod registration;
mod rejoining;
mod setting;
mod shell;
mod task_notes;
mod warmer;
mod zygote;

/// Says on standard error what went wrong. The log has it, too; a stream that takes nothing is no
/// reason to end.
pub fn complain(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "oxirayd: {text}");
}
