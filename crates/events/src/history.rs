//! What all tasks of all processes went through.
//!
//! Of a task about 150 bytes are kept; texts of failures stay in their files. How a history grows
//! is in `reading`.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use oxiray_ids::{ActorId, ProcessId, TaskId};

use crate::format::{Role, TaskKind};
use crate::lanes::Lanes;
use crate::tail::Tail;
use crate::task::{Entry, Failed, State, Task, Tried};

/// Not a place in any table.
pub(crate) const NONE: u32 = u32::MAX;
/// The name of what has none, in the table of names.
pub(crate) const UNNAMED: u32 = 0;

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
    /// When it ended, in nanoseconds since 1970, if it did.
    pub ended_ns: Option<u64>,
    /// It ended with its node: the last that it recorded was not read, and will not be.
    pub(crate) is_unread: bool,
    /// What it runs, if that is one at a time.
    pub(crate) running: Option<Runs>,
    /// What it began and has not ended, if it runs several: by task and attempt.
    pub(crate) began: HashMap<(u32, u16), Runs, RandomState>,
    /// What it ran, by start.
    pub(crate) runs: Vec<Run>,
    /// When the last of these ended.
    pub(crate) last_end: u64,
    /// Its lanes: what overlaps is in different ones.
    pub(crate) lanes: Lanes,
    /// What users marked, by start.
    pub(crate) spans: Vec<Span>,
    /// Runs or spans are not in order: rare, since a process records what it does in order.
    pub(crate) is_mixed: bool,
}

impl Process {
    pub(crate) fn new(id: ProcessId, node: u32, pid: u32, role: Role) -> Self {
        let (runs, spans) = (Vec::new(), Vec::new());
        let (ended_ns, running) = (None, None);
        let (is_unread, is_mixed, began) = (false, false, HashMap::default());
        Self {
            id,
            node,
            pid,
            role,
            ended_ns,
            is_unread,
            running,
            began,
            runs,
            last_end: 0,
            lanes: Lanes::default(),
            spans,
            is_mixed,
        }
    }

    /// What it runs, or ran when it ended.
    pub(crate) fn unended(&self) -> impl Iterator<Item = &Runs> {
        self.running.iter().chain(self.began.values())
    }

    pub(crate) fn runs(&self, task: u32, attempt: u16) -> bool {
        self.began.contains_key(&(task, attempt))
            || self.running.is_some_and(|running| running.is(task, attempt))
    }

    pub(crate) fn add_run(&mut self, mut run: Run) {
        run.lane = self.lanes.add(run.start, run.duration);
        self.is_mixed |= self.runs.last().is_some_and(|last| last.start > run.start);
        self.last_end = self.last_end.max(run.start.saturating_add(run.duration));
        self.runs.push(run);
    }

    pub(crate) fn add_span(&mut self, span: Span) {
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
    /// Of its process.
    pub(crate) lane: u16,
    pub(crate) has_failed: bool,
}

/// A span of time that a user marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) name: u32,
    /// A text beside this chunk.
    pub(crate) extra: u32,
    pub(crate) log: u32,
    pub(crate) chunk: u32,
    pub(crate) task: u32,
}

/// Records of a node that have gone to make room for others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// How many bytes of them.
    pub bytes: u64,
    /// When the newest was written, in nanoseconds since 1970.
    pub until_ns: u64,
}

/// One task takes what another returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) task: u32,
    pub(crate) need: u32,
    pub(crate) next_need: u32,
    pub(crate) next_feed: u32,
}

/// Tasks of one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SummaryRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// What they are.
    pub kind: TaskKind,
    /// How many are in each of [`State::ALL`].
    pub states: [u64; State::ALL.len()],
}

/// Everything that was recorded, as far as it was read.
pub struct History {
    pub(crate) entries: Vec<Entry>,
    /// Entries by home and unique part.
    pub(crate) index: HashTable<u32>,
    pub(crate) hasher: RandomState,
    pub(crate) known: usize,
    pub(crate) homes: Vec<ActorId>,
    pub(crate) home_index: HashMap<ActorId, u32, RandomState>,
    pub(crate) names: Vec<Box<str>>,
    pub(crate) name_index: HashMap<Box<str>, u32, RandomState>,
    pub(crate) processes: Vec<Process>,
    pub(crate) process_index: HashMap<ProcessId, u32, RandomState>,
    /// Attempts that others followed, each with the one before it.
    pub(crate) earlier: Vec<(Tried, u32)>,
    pub(crate) failures: Vec<Failed>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) tails: HashMap<(u32, u32), Tail, RandomState>,
    /// Of each node: nanoseconds from its monotonic clock to the one that people read.
    pub(crate) clocks: HashMap<u32, i64, RandomState>,
    /// Who was given a log last, by node and log; else it is its first writer's.
    pub(crate) given: HashMap<(u32, u32), ProcessId, RandomState>,
    /// Records that could not be written, by node and log.
    pub(crate) lost: HashMap<(u32, u32), u64, RandomState>,
    pub(crate) dropped: HashMap<u32, Dropped, RandomState>,
    /// Chunks that went while they were read.
    pub(crate) vanished: u64,
    /// Ends of processes that were read.
    pub(crate) ends: u64,
    pub(crate) version: u64,
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
            given: HashMap::default(),
            lost: HashMap::default(),
            dropped: HashMap::default(),
            vanished: 0,
            ends: 0,
            version: 0,
        }
    }
}

impl History {
    /// One that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
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

    /// Whether files of that node were read.
    pub fn has_read(&self, node: u32) -> bool {
        self.tails.keys().any(|(known, _)| *known == node)
    }

    /// Tasks by function and kind: how many are how far.
    pub fn summary(&self) -> Vec<SummaryRow<'_>> {
        let mut rows: HashMap<(u32, TaskKind), [u64; State::ALL.len()], RandomState> =
            HashMap::default();
        for task in self.tasks() {
            let name = self.entries[task.index as usize].function();
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
            let running = process.unended().map(|running| running.start).min();
            process.runs.first().map(|run| run.start).into_iter().chain(span).chain(running)
        });
        let first = firsts.min()?;
        let lasts = self.processes.iter().flat_map(|process| {
            let run = (process.last_end > 0).then_some(process.last_end);
            let span = process.spans.iter().map(|span| span.start.saturating_add(span.duration));
            let running = process.unended().map(|running| running.start).max();
            run.into_iter().chain(span.max()).chain(running)
        });
        Some((first, lasts.max()?))
    }

    /// Whether anything runs.
    pub fn is_running(&self) -> bool {
        self.processes.iter().any(|process| {
            process.unended().any(|running| {
                let task = Task { history: self, index: running.task };
                task.state() == State::Running
            })
        })
    }

    /// Records that could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Records that a node could not write.
    pub fn lost_by(&self, node: u32) -> u64 {
        self.lost.iter().filter(|((of, _), _)| *of == node).map(|(_, count)| count).sum()
    }

    /// Records of a node that have gone, if any have.
    pub fn dropped_by(&self, node: u32) -> Option<Dropped> {
        self.dropped.get(&node).copied()
    }

    /// The nodes of which anything was read.
    pub fn nodes(&self) -> BTreeSet<u32> {
        self.tails.keys().chain(self.lost.keys()).map(|(node, _)| *node).collect()
    }

    pub(crate) fn name(&self, index: u32) -> &str {
        self.names.get(index as usize).map_or("?", |name| name)
    }

    pub(crate) fn names(&self) -> &[Box<str>] {
        &self.names
    }
}

const _: () = assert!(size_of::<Entry>() <= 112 && size_of::<Run>() == 24);
