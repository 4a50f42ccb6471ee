//! `oxiray doctor`, `oxiray job` and `oxiray microbenchmark`: each becomes the Python that has the
//! package, with a module of it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::commands::interpreter::become_python;
use crate::exit::end;

/// Looks at the machine and the installation.
pub const DOCTOR: &str = "oxiray.doctor";

/// Hands in jobs, and shows what becomes of them.
pub const JOB: &str = "oxiray._job_command";

/// Measures how fast the engine is on this machine.
pub const MICROBENCHMARK: &str = "oxiray._microbenchmark";

/// What the module takes; it says what that is itself.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Options {
    /// --help tells which.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes `python -m module`.
pub fn run(module: &str, options: &Options) -> ExitCode {
    end(become_python(module, &options.arguments))
}
