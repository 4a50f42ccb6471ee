//! One task of a history: what it is, how far it is, what it went through.

use oxiray_ids::{ActorId, TaskId};
use oxiray_wire::frame::FailureCode;

use crate::format::{Outcome, TaskKind};
use crate::history::{History, NONE, Process, UNNAMED};
use crate::texts::TextPlace;

/// How far a task is; the words are Ray's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Waits for its arguments.
    PendingArguments,
    /// Waits for a worker.
    PendingNode,
    /// Was sent to a worker.
    Submitted,
    /// Runs.
    Running,
    /// Returned.
    Finished,
    /// Failed for good.
    Failed,
    /// Ended because nobody wanted it any more, or what it took. Not a word of Ray's state API,
    /// which has `FAILED` for it.
    Cancelled,
    /// Ended in a way that nobody knows any more: who knew it is gone, and so is its record. Not
    /// a word of Ray's state API, whose nearest is `NIL`.
    Unknown,
}

impl State {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::PendingArguments,
        Self::PendingNode,
        Self::Submitted,
        Self::Running,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// Its name in Ray.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingArguments => "PENDING_ARGS_AVAIL",
            Self::PendingNode => "PENDING_NODE_ASSIGNMENT",
            Self::Submitted => "SUBMITTED_TO_WORKER",
            Self::Running => "RUNNING",
            Self::Finished => "FINISHED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Whether nothing more happens to it.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled | Self::Unknown)
    }

    /// Whether it ended and came to nothing.
    pub fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Cancelled)
    }
}

/// What is kept of a task.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) unique: u64,
    pub(crate) submitted: u64,
    pub(crate) home: u32,
    pub(crate) name: u32,
    /// If that is not its name.
    pub(crate) function: u32,
    pub(crate) parent: u32,
    pub(crate) owner: u32,
    /// First edge to what it needs, and to what needs it.
    pub(crate) needs: u32,
    pub(crate) feeds: u32,
    /// The attempt before the newest.
    pub(crate) earlier: u32,
    pub(crate) kind: Option<TaskKind>,
    /// Something was recorded of it; else others only mention it.
    pub(crate) known: bool,
    pub(crate) newest: Tried,
}

impl Entry {
    /// The function's name.
    pub(crate) fn function(&self) -> u32 {
        if self.function == UNNAMED { self.name } else { self.function }
    }
}

/// What is kept of an attempt. Times are nanoseconds since 1970, 0: not yet.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tried {
    pub(crate) ready: u64,
    pub(crate) sent: u64,
    pub(crate) start: u64,
    pub(crate) execute: u64,
    pub(crate) fetch: f32,
    pub(crate) store: f32,
    /// Where it runs, one more than that; and where the failure is, likewise.
    pub(crate) worker: u32,
    pub(crate) failure: u32,
    pub(crate) number: u16,
    pub(crate) outcome: Option<Outcome>,
    /// Its owner says that it failed, or that it did not.
    pub(crate) given_up: bool,
    pub(crate) answered: bool,
}

/// What is kept of a failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) time: u64,
    pub(crate) code: FailureCode,
    pub(crate) exception: u32,
    pub(crate) process: u32,
    /// The text is beside this chunk.
    pub(crate) log: u32,
    pub(crate) chunk: u32,
    pub(crate) text: u32,
}

/// What became of an attempt whose owner or worker ended before anybody recorded its end.
enum Loss {
    /// Nothing came of it, since then, for this reason.
    Failed(u64, FailureCode),
    /// It may have returned, raised, or come to nothing: whoever knew is gone.
    Unknown,
}

/// Why an attempt failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure<'a> {
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// What kind of failure.
    pub code: FailureCode,
    /// Name of the exception, if it raised one.
    pub exception: Option<&'a str>,
    /// The traceback, or the reason in words: read it by [`crate::texts::read`].
    pub text: Option<TextPlace>,
}

impl Failure<'_> {
    /// Ray's word for it.
    pub fn error_type(&self) -> &'static str {
        self.code.error_type()
    }
}

/// One task of a [`History`].
#[derive(Clone, Copy)]
pub struct Task<'a> {
    pub(crate) history: &'a History,
    pub(crate) index: u32,
}

/// One attempt of a task. Times are nanoseconds since 1970.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    history: &'a History,
    task: u32,
    tried: &'a Tried,
    is_newest: bool,
}

impl<'a> Task<'a> {
    fn entry(&self) -> &'a Entry {
        &self.history.entries[self.index as usize]
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        let entry = self.entry();
        TaskId::of(self.history.homes[entry.home as usize], entry.unique)
    }

    /// What people call it.
    pub fn name(&self) -> &'a str {
        self.history.name(self.entry().name)
    }

    /// What it calls: a function, or `Class.method`.
    pub fn function(&self) -> &'a str {
        self.history.name(self.entry().function())
    }

    /// What it is.
    pub fn kind(&self) -> TaskKind {
        let home = self.history.homes[self.entry().home as usize];
        let by_id = if home.is_home() { TaskKind::Function } else { TaskKind::Method };
        self.entry().kind.unwrap_or(by_id)
    }

    /// Its actor, if it has one.
    pub fn actor(&self) -> Option<ActorId> {
        Some(self.history.homes[self.entry().home as usize]).filter(|home| !home.is_home())
    }

    /// How far it is.
    pub fn state(&self) -> State {
        self.newest().state()
    }

    /// When it was submitted, in nanoseconds since 1970.
    pub fn submitted_ns(&self) -> Option<u64> {
        time(self.entry().submitted)
    }

    /// The process that submitted it.
    pub fn owner(&self) -> Option<&'a Process> {
        self.history.processes.get(self.entry().owner as usize)
    }

    /// The task that submitted it.
    pub fn parent(&self) -> Option<TaskId> {
        let parent = self.entry().parent;
        (parent != NONE).then(|| Task { history: self.history, index: parent }.id())
    }

    /// The attempt that counts.
    pub fn newest(&self) -> Attempt<'a> {
        let (history, task, tried) = (self.history, self.index, &self.entry().newest);
        Attempt { history, task, tried, is_newest: true }
    }

    /// All attempts, the newest first.
    pub fn attempts(&self) -> impl Iterator<Item = Attempt<'a>> + use<'a> {
        let (history, task) = (self.history, self.index);
        let mut next = self.entry().earlier;
        let earlier = std::iter::from_fn(move || {
            let (tried, before) = history.earlier.get(next as usize)?;
            next = *before;
            Some(Attempt { history, task, tried, is_newest: false })
        });
        std::iter::once(self.newest()).chain(earlier)
    }

    /// Tasks whose returns it takes.
    pub fn needs(&self) -> Vec<TaskId> {
        self.edges(self.entry().needs, |edge| (edge.need, edge.next_need))
    }

    /// Tasks that take what it returns.
    pub fn feeds(&self) -> Vec<TaskId> {
        self.edges(self.entry().feeds, |edge| (edge.task, edge.next_feed))
    }

    fn edges(
        &self,
        first: u32,
        follow: impl Fn(&crate::history::Edge) -> (u32, u32),
    ) -> Vec<TaskId> {
        let history = self.history;
        let mut found = Vec::new();
        let mut next = first;
        while let Some(edge) = history.edges.get(next as usize) {
            let (index, after) = follow(edge);
            found.push(Task { history, index }.id());
            next = after;
        }
        found.reverse();
        found
    }
}

impl<'a> Attempt<'a> {
    /// How far it is.
    pub fn state(&self) -> State {
        let tried = self.tried;
        match tried.outcome {
            // Its worker may have died before it could answer: what the owner says counts.
            _ if self.was_cancelled() => State::Cancelled,
            _ if tried.given_up => State::Failed,
            Some(Outcome::Done) => State::Finished,
            Some(Outcome::Raised) => State::Failed,
            None if self.is_answered() => State::Finished,
            None if !self.is_newest => State::Failed,
            None => match self.loss() {
                Some(Loss::Failed(..)) => State::Failed,
                Some(Loss::Unknown) => State::Unknown,
                None if self.runs() => State::Running,
                None if tried.sent > 0 || tried.start > 0 => State::Submitted,
                None if tried.ready > 0 => State::PendingNode,
                None => State::PendingArguments,
            },
        }
    }

    /// Whether its owner says that it was cancelled.
    fn was_cancelled(&self) -> bool {
        let at = self.tried.failure.wrapping_sub(1);
        let failure = self.history.failures.get(at as usize);
        self.tried.given_up && failure.is_some_and(|failed| failed.code == FailureCode::Cancelled)
    }

    fn owner(&self) -> Option<&'a Process> {
        let owner = self.history.entries[self.task as usize].owner;
        self.history.processes.get(owner as usize)
    }

    /// Whether its owner has its answer, though its worker's word for it is lost: the owner said
    /// so, or outlived the node of that worker and has said nothing else since.
    fn is_answered(&self) -> bool {
        let tried = self.tried;
        if tried.answered {
            return true;
        }
        let (Some(worker), Some(owner)) = (self.worker(), self.owner()) else {
            return false;
        };
        let outlived = owner.ended_ns.is_none_or(|end| Some(end) > worker.ended_ns);
        self.is_newest && tried.sent > 0 && worker.is_unread && outlived
    }

    /// What its owner's or its worker's end means for an attempt of which nothing says how it ended.
    fn loss(&self) -> Option<Loss> {
        if self.tried.outcome.is_some() || self.is_answered() {
            return None;
        }
        if self.may_be_dropped() {
            return Some(Loss::Unknown);
        }
        // One that was sent and not begun is sent to another, while its owner lives.
        let begun = self.tried.start > 0;
        let worker = self.worker();
        let worker_is_unread = worker.is_some_and(|worker| worker.is_unread);
        let worker_ended = worker.filter(|_| begun).and_then(|worker| worker.ended_ns);
        let Some(owner) = self.owner() else {
            // Its owner's records went before they were read.
            let crashed = |time| Loss::Failed(time, FailureCode::WorkerCrashed);
            return worker_ended
                .map(|time| if worker_is_unread { Loss::Unknown } else { crashed(time) });
        };
        let Some(owner_ended) = owner.ended_ns else {
            return worker_ended.map(|time| Loss::Failed(time, FailureCode::WorkerCrashed));
        };
        // A worker that can be read would say that it ran to its end. Who cannot be read may have
        // run it; an owner who cannot may have sent it anywhere since.
        let is_unknown = worker_is_unread || (owner.is_unread && !begun);
        let failed = Loss::Failed(owner_ended, FailureCode::OwnerDied);
        Some(if is_unknown { Loss::Unknown } else { failed })
    }

    /// Whether it was sent so long ago that what its worker's node recorded then has gone.
    fn may_be_dropped(&self) -> bool {
        let dropped = |worker: &Process| self.history.dropped_by(worker.id.node());
        let until = self.worker().and_then(dropped).map_or(0, |dropped| dropped.until_ns);
        let tried = self.tried;
        let last_heard = tried.sent.max(tried.start);
        (1..=until).contains(&last_heard) && !self.runs()
    }

    fn runs(&self) -> bool {
        self.worker().is_some_and(|worker| worker.runs(self.task, self.tried.number))
    }

    /// How often it was tried before.
    pub fn number(&self) -> u16 {
        self.tried.number
    }

    /// When its arguments were there.
    pub fn ready_ns(&self) -> Option<u64> {
        time(self.tried.ready)
    }

    /// When it was sent to a worker.
    pub fn sent_ns(&self) -> Option<u64> {
        time(self.tried.sent)
    }

    /// When a worker began it.
    pub fn start_ns(&self) -> Option<u64> {
        time(self.tried.start)
    }

    /// When it ended, if it did: in its worker, or as its owner saw it.
    pub fn end_ns(&self) -> Option<u64> {
        let tried = self.tried;
        match tried.outcome {
            Some(_) => Some(tried.end()),
            None => self.failure().map(|failure| failure.time_ns),
        }
    }

    /// Nanoseconds that arguments, the function and returns took, once it has run.
    pub fn parts_ns(&self) -> Option<[u64; 3]> {
        let tried = self.tried;
        tried.outcome.map(|_| [tried.fetch as u64, tried.execute, tried.store as u64])
    }

    /// The process that runs it, or ran it.
    pub fn worker(&self) -> Option<&'a Process> {
        self.history.processes.get(self.tried.worker.checked_sub(1)? as usize)
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<Failure<'a>> {
        let at = self.tried.failure.wrapping_sub(1);
        let Some(failed) = self.history.failures.get(at as usize) else {
            let Some(Loss::Failed(time_ns, code)) = self.loss() else { return None };
            return Some(Failure { time_ns, code, exception: None, text: None });
        };
        let process = self.history.processes.get(failed.process as usize)?;
        let Failed { log, chunk, text: at, .. } = *failed;
        let place = TextPlace { node: process.node, log, chunk, at };
        Some(Failure {
            time_ns: failed.time,
            code: failed.code,
            exception: (failed.exception != UNNAMED).then(|| self.history.name(failed.exception)),
            text: (failed.text != 0).then_some(place),
        })
    }
}

impl Tried {
    /// When it ended in its worker.
    pub(crate) fn end(&self) -> u64 {
        let parts = (self.fetch as u64).saturating_add(self.execute);
        self.start.saturating_add(parts.saturating_add(self.store as u64))
    }
}

fn time(ns: u64) -> Option<u64> {
    (ns > 0).then_some(ns)
}
