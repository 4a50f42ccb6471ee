//! What ran when, for the timeline: fixed-size records in files that every
//! process of the session can read while they are being written.
//!
//! A process writes `SESSION/events/PID.N`, a mapped file of [`CHUNK`] bytes: the
//! number of records, then the records. The names of what ran are lines of
//! `SESSION/events/PID.names`, counted from 0.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_ids::TaskId;
use oxiray_sys::memory::Mapping;

const CHUNK: usize = 1 << 20;
const HEADER: usize = 64;
const RECORD: usize = 48;
const PER_CHUNK: u64 = ((CHUNK - HEADER) / RECORD) as u64;

/// One task that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Name of the function or method.
    pub name: String,
    /// Process id of the worker.
    pub pid: u32,
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// Nanoseconds.
    pub duration_ns: u64,
    /// The task.
    pub task: TaskId,
}

/// The log of this process.
pub struct EventLog {
    directory: PathBuf,
    pid: u32,
    chunk: Option<Mapping>,
    chunks: u32,
    records: u64,
    names: HashMap<String, u32, RandomState>,
}

impl EventLog {
    /// A log below `session`; nothing is created before the first event.
    pub fn new(session: &Path) -> Self {
        Self {
            directory: session.join("events"),
            pid: std::process::id(),
            chunk: None,
            chunks: 0,
            records: 0,
            names: HashMap::default(),
        }
    }

    /// Records a task that ran. A full disk costs events, never the task.
    pub fn record(&mut self, name: &str, task: TaskId, start_ns: u64, duration_ns: u64) {
        let _ = self.try_record(name, task, start_ns, duration_ns);
    }

    fn try_record(
        &mut self,
        name: &str,
        task: TaskId,
        start_ns: u64,
        duration_ns: u64,
    ) -> io::Result<()> {
        let name = match self.names.get(name) {
            Some(number) => *number,
            None => self.add_name(name)?,
        };
        if self.chunk.is_none() || self.records == PER_CHUNK {
            self.next_chunk()?;
        }
        let Some(chunk) = &self.chunk else {
            return Ok(());
        };
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&start_ns.to_le_bytes());
        record[8..16].copy_from_slice(&duration_ns.to_le_bytes());
        record[16..40].copy_from_slice(&task.0);
        record[40..44].copy_from_slice(&name.to_le_bytes());
        chunk.write(HEADER + self.records as usize * RECORD, &record);
        self.records += 1;
        chunk.atomic_u64(0).store(self.records, Ordering::Release);
        Ok(())
    }

    fn add_name(&mut self, name: &str) -> io::Result<u32> {
        // Only this one: the session's directory may be gone, and must not come back.
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.directory.join(format!("{}.names", self.pid));
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(format!("{}\n", name.replace('\n', " ")).as_bytes())?;
        let number = self.names.len() as u32;
        self.names.insert(name.to_owned(), number);
        Ok(number)
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let path = self.directory.join(format!("{}.{}", self.pid, self.chunks));
        let file = OpenOptions::new().create_new(true).read(true).write(true).open(path)?;
        file.set_len(CHUNK as u64)?;
        self.chunk = Some(Mapping::new(&file, CHUNK)?);
        self.chunks += 1;
        self.records = 0;
        Ok(())
    }
}

/// Reads every event of a session, by start.
pub fn read_session(session: &Path) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    let entries = match fs::read_dir(session.join("events")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(events),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let Some((pid, _)) = path
            .file_name()
            .and_then(|name| name.to_str()?.split_once('.'))
            .filter(|(_, rest)| rest.parse::<u32>().is_ok())
        else {
            continue;
        };
        let names = fs::read_to_string(path.with_file_name(format!("{pid}.names")))?;
        let names: Vec<&str> = names.lines().collect();
        read_chunk(&path, pid.parse().unwrap_or(0), &names, &mut events)?;
    }
    events.sort_by_key(|event| event.start_ns);
    Ok(events)
}

fn read_chunk(path: &Path, pid: u32, names: &[&str], into: &mut Vec<Event>) -> io::Result<()> {
    let chunk = Mapping::new(&OpenOptions::new().read(true).write(true).open(path)?, CHUNK)?;
    let count = chunk.atomic_u64(0).load(Ordering::Acquire).min(PER_CHUNK) as usize;
    for index in 0..count {
        let record = chunk.bytes(HEADER + index * RECORD, RECORD);
        let number =
            |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
        let name = number(40) as u32 as usize;
        into.push(Event {
            name: names.get(name).copied().unwrap_or("?").to_owned(),
            pid,
            start_ns: number(0),
            duration_ns: number(8),
            task: TaskId(record[16..40].try_into().expect("twenty-four bytes")),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxiray_ids::{ActorId, ProcessId};

    #[test]
    fn what_is_recorded_is_read_across_chunks() {
        let session = std::env::temp_dir().join(format!("oxiray-events-{}", std::process::id()));
        fs::create_dir_all(&session).unwrap();
        let mut log = EventLog::new(&session);
        let total = PER_CHUNK + 10;
        for counter in 0..total {
            let task = TaskId::new(ActorId::NIL, ProcessId(1), counter);
            log.record(if counter % 2 == 0 { "even" } else { "odd" }, task, counter, 5);
        }
        let events = read_session(&session).unwrap();
        assert_eq!(events.len() as u64, total);
        assert_eq!(events[3].name, "odd");
        assert_eq!(events[3].start_ns, 3);
        fs::remove_dir_all(&session).unwrap();
    }
}
