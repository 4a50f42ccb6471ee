//! How new a chunk is: the time of the newest of its records.
//!
//! A file's own time says less: of mapped memory it is that of the first write to a page.

use std::path::Path;

use crate::format::{HEADER, Header, Record, SLOT, slots_of};

/// The time, by the monotonic clock, of the newest record of the chunk at `path`; `None`: it is none
/// that could be read, or has no record with a time.
pub fn newest_record(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    let header = Header::decode(bytes.get(..HEADER)?)?;
    let written = usize::try_from(header.count).unwrap_or(usize::MAX).saturating_mul(SLOT);
    let mut slots = &bytes[HEADER..];
    slots = &slots[..written.min(slots.len())];
    let mut newest = None;
    while let Some(kind) = slots.first() {
        newest = newest.max(Record::decode(slots).and_then(|record| record.time()));
        slots = slots.get(slots_of(*kind) * SLOT..).unwrap_or_default();
    }
    newest
}
