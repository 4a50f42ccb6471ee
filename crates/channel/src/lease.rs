//! When the lease of a node ends, where all of its processes see it: they must not go on for longer,
//! be the node service itself stopped or not.

use crate::bell::Bells;
use crate::layout::LEASE;
use crate::sync::Ordering;

/// The time that a node shows to its processes, by the clock of their machine.
#[derive(Clone)]
pub struct LeaseEnd(Bells);

impl LeaseEnd {
    /// What is shown beside these bells.
    pub fn beside(bells: &Bells) -> Self {
        Self(bells.clone())
    }

    /// Shows that it is then.
    pub fn show(&self, at: u64) {
        if self.at() != Some(at) {
            self.0.memory().atomic_u64(LEASE).store(at, Ordering::SeqCst);
        }
    }

    /// When it is; none: the node has no lease, and needs none.
    #[inline]
    pub fn at(&self) -> Option<u64> {
        Some(self.0.memory().atomic_u64(LEASE).load(Ordering::SeqCst)).filter(|at| *at != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::BELLS_BYTES;
    use oxiray_sys::memory::memory_file;

    #[test]
    fn what_is_shown_is_seen_by_all() {
        let file = memory_file("bells", BELLS_BYTES).unwrap();
        let (node, worker) = (Bells::map(&file).unwrap(), Bells::map(&file).unwrap());
        let (node, worker) = (LeaseEnd::beside(&node), LeaseEnd::beside(&worker));
        assert_eq!(worker.at(), None);
        node.show(7);
        assert_eq!(worker.at(), Some(7));
    }
}
