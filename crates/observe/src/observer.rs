//! A connection to one node that only looks. Many questions may be under way at once.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxiray_ids::ProcessId;
use oxiray_session::Session as Directory;
use oxiray_sys::packet;
use oxiray_wire::control::{
    FileName, FilePart, FromNode, ProcessKind, ReadFile, Register, Registered, ToNode,
    from_node::Body, to_node,
};
use prost::Message;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::ended::Ended;
use crate::error::{Error, Result};

/// How long nothing may come while answers are waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Questions that are under way at once: a node passes each on as it comes.
const MOST_UNDER_WAY: usize = 64;

/// A question, and whom it is for.
pub(crate) struct Question {
    /// Number of the node; 0: the one that is asked.
    pub(crate) node: u32,
    /// The message; its request number is filled in when it is sent.
    pub(crate) body: to_node::Body,
}

/// Who answers.
enum Source {
    Node(OwnedFd),
    /// Nobody any more: what a session left does.
    Ended(Box<Ended>),
}

/// See the module documentation.
pub(crate) struct Observer {
    session: PathBuf,
    source: Source,
    last_request: u64,
    buffer: Vec<u8>,
    patience: Duration,
    pub(crate) registered: Registered,
}

impl Observer {
    pub(crate) fn connect(session: &Path) -> Result<Self> {
        let failed = |error| Error::Connection { session: session.to_owned(), error };
        let opened = Directory::at(session).and_then(|session| session.connect());
        let socket = opened.map_err(failed)?;
        let mut this = Self::new(session, Source::Node(socket));
        let mut register = Register { version: oxiray_wire::VERSION, ..Register::default() };
        register.set_kind(ProcessKind::Observer);
        this.send(to_node::Body::Register(register))?;
        let until = Instant::now() + this.patience;
        loop {
            match this.receive(until)? {
                Some(Body::Registered(registered)) => {
                    this.registered = registered;
                    return Ok(this);
                }
                Some(_) => {}
                None => return Err(Error::NoAnswer("the node service".into())),
            }
        }
    }

    /// Looks at what a session left that has ended.
    pub(crate) fn of_ended(session: &Path) -> Result<Self> {
        let failed = |error| Error::Connection { session: session.to_owned(), error };
        let gone = || Error::NoSuchSession(session.display().to_string());
        let ended = Ended::open(session).map_err(failed)?.ok_or_else(gone)?;
        let registered = ended.registered();
        Ok(Self { registered, ..Self::new(session, Source::Ended(ended.into())) })
    }

    fn new(session: &Path, source: Source) -> Self {
        Self {
            session: session.to_owned(),
            source,
            last_request: 0,
            buffer: vec![0; 256 * 1024],
            patience: PATIENCE,
            registered: Registered::default(),
        }
    }

    /// When the session ended; none: it runs.
    pub(crate) fn ended_ns(&self) -> Option<u64> {
        match &self.source {
            Source::Node(_) => None,
            Source::Ended(ended) => Some(ended.at_ns()),
        }
    }

    /// How long an answer may take; never longer than usual.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience.min(PATIENCE);
    }

    /// Over a socket whose other end a test has.
    #[cfg(test)]
    pub(crate) fn over(socket: OwnedFd, patience: Duration) -> Self {
        Self { patience, ..Self::new(Path::new(""), Source::Node(socket)) }
    }

    /// Number of the node that is asked.
    pub(crate) fn node(&self) -> u32 {
        ProcessId(self.registered.process).node()
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Connection { session: self.session.clone(), error }
    }

    fn send(&mut self, body: to_node::Body) -> Result<()> {
        let socket = match &mut self.source {
            Source::Node(socket) => socket,
            Source::Ended(ended) => {
                ended.ask(body);
                return Ok(());
            }
        };
        let message = ToNode::from(body).encode_to_vec();
        packet::send(socket, &message, &[]).map_err(|error| self.failed(error))
    }

    /// The next message; none: there is none in time.
    fn receive(&mut self, until: Instant) -> Result<Option<Body>> {
        loop {
            let socket = match &mut self.source {
                Source::Node(socket) => socket,
                Source::Ended(ended) => return Ok(ended.answer()),
            };
            // No time at all would mean for ever.
            let left = until.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            let received = set_socket_timeout(&*socket, Timeout::Recv, Some(left))
                .map_err(io::Error::from)
                .and_then(|()| packet::receive(&*socket, &mut self.buffer));
            let len = match received {
                Ok(Some((len, _))) => len,
                Ok(None) => return Err(self.failed(io::Error::other("it has ended"))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed(error)),
            };
            match FromNode::decode(&self.buffer[..len]).map(|message| message.body) {
                Ok(Some(Body::Stopped(text))) => return Err(Error::Refused(text.text)),
                Ok(Some(body)) => return Ok(Some(body)),
                // Of a later version: not for us.
                _ => {}
            }
        }
    }

    /// Says something that nobody answers.
    pub(crate) fn tell(&mut self, body: to_node::Body) -> Result<()> {
        self.send(body)
    }

    /// Asks all questions. `take` sees each answer with its question's place, and says
    /// whether that question is done. Of each: nothing, or why it was not answered.
    pub(crate) fn ask(
        &mut self,
        questions: Vec<Question>,
        mut take: impl FnMut(usize, Body) -> bool,
    ) -> Result<Vec<Option<Error>>> {
        let first = self.last_request + 1;
        self.last_request += questions.len() as u64;
        let mut failures: Vec<Option<Error>> = questions.iter().map(|_| None).collect();
        let nodes: Vec<u32> = questions.iter().map(|question| question.node).collect();
        let mut under_way: Vec<usize> = Vec::new();
        let mut to_send = questions.into_iter().enumerate();
        let mut until = Instant::now() + self.patience;
        loop {
            while under_way.len() < MOST_UNDER_WAY
                && let Some((at, question)) = to_send.next()
            {
                self.send(numbered(question, first + at as u64))?;
                under_way.push(at);
                until = Instant::now() + self.patience;
            }
            if under_way.is_empty() {
                return Ok(failures);
            }
            let Some(body) = self.receive(until)? else {
                for at in under_way.drain(..) {
                    let who = match nodes[at] {
                        0 => "the node service".to_owned(),
                        node => format!("node {node}"),
                    };
                    failures[at] = Some(Error::NoAnswer(who));
                }
                continue;
            };
            if let Body::NodeLost(lost) = &body {
                under_way.retain(|&at| {
                    let its = nodes[at] == lost.node;
                    if its {
                        let node = lost.node.to_string();
                        failures[at] = Some(Error::NodeGone { node, reason: lost.reason.clone() });
                    }
                    !its
                });
                continue;
            }
            // An answer that comes too late belongs to no question.
            let at = request_of(&body).and_then(|request| request.checked_sub(first));
            let place = under_way.iter().position(|&other| Some(other as u64) == at);
            if let Some(place) = place {
                until = Instant::now() + self.patience;
                let at = under_way[place];
                if take(at, body) {
                    under_way.swap_remove(place);
                }
            }
        }
    }

    /// Asks one question; `take` gives what it wants of an answer, once it has it.
    pub(crate) fn ask_one<T>(
        &mut self,
        question: Question,
        mut take: impl FnMut(Body) -> Option<T>,
    ) -> Result<T> {
        let mut found = None;
        let mut failures = self.ask(vec![question], |_, body| {
            found = take(body);
            found.is_some()
        })?;
        match (failures.pop().flatten(), found) {
            (Some(failure), _) => Err(failure),
            (None, Some(found)) => Ok(found),
            (None, None) => Err(Error::NoAnswer("the node service".into())),
        }
    }

    /// The names in a folder.
    pub(crate) fn names(&mut self, node: u32, folder: &str) -> Result<Vec<FileName>> {
        let mut names = Vec::new();
        loop {
            let (path, offset) = (folder.to_owned(), names.len() as u64);
            let part = self.part(node, ReadFile { path, offset, ..ReadFile::default() })?;
            if part.files.is_empty() {
                return Ok(names);
            }
            names.extend(part.files);
            if names.len() as u64 >= part.size {
                return Ok(names);
            }
        }
    }

    /// A part of a file, or of the names in a folder.
    pub(crate) fn part(&mut self, node: u32, wanted: ReadFile) -> Result<FilePart> {
        let question = Question { node, body: to_node::Body::ReadFile(wanted) };
        let part = self.ask_one(question, |body| match body {
            Body::FilePart(part) => Some(part),
            _ => None,
        })?;
        allowed(part)
    }

    /// As [`Self::part`], of several files that are asked for at once.
    pub(crate) fn parts(
        &mut self,
        node: u32,
        wanted: Vec<ReadFile>,
    ) -> Result<Vec<Result<FilePart>>> {
        let question = |wanted| Question { node, body: to_node::Body::ReadFile(wanted) };
        let mut parts: Vec<FilePart> = wanted.iter().map(|_| FilePart::default()).collect();
        let questions = wanted.into_iter().map(question).collect();
        let failures = self.ask(questions, |at, body| match body {
            Body::FilePart(part) => {
                parts[at] = part;
                true
            }
            _ => false,
        })?;
        let both = parts.into_iter().zip(failures);
        Ok(both.map(|(part, failure)| failure.map_or_else(|| allowed(part), Err)).collect())
    }
}

fn allowed(part: FilePart) -> Result<FilePart> {
    match (part.refused.is_empty(), part.missing) {
        (true, _) => Ok(part),
        (false, true) => Err(Error::NoSuchFile(part.refused)),
        (false, false) => Err(Error::File(part.refused)),
    }
}

fn numbered(question: Question, request: u64) -> to_node::Body {
    let node = question.node;
    match question.body {
        to_node::Body::Query(mut query) => {
            (query.request, query.node) = (request, node);
            to_node::Body::Query(query)
        }
        to_node::Body::ReadFile(mut wanted) => {
            (wanted.request, wanted.node) = (request, node);
            to_node::Body::ReadFile(wanted)
        }
        other => other,
    }
}

fn request_of(body: &Body) -> Option<u64> {
    match body {
        Body::ClusterView(view) => Some(view.request),
        Body::ObjectReport(report) => Some(report.request),
        Body::TaskReport(report) => Some(report.request),
        Body::Listing(listing) => Some(listing.request),
        Body::FilePart(part) => Some(part.request),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_node::{FakeNode, connected};

    #[test]
    fn what_is_asked_after_others_went_unanswered_has_time_as_well() {
        let patience = Duration::from_secs(2);
        let (mut observer, node) = connected(patience);
        let node = FakeNode::start(node, move |asked, question| {
            if asked < MOST_UNDER_WAY {
                return None;
            }
            // Far longer than no time, far shorter than the patience.
            std::thread::sleep(patience / 20);
            let to_node::Body::ReadFile(wanted) = question else {
                return None;
            };
            Some(Body::FilePart(FilePart { request: wanted.request, ..FilePart::default() }))
        });
        let question = |node| Question { node, body: to_node::Body::ReadFile(ReadFile::default()) };
        let questions = (0..=MOST_UNDER_WAY as u32).map(question).collect();
        let failures = observer.ask(questions, |_, _| true).expect("it is connected");
        drop(observer);
        assert_eq!(node.asked(), MOST_UNDER_WAY + 1);
        assert!(failures[..MOST_UNDER_WAY].iter().all(Option::is_some));
        assert!(failures[MOST_UNDER_WAY].is_none());
    }
}
