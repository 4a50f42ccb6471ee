//! What the store has used and spilled, for people.

use super::{Keeper, Place};
use crate::word::State;

/// Bytes and objects of a store.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Bytes of objects in memory.
    pub used: u64,
    /// Bytes of the arena.
    pub size: u64,
    /// Objects, in memory or on disk.
    pub objects: u64,
    /// Bytes on disk now.
    pub on_disk: u64,
    /// Objects on disk now.
    pub objects_on_disk: u64,
    /// Bytes written to disk so far.
    pub spilled: u64,
    /// Bytes read back so far.
    pub restored: u64,
}

/// What went to disk.
#[derive(Debug, Default)]
pub(super) struct Spilled {
    on_disk: u64,
    objects_on_disk: u64,
    written: u64,
    objects_written: u64,
    nanoseconds: u64,
    restored: u64,
    /// Bytes written when the user was last told.
    told: u64,
}

impl Spilled {
    pub(super) fn add(&mut self, bytes: u64) {
        self.on_disk += bytes;
        self.objects_on_disk += 1;
    }

    pub(super) fn forget(&mut self, bytes: u64) {
        self.on_disk -= bytes;
        self.objects_on_disk -= 1;
    }

    pub(super) fn restored(&mut self, bytes: u64) {
        self.restored += bytes;
    }

    /// Counts a batch; a sentence for the user the first time, and whenever
    /// twice as much as then has been written.
    pub(super) fn report(
        &mut self,
        bytes: u64,
        objects: usize,
        nanoseconds: u64,
    ) -> Option<String> {
        self.written += bytes;
        self.objects_written += objects as u64;
        self.nanoseconds += nanoseconds.max(1);
        if self.written < 2 * self.told || self.written == 0 {
            return None;
        }
        self.told = self.written;
        const MEBIBYTE: f64 = (1 << 20) as f64;
        let mebibytes = self.written as f64 / MEBIBYTE;
        let rate = mebibytes / (self.nanoseconds as f64 / 1e9);
        let objects = match self.objects_written {
            1 => "1 object".to_owned(),
            many => format!("{many} objects"),
        };
        Some(format!(
            "Spilled {mebibytes:.1} MiB so far ({objects}) because the object store is full, at \
             {rate:.0} MiB/s. Set RAY_verbose_spill_logs=0 to hide this."
        ))
    }
}

impl Keeper {
    /// What the store holds now. Looks at every object.
    pub fn usage(&self) -> Usage {
        let in_memory = |place: &Place| !matches!(place, Place::Disk);
        let entries = self.entries.values().filter(|entry| in_memory(&entry.place));
        let (in_slabs, objects_in_slabs) = self.in_slabs();
        Usage {
            used: entries.map(|entry| entry.len).sum::<u64>() + in_slabs,
            size: self.arena.size(),
            objects: self.entries.len() as u64 + objects_in_slabs,
            on_disk: self.spilled.on_disk,
            objects_on_disk: self.spilled.objects_on_disk,
            spilled: self.spilled.written,
            restored: self.spilled.restored,
        }
    }

    /// Bytes and number of live objects in the slabs of living processes.
    fn in_slabs(&self) -> (u64, u64) {
        let slots = self.slabs.values().flat_map(|slab| slab.slots.iter().copied());
        let live = slots.filter(|&slot| {
            let word = self.table.word(slot);
            let exists = word.state() != State::Free;
            exists && (!word.is_doomed() || self.is_pinned(slot))
        });
        live.fold((0, 0), |(bytes, count), slot| (bytes + self.table.extent(slot).len, count + 1))
    }
}
