//! Pairs of machines that do not reach each other, in one direction or both, while all others reach
//! both: TCP needs both directions. What one says to the other is kept (`net/src/conversation.rs`) and
//! comes when a way through a third machine was found, or when the two reach each other again. If that
//! takes too long, what was between them is given up by both.

use oxiray_node::Event;

use crate::happening::Happening;
use crate::plan::{MILLISECOND, SECOND};
use crate::world::World;

/// How long a pair may be cut.
pub(crate) const LONGEST_APART: u64 = 20 * SECOND;
/// When a machine sees that no way leads to another.
const SEEN: (u64, u64) = (1_900 * MILLISECOND, 3_100 * MILLISECOND);
/// How long it takes to find one through a third.
const FOUND: (u64, u64) = (MILLISECOND, 3_000 * MILLISECOND);
/// How long none is waited for.
const PATIENCE: u64 = 12 * SECOND;

impl World {
    /// Some two machines do not reach each other for a while.
    pub(crate) fn cut_some_pair(&mut self) {
        let is_there =
            |index: &usize| self.machines[*index].alive && self.machines[*index].node.is_some();
        let mut all: Vec<usize> = (0..self.machines.len()).filter(is_there).collect();
        if all.len() < 2 {
            return;
        }
        let a = all.remove(self.random.place(all.len()));
        let b = all[self.random.place(all.len())];
        if self.reached_at(a, b) > self.now {
            return;
        }
        let until = self.now + self.random.between(100 * MILLISECOND, LONGEST_APART);
        let third = all.len() > 1;
        let found = self.now + SEEN.1 + self.random.between(FOUND.0, FOUND.1);
        let reached = if third { until.min(found) } else { until };
        self.apart.insert((a.min(b), a.max(b)), reached);
        for (at, of) in [(a, b), (b, a)] {
            let seen = self.now + self.random.between(SEEN.0, SEEN.1);
            if seen < reached {
                self.agenda.add(seen, Happening::Away { at, of });
                let back = reached + self.random.between(0, 100 * MILLISECOND);
                self.agenda.add(back, Happening::Back { at, of });
            }
        }
        if reached > self.now + PATIENCE {
            self.faults.links += 1;
            let epoch = self.epoch(a, b).max(self.epoch(b, a)) + 1;
            self.broken.insert((a.min(b), a.max(b)), epoch);
            for (at, of) in [(a, b), (b, a)] {
                let when = self.now + PATIENCE + self.random.between(0, SECOND);
                self.agenda.add(when, Happening::Parts { at, of, epoch });
            }
        }
    }

    /// A machine gives up another that it does not reach, if the control service hears that.
    pub(crate) fn on_parting(&mut self, at: usize, of: usize, epoch: u64) {
        let number = self.machines[of].number();
        let node = self.machines[at].node.as_ref();
        let lives = node.is_some_and(|node| node.is_known_to_live(number));
        self.on_lost(at, of, epoch);
        if lives && self.machines[at].alive {
            self.event(at, Event::PeerLives(number));
        }
    }

    /// Before this, nothing that one of the two says now comes to the other.
    pub(crate) fn reached_at(&self, a: usize, b: usize) -> u64 {
        self.apart.get(&(a.min(b), a.max(b))).copied().unwrap_or(0)
    }

    pub(crate) fn on_away(&mut self, at: usize, of: usize) {
        let number = self.machines[of].number();
        self.event(at, Event::PeerAway(number));
    }

    pub(crate) fn on_back(&mut self, at: usize, of: usize) {
        let number = self.machines[of].number();
        if self.machines[of].alive && self.reached_at(at, of) <= self.now {
            self.event(at, Event::PeerBack(number));
        }
    }
}
