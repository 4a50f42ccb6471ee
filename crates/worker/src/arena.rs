//! The shared-memory store, as this process sees it: one mapping, sealed
//! objects to look at, fresh extents to fill.

use std::os::fd::AsFd;
use std::sync::Arc;

use oxiray_sys::memory::Mapping;

/// The node's arena, mapped. Outlives the session while anyone looks at an object.
#[derive(Clone)]
pub struct Arena(Arc<Mapping>);

/// From this size on, pages are asked for in bulk before they are filled.
const POPULATE_FROM: usize = 1 << 20;

impl Arena {
    pub(crate) fn map(file: impl AsFd, len: u64) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Mapping::new(file, len as usize)?)))
    }

    /// A sealed object.
    pub fn bytes(&self, offset: u64, len: u64) -> &[u8] {
        self.0.bytes(offset as usize, len as usize)
    }

    /// Makes ready to fill an extent of ours.
    pub fn prepare(&self, offset: u64, len: u64) {
        if len as usize >= POPULATE_FROM {
            self.0.populate(offset as usize, len as usize);
        }
    }

    /// Fills part of an extent of ours that nobody else knows of yet.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.0.write(offset as usize, bytes);
    }
}
