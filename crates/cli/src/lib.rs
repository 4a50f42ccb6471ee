//! `oxiray`: the command that people use.
//!
//! - [`commands`]: `oxiray start`, `stop`, `token`, `dashboard`, `doctor` and others
//! - [`state`]: `oxiray list`, `get`, `summary`, `logs`, `stack`, `timeline`
//! - [`status`], [`memory`], [`why`]: `oxiray status`, `oxiray memory`, `oxiray why`
//! - [`print`], `table`, `exit`: how commands print and end

// Commands print by `print`: the macros panic where a stream takes nothing.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod commands;
mod exit;
pub mod memory;
pub mod print;
pub mod state;
pub mod status;
mod table;
pub mod why;
