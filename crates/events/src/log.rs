//! The records of this process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oxiray_ids::{ActorId, ObjectId, ProcessId, TaskId};
use oxiray_sys::clock::{monotonic_ns, wall_ns};
use oxiray_wire::frame::FailureCode;

use crate::chunk::{Chunk, SLOTS_AT_ONCE};
use crate::format::{
    Header, Named, Outcome, Record, Role, Running, TaskKind, chunk_name, lost_name,
};

/// After a failure to write, nothing is tried for so long.
const PATIENCE_NS: u64 = 1_000_000_000;
/// So many objects that a task needs are recorded; one that takes thousands is seen to.
const MOST_NEEDS: usize = 256;
/// Names kept at hand, by their address.
const NEAR: usize = 16;

/// What a task is called.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    /// By its submitter: any name that it was given, else its function's.
    pub name: &'a Arc<str>,
    /// The function, or `Class.method`.
    pub function: &'a Arc<str>,
}

impl<'a> From<&'a Arc<str>> for Label<'a> {
    /// It is called as its function is.
    fn from(function: &'a Arc<str>) -> Self {
        Self { name: function, function }
    }
}

/// How a task ran.
pub struct Ran<'a> {
    /// The task.
    pub task: TaskId,
    /// Which attempt.
    pub attempt: u16,
    /// What people call it.
    pub name: &'a Arc<str>,
    /// When it was begun, in nanoseconds of the monotonic clock.
    pub start: u64,
    /// Nanoseconds that its arguments took to be there.
    pub fetch: u64,
    /// Nanoseconds in the function itself.
    pub execute: u64,
    /// Nanoseconds that its returns took to be stored.
    pub store: u64,
    /// If it raised: the exception's name, and the traceback.
    pub error: Option<(&'a str, &'a str)>,
}

/// The log that this process writes. Nothing is created before the first event.
pub struct EventLog {
    directory: PathBuf,
    role: Role,
    process: ProcessId,
    /// Its number.
    log: u32,
    chunk: Option<Chunk>,
    /// The number of the chunk that is made next.
    next: u32,
    /// A process that has ended wrote this log until now; `next` is the chunk that it wrote last.
    is_used: bool,
    lost: u64,
    /// The record that is written next was counted as lost for its text.
    is_counted: bool,
    /// Says so as long as there is no chunk to say it.
    lost_file: Option<File>,
    /// Nothing is tried before this time.
    quiet_until: u64,
    now: u64,
    names: [Option<(Arc<str>, u32)>; NEAR],
    home: Option<(ActorId, u32)>,
    running: Option<TaskId>,
    /// Nothing of what runs is to be recorded.
    is_unrecorded: bool,
    /// The parent as the last record said it.
    parent: TaskId,
}

impl EventLog {
    /// A log below the directory `session`.
    pub fn new(session: &Path, process: ProcessId, role: Role) -> Self {
        Self {
            directory: session.join("events"),
            role,
            process,
            log: process.number(),
            chunk: None,
            next: 0,
            is_used: false,
            lost: 0,
            is_counted: false,
            lost_file: None,
            quiet_until: 0,
            now: 0,
            names: [const { None }; NEAR],
            home: None,
            running: None,
            is_unrecorded: false,
            parent: TaskId::NIL,
        }
    }

    /// Goes on with a log that another process has left, from its newest chunk.
    pub fn continuing(self, log: u32, chunk: u32) -> Self {
        Self { log, next: chunk, is_used: true, ..self }
    }

    /// The time, in nanoseconds of the monotonic clock, for what is recorded next.
    #[inline]
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// A task was submitted by what runs here; `waits`: not all its arguments are there.
    pub fn submitted<'a>(
        &mut self,
        task: TaskId,
        kind: TaskKind,
        label: impl Into<Label<'a>>,
        waits: bool,
        needs: impl Iterator<Item = ObjectId>,
    ) {
        self.open_for_texts();
        let parent = self.running.unwrap_or(TaskId::NIL);
        if self.parent != parent {
            self.set_parent(parent);
        }
        let label = label.into();
        let (time, name) = (self.now, self.name(label.name));
        let function = match Arc::ptr_eq(label.name, label.function) {
            true => 0,
            false => self.name(label.function),
        };
        let recorded = self.about(task, 0, |task| Record::Submitted {
            task,
            time,
            name,
            function,
            kind,
            waits,
        });
        if recorded {
            for object in needs.take(MOST_NEEDS) {
                self.write(Record::Needs(object));
            }
        }
    }

    fn set_parent(&mut self, parent: TaskId) {
        if self.write(Record::Parent(parent)) {
            self.parent = parent;
        }
    }

    /// The arguments of a task that waited for them are there; or it came back from a worker
    /// that had not begun it.
    pub fn ready(&mut self, task: TaskId, attempt: u16) {
        self.open_for_texts();
        let time = self.now;
        self.about(task, attempt, |task| Record::Ready { task, time });
    }

    /// A task was sent to a worker.
    pub fn sent(&mut self, task: TaskId, attempt: u16, peer: ProcessId) {
        self.open_for_texts();
        let time = self.now;
        self.about(task, attempt, |task| Record::Sent { task, time, peer });
    }

    /// The answer of a task of which nothing says where it was sent is here, and nothing failed.
    pub fn answered(&mut self, task: TaskId, attempt: u16, peer: ProcessId) {
        self.open_for_texts();
        let time = self.now;
        self.about(task, attempt, |task| Record::Answered { task, time, peer });
    }

    /// A task is to be tried again; `attempt` is the new one. `waits`: not all its arguments are
    /// there.
    pub fn retried(&mut self, task: TaskId, attempt: u16, waits: bool) {
        self.open_for_texts();
        let time = self.now;
        self.about(task, attempt, |task| Record::Retried { task, time, waits });
    }

    /// A task failed for a reason that its worker could not tell, in words.
    pub fn failed(&mut self, task: TaskId, attempt: u16, code: FailureCode, message: &str) {
        self.open_for_texts();
        let (time, text) = (self.now, self.text(message));
        self.about(task, attempt, |task| Record::Failed { task, time, code, text });
    }

    /// This process begins a task.
    #[inline]
    pub fn begin(&mut self, task: TaskId, attempt: u16, start: u64) {
        (self.running, self.is_unrecorded) = (Some(task), false);
        if self.chunk.is_none() {
            self.now = start;
            self.make_room(0);
        }
        if let Some(chunk) = &self.chunk {
            chunk.set_running(&Running { start, task, attempt });
        }
    }

    /// This process begins a task, while others run in it: of those a note is not enough.
    pub fn began(&mut self, task: TaskId, attempt: u16, start: u64) {
        self.now = start;
        self.open_for_texts();
        self.about(task, attempt, |task| Record::Began { task, time: start });
    }

    /// What is recorded next, in a process that runs several tasks, is done by this one or by
    /// none; `recorded`: whether that is to be recorded.
    pub fn act_for(&mut self, task: Option<TaskId>, recorded: bool) {
        (self.running, self.is_unrecorded) = (task, !recorded);
    }

    /// This process begins a task of which nothing is to be recorded.
    pub fn begin_unrecorded(&mut self, task: TaskId) {
        (self.running, self.is_unrecorded) = (Some(task), true);
    }

    /// What this process began has ended.
    #[inline]
    pub fn end(&mut self) {
        (self.running, self.is_unrecorded) = (None, false);
        if let Some(chunk) = &self.chunk {
            chunk.clear_running();
        }
    }

    /// What this process began ran to its end.
    pub fn ran(&mut self, ran: &Ran<'_>) {
        let Ran { task, attempt, start, fetch, execute, store, .. } = *ran;
        self.now = start + fetch + execute + store;
        self.open_for_texts();
        let name = self.name(ran.name);
        let (outcome, exception, text) = match ran.error {
            None => (Outcome::Done, 0, 0),
            Some((exception, text)) => (Outcome::Raised, self.text(exception), self.text(text)),
        };
        self.about(task, attempt, |task| Record::Ran {
            task,
            start,
            outcome,
            fetch,
            execute,
            store,
            name,
            exception,
            text,
        });
        self.end();
    }

    /// The user marked a span of time; in a task of which nothing is recorded, nor is that.
    pub fn span(&mut self, name: &str, start: u64, duration: u64, extra: &str) {
        if self.is_unrecorded {
            return;
        }
        self.now = start.saturating_add(duration);
        self.open_for_texts();
        let (name, extra) = (self.text(name), self.text(extra));
        let record = |task| Record::Span { task, start, duration, name, extra };
        match self.running {
            Some(task) => self.about(task, 0, record),
            None => self.write(record(Named { home: 0, unique: 0, attempt: 0 })),
        };
    }

    /// A process of this node ended; for the node service to say.
    pub fn ended(&mut self, process: ProcessId) {
        let time = self.now;
        self.write(Record::Ended { process, time });
    }

    /// A log that had been written was given to a process; for the node service to say.
    pub fn given(&mut self, log: u32, process: ProcessId) {
        let time = self.now;
        self.write(Record::Given { log, process, time });
    }

    /// So many bytes of this node's oldest records have gone so far, or are about to, the newest of
    /// them of the time `until` of the monotonic clock; for the node service to say, before they go.
    pub fn dropped(&mut self, bytes: u64, until: u64) {
        self.write(Record::Dropped { bytes, until });
    }

    /// Sees to it that a record's texts and the record come into one chunk.
    #[inline(always)]
    fn open_for_texts(&mut self) {
        if !self.chunk.as_ref().is_some_and(|chunk| chunk.has_room(SLOTS_AT_ONCE)) {
            self.make_room(0);
        }
    }

    /// Writes a record about a task; whether there was room. Always inline, as is what it calls:
    /// for a record of a known kind little is left of the encoding.
    #[inline(always)]
    fn about(&mut self, task: TaskId, attempt: u16, record: impl FnOnce(Named) -> Record) -> bool {
        let (unique, actor) = (task.unique(), task.actor());
        let home = match self.home {
            Some((known, home)) if known == actor => home,
            _ => match self.new_home(actor) {
                Some(home) => home,
                None => return false,
            },
        };
        self.write(record(Named { home, unique, attempt }))
    }

    #[cold]
    fn new_home(&mut self, actor: ActorId) -> Option<u32> {
        let home = self.text_of(&actor.0);
        if home == 0 {
            self.lose();
            return None;
        }
        self.home = Some((actor, home));
        Some(home)
    }

    /// Writes a record; whether there was room.
    #[inline(always)]
    fn write(&mut self, record: Record) -> bool {
        let slots = record.slots();
        if !self.chunk.as_ref().is_some_and(|chunk| chunk.has_room(slots)) && !self.make_room(slots)
        {
            return false;
        }
        let Some(chunk) = &mut self.chunk else { return false };
        chunk.write(record);
        true
    }

    /// The place of a name that is used often.
    #[inline]
    fn name(&mut self, name: &Arc<str>) -> u32 {
        let near = (name.as_ptr().addr() >> 4) % NEAR;
        match &self.names[near] {
            Some((known, at)) if Arc::ptr_eq(known, name) => *at,
            _ => self.new_name(name, near),
        }
    }

    #[cold]
    fn new_name(&mut self, name: &Arc<str>, near: usize) -> u32 {
        let at = self.text(name);
        if at != 0 {
            self.names[near] = Some((name.clone(), at));
        }
        at
    }

    fn text(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.text_of(text.as_bytes());
        if at == 0 && self.lost == 0 {
            // The record that names it may well have room: then this is all that says so.
            self.lose();
            self.is_counted = true;
        }
        at
    }

    /// The place of a text; 0: it could not be written.
    fn text_of(&mut self, text: &[u8]) -> u32 {
        let Some(chunk) = &mut self.chunk else { return 0 };
        if let Some(at) = chunk.find_text(text) {
            return at;
        }
        if self.now < self.quiet_until {
            return 0;
        }
        chunk.add_text(text).unwrap_or_else(|_| {
            self.quiet_until = self.now + PATIENCE_NS;
            0
        })
    }

    /// From now on no text finds room.
    #[cfg(test)]
    pub(crate) fn fill_texts(&mut self) {
        self.chunk.iter_mut().for_each(Chunk::fill_texts);
    }

    /// Goes on in another chunk, or loses a record of so many slots; with 0, nothing is lost yet.
    #[cold]
    fn make_room(&mut self, slots: usize) -> bool {
        if self.now >= self.quiet_until {
            match self.make_directory().and_then(|()| self.next_chunk()) {
                Ok(()) => return true,
                Err(_) => self.quiet_until = self.now + PATIENCE_NS,
            }
        }
        if slots > 0 {
            self.lose();
        }
        false
    }

    /// Only this one: the session's directory may be gone, and must not come back.
    fn make_directory(&self) -> io::Result<()> {
        if self.chunk.is_some() {
            return Ok(());
        }
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let mut left = None;
        if self.is_used {
            let found = Chunk::take_over(&self.directory, self.log, self.next)?;
            self.is_used = false;
            let Some((mut chunk, header)) = found else {
                let is_foreign = self.directory.join(chunk_name(self.log, self.next)).exists();
                self.next += u32::from(is_foreign);
                return self.make_chunk(None);
            };
            self.lost += header.lost;
            left = chunk.take_running().map(|running| (header.writer, running));
            chunk.set_writer(self.process);
            self.next += 1;
            if chunk.has_room(2 * SLOTS_AT_ONCE) {
                let (process, pid) = (self.process, std::process::id());
                let (role, time) = (self.role, self.now);
                chunk.write(Record::Begins { process, pid, role, time });
                self.adopt(chunk, left);
                return Ok(());
            }
        }
        self.make_chunk(left)
    }

    /// Begins a chunk of our own.
    fn make_chunk(&mut self, left: Option<(ProcessId, Running)>) -> io::Result<()> {
        let header = Header {
            role: self.role,
            process: self.process,
            pid: std::process::id(),
            log: self.log,
            to_wall: to_wall(),
            count: 0,
            lost: self.lost,
            running: None,
            writer: self.process,
        };
        let chunk = Chunk::create(&self.directory, self.next, &header)?;
        if let Some(running) = self.chunk.as_ref().and_then(Chunk::take_running) {
            chunk.set_running(&running);
        }
        if self.lost_file.take().is_some() {
            // The chunk says it from now on.
            drop(fs::remove_file(self.directory.join(lost_name(self.log))));
        }
        self.next += 1;
        self.adopt(chunk, left);
        Ok(())
    }

    /// Writes to a chunk from now on. It has no texts of ours yet, and says nothing of what came
    /// before it: that may be dropped.
    fn adopt(&mut self, mut chunk: Chunk, left: Option<(ProcessId, Running)>) {
        if let Some((process, running)) = left {
            chunk.write(Record::Left { process, running });
        }
        self.chunk = Some(chunk);
        self.names = [const { None }; NEAR];
        (self.home, self.parent) = (None, TaskId::NIL);
    }

    /// A record could not be written (E-2).
    #[cold]
    fn lose(&mut self) {
        self.lost += u64::from(!std::mem::take(&mut self.is_counted));
        match &self.chunk {
            Some(chunk) => chunk.set_lost(self.lost),
            None => self.mark_lost(),
        }
    }

    /// Says how many were lost in a file that needs no room, if even that can be made.
    fn mark_lost(&mut self) {
        if self.lost_file.is_none() {
            let path = self.directory.join(lost_name(self.log));
            let mut options = OpenOptions::new();
            self.lost_file = options.create(true).mode(0o600).append(true).open(path).ok();
            // Who wrote this log before may have had no room either.
            let before = self.lost_file.as_ref().and_then(|file| file.metadata().ok());
            self.lost += before.map_or(0, |file| file.len());
        }
        if let Some(file) = &self.lost_file {
            let _ = file.set_len(self.lost);
        }
    }
}

/// Nanoseconds from the monotonic clock to the one that people read: of a few looks at both the
/// quickest, since other processes may come in between.
fn to_wall() -> i64 {
    let look = || {
        let (before, wall) = (monotonic_ns(), wall_ns());
        (monotonic_ns() - before, wall.wrapping_sub(before) as i64)
    };
    let looks = [look(), look(), look()];
    looks.into_iter().min().map_or(0, |(_, to_wall)| to_wall)
}
