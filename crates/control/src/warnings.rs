//! Whose actors find no node: their programs hear of it, once.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_scheduler::show_amounts;
use oxiray_wire::control::{Text, from_node};

use crate::control::Control;
use crate::event::{Now, Outbox};

/// An actor waits for so long before somebody hears of it: a node may be about to join.
const WARN_AFTER: u64 = 1_000_000_000;

/// What the user is told of something that no node can run.
pub fn unschedulable(who: &str, needs: &str, why: &str) -> String {
    format!(
        "{who} cannot be scheduled: it needs {needs}, but {why}. It runs when that changes; \
         `oxiray status` shows what waits."
    )
}

impl Control {
    /// An actor begins to wait for a node.
    pub(crate) fn warn_later(&mut self, id: ActorId) {
        self.to_warn_of.push_back((self.now.ns + WARN_AFTER, id));
    }

    pub(crate) fn next_warning(&self) -> Option<u64> {
        let of_actors = self.to_warn_of.front().map(|&(at, _)| at);
        [of_actors, self.groups.next_warning()].into_iter().flatten().min()
    }

    pub(crate) fn warn(&mut self, now: Now, out: &mut impl Outbox) {
        self.warn_of_groups(now, out);
        while let Some(&(_, id)) = self.to_warn_of.front().filter(|&&(at, _)| now.ns >= at) {
            self.to_warn_of.pop_front();
            let Some(actor) = self.actors.get(&id).filter(|_| self.waiting.contains(&id)) else {
                continue;
            };
            let placement = actor.record.create.as_ref().and_then(|c| c.placement.as_ref());
            let needs = show_amounts(placement.map_or(&[], |shape| &shape.resources[..]));
            let who = format!("The actor {}", actor.record.class_name());
            let text = unschedulable(&who, &needs, &actor.waits_because);
            let about = actor.record.about_creator.as_ref();
            let job = about.and_then(|about| about.config.as_ref());
            let driver = job.map_or(actor.record.creator(), |job| ProcessId(job.driver));
            // Many actors may wait for one reason.
            if self.warned.insert((driver, text.clone())) {
                self.tell(driver, from_node::Body::Warning(Text { text }), out);
            }
        }
    }

    /// A process is gone, and need not be remembered as warned.
    pub(crate) fn forget_warned(&mut self, process: ProcessId) {
        let its = (process, String::new())..(ProcessId(process.0 + 1), String::new());
        let its: Vec<_> = self.warned.range(its).cloned().collect();
        for warning in its {
            self.warned.remove(&warning);
        }
    }
}
