//! Files that tools may read, whichever node they are on: the session's logs and events,
//! and what the kernel says of the machine.
//!
//! A path is a folder and a name, nothing more: no name leads out of its folder, and no
//! link is followed. A thread reads, so that a slow disk keeps nobody else waiting.

use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

use oxiray_ids::ProcessId;
use oxiray_wire::control::{FileName, FilePart, MOST_OF_FILE, ReadFile};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{CWD, Mode, OFlags};

use oxiray_sys::machine::{own_memory, processor_ms};

/// Questions that wait at most; more are refused.
const MOST_WAITING: usize = 1024;

/// Names in one answer.
const MOST_NAMES: usize = 500;

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
    let part = match wanted.path.split_once('/') {
        None => names(session, wanted),
        Some(("machine", name)) => of_machine(name, pids).map(|bytes| cut(&bytes, wanted)),
        Some((folder @ ("logs" | "events"), name)) => {
            open(&session.join(folder), name).and_then(|file| of_file(&file, wanted))
        }
        Some(_) => Err(no_folder()),
    };
    let refused = |error: io::Error| FilePart {
        refused: match error.kind() {
            io::ErrorKind::NotFound => format!("there is no file {}", wanted.path),
            _ => format!("{} cannot be read: {error}", wanted.path),
        },
        missing: error.kind() == io::ErrorKind::NotFound,
        ..FilePart::default()
    };
    FilePart { request: wanted.request, ..part.unwrap_or_else(refused) }
}

fn no_folder() -> io::Error {
    io::Error::other("only files in `logs`, `events` and `machine` can be")
}

/// Opens a file of a folder. Links are not followed, and what is no file is not opened.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(io::Error::other("a file is named by its folder and its name alone"));
    }
    let base = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder =
        rustix::fs::openat(CWD, folder, base | OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
    // Without blocking: opening a pipe would wait for its writer.
    let flags = base | OFlags::RDONLY | OFlags::NONBLOCK;
    let file =
        rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::LOOP => io::Error::other("it is a link, which is not followed"),
            error => error.into(),
        })?;
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(file)
}

fn most(wanted: &ReadFile) -> usize {
    wanted.most.min(MOST_OF_FILE) as usize
}

/// Where to begin in something of `size` bytes.
fn begin(wanted: &ReadFile, size: u64) -> u64 {
    if wanted.from_end { size.saturating_sub(wanted.offset) } else { wanted.offset.min(size) }
}

/// The same as long as a file exists, whatever it is called. The number of its inode alone is soon
/// another's when it is gone; that of an earlier time it can not be. (Where files have no time of
/// birth, as in memory on older systems, numbers are not used again.)
fn identity(about: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    (about.dev(), about.ino(), about.created().ok()).hash(&mut hasher);
    hasher.finish().max(1)
}

fn of_file(file: &File, wanted: &ReadFile) -> io::Result<FilePart> {
    let about = file.metadata()?;
    let (size, identity) = (about.len(), identity(&about));
    let offset = begin(wanted, size);
    let mut bytes = vec![0; most(wanted).min(usize::try_from(size - offset).unwrap_or(usize::MAX))];
    let len = file.read_at(&mut bytes, offset)?;
    bytes.truncate(len);
    Ok(FilePart { offset, bytes, size, identity, ..FilePart::default() })
}

fn cut(all: &[u8], wanted: &ReadFile) -> FilePart {
    let size = all.len() as u64;
    let offset = begin(wanted, size);
    let bytes = all[offset as usize..].iter().take(most(wanted)).copied().collect();
    FilePart { offset, bytes, size, ..FilePart::default() }
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

fn names(session: &Path, wanted: &ReadFile) -> io::Result<FilePart> {
    let mut files = match wanted.path.as_str() {
        "machine" => {
            let names = OF_KERNEL.iter().chain([&OF_PROCESSES]);
            names.map(|name| FileName { name: (*name).to_owned(), size: 0 }).collect()
        }
        folder @ ("logs" | "events") => files_of(&session.join(folder))?,
        _ => return Err(no_folder()),
    };
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let size = files.len() as u64;
    let offset = wanted.offset.min(size);
    let files = files.into_iter().skip(offset as usize).take(MOST_NAMES).collect();
    Ok(FilePart { offset, size, files, ..FilePart::default() })
}

/// The files of a folder; one that does not exist yet has none.
fn files_of(folder: &Path) -> io::Result<Vec<FileName>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let file = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(FileName { name: entry.file_name().into_string().ok()?, size: about.len() })
    };
    Ok(entries.filter_map(file).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
