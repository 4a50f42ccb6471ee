//! Which objects are in which file.
//!
//! Invariants, checked by [`Ledger::validate`]:
//!
//! - **L-1** A file is known exactly as long as an object in it is.
//! - **L-2** `usage` is the sum over all files.
//! - **L-3** A number is given out once.

use hashbrown::HashMap;

use crate::Place;
use crate::record::SEAL;

/// What is spilled now.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Objects that can be read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that hold them.
    pub files: u64,
    /// Bytes of these files, with objects deleted but not yet removed.
    pub file_bytes: u64,
}

#[derive(Debug)]
struct FileEntry {
    /// Which of several directories it is in.
    directory: usize,
    bytes: u64,
    /// Offset and length of the objects left, by offset.
    objects: Vec<(u64, u64)>,
}

/// The bookkeeping of a spillway; see the module documentation.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    next: u64,
    files: HashMap<u64, FileEntry>,
    usage: Usage,
}

impl Ledger {
    /// The number of a new file.
    pub(crate) fn number(&mut self) -> u64 {
        // Not zero: a place that was never filled in shall not name a file.
        self.next += 1;
        self.next
    }

    /// Enters a file that holds `places`.
    pub(crate) fn add(&mut self, file: u64, directory: usize, places: &[Place]) {
        let objects: Vec<_> = places.iter().map(|place| (place.offset, place.len)).collect();
        let payload: u64 = places.iter().map(|place| place.len).sum();
        let bytes = payload + (places.len() * SEAL) as u64;
        self.usage.objects += places.len() as u64;
        self.usage.bytes += payload;
        self.usage.files += 1;
        self.usage.file_bytes += bytes;
        self.files.insert(file, FileEntry { directory, bytes, objects });
    }

    /// Which directory holds the object at `place`, if it is there.
    pub(crate) fn find(&self, place: &Place) -> Option<usize> {
        let entry = self.files.get(&place.file)?;
        entry.objects.binary_search(&(place.offset, place.len)).ok().map(|_| entry.directory)
    }

    /// Strikes out the object at `place`: the directory of its file, if that is to be removed now.
    /// What is not there, or not any more, changes nothing.
    pub(crate) fn remove(&mut self, place: &Place) -> Option<usize> {
        let entry = self.files.get_mut(&place.file)?;
        let index = entry.objects.binary_search(&(place.offset, place.len)).ok()?;
        entry.objects.remove(index);
        self.usage.objects -= 1;
        self.usage.bytes -= place.len;
        if !entry.objects.is_empty() {
            return None;
        }
        let entry = self.files.remove(&place.file)?;
        self.usage.files -= 1;
        self.usage.file_bytes -= entry.bytes;
        Some(entry.directory)
    }

    /// Forgets all, and says which files there were.
    pub(crate) fn clear(&mut self) -> Vec<u64> {
        self.usage = Usage::default();
        self.files.drain().map(|(file, _)| file).collect()
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Panics when an invariant of the module documentation does not hold.
    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let mut usage = Usage::default();
        for (&file, entry) in &self.files {
            assert!(!entry.objects.is_empty(), "L-1: file {file} holds nothing");
            assert!(file <= self.next, "L-3: file {file} was never numbered");
            assert!(entry.objects.is_sorted());
            usage.files += 1;
            usage.file_bytes += entry.bytes;
            usage.objects += entry.objects.len() as u64;
            usage.bytes += entry.objects.iter().map(|&(_, len)| len).sum::<u64>();
        }
        assert_eq!(usage, self.usage, "L-2");
    }
}
