//! What a process of this machine does right now, by the program py-spy.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::{Error, Result};

/// How it is to be had.
const HOW: &str = "py-spy is needed for that, and is not installed: `pip install py-spy`";

/// The stacks of all threads of a Python process.
pub fn stack(pid: u32) -> Result<String> {
    let output = run(pid, &["dump".into(), "--pid".into(), pid.to_string()])?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A flame graph of what a Python process does for some seconds: SVG.
pub fn flame_graph(pid: u32, seconds: u32) -> Result<String> {
    let file = std::env::temp_dir().join(format!("oxiray-{}-{pid}.svg", std::process::id()));
    let arguments = [
        "record".into(),
        "--pid".into(),
        pid.to_string(),
        "--duration".into(),
        seconds.clamp(1, 300).to_string(),
        "--output".into(),
        file.display().to_string(),
    ];
    let recorded = run(pid, &arguments).and_then(|_| {
        std::fs::read_to_string(&file)
            .map_err(|error| Error::Program(format!("py-spy wrote nothing: {error}")))
    });
    let _ = std::fs::remove_file(&file);
    recorded
}

fn run(pid: u32, arguments: &[String]) -> Result<Output> {
    let program = program().ok_or(Error::NotInstalled(HOW))?;
    let failed = |error: std::io::Error| Error::Program(format!("py-spy cannot be run: {error}"));
    let output = Command::new(program).args(arguments).output().map_err(failed)?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    // The kernel lets a process be looked at by its parents alone, unless told otherwise.
    let remedy = if said.contains("ermission") {
        ". Linux allows this to the root user, or to all with `sysctl kernel.yama.ptrace_scope=0`"
    } else {
        ""
    };
    Err(Error::Program(format!("py-spy cannot look at process {pid}: {said}{remedy}")))
}

/// Beside this program, beside the Python that started it, or where programs are.
fn program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let python = std::env::var_os("OXIRAY_PYTHON").map(PathBuf::from);
    let of_python = python.and_then(|python| Some(python.parent()?.to_owned()));
    let environment = std::env::var_os("VIRTUAL_ENV").map(|path| Path::new(&path).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(of_python).chain(environment);
    let mut all = folders.chain(std::env::split_paths(&path));
    all.find_map(|folder| Some(folder.join("py-spy")).filter(|path| path.is_file()))
}
