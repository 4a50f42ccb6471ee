//! Lanes of a process: what it runs at the same time is drawn side by side.
//!
//! Most processes run one call after the other and have one lane. Runs are added as they end, so a
//! lane is free for one that began after all in it had ended. What runs still is put into lanes by
//! who looks: it may change its lane until it ends.

use std::collections::BTreeSet;

use crate::history::{Process, Runs};

/// The lanes of one process.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lanes {
    /// When the last run of each ended.
    ends: BTreeSet<(u64, u16)>,
    /// The longest run.
    longest: u64,
}

impl Lanes {
    /// The lane of a run that has ended: no other run of that lane overlaps it.
    pub(crate) fn add(&mut self, start: u64, duration: u64) -> u16 {
        self.longest = self.longest.max(duration);
        self.place(start, start.saturating_add(duration))
    }

    fn place(&mut self, start: u64, end: u64) -> u16 {
        // The one that was free for the shortest time: so there are few.
        let free = self.ends.range(..=(start, u16::MAX)).next_back().copied();
        let lane = match free {
            Some((end, lane)) => {
                self.ends.remove(&(end, lane));
                lane
            }
            // More than there are numbers for share the last.
            None => u16::try_from(self.ends.len()).unwrap_or(u16::MAX),
        };
        self.ends.insert((end, lane));
        lane
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Nothing that began before this reaches to `moment`.
    pub(crate) fn earliest_reaching(&self, moment: u64) -> u64 {
        moment.saturating_sub(self.longest)
    }
}

/// What a process runs, or ran when it ended, each with its lane; and how many lanes it has then.
pub(crate) fn unended(process: &Process) -> (Vec<(Runs, u16)>, usize) {
    let mut runs: Vec<Runs> = process.unended().copied().collect();
    runs.sort_by_key(|running| (running.start, running.task));
    let mut lanes = process.lanes.clone();
    let placed = runs.into_iter().map(|running| (running, lanes.place(running.start, u64::MAX)));
    let placed = placed.collect();
    (placed, lanes.count().max(1))
}
