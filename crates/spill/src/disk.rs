//! Spilling to files in several directories, in turn.
//!
//! A directory that failed or is full is left alone for a while as long as another one works; when
//! none does, all are tried, so that an error always tells how each of them is *now*.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::directory::{Directory, is_full};
use crate::record::file_len;
use crate::{Place, SpillError};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Disk {
    directories: Vec<Directory>,
    turn: AtomicUsize,
}

impl Disk {
    pub(crate) fn open(named: &[PathBuf], session: &str) -> Result<Self, SpillError> {
        let mut disk = Self { directories: Vec::new(), turn: AtomicUsize::new(0) };
        for directory in named {
            match Directory::make(directory, session) {
                Ok(directory) => disk.directories.push(directory),
                Err(error) => {
                    disk.clear();
                    return Err(error);
                }
            }
        }
        Ok(disk)
    }

    /// Writes a file: in which directory it is, and its objects' places.
    pub(crate) fn write(
        &self,
        file: u64,
        objects: &[&[u8]],
    ) -> Result<(usize, Vec<Place>), SpillError> {
        let count = self.directories.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..count).map(|step| (turn.wrapping_add(step)) % count);
        let (resting, rested): (Vec<_>, Vec<_>) =
            in_turn.partition(|&index| self.directories[index].rests());
        let mut failures = Vec::new();
        for index in rested.into_iter().chain(resting) {
            let directory = &self.directories[index];
            match directory.write(file, objects) {
                Ok(places) => return Ok((index, places)),
                Err(error) => failures.push((directory.named().display().to_string(), error)),
            }
        }
        let bytes = file_len(objects);
        if failures.iter().all(|(_, error)| is_full(error)) {
            let directories: Vec<_> = failures.into_iter().map(|(named, _)| named).collect();
            return Err(SpillError::OutOfDisk { bytes, directories: directories.join(", ") });
        }
        let told: Vec<_> =
            failures.iter().map(|(named, error)| format!("{named}: {error}")).collect();
        Err(SpillError::NotWritten { bytes, reason: told.join(", ") })
    }

    pub(crate) fn read(
        &self,
        directory: usize,
        place: &Place,
        into: &mut [u8],
    ) -> Result<(), SpillError> {
        self.directories[directory].read(place, into)
    }

    pub(crate) fn remove(&self, directory: usize, file: u64) {
        self.directories[directory].remove(file);
    }

    pub(crate) fn clear(&self) {
        for directory in &self.directories {
            directory.clear();
        }
    }
}
