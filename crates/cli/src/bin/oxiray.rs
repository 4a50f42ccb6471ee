//! The tool that people use: what runs, and what waits.

use clap::{Parser, Subcommand};

/// Oxiray: Ray Core's Python API on a Rust engine.
#[derive(Parser)]
#[command(name = "oxiray", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the sessions that run: resources, workers, actors, and what waits and why.
    Status,
    /// Show what holds memory: every object, its size, where it is and which references hold it.
    Memory(oxiray_cli::memory::Options),
}

fn main() -> std::process::ExitCode {
    match Arguments::parse().command {
        Command::Status => oxiray_cli::status::run(),
        Command::Memory(options) => oxiray_cli::memory::run(&options),
    }
}
