//! The tool that people use: clusters to start and stop, what runs, and what waits.

// As in the library.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use clap::{Parser, Subcommand};
use oxiray_cli::commands::{dashboard, microbenchmark, start, stop, token};
use oxiray_cli::state::{get, list, logs, stack, summary, timeline};
use oxiray_cli::{memory, print, status, why};

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
    /// List tasks, actors, objects, nodes, workers or jobs.
    List(list::Options),
    /// Show everything about one of them.
    Get(get::Options),
    /// Count them by name and state.
    Summary(summary::Options),
    /// List log files of every node, or print one.
    Logs(logs::Options),
    /// Show what the workers of this machine do right now, line by line (needs py-spy).
    Stack(stack::Options),
    /// Write what ran when, for chrome://tracing or Perfetto.
    Timeline(timeline::Options),
    /// Explain why a task is not done, or what an actor waits for.
    Why(why::Options),
    /// Show where the dashboard is: the address to open in a browser, with its token.
    Dashboard(dashboard::Options),
    /// Show the token by which other machines join the cluster of this one, or change it.
    Token(token::Options),
    /// Measure how fast tasks, actor calls and objects are on this machine.
    Microbenchmark(microbenchmark::Options),
}

fn main() -> std::process::ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(usage) => return print::answer(&usage),
    };
    match arguments.command {
        Command::Start(options) => start::run(&options),
        Command::Stop(options) => stop::run(&options),
        Command::Status(options) => status::run(&options),
        Command::Memory(options) => memory::run(&options),
        Command::List(options) => list::run(&options),
        Command::Get(options) => get::run(&options),
        Command::Summary(options) => summary::run(&options),
        Command::Logs(options) => logs::run(&options),
        Command::Stack(options) => stack::run(&options),
        Command::Timeline(options) => timeline::run(&options),
        Command::Why(options) => why::run(&options),
        Command::Dashboard(options) => dashboard::run(&options),
        Command::Token(options) => token::run(&options),
        Command::Microbenchmark(options) => microbenchmark::run(&options),
    }
}
