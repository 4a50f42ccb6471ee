//! What all tasks of all processes went through.
//!
//! Records of one task are in the files of several processes, which are read in any order: each
//! record says on its own what it changes (E-5). Of a task about 130 bytes are kept; texts of
//! failures stay in their files.

use std::io;

use foldhash::fast::RandomState;
use hashbrown::hash_table::Entry as Slot;
use hashbrown::{HashMap, HashTable};
use oxiray_ids::{ActorId, PUT_INDEX, ProcessId, TaskId};
use std::hash::BuildHasher;

use crate::files::Files;
use crate::format::{Header, Outcome, Record, Role, Running, SLOT, TaskKind, slots_of};
use crate::tail::Tail;
use crate::task::{Entry, Failed, State, Task, Tried};

/// Not a place in any table.
pub(crate) const NONE: u32 = u32::MAX;
/// The name of what has none, in the table of names.
pub(crate) const UNNAMED: u32 = 0;

/// Clocks nearer than this are one.
const SAME_CLOCK_NS: u64 = 1_000_000;

/// A process that writes events.
#[derive(Debug)]
pub struct Process {
    /// Its number in the cluster.
    pub id: ProcessId,
    /// Number of the node whose files these are.
    pub node: u32,
    /// Its number in the system.
    pub pid: u32,
    /// What it is for.
    pub role: Role,
    /// Records that it could not write.
    pub lost: u64,
    pub(crate) running: Option<Runs>,
    /// What it ran, by start.
    pub(crate) runs: Vec<Run>,
    /// What users marked, by start.
    pub(crate) spans: Vec<Span>,
    /// Runs or spans are not in order: rare, since a process records what it does in order.
    is_mixed: bool,
}

impl Process {
    fn new(id: ProcessId, node: u32, pid: u32, role: Role) -> Self {
        let (runs, spans) = (Vec::new(), Vec::new());
        Self { id, node, pid, role, lost: 0, running: None, runs, spans, is_mixed: false }
    }

    fn add_run(&mut self, run: Run) {
        self.is_mixed |= self.runs.last().is_some_and(|last| last.start > run.start);
        self.runs.push(run);
    }

    fn add_span(&mut self, span: Span) {
        // An inner span ends, and is recorded, before the one around it.
        self.is_mixed |= self.spans.last().is_some_and(|last| last.start > span.start);
        self.spans.push(span);
    }
}

/// The attempt that a process runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Runs {
    pub(crate) task: u32,
    pub(crate) attempt: u16,
    pub(crate) start: u64,
}

impl Runs {
    pub(crate) fn is(&self, task: u32, attempt: u16) -> bool {
        self.task == task && self.attempt == attempt
    }
}

/// One run of a task, as a row of the timeline needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) task: u32,
    pub(crate) has_failed: bool,
}

/// A span of time that a user marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) name: u32,
    pub(crate) extra: u32,
    pub(crate) task: u32,
}

/// One task takes what another returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) task: u32,
    pub(crate) need: u32,
    pub(crate) next_need: u32,
    pub(crate) next_feed: u32,
}

/// Tasks of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SummaryRow<'a> {
    /// Their name.
    pub name: &'a str,
    /// What they are.
    pub kind: TaskKind,
    /// How many are in each of [`State::ALL`].
    pub states: [u64; 6],
}

/// Everything that was recorded, as far as it was read.
pub struct History {
    pub(crate) entries: Vec<Entry>,
    /// Entries by home and unique part.
    index: HashTable<u32>,
    hasher: RandomState,
    known: usize,
    pub(crate) homes: Vec<ActorId>,
    home_index: HashMap<ActorId, u32, RandomState>,
    names: Vec<Box<str>>,
    name_index: HashMap<Box<str>, u32, RandomState>,
    pub(crate) processes: Vec<Process>,
    process_index: HashMap<ProcessId, u32, RandomState>,
    /// Attempts that others followed, each with the one before it.
    pub(crate) earlier: Vec<(Tried, u32)>,
    pub(crate) failures: Vec<Failed>,
    pub(crate) edges: Vec<Edge>,
    tails: HashMap<(u32, u32), Tail, RandomState>,
    /// Of each node: nanoseconds from its monotonic clock to the one that people read.
    clocks: HashMap<u32, i64, RandomState>,
    version: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            known: 0,
            homes: Vec::new(),
            home_index: HashMap::default(),
            names: vec!["?".into()],
            name_index: HashMap::default(),
            processes: Vec::new(),
            process_index: HashMap::default(),
            earlier: Vec::new(),
            failures: Vec::new(),
            edges: Vec::new(),
            tails: HashMap::default(),
            clocks: HashMap::default(),
            version: 0,
        }
    }
}

impl History {
    /// One that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads what is new in the files of a node; whether there was anything.
    pub fn update(&mut self, node: u32, files: &mut dyn Files) -> io::Result<bool> {
        let before = self.version;
        // By process: the first and the last of its chunks.
        let mut listed: HashMap<u32, (u32, u32), RandomState> = HashMap::default();
        for file in files.list()? {
            let Some((number, chunk)) = chunk_of(&file.name) else { continue };
            let (first, last) = listed.entry(number).or_insert((chunk, chunk));
            (*first, *last) = ((*first).min(chunk), (*last).max(chunk));
        }
        let mut numbers: Vec<_> = listed.into_iter().collect();
        numbers.sort_unstable();
        for (number, (first, last)) in numbers {
            let key = (node, number);
            let mut tail = self.tails.remove(&key).unwrap_or_else(|| Tail::new(number, first));
            let read = self.follow(node, &mut tail, files, last);
            self.tails.insert(key, tail);
            read?;
        }
        for process in &mut self.processes {
            if std::mem::take(&mut process.is_mixed) {
                process.runs.sort_by_key(|run| run.start);
                process.spans.sort_by_key(|span| span.start);
            }
        }
        Ok(self.version != before)
    }

    /// Changes whenever anything does.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many tasks are known.
    pub fn len(&self) -> usize {
        self.known
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.known == 0
    }

    /// A task by its id.
    pub fn get(&self, id: TaskId) -> Option<Task<'_>> {
        let home = *self.home_index.get(&id.actor())?;
        let unique = id.unique();
        let same = |index: &u32| {
            let entry = &self.entries[*index as usize];
            entry.home == home && entry.unique == unique
        };
        let index = *self.index.find(self.hasher.hash_one((home, unique)), same)?;
        self.entries[index as usize].known.then_some(Task { history: self, index })
    }

    /// Every task, those that were heard of first before the others.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = Task<'_>> {
        let known = self.entries.iter().enumerate().filter(|(_, entry)| entry.known);
        known.map(|(index, _)| Task { history: self, index: index as u32 })
    }

    /// Every process that wrote anything.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Tasks by name and kind: how many are how far.
    pub fn summary(&self) -> Vec<SummaryRow<'_>> {
        let mut rows: HashMap<(u32, TaskKind), [u64; 6], RandomState> = HashMap::default();
        for task in self.tasks() {
            let name = self.entries[task.index as usize].name;
            rows.entry((name, task.kind())).or_default()[task.state() as usize] += 1;
        }
        let row = |((name, kind), states)| SummaryRow { name: self.name(name), kind, states };
        let mut rows: Vec<_> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| (a.name, a.kind).cmp(&(b.name, b.kind)));
        rows
    }

    /// The first and the last moment that anything ran, in nanoseconds since 1970.
    pub fn extent_ns(&self) -> Option<(u64, u64)> {
        let firsts = self.processes.iter().flat_map(|process| {
            let span = process.spans.first().map(|span| span.start);
            let running = process.running.map(|running| running.start);
            process.runs.first().map(|run| run.start).into_iter().chain(span).chain(running)
        });
        let first = firsts.min()?;
        let lasts = self.processes.iter().flat_map(|process| {
            // Runs of a process end in the order in which they start.
            let run = process.runs.last().map(|run| run.start.saturating_add(run.duration));
            let span = process.spans.iter().map(|span| span.start.saturating_add(span.duration));
            let running = process.running.map(|running| running.start);
            run.into_iter().chain(span.max()).chain(running)
        });
        Some((first, lasts.max()?))
    }

    /// Whether anything runs, or ran when its process was killed.
    pub fn is_running(&self) -> bool {
        self.processes.iter().any(|process| process.running.is_some())
    }

    /// Records that could not be written.
    pub fn lost(&self) -> u64 {
        self.processes.iter().map(|process| process.lost).sum()
    }

    pub(crate) fn name(&self, index: u32) -> &str {
        self.names.get(index as usize).map_or("?", |name| name)
    }

    pub(crate) fn names(&self) -> &[Box<str>] {
        &self.names
    }

    fn follow(
        &mut self,
        node: u32,
        tail: &mut Tail,
        files: &mut dyn Files,
        last: u32,
    ) -> io::Result<()> {
        while let Some(news) = tail.next(files, last)? {
            let process = self.meet(node, tail, &news.header);
            let mut rest = &news.slots[..];
            while let Some(kind) = rest.first() {
                let len = slots_of(*kind) * SLOT;
                if rest.len() < len {
                    break;
                }
                if let Some(record) = Record::decode(rest) {
                    self.apply(record, process, tail, files)?;
                }
                rest = &rest[len..];
            }
            if news.slots.is_empty() {
                // All is read: what it says to run has no record yet.
                self.set_running(process, tail, &news.header);
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

    /// The process of a header.
    fn meet(&mut self, node: u32, tail: &mut Tail, header: &Header) -> u32 {
        // Processes of one machine that disagree by little have looked at slightly different
        // moments: what they did stays in order if all use one number.
        let clock = self.clocks.entry(node).or_insert(header.to_wall);
        if clock.abs_diff(header.to_wall) > SAME_CLOCK_NS {
            *clock = header.to_wall;
        }
        tail.to_wall = *clock;
        let Self { processes, process_index, .. } = self;
        let index = *process_index.entry(header.process).or_insert_with(|| {
            processes.push(Process::new(header.process, node, header.pid, header.role));
            processes.len() as u32 - 1
        });
        tail.process = Some(index);
        let process = &mut processes[index as usize];
        // Files of others say where one is before its own are read.
        if process.pid == 0 {
            (process.node, process.pid, process.role) = (node, header.pid, header.role);
        }
        if process.lost != header.lost {
            process.lost = header.lost;
            self.version += 1;
        }
        index
    }

    fn set_running(&mut self, process: u32, tail: &Tail, header: &Header) {
        let running = header.running.map(|Running { start, task, attempt }| {
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

    fn apply(
        &mut self,
        record: Record,
        process: u32,
        tail: &mut Tail,
        files: &mut dyn Files,
    ) -> io::Result<()> {
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
                let span = Span { start, duration, name, extra, task };
                self.processes[process as usize].add_span(span);
                return Ok(());
            }
            Record::Submitted { task, .. }
            | Record::Ready { task, .. }
            | Record::Sent { task, .. }
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
            Record::Submitted { time, name, kind, waits, .. } => {
                let time = at(time);
                let name = self.name_at(name, tail, files)?;
                tail.submitted = Some(task);
                let entry = &mut self.entries[task as usize];
                (entry.submitted, entry.owner, entry.kind) = (time, process, Some(kind));
                entry.parent = tail.parent.unwrap_or(NONE);
                entry.name = if name == UNNAMED { entry.name } else { name };
                if !waits {
                    self.tried(task, 0).ready = time;
                }
            }
            Record::Ready { time, .. } | Record::Retried { time, .. } => {
                let time = at(time);
                self.tried(task, named.attempt).ready = time;
            }
            Record::Sent { time, peer, .. } => {
                let (time, worker) = (at(time), self.peer(peer) + 1);
                let tried = self.tried(task, named.attempt);
                tried.sent = time;
                if tried.start == 0 {
                    tried.worker = worker;
                }
            }
            Record::Failed { time, code, text, .. } => {
                let time = at(time);
                let failed = Failed { time, code, exception: UNNAMED, process, text };
                self.failures.push(failed);
                let failure = self.failures.len() as u32;
                let tried = self.tried(task, named.attempt);
                tried.given_up = true;
                // The worker's own word says more.
                if tried.outcome != Some(Outcome::Raised) {
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
                    self.failures.push(Failed { time, code: 0, exception, process, text });
                    failure = self.failures.len() as u32;
                }
                let tried = self.tried(task, named.attempt);
                tried.start = start;
                (tried.fetch, tried.execute, tried.store) = (fetch as f32, execute, store as f32);
                (tried.worker, tried.outcome) = (process + 1, Some(outcome));
                if failure > 0 {
                    tried.failure = failure;
                }
                let entry = &mut self.entries[task as usize];
                // What its submitter calls it counts more.
                if entry.name == UNNAMED {
                    entry.name = name;
                }
                let has_failed = outcome == Outcome::Raised;
                let run = Run { start, duration: end, task, has_failed };
                self.processes[process as usize].add_run(run);
            }
            Record::Needs(_) | Record::Parent(_) | Record::Span { .. } => {}
        }
        Ok(())
    }

    fn know(&mut self, task: u32) {
        let entry = &mut self.entries[task as usize];
        self.known += usize::from(!entry.known);
        entry.known = true;
    }

    /// The attempt of a task, made if there is none yet. Attempts that follow each other come
    /// from several files in any order.
    fn tried(&mut self, task: u32, number: u16) -> &mut Tried {
        let Self { entries, earlier, .. } = self;
        let Entry { newest, earlier: first, .. } = &mut entries[task as usize];
        if newest.number == number {
            return newest;
        }
        let fresh = Tried { number, ..Tried::default() };
        if newest.number < number {
            earlier.push((std::mem::replace(newest, fresh), *first));
            *first = earlier.len() as u32 - 1;
            return newest;
        }
        let (mut before, mut next) = (NONE, *first);
        while let Some((tried, after)) = earlier.get(next as usize)
            && tried.number > number
        {
            (before, next) = (next, *after);
        }
        if earlier.get(next as usize).is_none_or(|(tried, _)| tried.number != number) {
            earlier.push((fresh, next));
            next = earlier.len() as u32 - 1;
            match earlier.get_mut(before as usize) {
                Some((_, after)) => *after = next,
                None => *first = next,
            }
        }
        &mut earlier[next as usize].0
    }

    fn connect(&mut self, task: u32, need: u32) {
        let edge = self.edges.len() as u32;
        let next_need = std::mem::replace(&mut self.entries[task as usize].needs, edge);
        let next_feed = std::mem::replace(&mut self.entries[need as usize].feeds, edge);
        self.edges.push(Edge { task, need, next_need, next_feed });
    }

    fn entry(&mut self, id: TaskId) -> u32 {
        let home = self.home(id.actor());
        self.find_or_insert(home, id.unique())
    }

    fn home(&mut self, actor: ActorId) -> u32 {
        let homes = &mut self.homes;
        *self.home_index.entry(actor).or_insert_with(|| {
            homes.push(actor);
            homes.len() as u32 - 1
        })
    }

    /// The place of a process that others send to.
    fn peer(&mut self, id: ProcessId) -> u32 {
        let processes = &mut self.processes;
        *self.process_index.entry(id).or_insert_with(|| {
            processes.push(Process::new(id, id.node(), 0, Role::Worker));
            processes.len() as u32 - 1
        })
    }

    fn find_or_insert(&mut self, home: u32, unique: u64) -> u32 {
        let Self { entries, index, hasher, .. } = self;
        let hash = |entry: &Entry| hasher.hash_one((entry.home, entry.unique));
        let same = |index: &u32| {
            let entry = &entries[*index as usize];
            entry.unique == unique && entry.home == home
        };
        let rehash = |index: &u32| hash(&entries[*index as usize]);
        match index.entry(hasher.hash_one((home, unique)), same, rehash) {
            Slot::Occupied(found) => *found.get(),
            Slot::Vacant(place) => {
                let new = entries.len() as u32;
                place.insert(new);
                if entries.len() == entries.capacity() {
                    // A quarter more: twice would be a hundred megabytes for nothing.
                    entries.reserve_exact((entries.len() / 4).max(64));
                }
                entries.push(Entry {
                    unique,
                    submitted: 0,
                    home,
                    name: UNNAMED,
                    parent: NONE,
                    owner: NONE,
                    needs: NONE,
                    feeds: NONE,
                    earlier: NONE,
                    kind: None,
                    known: false,
                    newest: Tried::default(),
                });
                new
            }
        }
    }

    fn name_at(&mut self, at: u32, tail: &mut Tail, files: &mut dyn Files) -> io::Result<u32> {
        if at == 0 {
            return Ok(UNNAMED);
        }
        if let Some(name) = tail.names.get(&at) {
            return Ok(*name);
        }
        let name = match tail.texts.get(files, tail.number, at)? {
            Some(text) => {
                let text = String::from_utf8_lossy(text);
                match self.name_index.get(&*text) {
                    Some(name) => *name,
                    None => {
                        self.names.push((*text).into());
                        let name = self.names.len() as u32 - 1;
                        self.name_index.insert((*text).into(), name);
                        name
                    }
                }
            }
            None => UNNAMED,
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
            return Ok(*home);
        }
        let actor = match at {
            0 => None,
            at => tail.texts.get(files, tail.number, at)?.and_then(ActorId::from_slice),
        };
        let home = actor.map(|actor| self.home(actor));
        tail.homes.insert(at, home);
        Ok(home)
    }
}

/// Nanoseconds since 1970.
fn wall(time: u64, to_wall: i64) -> u64 {
    time.saturating_add_signed(to_wall).max(1)
}

/// Number of the process and of the chunk, if a file is one.
fn chunk_of(name: &str) -> Option<(u32, u32)> {
    let (number, chunk) = name.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(number) || !digits(chunk) {
        return None;
    }
    Some((number.parse().ok()?, chunk.parse().ok()?))
}

const _: () = assert!(size_of::<Entry>() <= 112 && size_of::<Run>() == 24);
const _: () = assert!(State::ALL.len() == 6);
