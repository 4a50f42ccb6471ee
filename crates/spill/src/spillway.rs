//! Writes, reads and deletes spilled objects, and knows what is there.
//!
//! - **S-1** What is read back is what was written, or an error is returned.
//! - **S-2** A write succeeds for all of its objects or leaves nothing behind.
//! - **S-3** Locks on the ledger are not held while files are: reads, writes and deletes go on at
//!   the same time. Only closing waits for them.

use oxiray_words::plural;
use parking_lot::{Mutex, RwLock};

use crate::disk::Disk;
use crate::ledger::Ledger;
use crate::{Place, SpillError, Target, Usage};

/// What is behind a spillway.
#[derive(Debug)]
enum Backing {
    Disk(Disk),
    #[cfg(feature = "url")]
    Bucket(crate::bucket::Bucket),
}

/// See the module documentation. Dropping it closes it.
#[derive(Debug)]
pub struct Spillway {
    backing: Backing,
    ledger: Mutex<Ledger>,
    /// Held for reading while files are used, so that none is made after closing.
    closed: RwLock<bool>,
}

impl Spillway {
    /// Makes a private place for `session` at `target` and sees whether it can be written to. What
    /// sessions that crashed left in a directory is removed. A URL is asked over the network: up
    /// to ten seconds if nobody answers there.
    pub fn open(target: &Target, session: &str) -> Result<Self, SpillError> {
        Self::open_with_options(target, session, &[])
    }

    /// Like [`Spillway::open`], with options of the object store behind a URL, such as
    /// `("aws_endpoint", "http://localhost:9000")`. They go before environment variables of the
    /// same names; the names an object store does not know are ignored.
    pub fn open_with_options(
        target: &Target,
        session: &str,
        options: &[(String, String)],
    ) -> Result<Self, SpillError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if session.is_empty() || !session.bytes().all(plain) {
            return Err(SpillError::BadTarget {
                entry: session.to_owned(),
                reason: "a session's name is letters, digits, '-', '_' and '.'".to_owned(),
            });
        }
        let backing = match target {
            Target::Directories(named) => Backing::Disk(Disk::open(named, session)?),
            #[cfg(feature = "url")]
            Target::Url(url) => {
                Backing::Bucket(crate::bucket::Bucket::open(url, session, options)?)
            }
            #[cfg(not(feature = "url"))]
            Target::Url(url) => {
                let _ = options;
                return Err(SpillError::BadTarget {
                    entry: crate::target::without_credentials(url),
                    reason: "this build can spill to directories only".to_owned(),
                });
            }
        };
        Ok(Self { backing, ledger: Mutex::default(), closed: RwLock::new(false) })
    }

    /// Writes several objects fused into one file: a place each, in order. All or nothing (S-2).
    pub fn write(&self, objects: &[&[u8]]) -> Result<Vec<Place>, SpillError> {
        let closed = self.closed.read();
        if *closed {
            return Err(SpillError::Closed);
        }
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let file = self.ledger.lock().number();
        let (directory, places) = match &self.backing {
            Backing::Disk(disk) => disk.write(file, objects)?,
            #[cfg(feature = "url")]
            Backing::Bucket(bucket) => (0, bucket.write(file, objects)?),
        };
        self.ledger.lock().add(file, directory, &places);
        Ok(places)
    }

    /// Reads one back and checks it (S-1). After an error `into` holds anything.
    pub fn read(&self, place: &Place, into: &mut [u8]) -> Result<(), SpillError> {
        let closed = self.closed.read();
        if *closed {
            return Err(SpillError::Closed);
        }
        if into.len() as u64 != place.len {
            let reason = format!(
                "it has {} and the room {}",
                plural(place.len, "byte"),
                plural(into.len() as u64, "byte")
            );
            return Err(SpillError::NotRead { reason });
        }
        let Some(directory) = self.ledger.lock().find(place) else {
            let reason = format!("file {} holds none at {}", place.file, place.offset);
            return Err(SpillError::Lost { reason });
        };
        match &self.backing {
            Backing::Disk(disk) => disk.read(directory, place, into),
            #[cfg(feature = "url")]
            Backing::Bucket(bucket) => bucket.read(place, into),
        }
    }

    /// Forgets one; the file goes with its last object. Nothing happens if it is not there.
    pub fn delete(&self, place: &Place) {
        let closed = self.closed.read();
        if *closed {
            return;
        }
        let emptied = self.ledger.lock().remove(place);
        let Some(directory) = emptied else {
            return;
        };
        match &self.backing {
            Backing::Disk(disk) => disk.remove(directory, place.file),
            #[cfg(feature = "url")]
            Backing::Bucket(bucket) => bucket.remove(place.file),
        }
    }

    /// What is spilled now.
    pub fn usage(&self) -> Usage {
        self.ledger.lock().usage()
    }

    /// Removes everything, once what is under way has ended. From then on all is refused.
    pub fn close(&self) {
        let mut closed = self.closed.write();
        if std::mem::replace(&mut *closed, true) {
            return;
        }
        let files = self.ledger.lock().clear();
        tracing::debug!("the session ends with {} spill files", files.len());
        match &self.backing {
            Backing::Disk(disk) => disk.clear(),
            #[cfg(feature = "url")]
            Backing::Bucket(bucket) => bucket.clear(&files),
        }
    }
}

impl Drop for Spillway {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
