//! What ran when, as many rectangles as fit on a screen.
//!
//! A row each process. Runs narrower than a pixel that follow each other are one span: how many
//! they are, and the name that most of them have. So the size of a view depends on the width of
//! the screen and not on how many tasks there are.

use oxiray_ids::TaskId;

use crate::history::{History, Process, Run};
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

/// One process.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The process.
    pub process: &'a Process,
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
        let mut spans = merge(history, process, from_ns, to_ns, pixel, &mut names);
        spans.extend(running(history, process, from_ns, to_ns, &mut names));
        if !spans.is_empty() {
            rows.push(Row { process, spans });
        }
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

fn merge(
    history: &History,
    process: &Process,
    from_ns: u64,
    to_ns: u64,
    pixel: u64,
    names: &mut Names,
) -> Vec<Span> {
    // Runs of one process do not overlap: the one before the first that starts in time may reach
    // into it.
    let first = process.runs.partition_point(|run| run.start < from_ns).saturating_sub(1);
    let mut spans: Vec<Span> = Vec::new();
    let mut open: Option<Open> = None;
    for run in &process.runs[first..] {
        let end = run.start.saturating_add(run.duration);
        if run.start > to_ns {
            break;
        }
        let name = history.entries[run.task as usize].name;
        if end < from_ns || !names.is_shown(name) {
            continue;
        }
        let begin = run.start.max(from_ns);
        let is_narrow = end - run.start < pixel;
        if let Some(open) = &mut open
            && is_narrow
            && end.saturating_sub(open.start) <= pixel
        {
            open.add(run, name, end, names);
            continue;
        }
        spans.extend(open.take().map(|open| open.close(history, names)));
        let mut new = Open::new(begin);
        new.add(run, name, end, names);
        match is_narrow {
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
        Span {
            start_ns: self.start,
            duration_ns: self.end.saturating_sub(self.start),
            name: names.place(self.most),
            count: self.count,
            state: if self.has_failed { State::Failed } else { State::Finished },
            task: (self.count == 1).then(|| Task { history, index: self.task }.id()),
        }
    }
}

/// What a process runs now, or ran when it was killed.
fn running(
    history: &History,
    process: &Process,
    from_ns: u64,
    to_ns: u64,
    names: &mut Names,
) -> Option<Span> {
    let running = process.running?;
    let task = Task { history, index: running.task };
    let attempt = task.attempts().find(|attempt| attempt.number() == running.attempt)?;
    let name = history.entries[running.task as usize].name;
    // Its record may be here, and the note of its beginning not yet gone.
    if attempt.parts_ns().is_some() || !names.is_shown(name) {
        return None;
    }
    let end = attempt.end_ns().or(process.ended_ns).unwrap_or(to_ns);
    if running.start > to_ns || end < from_ns {
        return None;
    }
    let start = running.start.max(from_ns);
    Some(Span {
        start_ns: start,
        duration_ns: end.min(to_ns).saturating_sub(start),
        name: names.place(name),
        count: 1,
        state: attempt.state(),
        task: Some(task.id()),
    })
}
