//! Whether what programs get is right: the value that the oracle foresaw, or a failure that
//! something which went wrong in this run explains (S-1).

use oxiray_ids::{ActorId, ObjectId, Origin, ProcessId};
use oxiray_owner::{Content, Failure, ObjectKey};
use oxiray_wire::frame::FailureCode;

use crate::desk::Unread;
use crate::executing::exception;
use crate::oracle::{BROKEN, Fate};
use crate::parcel;
use crate::process::Execution;
use crate::world::World;

/// What went wrong so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Faults {
    /// Processes that were ended in the middle of something,
    pub(crate) processes: u64,
    /// nodes that died,
    pub(crate) nodes: u64,
    /// connections that broke,
    pub(crate) links: u64,
    /// actors that ended with their last handle, and with them what they owned,
    pub(crate) exits: u64,
    /// actors whose node left in good order, which interrupts their calls,
    pub(crate) moved: u64,
    /// and actors that were killed.
    pub(crate) actors: std::collections::BTreeSet<ActorId>,
}

impl Faults {
    /// Whether a failure of this kind follows from them. Where all owners are programs that live
    /// and everything is tried for ever, only a connection that breaks is an excuse.
    fn explain(&self, code: FailureCode, sturdy: bool) -> bool {
        let broken = self.links > 0;
        let died = self.processes + self.nodes > 0 && !sturdy;
        let killed = !self.actors.is_empty();
        match code {
            FailureCode::WorkerCrashed => broken || died,
            FailureCode::ActorDied | FailureCode::ActorUnavailable | FailureCode::ActorCreation => {
                broken || died || killed || self.moved > 0
            }
            FailureCode::TaskError
            | FailureCode::OwnerDied
            | FailureCode::ObjectLost
            | FailureCode::Unrecoverable => broken || died || killed || self.exits > 0,
            _ => false,
        }
    }
}

impl World {
    /// The value of an object is the one that was foreseen.
    pub(crate) fn check_value(&self, object: ObjectId, bytes: &[u8]) {
        let foreseen = &self.expected[&object];
        assert!(bytes.len() > 8, "S-1: {object} has the bytes of another: {bytes:?}");
        let value = parcel::read(bytes);
        let right = match &**foreseen {
            Fate::Value { number, inner } => {
                *number == value.number && inner.len() == value.inner.len()
            }
            Fate::Raised(_) | Fate::Broken => false,
        };
        assert!(right, "S-1: {object} is {:x}, not {foreseen:?}", value.number);
    }

    /// What a task is about to return is what was foreseen.
    pub(crate) fn check_returns(
        &self,
        execution: &Execution,
        values: &[(Content, Vec<ObjectKey>)],
    ) {
        assert_eq!(values.len(), execution.returns as usize);
        for (index, (content, _)) in (1..).zip(values) {
            if let Content::Inline(bytes) = content {
                self.check_value(execution.task.object(index), bytes);
            }
        }
    }

    /// An object failed: as foreseen, or by a fault of this run.
    pub(crate) fn judge(&self, object: ObjectId, failure: &Failure) -> Unread {
        let foreseen = match &*self.expected[&object] {
            Fate::Raised(number) if *failure.data == *exception(Some(*number)) => Some(*number),
            Fate::Broken
                if matches!(failure.code, FailureCode::ActorDied | FailureCode::ActorCreation) =>
            {
                Some(BROKEN)
            }
            _ => None,
        };
        match foreseen {
            Some(number) => Unread::Raised(number),
            None => {
                self.judge_fault(failure.code, object, &failure.message);
                Unread::Fault
            }
        }
    }

    /// Something broke that was not to: a fault of this run is the cause.
    pub(crate) fn judge_fault(&self, code: FailureCode, object: ObjectId, message: &str) {
        assert!(
            self.faults.explain(code, self.plan.menu.sturdy),
            "S-1: {object} failed and nothing explains it: {code:?}: {message}, not {:?}; {:?}",
            self.expected[&object],
            self.faults,
        );
    }

    /// An object is not in the store where it was said to be.
    pub(crate) fn gone(&self, id: ProcessId, origin: Origin, why: &str) {
        assert!(
            self.faults.explain(FailureCode::ObjectLost, self.plan.menu.sturdy),
            "S-1: {id} looked for {origin:?}: {why}; {:?}",
            self.faults
        );
    }
}
