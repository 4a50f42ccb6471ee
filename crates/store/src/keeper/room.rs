//! Serving those who wait for memory, and making room for them.

use oxiray_ids::StoreKey;
use oxiray_words::show_bytes;

use super::{Keeper, Lack, Orders, Place, Purpose, Refusal};
use crate::table::Extent;
use crate::word::State;

/// Objects are written to disk in batches of at least this much, if there is
/// that much: large files are what disks are good at.
const BATCH_BYTES: u64 = 100 << 20;
/// And not more objects than this, so that a batch is not late for its first.
pub(super) const BATCH_OBJECTS: usize = 4096;
/// Slabs are asked back at most this often.
const TRIM_EVERY: u64 = 100_000_000;
/// And those without slabs, who may hold memory by garbage.
const ASK_EVERYONE_EVERY: u64 = 1_000_000_000;
/// When the user hears that everything waits.
const TELL_AFTER: u64 = 5_000_000_000;

/// What an attempt to make room has come to.
enum Room {
    /// There is more room now.
    Made,
    /// There will be, when the disk has written.
    Coming,
    /// Everything is in use.
    None,
}

impl Keeper {
    /// Gives memory to those who wait, in order (K-4). While nothing can be
    /// taken away for the first, those behind it have what fits: they may hold
    /// what the first waits for.
    pub(super) fn serve(&mut self, now: u64, out: &mut impl Orders) {
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at) {
            match self.arena.allocate(waiting.size) {
                Ok(offset) => {
                    let waiting = self.waiting.remove(at).expect("just seen");
                    if at == 0 {
                        // Those who pass the first are no reason for it to wait on.
                        self.progress = now;
                        self.told_stuck = false;
                    }
                    self.fulfil(waiting, offset, now, out);
                }
                Err(_) if at > 0 => at += 1,
                // For the first, room is being made.
                Err(_) if self.leaving > 0 => return,
                Err(_) if now < self.no_room_before => at += 1,
                Err(_) => match self.make_room(waiting.size, now, out) {
                    Room::Made => {}
                    Room::Coming => return,
                    Room::None => {
                        // A look at everything is not for every event.
                        self.no_room_before = now + super::LOOK_AGAIN;
                        at += 1;
                    }
                },
            }
        }
    }

    fn fulfil(&mut self, waiting: super::Waiting, offset: u64, now: u64, out: &mut impl Orders) {
        let super::Waiting { from, request, size, purpose, .. } = waiting;
        match purpose {
            Purpose::Allocate { owner } => match self.give(from, owner, size, offset, now) {
                Some(key) => out.allocated(from, request, Ok((key, offset))),
                None => {
                    self.arena.free(offset);
                    let text = format!(
                        "the object store holds {} objects, the most it can",
                        self.slots.in_use()
                    );
                    out.allocated(from, request, Err(Refusal::full(text)));
                }
            },
            Purpose::Restore(key) => self.bring_back(key, offset, now, out),
        }
    }

    fn make_room(&mut self, size: u64, now: u64, out: &mut impl Orders) -> Room {
        if now >= self.trimmed + TRIM_EVERY {
            self.trimmed = now;
            let everyone = now >= self.asked_everyone + ASK_EVERYONE_EVERY;
            if everyone {
                self.asked_everyone = now;
            }
            self.ask_for_memory(everyone, out);
        }
        let candidates = self.candidates(now);
        let mut batch: Vec<(StoreKey, Extent)> = Vec::new();
        let mut bytes = 0;
        let wanted = size.max(BATCH_BYTES.min(self.arena.size() / 8));
        let disk_works = self.disk_trouble.as_ref().is_none_or(|(_, until)| now >= *until);
        for (slot, elsewhere) in candidates {
            if elsewhere {
                if self.take_away(slot, out) && self.arena.fits(size) {
                    self.progress = now;
                    return Room::Made;
                }
                continue;
            }
            if !disk_works || bytes >= wanted || batch.len() >= self.batch_objects {
                break;
            }
            if self.begin_to_leave(slot) {
                let entry = self.entries.get_mut(&slot).expect("a candidate");
                let Place::Memory(offset) = entry.place else { unreachable!("a candidate") };
                entry.place = Place::Leaving { offset, wanted: false };
                bytes += entry.len;
                batch.push((entry.key, Extent { offset, len: entry.len }));
            }
        }
        if batch.is_empty() {
            return Room::None;
        }
        self.leaving += batch.len();
        out.spill(batch);
        Room::Coming
    }

    /// Objects in memory that might go, and whether they are on disk or at another
    /// node, too. Those cost nothing; after them, what was looked at the longest ago.
    fn candidates(&self, now: u64) -> Vec<(u32, bool)> {
        let in_memory = self.entries.iter().filter(|(slot, entry)| {
            matches!(entry.place, Place::Memory(_)) && !self.is_to_stay(**slot, entry, now)
        });
        // Read once: processes touch objects meanwhile, and a sort must not see it.
        let mut keys: Vec<(bool, u64, u32)> = in_memory
            .map(|(&slot, entry)| {
                let elsewhere = entry.on_disk || entry.is_copy;
                (!elsewhere, self.table.touched(slot), slot)
            })
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(fresh, _, slot)| (slot, !fresh)).collect()
    }

    fn begin_to_leave(&self, slot: u32) -> bool {
        self.table.begin_to_leave(slot, self.rows.values().copied())
    }

    /// Takes an object out of memory that is also elsewhere.
    fn take_away(&mut self, slot: u32, out: &mut impl Orders) -> bool {
        if !self.begin_to_leave(slot) {
            return false;
        }
        match self.entries[&slot].is_copy {
            true => self.drop_copy(slot, out),
            false => self.is_away(slot),
        }
        true
    }

    /// An object that was leaving has left.
    fn is_away(&mut self, slot: u32) {
        let entry = self.entries.get_mut(&slot).expect("it was leaving");
        let before = super::Entry { place: entry.place, ..*entry };
        entry.place = Place::Disk;
        entry.slab = None;
        self.release_memory(&before);
        self.table.update(slot, |word| Some(word.with(State::Away)));
    }

    /// Objects were written to disk, so fast.
    pub fn on_spilled(
        &mut self,
        keys: &[StoreKey],
        nanoseconds: u64,
        now: u64,
        out: &mut impl Orders,
    ) {
        self.disk_trouble = None;
        self.batch_objects = BATCH_OBJECTS;
        self.progress = now;
        let mut bytes = 0;
        for key in keys {
            let entry = self.entries.get_mut(&key.slot()).expect("it was leaving");
            entry.on_disk = true;
            bytes += entry.len;
            self.spilled.add(entry.len);
            self.has_left(key.slot(), now, out);
        }
        if let Some(text) = self.spilled.report(bytes, keys.len(), nanoseconds) {
            out.tell_user(text);
        }
        self.serve(now, out);
    }

    /// Objects could not be written to disk.
    pub fn on_not_spilled(
        &mut self,
        keys: &[StoreKey],
        why: Refusal,
        now: u64,
        out: &mut impl Orders,
    ) {
        const TRY_AGAIN_AFTER: u64 = 1_000_000_000;
        if why.lack == Lack::Disk && keys.len() > 1 {
            // A part of it may fit, and may do.
            self.batch_objects = keys.len() / 2;
        } else {
            if self.disk_trouble.is_none() {
                out.tell_user(format!("Objects could not be spilled: {}", why.text));
            }
            self.disk_trouble = Some((why, now + TRY_AGAIN_AFTER));
        }
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key.slot())
                && let Place::Leaving { wanted, .. } = &mut entry.place
            {
                *wanted = true;
            }
            self.has_left(key.slot(), now, out);
        }
        self.serve(now, out);
    }

    /// The disk is done with an object: it is away, or stays.
    fn has_left(&mut self, slot: u32, now: u64, out: &mut impl Orders) {
        self.leaving -= 1;
        let entry = self.entries.get_mut(&slot).expect("it was leaving");
        let Place::Leaving { offset, wanted } = entry.place else { unreachable!("it was leaving") };
        if !wanted {
            self.is_away(slot);
            // Doomed meanwhile, it goes from the disk, too.
            return self.reclaim(slot, now, out);
        }
        entry.place = Place::Memory(offset);
        let asked = self.fetching.remove(&slot).unwrap_or_default();
        if !asked.is_empty() {
            self.let_stay(slot, now);
        }
        self.table.update(slot, |word| Some(word.with(State::Sealed)));
        for (to, request) in asked {
            out.fetched(to, request, Ok(()));
        }
        self.reclaim(slot, now, out);
    }

    /// Refuses those for whom waiting has been of no use.
    pub(super) fn refuse_the_hopeless(&mut self, now: u64, out: &mut impl Orders) {
        let Some(first) = self.waiting.front() else {
            return;
        };
        let still = now.saturating_sub(self.progress.max(first.since));
        if still >= TELL_AFTER && !self.told_stuck && self.patience > TELL_AFTER {
            self.told_stuck = true;
            let seconds = self.patience / 1_000_000_000;
            let text = self.why_stuck(first.size).text;
            out.tell_user(format!("Waiting for memory (up to {seconds} s): {text}"));
        }
        if still < self.patience {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if now.saturating_sub(waiting.since) < self.patience {
                self.waiting.push_back(waiting);
                continue;
            }
            let why = self.why_stuck(waiting.size);
            match waiting.purpose {
                Purpose::Allocate { .. } => out.allocated(waiting.from, waiting.request, Err(why)),
                Purpose::Restore(key) => {
                    for (to, request) in self.fetching.remove(&key.slot()).unwrap_or_default() {
                        out.fetched(to, request, Err(why.clone()));
                    }
                }
            }
        }
        // Whoever is first now may have what the refused waited beside (K-4).
        self.serve(now, out);
    }

    fn why_stuck(&self, size: u64) -> Refusal {
        if let Some((why, _)) = &self.disk_trouble {
            let text = format!(
                "the object store is full ({} of {}) and cannot be spilled: {}",
                show_bytes(self.arena.used()),
                show_bytes(self.arena.size()),
                why.text
            );
            return Refusal { lack: why.lack, text };
        }
        if self.leaving > 0 {
            let text = format!(
                "the object store is full ({} of {}), and the disk has been writing {} object(s) for \
                 longer than is waited for. Is it very slow, or does it hang?",
                show_bytes(self.arena.used()),
                show_bytes(self.arena.size()),
                self.leaving
            );
            return Refusal::full(text);
        }
        let text = format!(
            "the object store is full: {} were asked for, {} of {} are in use, by values \
             that processes look at or are still writing, so that they cannot go to disk. Let go \
             of values that get() returned, copy what you keep, or give \
             init(object_store_memory=) a larger number.",
            show_bytes(size),
            show_bytes(self.arena.used()),
            show_bytes(self.arena.size()),
        );
        Refusal::full(text)
    }
}
