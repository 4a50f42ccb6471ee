//! Files that tools may read, whichever node they are on: the session's logs and events,
//! and what the kernel says of the machine.
//!
//! A thread reads, so that a slow disk keeps nobody else waiting.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

use oxiray_ids::ProcessId;
use oxiray_session::files;
use oxiray_wire::control::{FileName, FilePart, ReadFile};
use rustix::event::{EventfdFlags, eventfd};

use oxiray_sys::machine::{own_memory, processor_ms};

/// Questions that wait at most; more are refused.
const MOST_WAITING: usize = 1024;

/// What the kernel says of the machine: the files of `/proc` that may be read.
const OF_KERNEL: [&str; 3] = ["stat", "meminfo", "loadavg"];

/// A line for each process of the node: its id, the bytes that it alone uses, and the
/// milliseconds of processor time it has used.
const OF_PROCESSES: &str = "processes";

/// A question, and who asked. The ids are those of the node's processes.
struct Asked {
    asker: ProcessId,
    wanted: ReadFile,
    pids: Vec<u32>,
}

/// See the module documentation.
pub(crate) struct Files {
    session: PathBuf,
    /// Readable when something was answered.
    bell: Arc<OwnedFd>,
    /// To the thread, from the first question on.
    asked: Option<SyncSender<Asked>>,
    answer: Sender<(ProcessId, FilePart)>,
    answered: Receiver<(ProcessId, FilePart)>,
}

impl Files {
    pub(crate) fn new(session: &Path) -> io::Result<Self> {
        let (answer, answered) = channel();
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Self { session: session.to_owned(), bell, asked: None, answer, answered })
    }

    /// Readable when [`Self::answers`] has some.
    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Whether a question needs to know the node's processes.
    pub(crate) fn wants_processes(wanted: &ReadFile) -> bool {
        wanted.path.strip_prefix("machine/") == Some(OF_PROCESSES)
    }

    pub(crate) fn read(&mut self, asker: ProcessId, wanted: ReadFile, pids: Vec<u32>) {
        let request = wanted.request;
        let asked = Asked { asker, wanted, pids };
        let sent = match self.thread() {
            Ok(thread) => thread.try_send(asked).map_err(|error| match error {
                TrySendError::Full(_) => "too many files are being read; try again".into(),
                TrySendError::Disconnected(_) => "the thread that reads files ended".into(),
            }),
            Err(error) => Err(error.to_string()),
        };
        if let Err(refused) = sent {
            let _ = self.answer.send((asker, FilePart { request, refused, ..FilePart::default() }));
            ring(&self.bell);
        }
    }

    fn thread(&mut self) -> io::Result<&SyncSender<Asked>> {
        if self.asked.is_none() {
            let (asked, questions) = sync_channel::<Asked>(MOST_WAITING);
            let (session, bell) = (self.session.clone(), self.bell.clone());
            let answers = self.answer.clone();
            std::thread::Builder::new().name("files".into()).spawn(move || {
                for Asked { asker, wanted, pids } in questions {
                    let part = answer(&session, &wanted, &pids);
                    if answers.send((asker, part)).is_err() {
                        return;
                    }
                    ring(&bell);
                }
            })?;
            self.asked = Some(asked);
        }
        Ok(self.asked.as_ref().expect("just made"))
    }

    /// What was answered since the last time.
    pub(crate) fn answers(&mut self) -> Vec<(ProcessId, FilePart)> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        self.answered.try_iter().collect()
    }
}

fn ring(bell: &OwnedFd) {
    // Full means rung.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

fn answer(session: &Path, wanted: &ReadFile, pids: &[u32]) -> FilePart {
    let of_machine = match wanted.path.split_once('/') {
        None if wanted.path == "machine" => Some(Ok(files::names(machine_names(), wanted))),
        Some(("machine", name)) => {
            Some(of_machine(name, pids).map(|bytes| files::cut(&bytes, wanted)))
        }
        _ => None,
    };
    files::answer(wanted, of_machine.unwrap_or_else(|| files::read(session, wanted)))
}

fn of_machine(name: &str, pids: &[u32]) -> io::Result<Vec<u8>> {
    match name {
        OF_PROCESSES => {
            let line = |pid: &u32| format!("{pid} {} {}\n", own_memory(*pid), processor_ms(*pid));
            Ok(pids.iter().map(line).collect::<String>().into_bytes())
        }
        name if OF_KERNEL.contains(&name) => fs::read(format!("/proc/{name}")),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// What can be read of the machine.
fn machine_names() -> Vec<FileName> {
    let names = OF_KERNEL.iter().chain([&OF_PROCESSES]);
    names.map(|name| FileName { name: (*name).to_owned(), size: 0 }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use oxiray_session::files::MOST_NAMES;
    use oxiray_wire::control::MOST_OF_FILE;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("oxiray-files-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("logs")).unwrap();
            Self(path)
        }

        fn ask(&self, path: &str, offset: u64, from_end: bool, most: u32) -> FilePart {
            let path = path.to_owned();
            let wanted = ReadFile { request: 5, node: 0, path, offset, from_end, most };
            let part = answer(&self.0, &wanted, &[std::process::id()]);
            assert_eq!(part.request, 5);
            part
        }

        fn refusal(&self, path: &str) -> String {
            let part = self.ask(path, 0, false, 100);
            assert!(part.bytes.is_empty() && !part.refused.is_empty(), "{path}: {part:?}");
            part.refused
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_from_one_that_cannot_be_read_now() {
        let folder = Folder::new("missing");
        fs::create_dir(folder.0.join("logs/folder")).unwrap();
        let is_missing = |path: &str| folder.ask(path, 0, false, 100).missing;
        assert!(is_missing("logs/none.out") && is_missing("events/7.0"));
        assert!(!is_missing("logs/folder") && !is_missing("etc/passwd"));
    }

    #[test]
    fn a_file_is_read_from_both_ends_and_never_too_much_of_it() {
        let folder = Folder::new("read");
        fs::write(folder.0.join("logs/a.out"), "0123456789").unwrap();
        let part = folder.ask("logs/a.out", 2, false, 3);
        assert_eq!((part.offset, &part.bytes[..], part.size), (2, &b"234"[..], 10));
        let part = folder.ask("logs/a.out", 4, true, 100);
        assert_eq!((part.offset, &part.bytes[..]), (6, &b"6789"[..]));
        assert_eq!(folder.ask("logs/a.out", 99, true, 1).bytes, b"0");
        assert!(folder.ask("logs/a.out", 99, false, 1).bytes.is_empty());
        fs::write(folder.0.join("logs/big"), vec![7; 200_000]).unwrap();
        let part = folder.ask("logs/big", 0, false, u32::MAX);
        assert_eq!((part.bytes.len(), part.size), (MOST_OF_FILE as usize, 200_000));
    }

    #[test]
    fn a_file_is_the_same_by_another_name_and_another_by_the_same() {
        let folder = Folder::new("identity");
        let logs = folder.0.join("logs");
        let identity = |name: &str| folder.ask(&format!("logs/{name}"), 0, false, 0).identity;
        fs::write(logs.join("a.out"), "x").unwrap();
        let first = identity("a.out");
        fs::rename(logs.join("a.out"), logs.join("a.out.1")).unwrap();
        fs::write(logs.join("a.out"), "x").unwrap();
        assert!(first != 0 && identity("a.out.1") == first && identity("a.out") != first);
        fs::write(logs.join("a.out.1"), "longer").unwrap();
        assert_eq!(identity("a.out.1"), first, "what is in it does not matter");
    }

    #[test]
    fn nothing_beside_the_folders_can_be_read() {
        let folder = Folder::new("escape");
        fs::write(folder.0.join("node.secret"), "secret").unwrap();
        fs::create_dir(folder.0.join("logs/inner")).unwrap();
        symlink("/etc/passwd", folder.0.join("logs/link")).unwrap();
        symlink(&folder.0, folder.0.join("events")).unwrap();
        for path in [
            "logs/../node.secret",
            "logs/..",
            "logs/.",
            "logs/",
            "logs//etc/passwd",
            "logs/inner/../../node.secret",
            "logs/inner",
            "logs/link",
            "logs/a\0b",
            "events/node.secret",
            "node.secret",
            "/etc/passwd",
            "../logs",
            "",
            "machine/../etc/passwd",
            "machine/self/environ",
            "machine/version",
        ] {
            folder.refusal(path);
        }
        assert_eq!(folder.refusal("logs/none"), "there is no file logs/none");
        let names = folder.ask("logs", 0, false, 0).files;
        assert!(names.is_empty(), "links and folders are no files: {names:?}");
    }

    #[test]
    fn many_names_come_in_parts() {
        let folder = Folder::new("names");
        for number in 0..MOST_NAMES + 20 {
            fs::write(folder.0.join(format!("logs/{number:05}")), "x").unwrap();
        }
        let mut seen = Vec::new();
        loop {
            let part = folder.ask("logs", seen.len() as u64, false, 0);
            assert_eq!(part.size as usize, MOST_NAMES + 20);
            if part.files.is_empty() {
                break;
            }
            seen.extend(part.files.into_iter().map(|file| file.name));
        }
        assert!(seen.len() == MOST_NAMES + 20 && seen.is_sorted());
        assert!(folder.ask("events", 0, false, 0).files.is_empty(), "none yet");
    }

    #[test]
    fn the_machine_can_be_read() {
        let folder = Folder::new("machine");
        assert!(folder.ask("machine/stat", 0, false, 4).bytes == b"cpu ");
        let part = folder.ask("machine/processes", 0, false, 1000);
        let text = String::from_utf8(part.bytes).unwrap();
        let fields: Vec<u64> =
            text.split_whitespace().map(|field| field.parse().unwrap()).collect();
        assert_eq!((fields.len(), fields[0]), (3, u64::from(std::process::id())));
        assert!(fields[1] > 0);
    }
}
