//! Processes that outlive the command which started them.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::commands::refuse;
use oxiray_session::{private_file, tail};

/// How long a service may take until it says that it is ready.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// What was killed is gone after this, or never.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// A process for people and for tests: its number, which may be given to another after its end,
/// and its start, in clock ticks from the boot of the machine.
pub(crate) fn number_and_start(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before may have spaces and parentheses of its own. The start is field 22 of the
    // line, and what follows the name is field 3.
    let start = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(19));
    format!("{pid} {}", start.unwrap_or_default())
}

/// A descriptor of a child whose status nobody has taken: it is of no other process.
pub(crate) fn of_child(child: &Child) -> Option<OwnedFd> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()
}

/// Asks processes to end, and kills those that have not after `grace`. How many were killed?
pub(crate) fn end(processes: Vec<impl AsFd>, grace: Duration) -> usize {
    let mut alive = processes;
    for process in &alive {
        let _ = pidfd_send_signal(process, Signal::TERM);
    }
    wait_for_ends(&mut alive, grace);
    let killed = alive.len();
    for process in &alive {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    wait_for_ends(&mut alive, AFTER_KILL);
    killed
}

/// Leaves those that are still there after `patience`.
fn wait_for_ends(processes: &mut Vec<impl AsFd>, patience: Duration) {
    let until = Instant::now() + patience;
    while !processes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let ended = ready(processes, Some(left));
        if ended.is_empty() {
            return;
        }
        let mut index = 0;
        processes.retain(|_| {
            index += 1;
            !ended.contains(&(index - 1))
        });
    }
}

/// Which of the descriptors can be read; sleeps until one can, or for so long.
pub(crate) fn ready(descriptors: &[impl AsFd], patience: Option<Duration>) -> Vec<usize> {
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    let mut polled: Vec<PollFd<'_>> =
        descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    // Interrupted by a signal: whoever cares has a descriptor for it.
    let _ = poll(&mut polled, timeout.as_ref());
    let is_ready =
        |(index, polled): (usize, &PollFd<'_>)| (!polled.revents().is_empty()).then_some(index);
    polled.iter().enumerate().filter_map(is_ready).collect()
}

/// Starts a service in a session of its own, its errors into `log`, and waits
/// for its one line: `ready WHAT`, which is returned, or `error TEXT`. Gives up when
/// `asked` can be read.
pub(crate) fn launch(
    command: &mut Command,
    log: &Path,
    asked: Option<&OwnedFd>,
) -> io::Result<(Child, String)> {
    let errors = private_file(OpenOptions::new().create(true).append(true), log)?;
    let program = Path::new(command.get_program()).to_owned();
    command.stdout(Stdio::piped());
    let mut child =
        oxiray_sys::process::spawn_detached(command, errors.into(), 2).map_err(|error| {
            io::Error::other(format!("cannot start {}: {error}", program.display()))
        })?;
    let line = first_line(&mut child, asked);
    if let Some(what) = line.as_deref().and_then(|line| line.strip_prefix("ready ")) {
        return Ok((child, what.trim().to_owned()));
    }
    let _ = child.kill();
    let _ = child.wait();
    if line.is_none() && asked.is_some_and(is_readable) {
        return refuse("it was interrupted; what it had started is stopped");
    }
    match line.as_deref().map(|line| (line, line.strip_prefix("error "))) {
        Some((_, Some(text))) => refuse(text),
        Some((line, None)) => refuse(format!("{} said {line:?}", program.display())),
        None => refuse(format!(
            "{} did not start. The end of its log {}:\n{}",
            program.display(),
            log.display(),
            tail(log, 2000)
        )),
    }
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// What the service says; none: it ended, took too long, or nobody wants to know any more.
fn first_line(child: &mut Child, asked: Option<&OwnedFd>) -> Option<String> {
    let mut output = child.stdout.take()?;
    let until = Instant::now() + START_PATIENCE;
    let mut line = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let mut polled = vec![PollFd::new(&output, PollFlags::IN)];
        polled.extend(asked.map(|asked| PollFd::new(asked, PollFlags::IN)));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return None,
            Ok(_) if polled[0].revents().is_empty() => return None,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        let mut piece = [0; 1024];
        match output.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => line.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        if line.contains(&b'\n') {
            break;
        }
    }
    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_asked_and_then_killed() {
        let sleeper = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut polite = sleeper("sleep 100");
        let mut stubborn = sleeper("trap '' TERM; while :; do sleep 0.1; done");
        std::thread::sleep(Duration::from_millis(100));
        let both = [&polite, &stubborn].map(|child| of_child(child).unwrap());
        assert_eq!(end(both.into(), Duration::from_millis(300)), 1);
        assert!(number_and_start(polite.id()).split(' ').all(|word| word.parse::<u64>().is_ok()));
        let _ = (polite.wait(), stubborn.wait());
    }

    #[test]
    fn a_service_says_how_it_went() {
        let log = std::env::temp_dir().join(format!("oxiray-launch-{}", std::process::id()));
        let run = |script: &str| launch(Command::new("sh").args(["-c", script]), &log, None);
        let (mut child, what) = run("echo ready 1.2.3.4:5; exec sleep 100").unwrap();
        assert_eq!(what, "1.2.3.4:5");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(run("echo error no room").unwrap_err().to_string(), "no room");
        assert!(run("echo oops >&2").unwrap_err().to_string().contains("oops"));
        assert!(run("echo well").unwrap_err().to_string().contains("well"));
        let (asked, end) = std::io::pipe().unwrap();
        drop(end);
        let mut silent = Command::new("sh");
        silent.args(["-c", "exec sleep 100"]);
        let given_up = launch(&mut silent, &log, Some(&asked.into())).unwrap_err().to_string();
        assert!(given_up.contains("interrupted"), "{given_up}");
        fs::remove_file(&log).unwrap();
    }
}
