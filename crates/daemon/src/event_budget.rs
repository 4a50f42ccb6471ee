//! How much of the record of events is kept: when there is more than that, the oldest chunks go.
//!
//! What a process writes now stays, however much it is: with many processes at once the record may
//! be larger than it is meant to be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use oxiray_events::newest_record;
use oxiray_settings::{EVENTS_MAX_BYTES, EVENTS_MAX_FILES};

use crate::event_logs::EventLogs;
use crate::setting::count;

/// The log of the node service itself.
const OWN: u32 = 0;
/// A node records no faster than this.
const FASTEST: u64 = 256 << 20;
/// It is looked at no more often than this.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// How large the record may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    bytes: u64,
    files: usize,
}

impl Budget {
    /// As it is set.
    pub(crate) fn from_environment() -> Self {
        let files = count(&EVENTS_MAX_FILES).try_into().unwrap_or(usize::MAX);
        Self { bytes: count(&EVENTS_MAX_BYTES), files }
    }
}

/// What has gone so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Gone {
    pub(crate) bytes: u64,
    /// The time of the newest of it, by the monotonic clock.
    pub(crate) until: u64,
}

/// Keeps the record of a session within its budget.
#[derive(Debug)]
pub(crate) struct EventBudget {
    directory: PathBuf,
    budget: Budget,
    gone: Gone,
    /// When it is to be looked at next, in nanoseconds of the monotonic clock.
    next: u64,
}

/// A chunk with its texts.
struct Chunk {
    log: u32,
    number: u32,
    written: SystemTime,
    /// On disk.
    bytes: u64,
    files: Vec<PathBuf>,
}

impl EventBudget {
    pub(crate) fn new(session: &Path, budget: Budget, now: u64) -> Self {
        let next = now + wait(budget.bytes);
        Self { directory: session.join("events"), budget, gone: Gone::default(), next }
    }

    /// When it wants to look again.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// If it is time to look, drops what is too much. `say` is told what has gone so far before more
    /// goes: who reads finds either the records or the word that they have gone.
    pub(crate) fn look(&mut self, now: u64, logs: &mut EventLogs, say: impl FnOnce(Gone)) {
        if now < self.next {
            return;
        }
        let (oldest, left) = self.too_much(logs);
        self.next = now + wait(left);
        if oldest.is_empty() {
            return;
        }
        for (chunk, _) in &oldest {
            self.gone.bytes += chunk.bytes;
            let newest = chunk.files.iter().find_map(|file| newest_record(file));
            self.gone.until = self.gone.until.max(newest.unwrap_or(now));
        }
        say(self.gone);
        for (chunk, is_newest) in oldest {
            for file in &chunk.files {
                let _ = fs::remove_file(file);
            }
            if is_newest {
                logs.forget(chunk.log);
            }
        }
    }

    /// The chunks that are too much, each with whether it is the newest of its log; and how many
    /// bytes there may yet be without them.
    fn too_much(&self, logs: &EventLogs) -> (Vec<(Chunk, bool)>, u64) {
        let mut chunks = chunks_in(&self.directory);
        let mut oldest = Vec::new();
        let mut bytes: u64 = chunks.iter().map(|chunk| chunk.bytes).sum();
        let mut files: usize = chunks.iter().map(|chunk| chunk.files.len()).sum();
        let Budget { bytes: most_bytes, files: most_files } = self.budget;
        if bytes > most_bytes || files > most_files {
            let newest = newest_of(&chunks);
            chunks.sort_unstable_by_key(|chunk| (chunk.written, chunk.log, chunk.number));
            for chunk in chunks {
                if bytes <= most_bytes && files <= most_files {
                    break;
                }
                let is_newest = newest.get(&chunk.log) == Some(&chunk.number);
                if is_newest && (chunk.log == OWN || logs.is_written(chunk.log)) {
                    continue;
                }
                (bytes, files) = (bytes - chunk.bytes, files - chunk.files.len());
                oldest.push((chunk, is_newest));
            }
        }
        (oldest, most_bytes.saturating_sub(bytes))
    }
}

/// Nanoseconds in which so many bytes cannot be written.
fn wait(bytes: u64) -> u64 {
    let wait = Duration::from_secs_f64(bytes as f64 / FASTEST as f64);
    wait.clamp(SHORTEST, LONGEST).as_nanos() as u64
}

fn newest_of(chunks: &[Chunk]) -> BTreeMap<u32, u32> {
    let mut newest = BTreeMap::new();
    for chunk in chunks {
        let known = newest.entry(chunk.log).or_insert(chunk.number);
        *known = chunk.number.max(*known);
    }
    newest
}

/// Every chunk there is.
fn chunks_in(directory: &Path) -> Vec<Chunk> {
    let mut found: BTreeMap<(u32, u32), Chunk> = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((log, number)) = name.to_str().and_then(chunk_of) else { continue };
        let Ok(about) = entry.metadata() else { continue };
        let chunk = found.entry((log, number)).or_insert_with(|| Chunk {
            log,
            number,
            written: SystemTime::UNIX_EPOCH,
            bytes: 0,
            files: Vec::new(),
        });
        chunk.written = chunk.written.max(about.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        chunk.bytes += about.blocks() * 512;
        chunk.files.push(entry.path());
    }
    found.into_values().collect()
}

/// The log and the chunk that a file is of: `7.0`, or `7.0.text`.
fn chunk_of(name: &str) -> Option<(u32, u32)> {
    let (log, chunk) = name.strip_suffix(".text").unwrap_or(name).split_once('.')?;
    Some((log.parse().ok()?, chunk.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use oxiray_ids::ProcessId;

    use super::*;

    const GONE_PID: u32 = 1 << 23;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("oxiray-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("events")).expect("can be made");
            Self(path)
        }

        /// A file of eight blocks, written so many seconds after 1970.
        fn write(&self, name: &str, seconds: u64) {
            let path = self.0.join("events").join(name);
            fs::write(&path, [1; 4096]).expect("can be written");
            let file = fs::File::options().write(true).open(path).expect("is there");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_modified(time).expect("can be set");
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.join("events")).expect("is there");
            let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names: Vec<String> = entries.flatten().map(name).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_oldest_chunks_go_with_their_texts_but_not_what_is_written_now() {
        let folder = Folder::new("budget");
        let mut logs = EventLogs::new(&folder.0);
        let (writing, ended) = (ProcessId::new(0, 1), ProcessId::new(0, 2));
        assert!(logs.give(writing).is_none() && logs.give(ended).is_none());
        logs.ended(ended, GONE_PID);
        for (name, seconds) in [
            ("0.0", 1),
            ("1.0", 2),
            ("1.0.text", 9),
            ("1.1", 3),
            ("2.0", 4),
            ("2.0.text", 4),
            ("notes", 1),
        ] {
            folder.write(name, seconds);
        }
        let all = folder.names();
        let mut budget = EventBudget::new(&folder.0, Budget { bytes: 6 * 4096, files: 6 }, 0);
        const LATER: u64 = u64::MAX / 2;
        budget.look(0, &mut logs, |_| panic!("it is not time"));
        budget.look(LATER, &mut logs, |_| panic!("it is not too much"));
        assert_eq!(folder.names(), all);
        budget = EventBudget::new(&folder.0, Budget { bytes: 5 * 4096, files: 6 }, 0);
        let mut said = None;
        budget.look(LATER, &mut logs, |gone| {
            assert_eq!(folder.names(), all, "it is said before they go");
            said = Some(gone);
        });
        // Of what cannot be read nobody knows how new it is.
        assert_eq!(said, Some(Gone { bytes: 2 * 4096, until: LATER }));
        assert_eq!(folder.names(), ["0.0", "1.0", "1.0.text", "1.1", "notes"]);
        assert_eq!(logs.give(ProcessId::new(0, 3)), None, "nothing of it is left");
        budget = EventBudget::new(&folder.0, Budget { bytes: 1 << 20, files: 1 }, 0);
        budget.look(LATER, &mut logs, drop);
        assert_eq!(folder.names(), ["0.0", "1.1", "notes"]);
    }

    #[test]
    fn it_is_looked_at_before_it_can_be_full() {
        let budget =
            EventBudget::new(Path::new("/nowhere"), Budget { bytes: 1 << 30, files: 10_000 }, 0);
        assert_eq!(budget.next(), 4_000_000_000);
        let small = EventBudget::new(Path::new("/"), Budget { bytes: 0, files: 1 }, 7);
        assert_eq!(small.next(), 7 + SHORTEST.as_nanos() as u64);
    }
}
