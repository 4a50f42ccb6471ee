//! `oxiray`: the command that people use.
//!
//! - [`commands`]: `oxiray start`, `stop`, `token`, `dashboard` and `microbenchmark`
//! - [`state`]: `oxiray list`, `get`, `summary`, `logs`, `stack`, `timeline`
//! - [`status`], [`memory`], [`why`]: `oxiray status`, `oxiray memory`, `oxiray why`
//! - [`print`], `table`, `words`, `exit`: how commands print and end

// Commands print by `print`, which fails if that does.
#![warn(clippy::print_stdout)]

pub mod commands;
mod exit;
pub mod memory;
pub mod print;
pub mod state;
pub mod status;
mod table;
pub mod why;
mod words;
