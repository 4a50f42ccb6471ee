//! What one worker prints: kept in files, its last lines remembered, and
//! handed on for the driver.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use oxiray_ids::ProcessId;
use oxiray_wire::control::Log;

use crate::lines::Lines;

/// A file grows to this and no further.
const MOST_IN_FILE: u64 = 64 << 20;
const MOST_LAST_LINES: usize = 20;
const MOST_LAST_LINE_CHARS: usize = 500;
/// Text of one [`Log`]: must leave room in a packet.
const MOST_IN_LOG: usize = 64 * 1024;

#[derive(Debug)]
struct Stream {
    pipe: OwnedFd,
    lines: Lines,
    path: PathBuf,
    /// Made when the first line comes: most workers print nothing.
    file: Option<File>,
    in_file: u64,
}

/// One worker's standard output and error.
#[derive(Debug)]
pub(crate) struct Output {
    pid: u32,
    streams: [Option<Stream>; 2],
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
    ) -> io::Result<Self> {
        let mut streams = [None, None];
        for (index, pipe) in pipes.into_iter().take(2).enumerate() {
            rustix::io::ioctl_fionbio(&pipe, true)?;
            let path = logs.join(format!("worker-{pid}.{}", ["out", "err"][index]));
            let lines = Lines::default();
            streams[index] = Some(Stream { pipe, lines, path, file: None, in_file: 0 });
        }
        Ok(Self { pid, streams, last_lines: VecDeque::new(), process: Some(process), reader: None })
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
        let mut batch = Batch::new(self.pid, index == 1);
        let last_lines = &mut self.last_lines;
        let mut for_file = Vec::new();
        let on_line = |name: &str, text: &str| {
            if last_lines.len() == MOST_LAST_LINES {
                last_lines.pop_front();
            }
            last_lines.push_back(text.chars().take(MOST_LAST_LINE_CHARS).collect());
            for_file.extend_from_slice(text.as_bytes());
            for_file.push(b'\n');
            batch.add(name, text, send);
        };
        match len {
            0 => stream.lines.finish(on_line),
            len => stream.lines.push(&buffer[..len], on_line),
        }
        batch.flush(send);
        stream.write(&for_file);
        if len == 0 {
            self.streams[index] = None;
            return Progress::Closed;
        }
        Progress::More
    }
}

impl Stream {
    /// A log that cannot be written must not end the session: it is only cut short.
    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.in_file > MOST_IN_FILE {
            return;
        }
        if self.file.is_none() {
            self.file = OpenOptions::new().create(true).append(true).open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        self.in_file += bytes.len() as u64;
        let _ = file.write_all(bytes);
        if self.in_file > MOST_IN_FILE {
            let _ = file.write_all(b"(what follows is not kept: this file is long enough)\n");
        }
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
