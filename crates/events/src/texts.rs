//! Texts that records name: an append-only file beside each chunk of records.
//!
//! ```text
//! N.0.text:  magic u64, then for each text: its length u32, its bytes
//! ```
//!
//! A text is named by where its length is. It is at most [`LONGEST`] bytes long.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::files::{Files, read_exactly, read_up_to};

/// Longer texts are cut.
pub const LONGEST: usize = 16 << 10;
const MAGIC: &[u8; 8] = b"oxitexts";
/// So many bytes of texts are remembered, not to be written twice; each counts for its entry too.
pub(crate) const MOST_KNOWN: usize = 4 << 20;
const ENTRY: usize = 64;

/// The text file that a process writes, beside a chunk.
pub(crate) struct TextFile {
    path: PathBuf,
    file: Option<File>,
    len: u64,
    known: HashMap<Box<[u8]>, u32, RandomState>,
    known_bytes: usize,
}

impl TextFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, len: 0, known: HashMap::default(), known_bytes: 0 }
    }

    /// Goes on with a file that another process wrote. What it wrote is not looked up: few texts
    /// of two processes are the same.
    pub(crate) fn continued(path: PathBuf) -> io::Result<Self> {
        let file = match OpenOptions::new().write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new(path)),
            file => file?,
        };
        // Of a process that was killed the end may be half a text, which nothing names.
        let len = file.metadata()?.len().max(MAGIC.len() as u64);
        Ok(Self { file: Some(file), len, ..Self::new(path) })
    }

    /// How long it is.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Where a text is that was written before, as far as is remembered.
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        self.known.get(cut(text)).copied()
    }

    /// Writes a new text: where it is.
    pub(crate) fn add(&mut self, text: &[u8]) -> io::Result<u32> {
        let text = cut(text);
        let at = self.append(text)?;
        self.known_bytes += text.len() + ENTRY;
        if self.known_bytes > MOST_KNOWN {
            self.known = HashMap::default();
            self.known_bytes = text.len() + ENTRY;
        }
        self.known.insert(text.into(), at);
        Ok(at)
    }

    /// From now on there is no room.
    #[cfg(test)]
    pub(crate) fn fill(&mut self) {
        self.len = u64::MAX / 2;
    }

    /// Bytes of texts that are remembered.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        self.known.keys().map(|text| text.len()).sum()
    }

    fn append(&mut self, text: &[u8]) -> io::Result<u32> {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            let file = options.create_new(true).mode(0o600).write(true).open(&self.path);
            let file = match file {
                // From an earlier try that found no room.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    OpenOptions::new().write(true).open(&self.path)?
                }
                file => file?,
            };
            file.write_all_at(MAGIC, 0)?;
            self.len = MAGIC.len() as u64;
            self.file = Some(file);
        }
        let at = u32::try_from(self.len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut entry = Vec::with_capacity(4 + text.len());
        entry.extend_from_slice(&(text.len() as u32).to_le_bytes());
        entry.extend_from_slice(text);
        if let Some(file) = &self.file {
            // At a place of our own: what found no room half-way is written over.
            file.write_all_at(&entry, self.len)?;
        }
        self.len += entry.len() as u64;
        Ok(at)
    }
}

fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(LONGEST)]
}

/// A text of a process, where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextPlace {
    /// Number of the node whose files have it.
    pub node: u32,
    /// The log of that node, and its chunk, beside which it is.
    pub log: u32,
    /// See above.
    pub chunk: u32,
    /// Where in the text file.
    pub at: u32,
}

/// Reads a text from the files of the node that has it; `None`: it is not there.
pub fn read(files: &mut dyn Files, place: TextPlace) -> io::Result<Option<String>> {
    let name = file_name(place.log, place.chunk);
    let Some(len) = read_exactly(files, &name, u64::from(place.at), 4)? else {
        return Ok(None);
    };
    let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
    if len > LONGEST {
        return Ok(None);
    }
    let text = read_exactly(files, &name, u64::from(place.at) + 4, len)?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

/// Name of the text file of a chunk.
pub(crate) fn file_name(log: u32, chunk: u32) -> String {
    format!("{log}.{chunk}.text")
}

/// Texts of one chunk, read in large pieces.
#[derive(Default)]
pub(crate) struct TextReader {
    start: u64,
    piece: Vec<u8>,
}

const PIECE: usize = 32 << 10;
const _: () = assert!(PIECE > LONGEST + 4);

impl TextReader {
    pub(crate) fn get(
        &mut self,
        files: &mut dyn Files,
        (log, chunk): (u32, u32),
        at: u32,
    ) -> io::Result<Option<&[u8]>> {
        let at = u64::from(at);
        if self.find(at).is_none() {
            self.piece = read_up_to(files, &file_name(log, chunk), at, PIECE)?;
            self.start = at;
        }
        Ok(self.find(at).map(|range| &self.piece[range]))
    }

    fn find(&self, at: u64) -> Option<std::ops::Range<usize>> {
        let begin = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let len = self.piece.get(begin..begin.checked_add(4)?)?;
        let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
        let range = begin + 4..begin + 4 + len;
        (len <= LONGEST && range.end <= self.piece.len()).then_some(range)
    }
}
