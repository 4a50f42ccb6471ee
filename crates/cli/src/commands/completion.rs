//! `oxiray completion` and `oxiray man`: what a shell and `man` are told of the commands, made from
//! the commands themselves.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::{Failure, Result, end};
use crate::print::print_bytes;

/// Words that `ray` has beside those of `oxiray`, and what they do.
const OF_RAY: [(&str, &str); 3] = [
    ("health-check", "Exit with 0 if the cluster answers"),
    ("debug", "Answer a breakpoint of a task on this machine"),
    ("version", "Show which Ray this is like"),
];

/// Of which shell, and for which of the two commands.
#[derive(Args, Debug)]
pub struct Options {
    /// The shell: put `source <(oxiray completion bash)` into its startup file, say.
    shell: Shell,
    /// The command that is completed: oxiray or ray.
    #[arg(long, default_value = "oxiray", value_parser = ["oxiray", "ray"], hide = true)]
    name: String,
}

/// Which page.
#[derive(Args, Debug)]
pub struct PageOptions {
    /// The command that the page is of; without one, of all.
    command: Option<String>,
}

/// Prints what the shell is to run. `commands` are those of this program.
pub fn run(commands: Command, options: &Options) -> ExitCode {
    let mut commands = commands;
    if options.name == "ray" {
        for (name, about) in OF_RAY {
            commands = commands.subcommand(Command::new(name).about(about));
        }
    }
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut commands, options.name.clone(), &mut script);
    end(print_bytes(&script))
}

/// Prints a page for `man -l -`.
pub fn print_page(commands: Command, options: &PageOptions) -> ExitCode {
    end(page(commands, options).and_then(|page| print_bytes(&page)))
}

fn page(mut commands: Command, options: &PageOptions) -> Result<Vec<u8>> {
    // So that each knows its whole name.
    commands.build();
    let wanted = match &options.command {
        None => commands,
        Some(name) => {
            let found = commands.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                Failure::Other(format!("there is no command {name:?}: oxiray --help shows which"))
            })?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(wanted).render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Command {
        Command::new("oxiray").subcommand(Command::new("start").about("Start a cluster"))
    }

    #[test]
    fn a_page_is_of_all_commands_or_of_one() {
        let all = page(commands(), &PageOptions { command: None }).expect("made");
        assert!(String::from_utf8_lossy(&all).contains("Start a cluster"));
        let one = page(commands(), &PageOptions { command: Some("start".into()) }).expect("made");
        assert!(String::from_utf8_lossy(&one).contains("oxiray\\-start"));
        let none = page(commands(), &PageOptions { command: Some("strat".into()) });
        assert!(none.is_err_and(|failure| matches!(failure, Failure::Other(_))));
    }
}
