//! What ran when, as many rectangles as fit on a screen.
//!
//! A row each process, or as many as it ran calls at once. Runs narrower than a pixel that follow each other are one span: how many
//! they are, and the name that most of them have. So the size of a view depends on the width of
//! the screen and not on how many tasks there are.

use oxiray_ids::TaskId;

use crate::history::{History, Process, Run};
use crate::lanes;
use crate::task::{State, Task};

/// Which tasks to show.
#[derive(Clone, Default, Debug)]
pub struct Filter {
    /// Names must contain this, in any case.
    pub name: String,
}

/// The timeline between two moments.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The first and the last moment that anything ran, in nanoseconds since 1970.
    pub extent_ns: Option<(u64, u64)>,
    /// Names of spans.
    pub names: Vec<&'a str>,
    /// Processes that have anything to show, by node and number.
    pub rows: Vec<Row<'a>>,
}

/// More rows of one process would not fit on a screen: the rest shares one, in which runs that
/// overlap are one span.
const MOST_LANES: usize = 100;

/// One process, or a lane of one that runs several calls at once.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The process.
    pub process: &'a Process,
    /// Its lane, from 0.
    pub lane: usize,
    /// What it ran, by start.
    pub spans: Vec<Span>,
}

/// One rectangle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// Nanoseconds.
    pub duration_ns: u64,
    /// Among the names of the view.
    pub name: u32,
    /// How many runs it stands for.
    pub count: u32,
    /// How they ended: failed if one of them did.
    pub state: State,
    /// The task, if it stands for one.
    pub task: Option<TaskId>,
}

/// The timeline from `from_ns` to `to_ns` on a screen that is `width` pixels wide.
pub fn view<'a>(
    history: &'a History,
    from_ns: u64,
    to_ns: u64,
    width: u32,
    filter: &Filter,
) -> View<'a> {
    let wanted = filter.name.to_lowercase();
    let shown = |name: &str| wanted.is_empty() || name.to_lowercase().contains(&wanted);
    let mut names = Names {
        shown: history.names().iter().map(|name| shown(name)).collect(),
        counts: vec![0; history.names().len()],
        places: vec![u32::MAX; history.names().len()],
        listed: Vec::new(),
    };
    let pixel = (to_ns.saturating_sub(from_ns) / u64::from(width.max(1))).max(1);
    let mut processes: Vec<_> = history.processes().iter().collect();
    processes.sort_by_key(|process| process.id);
    let mut rows = Vec::new();
    for process in processes {
        let mut lanes: Vec<Vec<Span>> = Vec::new();
        for (lane, runs) in visible(process, from_ns, to_ns).into_iter().enumerate() {
            let is_crowded = lane + 1 == MOST_LANES;
            lanes.push(merge(history, runs, from_ns, pixel, is_crowded, &mut names));
        }
        for (lane, span) in running(history, process, from_ns, to_ns, &mut names) {
            // What runs and has no lane of its own is one span.
            let lane = lane.min(MOST_LANES);
            lanes.resize(lanes.len().max(lane + 1), Vec::new());
            match lanes[lane].first_mut().filter(|_| lane == MOST_LANES) {
                Some(crowd) => crowd.add(&span),
                None => lanes[lane].push(span),
            }
        }
        let lanes = lanes.into_iter().enumerate().filter(|(_, spans)| !spans.is_empty());
        rows.extend(lanes.map(|(lane, spans)| Row { process, lane, spans }));
    }
    let listed = names.listed.iter().map(|name| history.name(*name)).collect();
    View { extent_ns: history.extent_ns(), names: listed, rows }
}

/// Names of the history, as a view uses them.
struct Names {
    shown: Vec<bool>,
    /// How often each is in the span that is being made.
    counts: Vec<u32>,
    /// Where each is in the view.
    places: Vec<u32>,
    listed: Vec<u32>,
}

impl Names {
    fn is_shown(&self, name: u32) -> bool {
        self.shown.get(name as usize).copied().unwrap_or(false)
    }

    fn place(&mut self, name: u32) -> u32 {
        let place = &mut self.places[name as usize];
        if *place == u32::MAX {
            *place = self.listed.len() as u32;
            self.listed.push(name);
        }
        *place
    }
}

impl Span {
    /// Stands for what `other` does, too.
    fn add(&mut self, other: &Self) {
        let end = (self.start_ns + self.duration_ns).max(other.start_ns + other.duration_ns);
        self.start_ns = self.start_ns.min(other.start_ns);
        self.duration_ns = end - self.start_ns;
        (self.count, self.task) = (self.count + other.count, None);
    }
}

/// What a process ran between two moments, by lane, each by start.
fn visible(process: &Process, from_ns: u64, to_ns: u64) -> Vec<Vec<&Run>> {
    let runs = &process.runs;
    let last = runs.partition_point(|run| run.start <= to_ns);
    if process.lanes.count() <= 1 {
        // They do not overlap: the one before the first that starts in time may reach into it.
        let first = runs.partition_point(|run| run.start < from_ns).saturating_sub(1);
        return vec![runs[first.min(last)..last].iter().collect()];
    }
    let earliest = process.lanes.earliest_reaching(from_ns);
    let first = runs.partition_point(|run| run.start < earliest);
    let mut lanes = vec![Vec::new(); process.lanes.count().min(MOST_LANES)];
    for run in &runs[first.min(last)..last] {
        lanes[usize::from(run.lane).min(MOST_LANES - 1)].push(run);
    }
    lanes
}

/// Spans of runs of one lane. `is_crowded`: they may overlap, and then are one span.
fn merge(
    history: &History,
    runs: Vec<&Run>,
    from_ns: u64,
    pixel: u64,
    is_crowded: bool,
    names: &mut Names,
) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut open: Option<Open> = None;
    for run in runs {
        let end = run.start.saturating_add(run.duration);
        let name = history.entries[run.task as usize].name;
        if end < from_ns || !names.is_shown(name) {
            continue;
        }
        let begin = run.start.max(from_ns);
        let is_narrow = end - run.start < pixel;
        if let Some(open) = &mut open
            && ((is_narrow && end.saturating_sub(open.start) <= pixel)
                || (is_crowded && run.start < open.end))
        {
            open.add(run, name, end, names);
            continue;
        }
        spans.extend(open.take().map(|open| open.close(history, names)));
        let mut new = Open::new(begin);
        new.add(run, name, end, names);
        match is_narrow || is_crowded {
            true => open = Some(new),
            false => spans.push(new.close(history, names)),
        }
    }
    spans.extend(open.map(|open| open.close(history, names)));
    spans
}

/// A span that is being made.
struct Open {
    start: u64,
    end: u64,
    count: u32,
    has_failed: bool,
    task: u32,
    /// Names in it, and which is the most frequent.
    names: Vec<u32>,
    most: u32,
}

impl Open {
    fn new(start: u64) -> Self {
        let names = Vec::new();
        Self { start, end: start, count: 0, has_failed: false, task: 0, names, most: 0 }
    }

    fn add(&mut self, run: &Run, name: u32, end: u64, names: &mut Names) {
        let counts = &mut names.counts;
        if counts[name as usize] == 0 {
            self.names.push(name);
        }
        counts[name as usize] += 1;
        if self.count == 0 || counts[name as usize] > counts[self.most as usize] {
            self.most = name;
        }
        self.end = self.end.max(end);
        self.count += 1;
        self.has_failed |= run.has_failed;
        self.task = run.task;
    }

    fn close(self, history: &History, names: &mut Names) -> Span {
        self.names.iter().for_each(|name| names.counts[*name as usize] = 0);
        let task = (self.count == 1).then_some(Task { history, index: self.task });
        Span {
            start_ns: self.start,
            duration_ns: self.end.saturating_sub(self.start),
            name: names.place(self.most),
            count: self.count,
            state: match (self.has_failed, task) {
                // Of several, that one failed is said whatever became of the others.
                (true, Some(task)) if task.state() == State::Cancelled => State::Cancelled,
                (true, _) => State::Failed,
                (false, _) => State::Finished,
            },
            task: task.map(|task| task.id()),
        }
    }
}

/// What a process runs now, or ran when it was killed, with the lane of each.
fn running(
    history: &History,
    process: &Process,
    from_ns: u64,
    to_ns: u64,
    names: &mut Names,
) -> Vec<(usize, Span)> {
    let mut spans = Vec::new();
    for (running, lane) in lanes::unended(process).0 {
        let task = Task { history, index: running.task };
        let mut attempts = task.attempts();
        let name = history.entries[running.task as usize].name;
        let Some(attempt) = attempts.find(|attempt| attempt.number() == running.attempt) else {
            continue;
        };
        let end = attempt.end_ns().or(process.ended_ns).unwrap_or(to_ns);
        let is_seen = running.start <= to_ns && end >= from_ns && names.is_shown(name);
        // Its record may be here, and the note of its beginning not yet gone.
        if attempt.parts_ns().is_some() || !is_seen {
            continue;
        }
        let start = running.start.max(from_ns);
        let span = Span {
            start_ns: start,
            duration_ns: end.min(to_ns).saturating_sub(start),
            name: names.place(name),
            count: 1,
            state: attempt.state(),
            task: Some(task.id()),
        };
        spans.push((usize::from(lane), span));
    }
    spans
}
