//! Machines that are cut off from the control service: it does not hear them, they do not hear it, or
//! both. Other machines they reach. What is said meanwhile is sent again until it comes; but a
//! connection over which nothing comes for long is given up by whoever notices.

use oxiray_control::{Event as ControlEvent, PeerId};

use crate::happening::Happening;
use crate::plan::SECOND;
use crate::world::World;

/// A node that does not find the control service ends, but not within this.
pub(crate) const LONGEST_CUT: u64 = 50 * SECOND;
/// When TCP gives up a connection that nothing comes over.
const SILENT: u64 = 10 * SECOND;

impl World {
    /// Some machine that nobody counts on is cut off for a while.
    pub(crate) fn cut_off_some_node(&mut self) {
        let all = 0..self.machines.len();
        let may = |index: &usize| {
            let machine = &self.machines[*index];
            let is_joined = machine.unheard_until.max(machine.deaf_until) + 5 * SECOND < self.now;
            machine.alive && !machine.is_safe && machine.node.is_some() && is_joined
        };
        let all: Vec<usize> = all.filter(may).collect();
        if all.is_empty() {
            return;
        }
        let index = all[self.random.place(all.len())];
        // What it has may end, be it given up or not.
        self.faults.nodes += 1;
        let until = self.now + self.random.between(SECOND, LONGEST_CUT);
        let (is_heard, hears) = match self.random.place(3) {
            0 => (false, true),
            1 => (true, false),
            _ => (false, false),
        };
        let connection = self.machines[index].connection;
        let machine = &mut self.machines[index];
        if !is_heard {
            machine.unheard_until = until;
        }
        if !hears {
            machine.deaf_until = until;
        }
        if let Some(connection) = connection.filter(|_| self.random.once_in(2)) {
            let at = self.now + SILENT;
            if at < until {
                self.agenda.add(at, Happening::ControlSeesSilence { connection });
            }
        }
    }

    /// Before this, nothing that is sent now comes there.
    pub(crate) fn joined_at(&self, from: Option<usize>, to: Option<usize>) -> u64 {
        match (from, to) {
            (Some(machine), None) => self.machines[machine].unheard_until,
            (None, Some(machine)) => self.machines[machine].deaf_until,
            (Some(a), Some(b)) => self.reached_at(a, b),
            (None, None) => 0,
        }
    }

    pub(crate) fn control_sees_silence(&mut self, connection: u64) {
        if self.head.connections.remove(&connection).is_some() {
            self.control_event(ControlEvent::Broken(PeerId(connection)));
        }
    }
}
