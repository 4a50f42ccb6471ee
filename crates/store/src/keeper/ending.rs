//! What the end of a process means for the store.

use oxiray_ids::{ProcessId, StoreKey};

use super::{Keeper, Orders};
use crate::word::{State, Word};

impl Keeper {
    /// A process is gone. What it owned is doomed. What it made for others and
    /// they have not taken up may be in an answer that they have yet to read: if
    /// `will_say` so of its owner, that one says [`Self::on_death_seen`] when it
    /// has; if not, the object is doomed at once.
    pub fn on_ended(
        &mut self,
        process: ProcessId,
        will_say: impl Fn(ProcessId) -> bool,
        now: u64,
        out: &mut impl Orders,
    ) {
        match self.rows.remove(&process) {
            Some(row) => self.table.clear_row(row, self.slots.bound()),
            None if self.foreign.remove(&process) => {}
            None => return,
        }
        self.waiting.retain(|waiting| {
            waiting.from != process || matches!(waiting.purpose, super::Purpose::Restore(_))
        });
        self.stop_fetching_for(|(to, _)| *to == process);
        self.take_over_slabs(process);
        let mut doomed: Vec<u32> = Vec::new();
        for (&slot, entry) in &self.entries {
            let (owner, creator) = self.table.parties(slot);
            let word = self.table.word(slot);
            let unfinished = creator == process && word.state() == State::Writing;
            let forgotten = creator == process && !word.is_owned() && !will_say(owner);
            if unfinished {
                // Nobody will finish it.
                self.table.update(slot, |word: Word| Some(word.doomed().with(State::Sealed)));
            }
            // Among what was in its slabs may be objects of owners that died before it.
            let orphaned = !self.lives(&owner);
            if orphaned || unfinished {
                self.table.doom(entry.key);
            } else if forgotten {
                self.table.doom_untaken(entry.key);
            }
            // Also what was doomed before: nobody looks after it in a slab any
            // more, and the process may have died before it could say that it
            // ended looking at it, or filling it.
            if self.table.word(slot).is_doomed() {
                doomed.push(slot);
            }
        }
        for slot in doomed {
            self.reclaim(slot, now, out);
        }
        self.serve(now, out);
    }

    /// `owner` has read all that `dead` had sent to it: what it has not taken up
    /// it will never hear of.
    pub fn on_death_seen(
        &mut self,
        owner: ProcessId,
        dead: ProcessId,
        now: u64,
        out: &mut impl Orders,
    ) {
        let made =
            self.entries.iter().filter(|(slot, _)| self.table.parties(**slot) == (owner, dead));
        let keys: Vec<StoreKey> = made.map(|(_, entry)| entry.key).collect();
        for key in keys {
            if self.table.doom_untaken(key).is_some() {
                self.reclaim(key.slot(), now, out);
            }
        }
        self.serve(now, out);
    }
}
