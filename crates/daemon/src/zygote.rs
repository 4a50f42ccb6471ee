//! The processes that workers are forked from: one for each environment in use.
//!
//! Each speaks in short text packets: we say `fork`; it says `forked PID`, or `refused ERRNO`,
//! and `exit PID STATUS` with the raw wait status of a worker that ended. It
//! ends when our end of the socket closes. One of a runtime environment first
//! makes that (`oxiray._template`), and says `making WHAT` now and then, and then
//! `ready`, or `failed WHY` and ends.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::limits::file_size_of_workers;
use oxiray_session::private_file;
use oxiray_sys::{packet, process};
use oxiray_wire::control::NodeConfig;

/// A tool's own words come in one packet, with what is known around them.
const LONGEST_PACKET: usize = 32 << 10;

/// A zygote, while it lives.
#[derive(Debug)]
pub(crate) struct Zygote {
    child: Child,
    socket: OwnedFd,
    /// Asked for, no answer yet.
    asked: usize,
    /// Forked, not yet registered.
    unregistered: BTreeSet<u32>,
}

/// What the zygote says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// A worker was forked.
    Forked(u32),
    /// The kernel refused to fork one, with this error.
    Refused(i32),
    /// A worker ended with this raw wait status.
    Exited(u32, i32),
    /// What the making of its environment is at.
    Making(String),
    /// Its environment is there.
    Ready,
    /// Its environment cannot be made, for this reason.
    Failed(String),
}

impl Zygote {
    /// Starts the one of an environment; 0: the node's own.
    pub(crate) fn start(
        config: &NodeConfig,
        logs: &Path,
        number: u32,
        environment: &str,
    ) -> io::Result<Self> {
        let (ours, theirs) = packet::pair()?;
        packet::set_nonblocking(&ours)?;
        let log = log_of(logs, number);
        let log = private_file(OpenOptions::new().create(true).append(true), &log)?;
        let mut command = Command::new(&config.python);
        let module = if number == 0 { "oxiray._zygote" } else { "oxiray._template" };
        command
            .args(["-m", module])
            .env(oxiray_settings::ENVIRONMENT_NUMBER.name, number.to_string())
            .env(oxiray_settings::ENVIRONMENT.name, environment)
            .env(oxiray_settings::SESSION_DIR.name, &config.session_dir)
            .env(oxiray_settings::SYS_PATH.name, json_list(&config.sys_path))
            .env(oxiray_settings::DRIVER_MODULES.name, config.preload.join(","))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        if oxiray_settings::TUNED.is_on() {
            command.env_remove("GLIBC_TUNABLES").env_remove(oxiray_settings::TUNED.name);
        }
        if let Some(size) = file_size_of_workers() {
            process::limit_file_size(&mut command, size);
        }
        let child = process::spawn_detached(&mut command, theirs, 3)?;
        Ok(Self { child, socket: ours, asked: 0, unregistered: BTreeSet::new() })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for a worker.
    pub(crate) fn fork(&mut self) -> io::Result<()> {
        packet::send(&self.socket, b"fork", &[])?;
        self.asked += 1;
        Ok(())
    }

    /// The next thing it says; an error when it is gone.
    pub(crate) fn receive(&mut self) -> io::Result<Option<News>> {
        let mut buffer = [0; LONGEST_PACKET];
        match packet::receive(&self.socket, &mut buffer) {
            Ok(Some((len, _))) => Ok(parse(&buffer[..len])),
            Ok(None) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        }
    }

    /// A worker was forked, and `registered` already or not.
    pub(crate) fn forked(&mut self, pid: u32, registered: bool) {
        self.asked = self.asked.saturating_sub(1);
        if !registered {
            self.unregistered.insert(pid);
        }
    }

    /// One that was asked for could not be forked.
    pub(crate) fn refused(&mut self) {
        self.asked = self.asked.saturating_sub(1);
    }

    /// A worker registered or ended; true when it was waited for.
    pub(crate) fn settle(&mut self, pid: u32) -> bool {
        self.unregistered.remove(&pid)
    }

    /// Workers that will not come when it is gone.
    pub(crate) fn outstanding(&self) -> usize {
        self.asked + self.unregistered.len()
    }

    /// Ends it and all that it started, and takes its exit status.
    pub(crate) fn end(mut self) -> Option<std::process::ExitStatus> {
        process::kill_group(self.child.id());
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// Takes the exit status of one that has gone by itself.
    pub(crate) fn bury(mut self) -> Option<std::process::ExitStatus> {
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

/// What the zygote of an environment prints.
pub(crate) fn log_of(logs: &Path, number: u32) -> PathBuf {
    match number {
        0 => logs.join("zygote.log"),
        _ => logs.join(format!("zygote-{number}.log")),
    }
}

fn parse(bytes: &[u8]) -> Option<News> {
    let text = String::from_utf8_lossy(bytes);
    if let Some(why) = text.strip_prefix("failed ") {
        return Some(News::Failed(why.to_owned()));
    }
    if let Some(what) = text.strip_prefix("making ") {
        return Some(News::Making(what.to_owned()));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["forked", pid] => Some(News::Forked(pid.parse().ok()?)),
        ["refused", error] => Some(News::Refused(error.parse().ok()?)),
        ["ready"] => Some(News::Ready),
        ["exit", pid, status] => Some(News::Exited(pid.parse().ok()?, status.parse().ok()?)),
        _ => None,
    }
}

/// A raw wait status in words: `exit code 1`, `killed by signal 11 (SIGSEGV)`.
pub(crate) fn describe(status: i32) -> String {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        _ => "it ended in an unknown way".into(),
    }
}

/// Whether a raw wait status is that of SIGKILL, which is the kernel's as well.
pub(crate) fn was_sigkill(status: i32) -> bool {
    use std::os::unix::process::ExitStatusExt;
    std::process::ExitStatus::from_raw(status).signal() == Some(9)
}

fn signal_name(signal: i32) -> Option<&'static str> {
    let names = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (31, "SIGSYS"),
    ];
    names.iter().find(|(number, _)| *number == signal).map(|&(_, name)| name)
}

/// `["a", "b"]` in JSON.
fn json_list(items: &[String]) -> String {
    let mut text = String::from("[");
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index == 0 { "\"" } else { ", \"" });
        for character in item.chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                control if (control as u32) < 0x20 => {
                    text.push_str(&format!("\\u{:04x}", control as u32));
                }
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_parsed_and_the_rest_refused() {
        assert_eq!(parse(b"forked 12"), Some(News::Forked(12)));
        assert_eq!(parse(b"exit 12 256\n"), Some(News::Exited(12, 256)));
        assert_eq!(parse(b"exit 12"), None);
        assert_eq!(parse(b"refused 11"), Some(News::Refused(11)));
        assert_eq!(parse(b"\xff"), None);
        assert_eq!(parse(b"ready"), Some(News::Ready));
        assert_eq!(parse(b"making a b"), Some(News::Making("a b".into())));
        assert_eq!(parse(b"failed no\nway"), Some(News::Failed("no\nway".into())));
    }

    #[test]
    fn statuses_are_put_in_words() {
        assert_eq!(describe(256), "exit code 1");
        assert_eq!(describe(11), "killed by signal 11 (SIGSEGV)");
        assert_eq!(describe(128 | 6), "killed by signal 6 (SIGABRT)");
    }

    #[test]
    fn paths_become_json() {
        let list = ["/a \"b\"".to_owned(), "\\c\n".to_owned()];
        assert_eq!(json_list(&list), r#"["/a \"b\"", "\\c\u000a"]"#);
        assert_eq!(json_list(&[]), "[]");
    }
}
