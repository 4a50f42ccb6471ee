//! Calls go in order, those of one caller: a task that waits for another is not held back by it.

use std::sync::Arc;

use oxiray_ids::{ActorId, FunctionId, JobId, ProcessId, TaskId};
use oxiray_wire::frame::{RefName, Returns};
use smallvec::SmallVec;

use super::hostile::Ears;
use crate::actor::handle_object;
use crate::object::ObjectKey;
use crate::owner::Owner;
use crate::task::{CallOrder, Target, TaskSpec};

const HERE: ProcessId = ProcessId(1);
const THERE: ProcessId = ProcessId(2);
const JOB: JobId = JobId([1; 4]);

/// A process that calls an actor, and a value that somebody else has yet to make.
struct Caller {
    owner: Owner,
    ears: Ears,
    actor: ActorId,
    missing: ObjectKey,
    calls: u64,
}

impl Caller {
    fn new() -> Self {
        let (mut owner, mut ears) = (Owner::new(HERE), Ears::default());
        let actor = ActorId::new(JOB, THERE, 1);
        owner.meet_actor(actor);
        owner.on_actor_alive(actor, THERE, 0, &mut ears);
        let id = task_of(THERE, 1).object(1);
        let missing = owner.read_ref(RefName { id, owner: THERE }, &mut ears);
        Self { owner, ears, actor, missing, calls: 0 }
    }

    /// Calls the actor, and says how many calls it has been sent so far.
    fn call(&mut self, parent: TaskId, waits: bool) -> usize {
        self.calls += 1;
        let name = RefName { id: handle_object(self.actor), owner: THERE };
        let handle = Some(self.owner.read_ref(name, &mut self.ears));
        let mut refs = SmallVec::new();
        if waits {
            self.owner.add_ref(self.missing);
            refs.push(self.missing);
        }
        let spec = TaskSpec {
            id: TaskId::new(self.actor, HERE, self.calls),
            target: Target::Method {
                actor: self.actor,
                lane: 0,
                order: CallOrder::All,
                variant: FunctionId::NIL,
            },
            name: Arc::from("f"),
            returns: Returns::Fixed(1),
            args: SmallVec::new(),
            refs,
            nested: SmallVec::new(),
            handle,
            retries: 0,
            attempt: 0,
            recorded: false,
            parent,
        };
        self.owner.submit(spec, &mut self.ears);
        self.owner.validate();
        self.ears.tokens.len()
    }
}

fn task_of(process: ProcessId, counter: u64) -> TaskId {
    TaskId::new(ActorId::home(JOB, process), process, counter)
}

/// A task waited for ever for a call that stood behind one of an earlier task of the same worker,
/// which waited for what that task was to return.
#[test]
fn o6_calls_of_another_task_are_not_waited_for() {
    let mut caller = Caller::new();
    let (first, second) = (task_of(THERE, 7), task_of(THERE, 8));
    assert_eq!(caller.call(first, true), 0);
    assert_eq!(caller.call(second, false), 1, "it knows nothing of the first");
    assert_eq!(caller.call(first, false), 1, "behind its own");
    assert_eq!(caller.call(second, false), 2);
    let value = oxiray_wire::frame::Value {
        body: oxiray_wire::frame::Body::Inline(&[0]),
        contained: Vec::new(),
    };
    let id = caller.owner.id_of(caller.missing);
    caller.owner.on_object(id, value, &mut caller.ears);
    assert_eq!(caller.ears.tokens.len(), 4);
    caller.owner.validate();
}

/// What an actor's methods call is called by the actor.
#[test]
fn o6_calls_of_an_actor_or_a_driver_are_in_order() {
    let other = ActorId::new(JOB, THERE, 2);
    let methods = [TaskId::new(other, THERE, 1), TaskId::new(other, THERE, 2)];
    for parents in [methods, [TaskId::NIL; 2]] {
        let mut caller = Caller::new();
        assert_eq!(caller.call(parents[0], true), 0);
        assert_eq!(caller.call(parents[1], false), 0);
        assert_eq!(caller.call(parents[0], false), 0);
    }
}
