//! Who waits for whom, and who can never go on.
//!
//! - **W-1** A task can go on if it runs and does not sleep, or if what it waits for can: all of
//!   it, or one of several that hold what it lacks. Of what nothing is known it is taken that it can.
//! - **W-2** Whoever cannot, by W-1 alone, is in a deadlock or waits for one.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ObjectId, ProcessId, TaskId};
use oxiray_wire::control::WaitKind;

use super::facts::Facts;

/// What a task waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) tasks: Vec<TaskId>,
    /// One of them will do.
    pub(crate) any: bool,
}

impl Facts {
    /// What a task waits for, as far as that is other tasks.
    pub(crate) fn needs(&self, id: TaskId) -> Needs {
        let Some(task) = self.tasks.get(&id) else {
            return Needs::default();
        };
        let process = task.process.map(ProcessId);
        match task.wait() {
            WaitKind::Argument => {
                let object = ObjectId::from_slice(&task.object);
                Needs {
                    tasks: object.map(|object| object.task()).into_iter().collect(),
                    any: false,
                }
            }
            WaitKind::Running | WaitKind::Turn | WaitKind::AtActor => {
                process.map(|process| self.needs_in(process, id)).unwrap_or_default()
            }
            WaitKind::Worker | WaitKind::Actor | WaitKind::Construction => {
                let holders = task.holders.iter().map(|holder| ProcessId(*holder));
                let running = holders.map(|holder| self.processes.get(&holder)?.running.first());
                // Who holds it and runs nothing, as an idle actor, may go any time.
                let tasks: Option<Vec<TaskId>> = running.map(|task| task.copied()).collect();
                Needs { tasks: tasks.unwrap_or_default(), any: true }
            }
            WaitKind::Nothing | WaitKind::News | WaitKind::Memory => Needs::default(),
        }
    }

    /// What a task in a process waits for: what that sleeps for if it runs, else what runs.
    fn needs_in(&self, process: ProcessId, id: TaskId) -> Needs {
        let Some(seen) = self.processes.get(&process) else {
            return Needs::default();
        };
        if !seen.running.contains(&id) {
            return Needs { tasks: seen.running.clone(), any: true };
        }
        // Where several run, whose sleep is whose is not said: all must sleep.
        if seen.sleeps.len() < seen.running.len() {
            return Needs::default();
        }
        match &seen.sleeps[..] {
            [sleep] => Needs { tasks: sleep.tasks.clone(), any: sleep.any },
            _ => Needs::default(),
        }
    }

    /// The tasks that can never go on (W-2).
    pub(crate) fn stuck(&self) -> BTreeSet<TaskId> {
        let needs: BTreeMap<TaskId, Needs> =
            self.tasks.keys().map(|id| (*id, self.needs(*id))).collect();
        let mut stuck: BTreeSet<TaskId> = needs.keys().copied().collect();
        loop {
            let goes_on = |id: &TaskId| !stuck.contains(id);
            let free = needs.iter().filter(|(id, needs)| {
                stuck.contains(id)
                    && (needs.tasks.is_empty()
                        || if needs.any {
                            needs.tasks.iter().any(goes_on)
                        } else {
                            needs.tasks.iter().all(goes_on)
                        })
            });
            let free: Vec<TaskId> = free.map(|(id, _)| *id).collect();
            if free.is_empty() {
                return stuck;
            }
            free.iter().for_each(|id| _ = stuck.remove(id));
        }
    }

    /// From a task to what it waits for, and on, until nothing more is known or one comes again,
    /// which then is the last.
    pub(crate) fn path(&self, from: TaskId, stuck: &BTreeSet<TaskId>) -> Vec<TaskId> {
        let mut path = vec![from];
        loop {
            let last = path[path.len() - 1];
            let needs = self.needs(last).tasks;
            let worst = needs.iter().find(|id| stuck.contains(id)).or(needs.first());
            let Some(next) = worst.copied().filter(|next| *next != last) else {
                return path;
            };
            let again = path.contains(&next);
            path.push(next);
            if again {
                return path;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oxiray_ids::{ActorId, JobId};
    use oxiray_wire::control::{Awaited, TaskReason, TaskReport};

    use super::*;

    fn task(number: u64) -> TaskId {
        TaskId::new(ActorId::home(JobId([1, 0, 0, 0]), ProcessId(1)), ProcessId(1), number)
    }

    fn waits(number: u64, wait: WaitKind, process: u64) -> TaskReason {
        let mut reason = TaskReason { id: task(number).0.to_vec(), ..TaskReason::default() };
        reason.process = Some(process).filter(|process| *process > 0);
        reason.set_wait(wait);
        reason
    }

    fn process(number: u64, running: &[u64], sleeps_for: &[u64], any: bool) -> TaskReport {
        let objects = sleeps_for.iter().map(|made| task(*made).object(1).0.to_vec()).collect();
        let sleeps = !sleeps_for.is_empty();
        TaskReport {
            process: number,
            running: running.iter().map(|id| task(*id).0.to_vec()).collect(),
            awaited: sleeps.then_some(Awaited { objects, any }).into_iter().collect(),
            ..TaskReport::default()
        }
    }

    fn facts(reports: Vec<TaskReport>, tasks: Vec<TaskReason>) -> Facts {
        let mut facts = Facts::default();
        reports.into_iter().for_each(|report| facts.add(report));
        facts.add(TaskReport { process: 1, tasks, ..TaskReport::default() });
        facts
    }

    #[test]
    fn a_child_that_lacks_what_its_parent_holds_is_stuck() {
        let mut child = waits(2, WaitKind::Worker, 0);
        child.holders = vec![10];
        let parent = waits(1, WaitKind::Running, 10);
        let known =
            facts(vec![process(10, &[1], &[2], false)], vec![parent.clone(), child.clone()]);
        let stuck = known.stuck();
        assert_eq!(stuck, [task(1), task(2)].into(), "W-2");
        assert_eq!(known.path(task(2), &stuck), [task(2), task(1), task(2)]);
        // Another holds it as well, and runs.
        child.holders.push(11);
        let other = process(11, &[3], &[], false);
        let known = facts(vec![process(10, &[1], &[2], false), other], vec![parent, child]);
        assert!(known.stuck().is_empty(), "W-1: one of several will do");
    }

    #[test]
    fn two_actors_that_wait_for_each_other_are_stuck() {
        // 1 runs at 10 and waits for 2, which runs at 20 and waits for 3, whose turn is after 1.
        let tasks = vec![
            waits(1, WaitKind::AtActor, 10),
            waits(2, WaitKind::AtActor, 20),
            waits(3, WaitKind::AtActor, 10),
        ];
        let reports = |any| vec![process(10, &[1], &[2], false), process(20, &[2], &[3, 9], any)];
        let known = facts(reports(false), tasks.clone());
        let stuck = known.stuck();
        assert_eq!(stuck, [task(1), task(2), task(3)].into());
        assert_eq!(known.path(task(3), &stuck), [task(3), task(1), task(2), task(3)]);
        assert!(facts(reports(true), tasks).stuck().is_empty(), "9 will do, and may come");
    }

    #[test]
    fn what_waits_for_one_that_runs_is_not_stuck() {
        let mut second = waits(2, WaitKind::Argument, 0);
        second.object = task(1).object(1).0.to_vec();
        let tasks = vec![waits(1, WaitKind::Running, 10), second];
        let known = facts(vec![process(10, &[1], &[], false)], tasks);
        assert!(known.stuck().is_empty());
        assert_eq!(known.path(task(2), &known.stuck()), [task(2), task(1)]);
    }
}
