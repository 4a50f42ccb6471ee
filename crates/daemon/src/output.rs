//! What one worker prints: kept in files, its last lines remembered, and
//! handed on for the driver.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use oxiray_ids::ProcessId;
use oxiray_wire::control::Log;

use crate::lines::{BAR_MARK, Line, Lines};
use crate::log_file::{Limits, LogFile};
use crate::task_notes::Turn;

const MOST_LAST_LINES: usize = 20;
const MOST_LAST_LINE_CHARS: usize = 500;
/// Text of one [`Log`]: must leave room in a packet.
const MOST_IN_LOG: usize = 64 * 1024;

#[derive(Debug)]
struct Stream {
    pipe: OwnedFd,
    lines: Lines,
    file: LogFile,
}

/// One worker's standard output and error.
#[derive(Debug)]
pub(crate) struct Output {
    pid: u32,
    streams: [Option<Stream>; 2],
    closed_files: Vec<LogFile>,
    last_lines: VecDeque<String>,
    /// Whose it is, until that process has ended.
    pub(crate) process: Option<ProcessId>,
    /// The driver that it is for, if any.
    pub(crate) reader: Option<ProcessId>,
}

/// How a read went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// There may be more.
    More,
    /// Nothing now.
    Nothing,
    /// Nothing ever again; the stream was forgotten.
    Closed,
}

impl Output {
    /// Takes the read ends that worker `pid` sent.
    pub(crate) fn new(
        pid: u32,
        process: ProcessId,
        pipes: Vec<OwnedFd>,
        logs: &Path,
        limits: Limits,
    ) -> io::Result<Self> {
        let mut streams = [None, None];
        for (index, pipe) in pipes.into_iter().take(2).enumerate() {
            rustix::io::ioctl_fionbio(&pipe, true)?;
            let path = logs.join(format!("worker-{pid}.{}", ["out", "err"][index]));
            let (lines, file) = (Lines::default(), LogFile::new(path, limits));
            streams[index] = Some(Stream { pipe, lines, file });
        }
        Ok(Self {
            pid,
            streams,
            closed_files: Vec::new(),
            last_lines: VecDeque::new(),
            process: Some(process),
            reader: None,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The files of streams that are closed.
    pub(crate) fn closed_files(&self) -> Vec<PathBuf> {
        self.closed_files.iter().flat_map(LogFile::files).collect()
    }

    pub(crate) fn pipe(&self, index: usize) -> Option<BorrowedFd<'_>> {
        self.streams[index].as_ref().map(|stream| stream.pipe.as_fd())
    }

    /// Whether nothing can come any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.streams.iter().all(Option::is_none)
    }

    /// The last lines, oldest first.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.last_lines.iter().cloned().collect()
    }

    /// Reads a stream once; what it says goes to `send`.
    pub(crate) fn read(
        &mut self,
        index: usize,
        buffer: &mut [u8],
        send: &mut impl FnMut(Log),
    ) -> Progress {
        let Some(stream) = &mut self.streams[index] else {
            return Progress::Closed;
        };
        let len = match rustix::io::read(&stream.pipe, &mut *buffer) {
            Ok(len) => len,
            Err(rustix::io::Errno::AGAIN) => return Progress::Nothing,
            Err(rustix::io::Errno::INTR) => return Progress::More,
            Err(_) => 0,
        };
        if len > 0 {
            self.take(index, Some(&buffer[..len]), send);
            return Progress::More;
        }
        self.take(index, None, send);
        self.closed_files.extend(self.streams[index].take().map(|stream| stream.file));
        Progress::Closed
    }

    /// Takes in what was printed, or with `None` that a line without an end is at its end.
    pub(crate) fn take(&mut self, index: usize, bytes: Option<&[u8]>, send: &mut impl FnMut(Log)) {
        let Some(stream) = &mut self.streams[index] else {
            return;
        };
        let mut batch = Batch::new(self.pid, index == 1);
        let last_lines = &mut self.last_lines;
        let mut for_file = Vec::new();
        let mut turns: Vec<Turn> = Vec::new();
        let on_line = |Line { name, task, text }: Line<'_>| {
            if text.starts_with(BAR_MARK) {
                return batch.add(name, text, send);
            }
            if last_lines.len() == MOST_LAST_LINES {
                last_lines.pop_front();
            }
            last_lines.push_back(text.chars().take(MOST_LAST_LINE_CHARS).collect());
            if turns.last().is_none_or(|turn| turn.task != task) {
                turns.push(Turn { start: for_file.len(), task: task.to_owned() });
            }
            for_file.extend_from_slice(text.as_bytes());
            for_file.push(b'\n');
            batch.add(name, text, send);
        };
        match bytes {
            Some(bytes) => stream.lines.push(bytes, on_line),
            None => stream.lines.finish(on_line),
        }
        batch.flush(send);
        stream.file.write(&for_file, &turns);
    }
}

/// Lines of one name on their way into a [`Log`].
struct Batch {
    log: Log,
    bytes: usize,
}

impl Batch {
    fn new(pid: u32, is_error: bool) -> Self {
        Self { log: Log { pid, is_error, ..Log::default() }, bytes: 0 }
    }

    fn add(&mut self, name: &str, text: &str, send: &mut impl FnMut(Log)) {
        if self.log.name != name || self.bytes + text.len() > MOST_IN_LOG {
            self.flush(send);
            self.log.name = name.to_owned();
        }
        // Many empty lines are bytes in a packet, too.
        self.bytes += text.len() + 8;
        self.log.lines.push(text.to_owned());
    }

    fn flush(&mut self, send: &mut impl FnMut(Log)) {
        if !self.log.lines.is_empty() {
            let lines = std::mem::take(&mut self.log.lines);
            let name = self.log.name.clone();
            send(Log { name, lines, ..self.log.clone() });
            self.bytes = 0;
        }
    }
}
