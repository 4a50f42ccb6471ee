//! Processes that outlive the command which started them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::commands::refuse;
use oxiray_session::tail;

/// How long a service may take until it says that it is ready.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// What was killed is gone after this, or never.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// A process. Its number may be given to another after its end; number and start together not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks from the boot of the machine to the start of the process.
    since: u64,
}

impl Process {
    /// The process that has this number now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, since: since(pid)? })
    }

    /// False when the last of its threads has ended: until then it has its ports and locks.
    pub(crate) fn is_alive(&self) -> bool {
        match stat(self.pid) {
            Some((has_ended, since)) if since == self.since => {
                if has_ended && let Some(descriptor) = self.open() {
                    // Its first thread is gone, the others follow within moments.
                    ready(&[descriptor], Some(AFTER_KILL));
                }
                !has_ended
            }
            _ => false,
        }
    }

    /// A descriptor of whatever has this number now.
    fn open(&self) -> Option<OwnedFd> {
        pidfd_open(Pid::from_raw(self.pid as i32)?, PidfdFlags::empty()).ok()
    }

    /// A descriptor of the process: readable at its end.
    pub(crate) fn descriptor(&self) -> Option<OwnedFd> {
        let descriptor = self.open()?;
        // Looked at afterwards: the descriptor is of the very process that is alive now.
        self.is_alive().then_some(descriptor)
    }
}

/// `PID START`, as files have it.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.since)
    }
}

impl FromStr for Process {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pid, since) = text.trim().split_once(' ').unwrap_or((text, ""));
        Ok(Self { pid: pid.parse()?, since: since.parse()? })
    }
}

/// When a process started; none: it is gone, if not buried.
fn since(pid: u32) -> Option<u64> {
    stat(pid).and_then(|(has_ended, since)| (!has_ended).then_some(since))
}

/// Whether the first thread of a process has ended, and when the process started.
fn stat(pid: u32) -> Option<(bool, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have spaces and parentheses of its own.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    // Field 22 of the line; the state was field 3.
    Some((has_ended, fields.nth(18)?.parse().ok()?))
}

/// Asks processes to end, and kills those that have not after `grace`. How many were killed?
pub(crate) fn end(processes: &[Process], grace: Duration) -> usize {
    let mut alive: Vec<OwnedFd> = processes.iter().filter_map(Process::descriptor).collect();
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
fn wait_for_ends(processes: &mut Vec<OwnedFd>, patience: Duration) {
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
pub(crate) fn ready(descriptors: &[OwnedFd], patience: Option<Duration>) -> Vec<usize> {
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
    let errors = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
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
    fn a_process_is_known_by_its_start() {
        let me = Process::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert_eq!(me.to_string().parse(), Ok(me));
        assert!(!Process { since: me.since + 1, ..me }.is_alive());
        assert!("5".parse::<Process>().is_err());
    }

    #[test]
    fn processes_are_asked_and_then_killed() {
        let sleeper = |script: &str| {
            let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            (Process::of(child.id()).unwrap(), child)
        };
        let (polite, mut first) = sleeper("sleep 100");
        let (stubborn, mut second) = sleeper("trap '' TERM; while :; do sleep 0.1; done");
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(end(&[polite, stubborn], Duration::from_millis(300)), 1);
        assert!(!polite.is_alive() && !stubborn.is_alive());
        let _ = (first.wait(), second.wait());
        assert_eq!(end(&[polite], Duration::ZERO), 0);
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
