//! The disk behind the object store: what was spilled, and the threads that write and read it.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use oxiray_ids::StoreKey;
use oxiray_node::DiskNews;
use oxiray_spill::{Clerk, Done, Job, Place, SpillError, Spillway, Target};
use oxiray_store::{Extent, Lack, Refusal};
use oxiray_sys::memory::Mapping;
use oxiray_wire::control::NodeConfig;
use rustix::event::{EventfdFlags, eventfd};

/// See the module documentation.
pub(crate) struct Disk {
    target: Target,
    session: String,
    arena: Arc<Mapping>,
    /// Readable when something is done.
    bell: Arc<OwnedFd>,
    /// From the first spilled object on.
    clerk: Option<Clerk>,
    places: HashMap<StoreKey, Place>,
    /// Batches that could not even be begun.
    failed: Vec<DiskNews>,
}

impl Disk {
    /// Spills to where the user said, which is tried now, or where it is best.
    pub(crate) fn new(
        config: &NodeConfig,
        session: &Path,
        arena: Arc<Mapping>,
    ) -> io::Result<Self> {
        let name = session.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let unsaid = [unsaid_target(session)];
        let said = !config.spill_to.is_empty();
        let entries = if said { config.spill_to.as_slice() } else { &unsaid };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let mut disk = Self {
            target: Target::parse(entries).map_err(io::Error::other)?,
            session: name,
            arena,
            bell: Arc::new(eventfd(0, flags)?),
            clerk: None,
            places: HashMap::new(),
            failed: Vec::new(),
        };
        if said {
            disk.clerk().map_err(io::Error::other)?;
        }
        Ok(disk)
    }

    /// Readable when [`Self::news`] has some.
    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    fn clerk(&mut self) -> Result<&Clerk, SpillError> {
        if self.clerk.is_none() {
            let spillway = Arc::new(Spillway::open(&self.target, &self.session)?);
            let bell = self.bell.clone();
            self.clerk = Some(Clerk::start(spillway, self.arena.clone(), move || ring(&bell)));
        }
        Ok(self.clerk.as_ref().expect("just made"))
    }

    pub(crate) fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        let keys = batch.iter().map(|(key, _)| *key).collect();
        let batch = batch.iter().map(|(key, extent)| (key.0, extent.offset, extent.len)).collect();
        match self.clerk() {
            Ok(clerk) => clerk.submit(Job::Write { batch }),
            Err(error) => {
                self.failed.push(DiskNews::NotSpilled { keys, why: refusal(&error) });
                ring(&self.bell);
            }
        }
    }

    pub(crate) fn restore(&mut self, key: StoreKey, extent: Extent) {
        match (self.places.get(&key), &self.clerk) {
            (Some(&place), Some(clerk)) => {
                clerk.submit(Job::Read { key: key.0, place, offset: extent.offset });
            }
            _ => {
                let why = "its copy on disk is not known".to_owned();
                self.failed.push(DiskNews::NotRestored(key, why));
                ring(&self.bell);
            }
        }
    }

    pub(crate) fn forget(&mut self, key: StoreKey) {
        if let (Some(place), Some(clerk)) = (self.places.remove(&key), &self.clerk) {
            clerk.submit(Job::Delete { place });
        }
    }

    /// What was done since the last time.
    pub(crate) fn news(&mut self) -> Vec<DiskNews> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        let mut news = std::mem::take(&mut self.failed);
        for done in self.clerk.as_ref().map(Clerk::completed).unwrap_or_default() {
            news.push(match done {
                Done::Written { batch, nanoseconds } => {
                    let keys = batch.iter().map(|(key, _)| StoreKey(*key)).collect();
                    let places = batch.into_iter().map(|(key, place)| (StoreKey(key), place));
                    self.places.extend(places);
                    DiskNews::Spilled { keys, nanoseconds }
                }
                Done::NotWritten { keys, error } => {
                    tracing::warn!(%error, objects = keys.len(), "objects were not spilled");
                    let keys = keys.into_iter().map(StoreKey).collect();
                    DiskNews::NotSpilled { keys, why: refusal(&error) }
                }
                Done::Read { key, .. } => DiskNews::Restored(StoreKey(key)),
                Done::NotRead { key, error } => {
                    tracing::warn!(%error, "an object was not restored");
                    DiskNews::NotRestored(StoreKey(key), error.to_string())
                }
            });
        }
        news
    }

    /// Removes everything that was spilled.
    pub(crate) fn close(self) {
        if let Some(clerk) = self.clerk {
            clerk.stop();
        }
    }
}

/// Where objects go that nobody said a place for: into the session's directory, unless that is in
/// memory, as that of XDG_RUNTIME_DIR is. A store that is full would only fill memory once more.
fn unsaid_target(session: &Path) -> String {
    let is_in_memory = |path: &Path| {
        const TMPFS: u64 = 0x0102_1994;
        rustix::fs::statfs(path).is_ok_and(|about| about.f_type as u64 == TMPFS)
    };
    let on_disk = Path::new("/var/tmp");
    match is_in_memory(session) && on_disk.is_dir() && !is_in_memory(on_disk) {
        true => on_disk.to_string_lossy().into_owned(),
        false => session.join("spill").to_string_lossy().into_owned(),
    }
}

fn refusal(error: &SpillError) -> Refusal {
    let lack = match error {
        SpillError::OutOfDisk { .. } => Lack::Disk,
        _ => Lack::Memory,
    };
    Refusal { lack, text: error.to_string() }
}

fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}
