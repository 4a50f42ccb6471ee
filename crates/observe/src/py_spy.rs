//! What a process of this machine does right now, by the program py-spy.

use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How it is to be had.
const HOW: &str = "py-spy is needed for that, and is not installed: `pip install py-spy`";

/// How long it may take beyond the time that it was told to record. It stops the process that it
/// looks at, and one that is stopped already may keep it for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked at whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The stacks of all threads of a Python process.
pub fn stack(pid: u32) -> Result<String> {
    run(pid, &["dump".into(), "--pid".into(), pid.to_string()], PATIENCE)
}

/// A flame graph of what a Python process does for some seconds: SVG.
pub fn flame_graph(pid: u32, seconds: u32) -> Result<String> {
    let seconds = seconds.clamp(1, 300);
    let unwritable = |error| Error::File(format!("a temporary folder cannot be made: {error}"));
    let folder = private_folder().map_err(unwritable)?;
    let file = folder.join("profile.svg");
    let arguments = [
        "record".into(),
        "--pid".into(),
        pid.to_string(),
        "--duration".into(),
        seconds.to_string(),
        "--output".into(),
        file.display().to_string(),
    ];
    let title = format!("Process {pid}, {seconds} s");
    let patience = PATIENCE + Duration::from_secs(seconds.into());
    let recorded = run(pid, &arguments, patience).and_then(|_| {
        fs::read_to_string(&file)
            .map(|drawn| titled(&drawn, &title))
            .map_err(|error| Error::Program(format!("py-spy wrote nothing: {error}")))
    });
    let _ = fs::remove_dir_all(&folder);
    recorded
}

/// Its own title is its command line, which is too long for the picture.
fn titled(drawn: &str, title: &str) -> String {
    let place = drawn.find("<text id=\"title\"").and_then(|element| {
        let begin = element + drawn[element..].find('>')? + 1;
        Some((begin, begin + drawn[begin..].find("</text>")?))
    });
    match place {
        Some((begin, end)) => format!("{}{title}{}", &drawn[..begin], &drawn[end..]),
        None => drawn.to_owned(),
    }
}

/// A new folder for this user alone, of a name that nobody could have taken before.
fn private_folder() -> io::Result<PathBuf> {
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let folder = std::env::temp_dir().join(format!("oxiray-{}", random.trim()));
    DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// What it prints.
fn run(pid: u32, arguments: &[String], patience: Duration) -> Result<String> {
    let program = program().ok_or(Error::NotInstalled(HOW))?;
    let failed = |error: std::io::Error| Error::Program(format!("py-spy cannot be run: {error}"));
    let mut command = Command::new(program);
    // Its own backtraces say nothing to who asks for one of another process.
    command.args(arguments).env("RUST_BACKTRACE", "0");
    let Some((success, printed, said)) = finished(command, patience).map_err(failed)? else {
        return Err(Error::Program(format!(
            "py-spy did not come to an end with process {pid} in {} s, and was ended; is that \
             process stopped?",
            patience.as_secs()
        )));
    };
    if success {
        return Ok(printed);
    }
    let said = said.trim();
    if said.contains("No stack counts found") {
        return Err(Error::Program(format!(
            "process {pid} did not use a processor meanwhile, so there is nothing to draw; its stack \
             says what it waits for"
        )));
    }
    // The kernel lets a process be looked at by its parents alone, unless told otherwise.
    let remedy = if said.contains("ermission") {
        ". Linux allows this to the root user, or to all with `sysctl kernel.yama.ptrace_scope=0`"
    } else {
        ""
    };
    Err(Error::Program(format!("py-spy cannot look at process {pid}: {said}{remedy}")))
}

/// Runs a program: whether it succeeded, what it printed, and its errors. None: it took too long,
/// and was ended.
fn finished(
    mut command: Command,
    patience: Duration,
) -> io::Result<Option<(bool, String, String)>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Read while it runs: a pipe that is full would hold it up.
    let (printed, said) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let success = ended(&mut child, Instant::now() + patience)?;
    if success.is_none() {
        child.kill()?;
        child.wait()?;
        // What it started may have its pipes still: nobody waits for their end.
        return Ok(None);
    }
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
    };
    Ok(success.map(|success| (success, text(printed), text(said))))
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before an error is shown.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Whether it succeeded; none: it runs still.
fn ended(child: &mut Child, until: Instant) -> io::Result<Option<bool>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Beside this program, beside the Python that started it, or where programs are.
fn program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let python = oxiray_settings::PYTHON.path().map(PathBuf::from);
    let of_python = python.and_then(|python| Some(python.parent()?.to_owned()));
    let environment = std::env::var_os("VIRTUAL_ENV").map(|path| Path::new(&path).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(of_python).chain(environment);
    let mut all = folders.chain(std::env::split_paths(&path));
    all.find_map(|folder| Some(folder.join("py-spy")).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let begun = Instant::now();
        let done = finished(shell("exec sleep 600"), Duration::from_millis(50));
        assert!(done.expect("it can be run").is_none());
        assert!(begun.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn what_a_program_says_is_read_however_long() {
        let long = "head -c 300000 /dev/zero; echo no >&2; exit 3";
        let done = finished(shell(long), PATIENCE).expect("it can be run");
        let (success, printed, said) = done.expect("it ends");
        assert_eq!((success, printed.len(), said.trim()), (false, 300_000, "no"));
    }

    #[test]
    fn a_picture_is_called_by_its_process() {
        let drawn = r#"<svg><text id="title" x="5">py-spy record</text><text>f</text></svg>"#;
        let titled_ = r#"<svg><text id="title" x="5">Process 7</text><text>f</text></svg>"#;
        assert_eq!(titled(drawn, "Process 7"), titled_);
        assert_eq!(titled("<svg/>", "Process 7"), "<svg/>");
    }

    #[test]
    fn folders_are_private_and_no_two_the_same() {
        let folders = [private_folder(), private_folder()].map(|folder| folder.expect("made"));
        assert_ne!(folders[0], folders[1]);
        for folder in folders {
            let mode = fs::metadata(&folder).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            fs::remove_dir(folder).expect("it is ours");
        }
    }
}
