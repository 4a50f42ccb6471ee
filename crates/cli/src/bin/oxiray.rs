//! The tool that people use: clusters to start and stop, what runs, and what waits.

use clap::{Parser, Subcommand};
use oxiray_cli::commands::{start, stop, token};
use oxiray_cli::{memory, status, timeline, why};

/// Oxiray: Ray Core's Python API on a Rust engine.
#[derive(Parser)]
#[command(name = "oxiray", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster on this machine, or let this machine join one.
    Start(Box<start::Options>),
    /// Stop what was started on this machine.
    Stop(stop::Options),
    /// Show the clusters and sessions that run: resources, actors, and what waits and why.
    Status(status::Options),
    /// Show what holds memory: every object, its size, where it is and which references hold it.
    Memory(memory::Options),
    /// Explain why a task is not done.
    Why(why::Options),
    /// Write what ran when to a file for Perfetto or chrome://tracing.
    Timeline(timeline::Options),
    /// Show the token by which other machines join the cluster of this one, or change it.
    Token(token::Options),
}

fn main() -> std::process::ExitCode {
    match Arguments::parse().command {
        Command::Start(options) => start::run(&options),
        Command::Stop(options) => stop::run(&options),
        Command::Status(options) => status::run(&options),
        Command::Memory(options) => memory::run(&options),
        Command::Why(options) => why::run(&options),
        Command::Timeline(options) => timeline::run(&options),
        Command::Token(options) => token::run(&options),
    }
}
