//! How a history grows: records of one task are in the files of several processes, which are read
//! in any order, so that each record says on its own what it changes (E-5).

use std::io;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_ids::{ActorId, PUT_INDEX, ProcessId, TaskId};
use oxiray_wire::frame::FailureCode;

use crate::files::Files;
use crate::format::{Header, Outcome, Record, Role, Running, SLOT, lost_name, slots_of};
use crate::history::{Dropped, History, NONE, Process, Run, Runs, Span, UNNAMED};
use crate::tail::{News, Tail};
use crate::task::Failed;

/// The node service among the processes of its node.
const NODE_SERVICE: u32 = 0;
/// Clocks nearer than this are one.
const SAME_CLOCK_NS: u64 = 1_000_000;
/// So often files are read again of which some went meanwhile.
const READ_AGAIN: usize = 3;

impl History {
    /// Reads what is new in the files of a node; whether there was anything. What cannot be read
    /// is read another time: the error is that of the first such file.
    pub fn update(&mut self, node: u32, files: &mut dyn Files) -> io::Result<bool> {
        let before = self.version;
        let mut vanished = self.vanished;
        let mut read = self.read_once(node, files);
        // What went while it was read: that it went was said before, and has to be read, too.
        for _ in 0..READ_AGAIN {
            if read.is_err() || self.vanished == vanished {
                break;
            }
            vanished = self.vanished;
            read = self.read_once(node, files);
        }
        read.map(|()| self.version != before)
    }

    fn read_once(&mut self, node: u32, files: &mut dyn Files) -> io::Result<()> {
        let Listed { chunks: mut listed, lost } = list(files)?;
        for (log, count) in lost {
            self.note_lost(node, log, count);
        }
        let mut read = Ok(());
        // An end that the node service recorded came after all that the process did: what is
        // listed later has it.
        let ends = self.ends;
        let service = listed.partition_point(|(number, _)| *number == NODE_SERVICE);
        self.follow_each(node, files, &listed[..service], &mut read);
        if self.ends != ends {
            listed = list(files).map(|listed| listed.chunks).unwrap_or_else(|error| {
                // Nothing more, then: what ended must not be taken for read to its end.
                read = Err(error);
                Vec::new()
            });
        }
        let rest = listed.iter().position(|(number, _)| *number != NODE_SERVICE);
        self.follow_each(node, files, &listed[rest.unwrap_or(listed.len())..], &mut read);
        for process in &mut self.processes {
            if std::mem::take(&mut process.is_mixed) {
                process.runs.sort_by_key(|run| run.start);
                process.spans.sort_by_key(|span| span.start);
            }
        }
        read
    }

    /// Reads what is new of each log; `read` has the first failure.
    fn follow_each(
        &mut self,
        node: u32,
        files: &mut dyn Files,
        listed: &[(u32, Chunks)],
        read: &mut io::Result<()>,
    ) {
        for (number, Chunks { first, last }) in listed {
            // What one log has says nothing of the others; silence of their node does.
            if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                return;
            }
            let key = (node, *number);
            let mut tail = self.tails.remove(&key).unwrap_or_else(|| Tail::new(*number, *first));
            tail.skip_to(*first);
            // Asked before it is read: what comes in between is not missed.
            let at_rest = self.at_rest(node, &tail);
            if !(at_rest && tail.is_read) {
                match self.follow(node, &mut tail, files, *last) {
                    Ok(()) => {
                        tail.is_read = at_rest;
                        if at_rest {
                            tail.forget_texts();
                        }
                    }
                    Err(error) if read.is_ok() => *read = Err(error),
                    Err(_) => {}
                }
            }
            self.vanished += std::mem::take(&mut tail.vanished);
            self.tails.insert(key, tail);
        }
    }

    /// Whether nobody writes a log: the process whose records were read last, and the one that it
    /// was given to last, have ended (E-6).
    fn at_rest(&self, node: u32, tail: &Tail) -> bool {
        let given = self.given.get(&(node, tail.number)).copied();
        let given = given.unwrap_or(ProcessId::new(node, tail.number));
        let has_ended = |process: &u32| self.processes[*process as usize].ended_ns.is_some();
        self.process_index.get(&given).is_some_and(has_ended)
            && tail.process.is_none_or(|process| has_ended(&process))
    }

    /// Every process of a node is gone with it, and so is what they recorded since it was read
    /// last. For what is known by then: what they own has failed, and what they ran has ended as
    /// its owner says.
    pub fn node_left(&mut self, node: u32, time_ns: u64) {
        let ended = self.processes.iter_mut().filter(|process| process.id.node() == node);
        for process in ended.filter(|process| process.ended_ns.is_none()) {
            (process.ended_ns, process.is_unread) = (Some(time_ns), true);
            self.version += 1;
        }
    }

    /// A node says what it has dropped so far.
    fn note_dropped(&mut self, node: u32, bytes: u64, until_ns: u64) {
        let before = self.dropped.get(&node).map_or(0, |dropped| dropped.until_ns);
        self.dropped.insert(node, Dropped { bytes, until_ns: until_ns.max(before) });
    }

    /// A log says how many of its records could not be written so far.
    fn note_lost(&mut self, node: u32, log: u32, count: u64) {
        let known = self.lost.entry((node, log)).or_default();
        if *known < count {
            *known = count;
            self.version += 1;
        }
    }

    fn follow(
        &mut self,
        node: u32,
        tail: &mut Tail,
        files: &mut dyn Files,
        last: u32,
    ) -> io::Result<()> {
        tail.missing.clear();
        while let Some(news) = tail.next(files, last)? {
            let process = self.writer(node, tail, &news);
            let mut process = process;
            let mut rest = &news.slots[..];
            while let Some(kind) = rest.first() {
                let len = slots_of(*kind) * SLOT;
                if rest.len() < len {
                    break;
                }
                if let Some(record) = Record::decode(rest)
                    && let Err(error) = self.apply(record, process, tail, files)
                {
                    // Of this record nothing counts twice if it is applied again.
                    tail.give_back(rest.len() / SLOT);
                    self.version += 1;
                    return Err(error);
                }
                // It may have passed on to another.
                process = tail.process.unwrap_or(process);
                rest = &rest[len..];
            }
            if news.slots.is_empty() {
                // All is read: what it says to run has no record yet.
                self.set_running(process, tail, news.header.running);
                break;
            }
            self.version += 1;
            // The second slot of the last record comes with the next piece. If it is all there
            // is, it never comes.
            if rest.len() < news.slots.len() {
                tail.give_back(rest.len() / SLOT);
            }
        }
        Ok(())
    }

    /// The process whose records begin the news.
    fn writer(&mut self, node: u32, tail: &mut Tail, news: &News) -> u32 {
        let header = &news.header;
        self.note_lost(node, tail.number, header.lost);
        self.set_clock(node, tail, header);
        match tail.process {
            Some(process) if !news.are_first => process,
            _ => {
                let Header { process, pid, role, .. } = *header;
                self.turn(node, tail, (process, pid, role), None)
            }
        }
    }

    fn set_clock(&mut self, node: u32, tail: &mut Tail, header: &Header) {
        // Processes of one machine that disagree by little have looked at slightly different
        // moments: what they did stays in order if all use one number.
        let clock = self.clocks.entry(node).or_insert(header.to_wall);
        if clock.abs_diff(header.to_wall) > SAME_CLOCK_NS {
            *clock = header.to_wall;
        }
        tail.to_wall = *clock;
    }

    /// What follows in a log is of this process, since a time that is known if it went on with
    /// another's chunk.
    fn turn(
        &mut self,
        node: u32,
        tail: &mut Tail,
        (id, pid, role): (ProcessId, u32, Role),
        time: Option<u64>,
    ) -> u32 {
        let Self { processes, process_index, .. } = self;
        let index = *process_index.entry(id).or_insert_with(|| {
            processes.push(Process::new(id, node, pid, role));
            processes.len() as u32 - 1
        });
        let process = &mut processes[index as usize];
        // Files of others say where one is before its own are read.
        if process.pid == 0 {
            (process.node, process.pid, process.role) = (node, pid, role);
        }
        if let Some(before) = tail.process.replace(index).filter(|before| *before != index) {
            // What the header says to run is not its any more; what it left follows. That it has
            // ended the node service says, whose word for it may have been dropped.
            let before = &mut processes[before as usize];
            before.running = None;
            before.ended_ns = before.ended_ns.or(time).or(Some(1));
        }
        index
    }

    fn set_running(&mut self, process: u32, tail: &Tail, running: Option<Running>) {
        let running = running.map(|Running { start, task, attempt }| {
            let (start, task) = (wall(start, tail.to_wall), self.entry(task));
            Runs { task, attempt, start }
        });
        if self.processes[process as usize].running == running {
            return;
        }
        self.processes[process as usize].running = running;
        self.version += 1;
        let Some(Runs { task, attempt, start }) = running else {
            return;
        };
        self.know(task);
        let tried = self.tried(task, attempt);
        if tried.outcome.is_none() {
            (tried.start, tried.worker) = (start, process + 1);
        }
    }

    /// Whether its owner said that it was cancelled.
    fn was_cancelled(&mut self, task: u32, attempt: u16) -> bool {
        let known = self.tried(task, attempt).failure.wrapping_sub(1);
        self.failures.get(known as usize).is_some_and(|known| known.code == FailureCode::Cancelled)
    }

    fn apply(
        &mut self,
        record: Record,
        writer: u32,
        tail: &mut Tail,
        files: &mut dyn Files,
    ) -> io::Result<()> {
        let process = writer;
        let named = match record {
            Record::Needs(object) => {
                if let Some(task) = tail.submitted
                    && object.index() < PUT_INDEX
                {
                    let need = self.entry(object.task());
                    self.connect(task, need);
                }
                return Ok(());
            }
            Record::Ended { process, time } => {
                let process = self.peer(process);
                self.processes[process as usize].ended_ns = Some(wall(time, tail.to_wall));
                self.ends += 1;
                return Ok(());
            }
            Record::Begins { process, pid, role, time } => {
                let time = wall(time, tail.to_wall);
                let node = self.processes[writer as usize].node;
                self.turn(node, tail, (process, pid, role), Some(time));
                return Ok(());
            }
            Record::Left { process, running } => {
                let process = self.peer(process);
                self.set_running(process, tail, Some(running));
                return Ok(());
            }
            Record::Given { log, process: given, .. } => {
                let node = self.processes[process as usize].node;
                self.given.insert((node, log), given);
                return Ok(());
            }
            Record::Dropped { bytes, until } => {
                let node = self.processes[process as usize].node;
                self.note_dropped(node, bytes, wall(until, tail.to_wall));
                return Ok(());
            }
            Record::Parent(task) => {
                tail.parent = (!task.is_nil()).then(|| self.entry(task));
                return Ok(());
            }
            Record::Span { task, start, duration, name, extra } => {
                let name = self.name_at(name, tail, files)?;
                let task = match task.home {
                    0 => NONE,
                    home => self.home_at(home, tail, files)?.map_or(NONE, |home| {
                        self.entry(TaskId::of(self.homes[home as usize], task.unique))
                    }),
                };
                let start = wall(start, tail.to_wall);
                let (log, chunk) = (tail.number, tail.chunk);
                let span = Span { start, duration, name, extra, log, chunk, task };
                self.processes[process as usize].add_span(span);
                return Ok(());
            }
            Record::Submitted { task, .. }
            | Record::Ready { task, .. }
            | Record::Began { task, .. }
            | Record::Sent { task, .. }
            | Record::Answered { task, .. }
            | Record::Retried { task, .. }
            | Record::Failed { task, .. }
            | Record::Ran { task, .. } => task,
        };
        let Some(home) = self.home_at(named.home, tail, files)? else {
            return Ok(());
        };
        let task = self.find_or_insert(home, named.unique);
        self.know(task);
        let at = |time: u64| wall(time, tail.to_wall);
        match record {
            Record::Submitted { time, name, function, kind, waits, .. } => {
                let time = at(time);
                let name = self.name_at(name, tail, files)?;
                let function = self.name_at(function, tail, files)?;
                tail.submitted = Some(task);
                let entry = &mut self.entries[task as usize];
                (entry.submitted, entry.owner, entry.kind) = (time, process, Some(kind));
                entry.parent = tail.parent.unwrap_or(NONE);
                entry.name = if name == UNNAMED { entry.name } else { name };
                entry.function = function;
                if !waits {
                    self.tried(task, 0).ready = time;
                }
            }
            Record::Retried { waits: true, .. } => _ = self.tried(task, named.attempt),
            Record::Ready { time, .. } | Record::Retried { time, .. } => {
                let time = at(time);
                let tried = self.tried(task, named.attempt);
                // One that was sent came back, and had not begun: what says so is in one file.
                (tried.ready, tried.sent) = (time, 0);
                if tried.start == 0 {
                    tried.worker = 0;
                }
            }
            Record::Sent { time, peer, .. } => {
                let (time, worker) = (at(time), self.peer(peer) + 1);
                let tried = self.tried(task, named.attempt);
                tried.sent = time;
                if tried.start == 0 {
                    tried.worker = worker;
                }
            }
            Record::Began { time, .. } => {
                let start = at(time);
                let tried = self.tried(task, named.attempt);
                (tried.start, tried.worker) = (start, process + 1);
                let began = Runs { task, attempt: named.attempt, start };
                self.processes[process as usize].began.insert((task, named.attempt), began);
            }
            Record::Answered { peer, .. } => {
                let worker = self.peer(peer) + 1;
                let tried = self.tried(task, named.attempt);
                tried.answered = true;
                if tried.start == 0 {
                    tried.worker = worker;
                }
            }
            Record::Failed { time, code, text, .. } => {
                let time = at(time);
                let (exception, log, chunk) = (UNNAMED, tail.number, tail.chunk);
                let failed = Failed { time, code, exception, process, log, chunk, text };
                self.failures.push(failed);
                let failure = self.failures.len() as u32;
                let tried = self.tried(task, named.attempt);
                tried.given_up = true;
                // The worker's own word says more, but not of what was cancelled.
                if tried.outcome != Some(Outcome::Raised) || code == FailureCode::Cancelled {
                    tried.failure = failure;
                }
            }
            Record::Ran {
                start, outcome, fetch, execute, store, name, exception, text, ..
            } => {
                let start = at(start);
                let name = self.name_at(name, tail, files)?;
                let mut failure = 0;
                let end = fetch.saturating_add(execute).saturating_add(store);
                if outcome == Outcome::Raised {
                    let exception = self.name_at(exception, tail, files)?;
                    let time = start.saturating_add(end);
                    let (log, chunk) = (tail.number, tail.chunk);
                    let code = FailureCode::TaskError;
                    let failed = Failed { time, code, exception, process, log, chunk, text };
                    self.failures.push(failed);
                    failure = self.failures.len() as u32;
                }
                let was_cancelled = self.was_cancelled(task, named.attempt);
                let tried = self.tried(task, named.attempt);
                tried.start = start;
                (tried.fetch, tried.execute, tried.store) = (fetch as f32, execute, store as f32);
                (tried.worker, tried.outcome) = (process + 1, Some(outcome));
                tried.failure = if failure > 0 && !was_cancelled { failure } else { tried.failure };
                let entry = &mut self.entries[task as usize];
                // What its submitter calls it counts more.
                if entry.name == UNNAMED {
                    entry.name = name;
                }
                let has_failed = outcome == Outcome::Raised;
                let run = Run { start, duration: end, task, lane: 0, has_failed };
                self.processes[process as usize].began.remove(&(task, named.attempt));
                self.processes[process as usize].add_run(run);
            }
            // Of no task, or seen to above.
            _ => {}
        }
        Ok(())
    }

    fn name_at(&mut self, at: u32, tail: &mut Tail, files: &mut dyn Files) -> io::Result<u32> {
        if at == 0 {
            return Ok(UNNAMED);
        }
        if let Some(name) = tail.names.get(&at) {
            return Ok(*name);
        }
        if tail.missing.contains(&at) {
            return Ok(UNNAMED);
        }
        let Some(text) = tail.texts.get(files, (tail.number, tail.chunk), at)? else {
            tail.missing.insert(at);
            return Ok(UNNAMED);
        };
        let text = String::from_utf8_lossy(text);
        let name = match self.name_index.get(&*text) {
            Some(name) => *name,
            None => {
                self.names.push((*text).into());
                let name = self.names.len() as u32 - 1;
                self.name_index.insert((*text).into(), name);
                name
            }
        };
        tail.names.insert(at, name);
        Ok(name)
    }

    fn home_at(
        &mut self,
        at: u32,
        tail: &mut Tail,
        files: &mut dyn Files,
    ) -> io::Result<Option<u32>> {
        if let Some(home) = tail.homes.get(&at) {
            return Ok(Some(*home));
        }
        if at == 0 || tail.missing.contains(&at) {
            return Ok(None);
        }
        let text = tail.texts.get(files, (tail.number, tail.chunk), at)?;
        let Some(actor) = text.and_then(ActorId::from_slice) else {
            tail.missing.insert(at);
            return Ok(None);
        };
        let home = self.home(actor);
        tail.homes.insert(at, home);
        Ok(Some(home))
    }
}

/// Nanoseconds since 1970.
fn wall(time: u64, to_wall: i64) -> u64 {
    time.saturating_add_signed(to_wall).max(1)
}

/// The first and the last chunk of a log that there are.
struct Chunks {
    first: u32,
    last: u32,
}

/// What there is to read.
struct Listed {
    /// The chunks of every log that has any, by its number.
    chunks: Vec<(u32, Chunks)>,
    /// How many records of logs that have none were lost.
    lost: Vec<(u32, u64)>,
}

fn list(files: &mut dyn Files) -> io::Result<Listed> {
    let mut found: HashMap<u32, Chunks, RandomState> = HashMap::default();
    let mut lost = Vec::new();
    for file in files.list()? {
        let Some((number, chunk)) = chunk_of(&file.name) else {
            lost.extend(lost_by(&file.name).map(|number| (number, file.size)));
            continue;
        };
        let Chunks { first, last } =
            found.entry(number).or_insert(Chunks { first: chunk, last: chunk });
        (*first, *last) = ((*first).min(chunk), (*last).max(chunk));
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(Listed { chunks: found, lost })
}

/// Number of the log that could not be written, if that is what a file says.
fn lost_by(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".lost")?.parse().ok()?;
    (lost_name(number) == name).then_some(number)
}

/// Number of the log and of the chunk, if a file is one.
fn chunk_of(name: &str) -> Option<(u32, u32)> {
    let (number, chunk) = name.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(number) || !digits(chunk) {
        return None;
    }
    Some((number.parse().ok()?, chunk.parse().ok()?))
}
