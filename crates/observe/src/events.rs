//! The events of every node, and the history that is made of them.

use std::io;
use std::path::Path;

use oxiray_events::texts::{self, TextPlace};
use oxiray_events::{FileInfo, Files, History, LocalFiles, trace};
use oxiray_sys::clock::wall_ns;
use oxiray_wire::control::{MOST_OF_FILE, ReadFile, from_node::Body, to_node};

use crate::error::{Error, Result};
use crate::gaps::gaps;
use crate::observer::{Observer, Question};
use crate::session::Session;
use crate::whole_file::WholeFile;

/// Pieces of a file that are asked for at once.
const AT_ONCE: usize = 16;

/// The files of a folder of a node's session: read directly if it is the one that is asked, since that is on
/// this machine, and else by way of it.
pub(crate) enum NodeFiles<'a> {
    Here(LocalFiles),
    Elsewhere { observer: &'a mut Observer, node: u32, folder: &'static str },
}

impl<'a> NodeFiles<'a> {
    /// Its events.
    pub(crate) fn new(observer: &'a mut Observer, session: &Path, node: u32) -> Self {
        Self::in_folder(observer, session, node, "events")
    }

    pub(crate) fn in_folder(
        observer: &'a mut Observer,
        session: &Path,
        node: u32,
        folder: &'static str,
    ) -> Self {
        match node == observer.node() {
            true => Self::Here(LocalFiles::in_folder(session, folder)),
            false => Self::Elsewhere { observer, node, folder },
        }
    }
}

impl Files for NodeFiles<'_> {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let (observer, node, folder) = match self {
            Self::Here(files) => return files.list(),
            Self::Elsewhere { observer, node, folder } => (observer, *node, *folder),
        };
        let names = observer.names(node, folder).map_err(unread)?;
        Ok(names.into_iter().map(|file| FileInfo { name: file.name, size: file.size }).collect())
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let (observer, node, folder) = match self {
            Self::Here(files) => return files.read(name, offset, most),
            Self::Elsewhere { observer, node, folder } => (observer, *node, *folder),
        };
        let piece = MOST_OF_FILE as usize;
        let count = most.div_ceil(piece).clamp(1, AT_ONCE);
        let question = |at: usize| {
            let wanted = ReadFile {
                path: format!("{folder}/{name}"),
                offset: offset + (at * piece) as u64,
                most: most.saturating_sub(at * piece).min(piece) as u32,
                ..ReadFile::default()
            };
            Question { node, body: to_node::Body::ReadFile(wanted) }
        };
        let mut pieces = vec![Vec::new(); count];
        let mut refused = None;
        let failures = observer.ask((0..count).map(question).collect(), |at, body| match body {
            Body::FilePart(part) => {
                // A file that is not there has nothing to read. Any other reason may pass.
                if !part.refused.is_empty() && !part.missing {
                    refused = Some(part.refused);
                }
                pieces[at] = part.bytes;
                true
            }
            _ => false,
        });
        if let Some(error) = failures.map_err(unread)?.into_iter().flatten().next() {
            return Err(unread(error));
        }
        if let Some(refused) = refused {
            return Err(io::Error::other(refused));
        }
        // Behind a piece that is short the file had ended: what came later belongs elsewhere.
        let whole = pieces.iter().take_while(|bytes| bytes.len() == piece).count();
        Ok(pieces.into_iter().take(whole + 1).flatten().collect())
    }
}

/// A node that does not answer is not asked for its other files.
fn unread(error: Error) -> io::Error {
    let kind = match error {
        Error::NoAnswer(_) => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Reads texts that a history names. There may be many, each of which takes a while if its
/// node is silent: such a node is asked once.
pub(crate) struct Texts<'a> {
    observer: &'a mut Observer,
    session: &'a Path,
    silent: Vec<u32>,
    /// What could not be read, in sentences.
    pub(crate) missing: Vec<String>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(observer: &'a mut Observer, session: &'a Path) -> Self {
        Self { observer, session, silent: Vec::new(), missing: Vec::new() }
    }

    /// None: it is not to be had.
    pub(crate) fn read(&mut self, place: TextPlace) -> Option<String> {
        let node = place.node;
        if self.silent.contains(&node) {
            return None;
        }
        let mut files = NodeFiles::new(self.observer, self.session, node);
        texts::read(&mut files, place).unwrap_or_else(|error| {
            if is_silence(&error) {
                self.silent.push(node);
                self.missing.push(format!("tracebacks of node {node} cannot be read: {error}"));
            }
            None
        })
    }
}

/// Whether the node itself does not answer: else it may be that one file alone.
fn is_silence(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    matches!(error, Some(Error::NoAnswer(_) | Error::NodeGone { .. } | Error::Connection { .. }))
}

impl Session {
    /// What happened to every task of every node, as of now. What nodes that left had not told
    /// before is not in it; of nodes that do not answer, [`Session::missing`] speaks.
    pub fn history(&mut self) -> Result<&History> {
        self.missing = self.update_history()?;
        Ok(&self.history)
    }

    /// Reads what is new of every node. What is missing, in sentences.
    pub fn update_history(&mut self) -> Result<Vec<String>> {
        let nodes = self.members()?;
        let numbers: Vec<u32> = nodes.alive().map(|node| node.number).collect();
        let mut notes = Vec::new();
        for node in numbers {
            let mut files = NodeFiles::new(&mut self.observer, &self.dir, node);
            if let Err(error) = self.history.update(node, &mut files) {
                notes.push(format!("the events of node {node} cannot be read: {error}"));
            }
        }
        // Not before: of a process that is gone, others may only now have been read to speak.
        for node in nodes.left() {
            self.history.node_left(node.number, node.left_ms * 1_000_000);
        }
        if let Some(at) = self.observer.ended_ns() {
            self.history.node_left(self.observer.node(), at);
        }
        self.gaps = gaps(&self.history, &nodes);
        notes.extend_from_slice(&self.gaps);
        Ok(notes)
    }

    /// A text that the history names: a traceback, or what a user said of a span.
    pub fn text(&mut self, place: TextPlace) -> Option<String> {
        Texts::new(&mut self.observer, &self.dir).read(place)
    }

    /// The history as it was last read.
    pub fn known_history(&self) -> &History {
        &self.history
    }

    /// Writes everything that ran as a Chrome trace to a file, which is there when it is whole.
    /// What is missing, in sentences.
    pub fn write_trace_file(&mut self, path: &Path) -> Result<Vec<String>> {
        let failed = |error| Error::Unwritten { path: path.to_owned(), error };
        let mut file = WholeFile::create(path).map_err(failed)?;
        let notes = self.write_trace(&mut file).map_err(|error| match error {
            Error::Unwritten { error, .. } => failed(error),
            error => error,
        })?;
        file.finish().map_err(failed)?;
        Ok(notes)
    }

    /// Writes everything that ran as a Chrome trace. What is missing, in sentences.
    pub fn write_trace(&mut self, out: impl io::Write) -> Result<Vec<String>> {
        let mut notes = self.update_history()?;
        let Self { observer, dir, history, .. } = self;
        let mut texts = Texts::new(observer, dir);
        let failed = |error| Error::Unwritten { path: "the trace".into(), error };
        trace::write(history, wall_ns(), |place| texts.read(place), out).map_err(failed)?;
        notes.extend(texts.missing);
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake_node::{FakeNode, connected};

    #[test]
    fn a_silent_node_is_asked_for_one_text_only() {
        let (mut observer, node) = connected(Duration::from_millis(50));
        let node = FakeNode::start(node, |_, _| None);
        let mut texts = Texts::new(&mut observer, Path::new(""));
        for at in 0..100 {
            assert_eq!(texts.read(TextPlace { node: 7, log: 1, chunk: 0, at }), None);
        }
        assert_eq!(texts.missing.len(), 1, "{:?}", texts.missing);
        assert!(texts.missing[0].contains("node 7"));
        drop(observer);
        assert_eq!(node.asked(), 1);
    }
}
