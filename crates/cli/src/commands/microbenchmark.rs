//! `oxiray microbenchmark`: becomes the Python that measures, which is the one with the package.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::commands::interpreter::Interpreter;
use crate::exit::{Result, end};

const MODULE: &str = "oxiray._microbenchmark";

/// What the module takes; it says what that is itself.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Options {
    /// --quick, --json, -k NAME, --num-cpus N; --help tells more.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures how fast the engine is on this machine.
pub fn run(options: &Options) -> ExitCode {
    end(become_python(&options.arguments))
}

fn become_python(arguments: &[OsString]) -> Result<()> {
    let interpreter = Interpreter::find()?;
    let mut command = Command::new(&interpreter.program);
    let error = command.args(["-m", MODULE]).args(arguments).exec();
    Err(io::Error::other(format!("cannot run {}: {error}", interpreter.program)).into())
}
