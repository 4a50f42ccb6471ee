//! Which worker ends when the machine's memory is nearly used up.
//!
//! As Ray's policy has it, by groups: a group is what one owner runs here and may run again.
//!
//! - **M-1** What may run again ends before what may not, whatever their sizes: an actor that may
//!   not restart is safe for as long as something else can be ended.
//! - **M-2** Of those, the newest of the largest group ends: it has done least, and its owner has
//!   others here that go on.
//! - **M-3** What holds next to nothing is passed over while another of its kind holds more: its
//!   end would bring nothing back.
//! - **M-4** A worker without work that holds much goes before all of them, by being asked to.

use oxiray_ids::ProcessId;
use oxiray_wire::control::{Empty, MemoryEnd, Text, from_node};
use oxiray_words::{listed, show_bytes};

use crate::event::Outbox;
use crate::node::Node;
use crate::process::{Farewell, Role};

/// What is worth ending a worker for: an interpreter alone has less of its own.
const WORTH: u64 = 64 << 20;

/// How many of the largest are named.
const MOST_NAMED: usize = 5;

/// What a worker is in the eyes of whoever looks for memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    /// The worker.
    pub(crate) process: ProcessId,
    /// Its process id.
    pub(crate) pid: u32,
    /// What it runs, for people.
    pub(crate) runs: String,
    /// For whom; `None`: it has no work.
    pub(crate) owner: Option<ProcessId>,
    /// Whether what it runs may run again.
    pub(crate) repeatable: bool,
    /// When it was given that.
    pub(crate) since: u64,
    /// Bytes that it alone uses.
    pub(crate) bytes: u64,
}

/// How short memory is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shortage {
    /// Bytes in use.
    pub used: u64,
    /// Bytes there are.
    pub total: u64,
    /// The share above which workers are ended.
    pub threshold: f64,
}

/// Which of these ends (M-1 to M-4): its place among them.
pub(crate) fn choose(holders: &[Holder]) -> Option<usize> {
    let all = || holders.iter().enumerate();
    let idle = all().filter(|(_, holder)| holder.owner.is_none() && holder.bytes >= WORTH);
    if let Some((at, _)) = idle.max_by_key(|(_, holder)| holder.bytes) {
        return Some(at);
    }
    let busy = || all().filter(|(_, holder)| holder.owner.is_some());
    let repeatable = busy().any(|(_, holder)| holder.repeatable);
    let of_kind = || busy().filter(move |(_, holder)| holder.repeatable == repeatable);
    let is_worth = of_kind().any(|(_, holder)| holder.bytes >= WORTH);
    let candidates = of_kind().filter(|(_, holder)| !is_worth || holder.bytes >= WORTH);
    if !repeatable {
        // There is no owner for whom others go on: the newest has least to lose.
        return candidates.max_by_key(|(_, holder)| (holder.since, holder.bytes)).map(|(at, _)| at);
    }
    let of_group = |owner| of_kind().filter(move |(_, holder)| holder.owner == owner).count();
    candidates.max_by_key(|(_, holder)| (of_group(holder.owner), holder.since)).map(|(at, _)| at)
}

/// Why this one of them ends, with the sizes.
fn sentence(holders: &[Holder], chosen: usize, shortage: Shortage) -> String {
    let victim = &holders[chosen];
    let mut largest: Vec<&Holder> = holders.iter().collect();
    largest.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    let named =
        |holder: &&Holder| format!("{} {} ({})", holder.runs, show_bytes(holder.bytes), holder.pid);
    let largest: Vec<String> = largest.iter().map(named).collect();
    let Shortage { used, total, threshold } = shortage;
    format!(
        "it was ended because the machine's memory is nearly used up: {} of {} are in use \
         ({:.1} %), the limit is {:.1} % (RAY_memory_usage_threshold). Worker {} ({}) used {}. The \
         largest workers: {}. Remedies: ask for fewer at once (num_cpus=, memory=), or for a \
         machine with more memory",
        show_bytes(used),
        show_bytes(total),
        used as f64 * 100.0 / total.max(1) as f64,
        threshold * 100.0,
        victim.pid,
        victim.runs,
        show_bytes(victim.bytes),
        listed(&largest, MOST_NAMED),
    )
}

impl Node {
    /// Whom to end for the sake of memory, and why: [`crate::Event::OutOfMemory`] does it.
    /// `bytes`: what a process id alone uses.
    pub fn choose_to_end(
        &self,
        shortage: Shortage,
        bytes: impl Fn(u32) -> u64,
    ) -> Option<(ProcessId, String)> {
        let holders: Vec<Holder> = self
            .memory_holders()
            .map(|holder| Holder { bytes: bytes(holder.pid), ..holder })
            .collect();
        let chosen = choose(&holders)?;
        Some((holders[chosen].process, sentence(&holders, chosen, shortage)))
    }

    /// Workers that could be ended, without their sizes.
    fn memory_holders(&self) -> impl Iterator<Item = Holder> {
        let ours = self.processes.iter().filter(|(_, process)| process.farewell.is_none());
        ours.filter_map(|(&id, process)| {
            let blank = Holder {
                process: id,
                pid: process.pid,
                runs: "idle worker".into(),
                owner: None,
                repeatable: true,
                since: process.idle_since,
                bytes: 0,
            };
            match process.role {
                Role::Leased(lease) => {
                    let lease = self.leases.get(&lease)?;
                    Some(Holder {
                        runs: format!("tasks of process {}", self.pid_in_words(lease.holder)),
                        owner: Some(lease.holder),
                        repeatable: !self.schedule.shapes[lease.shape.0].shape.unrepeatable,
                        since: lease.since,
                        ..blank
                    })
                }
                Role::Actor(actor) => {
                    let actor = self.actors.get(&actor)?;
                    Some(Holder {
                        runs: format!("actor {}", actor.class_name),
                        owner: Some(actor.creator),
                        repeatable: actor.may_restart(),
                        since: actor.placed_at,
                        ..blank
                    })
                }
                Role::Idle => Some(blank),
                Role::None | Role::Asked(_) | Role::Leaving => None,
            }
        })
    }

    fn pid_in_words(&self, id: ProcessId) -> String {
        let pid = self.processes.get(&id).map(|process| process.pid).filter(|pid| *pid != 0);
        pid.map_or_else(|| "of another node".into(), |pid| pid.to_string())
    }

    /// What the end of a worker for want of memory means for its task.
    fn memory_end(&self, id: ProcessId) -> MemoryEnd {
        let others = |owner: Option<ProcessId>| {
            let others = self.memory_holders().filter(move |other| other.process != id);
            others.filter(move |other| other.repeatable && other.owner == owner).count()
        };
        let own = self.memory_holders().find(|holder| holder.process == id);
        match own.filter(|own| own.owner.is_some()).map(|own| others(own.owner)) {
            Some(1..) => MemoryEnd::Shared,
            _ => MemoryEnd::Alone,
        }
    }

    /// A worker is ended, or was by the kernel, because memory is short.
    pub(crate) fn on_out_of_memory(
        &mut self,
        id: ProcessId,
        reason: String,
        over_limit: bool,
        out: &mut impl Outbox,
    ) {
        let memory = if over_limit { MemoryEnd::OverLimit } else { self.memory_end(id) };
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        if !process.is_worker() || process.farewell.is_some() {
            return; // It goes already, for a reason of its own.
        }
        if process.role == Role::Idle {
            process.role = Role::Leaving;
            self.pool.forget(id);
            return out.send(id, from_node::Body::Exit(Empty {}));
        }
        let pid = process.pid;
        let driver = process.job.and_then(|job| self.jobs.get(&job)).map(|job| job.driver);
        process.farewell = Some(Farewell { memory, ..Farewell::of(reason.clone()) });
        if let Some(driver) = driver {
            let text = format!("A worker was lost (process {pid}): {reason}.");
            out.send(ProcessId(driver), from_node::Body::Warning(Text { text }));
        }
        out.kill(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn holder(process: u64, owner: u64, repeatable: bool, since: u64, mib: u64) -> Holder {
        Holder {
            process: ProcessId(process),
            pid: process as u32,
            runs: "tasks of process 1".into(),
            owner: (owner > 0).then_some(ProcessId(owner)),
            repeatable,
            since,
            bytes: mib * MIB,
        }
    }

    fn chosen(holders: &[Holder]) -> Option<u64> {
        choose(holders).map(|at| holders[at].process.0)
    }

    #[test]
    fn m1_an_actor_that_may_not_restart_is_safe_while_a_task_can_be_ended() {
        let actor = holder(2, 1, false, 9, 10_000);
        assert_eq!(chosen(&[actor.clone(), holder(3, 1, true, 1, 5)]), Some(3));
        assert_eq!(chosen(std::slice::from_ref(&actor)), Some(2), "nothing else is there");
        assert_eq!(chosen(&[holder(3, 1, false, 1, 900), actor]), Some(2), "the newest");
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn m2_the_newest_of_the_largest_group_ends() {
        let large = [holder(2, 1, true, 1, 100), holder(3, 1, true, 3, 80)];
        let small = holder(4, 9, true, 7, 4_000);
        assert_eq!(chosen(&[large[0].clone(), large[1].clone(), small.clone()]), Some(3));
        assert_eq!(chosen(&[large[0].clone(), small]), Some(4), "as large: the newest of all");
    }

    #[test]
    fn m3_what_holds_next_to_nothing_is_passed_over() {
        let hog = holder(2, 1, true, 1, 9_000);
        assert_eq!(chosen(&[hog, holder(3, 1, true, 5, 12)]), Some(2));
        let both = [holder(2, 1, true, 1, 10), holder(3, 1, true, 5, 12)];
        assert_eq!(chosen(&both), Some(3), "unless nothing holds more");
    }

    #[test]
    fn m4_an_idle_worker_that_holds_much_goes_first() {
        let busy = holder(2, 1, true, 1, 900);
        assert_eq!(chosen(&[busy.clone(), holder(3, 0, true, 0, 300)]), Some(3));
        assert_eq!(chosen(&[busy, holder(3, 0, true, 0, 20)]), Some(2));
        assert_eq!(chosen(&[holder(3, 0, true, 0, 20)]), None, "its end would bring nothing");
    }

    #[test]
    fn the_sentence_has_the_sizes() {
        let holders = [holder(2, 1, true, 1, 1024), holder(3, 1, false, 5, 100)];
        let shortage = Shortage { used: 970 * MIB, total: 1000 * MIB, threshold: 0.95 };
        let text = sentence(&holders, 0, shortage);
        for part in ["97.0 %", "95.0 %", "970", "1000", "Worker 2", "1.0 GiB", "100"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
