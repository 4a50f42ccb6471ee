//! Exactly what was asked: every time that a task or call is begun, by whom, and how it ends.
//!
//! - **H-1** a task or call is begun at most once more than it may be tried again.
//! - **H-2** one incarnation of an actor begins a call once; but again one that raised what it may be
//!   tried again for.
//! - **H-3** one incarnation begins the calls of one caller in the order of their submission, but for
//!   those that go again (O-6).
//! - **H-4** what is begun by an incarnation was sent to that one.
//! - **H-5** each incarnation of an actor has a higher number than those before.

use std::collections::HashMap;

use oxiray_ids::{ActorId, ProcessId, TaskId};
use oxiray_owner::TaskSpec;
use oxiray_wire::frame::Outcome;

/// Whose calls go in order: a process, and the task that it runs, if that is the caller.
type Caller = (ProcessId, TaskId);

struct Asked {
    retries: i32,
    begun: u32,
    /// Of a call that waits for those before it.
    caller: Option<Caller>,
}

/// A call at an incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Begun,
    /// It ended, and may be begun there again.
    MayGoAgain,
}

/// What was asked for, and what came of it.
#[derive(Default)]
pub(crate) struct History {
    asked: HashMap<TaskId, Asked>,
    /// What each process has begun of its actor's calls.
    calls: HashMap<(ProcessId, TaskId), Stage>,
    /// The last call of a caller that a process began.
    last: HashMap<(ProcessId, Caller), u64>,
    /// The latest incarnation of each actor.
    lives: HashMap<ActorId, u64>,
}

impl History {
    /// A process submits this; if it is a call, then one that waits for others of its caller, or not.
    pub(crate) fn ask(&mut self, by: ProcessId, spec: &TaskSpec, in_order: bool) {
        let parent = if spec.parent.actor().is_home() { spec.parent } else { TaskId::NIL };
        let caller = in_order.then_some((by, parent));
        self.asked.insert(spec.id, Asked { retries: spec.retries, begun: 0, caller });
    }

    /// A process becomes this incarnation of an actor.
    pub(crate) fn live(&mut self, actor: ActorId, incarnation: u64) {
        let before = self.lives.insert(actor, incarnation);
        let is_next = before.is_none_or(|before| before < incarnation);
        assert!(is_next, "H-5: {actor} becomes {incarnation:#x} after {before:x?}");
    }

    /// A process begins it: `lives_as`, if it is an actor, its incarnation, and for which one it
    /// was meant.
    pub(crate) fn begin(&mut self, at: ProcessId, task: TaskId, lives_as: Option<(u64, u64)>) {
        let asked = self.asked.get_mut(&task).expect("was asked for");
        asked.begun += 1;
        if let Some((incarnation, meant)) = lives_as {
            assert_eq!(incarnation, meant, "H-4: {task} is begun at {at}");
            let before = self.calls.insert((at, task), Stage::Begun);
            assert_ne!(before, Some(Stage::Begun), "H-2: {task} is begun twice at {at}");
            if let (Some(caller), None) = (asked.caller, before) {
                let last = self.last.insert((at, caller), task.unique());
                let is_next = last.is_none_or(|last| last < task.unique());
                assert!(is_next, "H-3: {task} is begun at {at} after {last:?} of {caller:?}");
            }
        }
        let most = u32::try_from(asked.retries).map_or(u32::MAX, |retries| retries + 1);
        assert!(asked.begun <= most, "H-1: {task} is begun at {at}: {} of {most}", asked.begun);
    }

    /// It ended there.
    pub(crate) fn end(&mut self, at: ProcessId, task: TaskId, outcome: Outcome) {
        if let Some(stage) = self.calls.get_mut(&(at, task))
            && matches!(outcome, Outcome::Retryable | Outcome::Unread)
        {
            *stage = Stage::MayGoAgain;
        }
    }
}
