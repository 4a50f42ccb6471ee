//! The tool that people use: clusters to start and stop, what runs, and what waits.

// As in the library.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use clap::{CommandFactory, Parser, Subcommand};
use oxiray_cli::commands::{
    completion, dashboard, drain, kill_random_node, python_module, start, stop, token,
};
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
    /// Let a node leave: no new work goes there, and what it has goes elsewhere first.
    Drain(drain::Options),
    /// Show the clusters and sessions that run: resources, actors, and what waits and why.
    Status(status::Options),
    /// Show what holds memory: every object, its size, where it is and which references hold it.
    Memory(memory::Options),
    /// List tasks, actors, objects, nodes, workers, jobs or placement groups.
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
    /// Hand in jobs: commands that run on the cluster; follow, stop and list them.
    Job(python_module::Options),
    /// Measure how fast tasks, actor calls and objects are on this machine.
    Microbenchmark(python_module::Options),
    /// Look at this machine and installation, and say what to do.
    Doctor(python_module::Options),
    /// Kill a node of this machine that is not the head, to see what a program makes of it.
    KillRandomNode(kill_random_node::Options),
    /// Print what a shell needs to complete these commands and their options.
    Completion(completion::Options),
    /// Print the manual page: `oxiray man | man -l -`.
    Man(completion::PageOptions),
}

fn main() -> std::process::ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(usage) => return print::answer(&usage),
    };
    match arguments.command {
        Command::Start(options) => start::run(&options),
        Command::Stop(options) => stop::run(&options),
        Command::Drain(options) => drain::run(&options),
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
        Command::Job(options) => python_module::run(python_module::JOB, &options),
        Command::Microbenchmark(options) => {
            python_module::run(python_module::MICROBENCHMARK, &options)
        }
        Command::Doctor(options) => python_module::run(python_module::DOCTOR, &options),
        Command::KillRandomNode(options) => kill_random_node::run(&options),
        Command::Completion(options) => completion::run(Arguments::command(), &options),
        Command::Man(options) => completion::print_page(Arguments::command(), &options),
    }
}
