//! Which Python the workers are.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::commands::refuse;
use crate::exit::Result;

const SCRIPT: &str = "import sys; print('%d.%d' % sys.version_info[:2]); import oxiray";

/// An interpreter that has the package.
pub(super) struct Interpreter {
    pub(super) program: String,
    /// `3.11`.
    pub(super) version: String,
}

impl Interpreter {
    /// The one that runs `oxiray`, which says so in the environment; else `python3`.
    pub(super) fn find() -> io::Result<Self> {
        let program = oxiray_settings::PYTHON
            .text()
            .unwrap_or_else(|| oxiray_settings::PYTHON.default.into());
        if let Some(version) = oxiray_settings::PYTHON_VERSION.text() {
            return Ok(Self { program, version });
        }
        let output = Command::new(&program).args(["-c", SCRIPT]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| {
            io::Error::other(format!(
                "cannot run {program}: {error}; set OXIRAY_PYTHON to a Python that has oxiray"
            ))
        })?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.trim().lines().last().unwrap_or_default();
            return refuse(format!(
                "{program} cannot import oxiray ({last}); set OXIRAY_PYTHON to a Python that can"
            ));
        }
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self { program, version })
    }
}

/// Replaces this program by a module of the package; returns only if that cannot be.
pub(super) fn become_python(module: &str, arguments: &[OsString]) -> Result<()> {
    let interpreter = Interpreter::find()?;
    let mut command = Command::new(&interpreter.program);
    let error = command.args(["-m", module]).args(arguments).exec();
    Err(io::Error::other(format!("cannot run {}: {error}", interpreter.program)).into())
}
