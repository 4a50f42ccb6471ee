//! One chunk of a log, as the process that writes it sees it: records in mapped memory, and the
//! texts that they name in the file beside it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering;

use oxiray_ids::ProcessId;
use oxiray_sys::memory::Mapping;
use rustix::fs::{FallocateFlags, fallocate};

use crate::format::{
    COUNT_AT, HEADER, Header, LOST_AT, RUNNING_AT, Record, Running, SLOT, WRITER_AT, chunk_name,
};
use crate::texts::{TextFile, file_name};

/// The first chunk of a log is this long: most processes record little. Each is twice the one
/// before.
const FIRST: usize = 8 << 10;
const LARGEST: usize = 1 << 20;
/// A chunk with more texts than this has had enough of them.
const MOST_TEXTS: u64 = 4 << 20;
/// Slots that are seen to before a record's texts are written, which must be beside it: two for
/// the record, and one before it for its parent.
pub(crate) const SLOTS_AT_ONCE: usize = 3;

/// A chunk that this process writes.
pub(crate) struct Chunk {
    mapping: Mapping,
    /// Slots written, and how many there are.
    used: usize,
    room: usize,
    texts: TextFile,
}

impl Chunk {
    /// Makes a chunk of a log. Its room is allocated before it is mapped (E-2).
    pub(crate) fn create(directory: &Path, number: u32, header: &Header) -> io::Result<Self> {
        let len = (FIRST << number.min(8)).min(LARGEST);
        let path = directory.join(chunk_name(header.log, number));
        let mut options = OpenOptions::new();
        let file = options.create_new(true).mode(0o600).read(true).write(true).open(&path)?;
        let mapping = allocate(&file, len)
            .and_then(|()| file.write_all_at(&header.encode(), 0))
            .and_then(|()| Mapping::new(&file, len))
            .inspect_err(|_| drop(fs::remove_file(&path)))?;
        let texts = TextFile::new(directory.join(file_name(header.log, number)));
        Ok(Self { mapping, used: 0, room: (len - HEADER) / SLOT, texts })
    }

    /// Takes over the newest chunk of a log whose writer has ended, and its header; none: there is
    /// no such chunk, or it is not one.
    pub(crate) fn take_over(
        directory: &Path,
        log: u32,
        number: u32,
    ) -> io::Result<Option<(Self, Header)>> {
        let path = directory.join(chunk_name(log, number));
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = [0; HEADER];
        if !(FIRST..=LARGEST).contains(&len) || file.read_exact_at(&mut bytes, 0).is_err() {
            return Ok(None);
        }
        let room = (len - HEADER) / SLOT;
        let header = Header::decode(&bytes);
        let Some(header) = header.filter(|found| found.log == log && found.count <= room as u64)
        else {
            return Ok(None);
        };
        // Of a process that was killed there may be half a record after the last that counts: it
        // is written over.
        let used = header.count as usize;
        let texts = TextFile::continued(directory.join(file_name(log, number)))?;
        let mapping = Mapping::new(&file, len)?;
        Ok(Some((Self { mapping, used, room, texts }, header)))
    }

    /// Whether so many slots are left.
    #[inline(always)]
    pub(crate) fn has_room(&self, slots: usize) -> bool {
        self.used + slots <= self.room
    }

    /// Writes a record for which there is room.
    #[inline(always)]
    pub(crate) fn write(&mut self, record: Record) {
        let (bytes, len) = record.encode();
        self.mapping.write(HEADER + self.used * SLOT, &bytes[..len]);
        self.used += len / SLOT;
        // Whoever sees the number sees the record (E-1).
        self.mapping.atomic_u64(COUNT_AT).store(self.used as u64, Ordering::Release);
    }

    /// Where a text is that was written before, as far as is remembered.
    pub(crate) fn find_text(&self, text: &[u8]) -> Option<u32> {
        self.texts.find(text)
    }

    /// Writes a text: where it is.
    pub(crate) fn add_text(&mut self, text: &[u8]) -> io::Result<u32> {
        let at = self.texts.add(text)?;
        if self.texts.len() > MOST_TEXTS {
            // The records at hand fit; for the next ones there is another chunk.
            self.room = self.room.min(self.used + SLOTS_AT_ONCE);
        }
        Ok(at)
    }

    /// This process writes it from now on.
    pub(crate) fn set_writer(&self, process: ProcessId) {
        self.mapping.atomic_u64(WRITER_AT).store(process.0, Ordering::Relaxed);
    }

    /// So many records of this log could not be written.
    pub(crate) fn set_lost(&self, lost: u64) {
        self.mapping.atomic_u64(LOST_AT).store(lost, Ordering::Relaxed);
    }

    /// What runs now.
    #[inline(always)]
    pub(crate) fn set_running(&self, running: &Running) {
        for (word, at) in running.words().into_iter().zip((RUNNING_AT..).step_by(8)) {
            self.mapping.atomic_u64(at).store(word, Ordering::Relaxed);
        }
    }

    /// Nothing runs now.
    #[inline(always)]
    pub(crate) fn clear_running(&self) {
        self.mapping.atomic_u64(RUNNING_AT).store(0, Ordering::Relaxed);
    }

    /// What ran until now, and does not any more.
    pub(crate) fn take_running(&self) -> Option<Running> {
        let word = |at| self.mapping.atomic_u64(RUNNING_AT + 8 * at).swap(0, Ordering::Relaxed);
        Running::from_words(std::array::from_fn(word))
    }

    /// From now on no text finds room.
    #[cfg(test)]
    pub(crate) fn fill_texts(&mut self) {
        self.texts.fill();
    }
}

/// Gives a file real room: a mapped page without any is the end of the process that writes to it.
fn allocate(file: &File, len: usize) -> io::Result<()> {
    let given =
        rustix::io::retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len as u64));
    match given {
        // This file system has no such call; what is written has room.
        Err(rustix::io::Errno::OPNOTSUPP) => file.write_all_at(&vec![0; len], 0),
        done => Ok(done?),
    }
}
