//! The channels between processes, with everything else that an owner says to the outside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use oxiray_ids::{ActorId, ObjectId, Origin, ProcessId, TaskId};
use oxiray_wire::frame::{self, Frame};

use super::node::Node;
use super::user::call_order;
use crate::object::{Failure, ObjectKey};
use crate::owner::Outbox;
use crate::{Attempt, CallOrder, Change};

/// Everything between processes.
#[derive(Default)]
pub(super) struct Net {
    pub(super) channels: BTreeMap<(u64, u64), VecDeque<Vec<u8>>>,
    /// Tasks that were offered and neither taken nor taken back.
    pub(super) claims: BTreeSet<u64>,
    numbers: u64,
    pub(super) node: Node,
    pub(super) dead: BTreeSet<u64>,
    /// Objects of the store, and whether they were freed.
    pub(super) extents: BTreeMap<u64, bool>,
    /// At which node's store a value is.
    pub(super) stored: BTreeMap<ObjectId, u32>,
    /// Nodes that have left.
    pub(super) lost: BTreeSet<u32>,
    /// Tasks that workers have, by caller and token.
    pub(super) tasks: BTreeMap<(u64, u64), TaskId>,
    /// Whose failure a task's returns may be.
    pub(super) arguments: BTreeMap<TaskId, Vec<ObjectId>>,
    pub(super) ready: Vec<ObjectKey>,
    /// Errors that went unseen.
    pub(super) unhandled: Vec<Arc<Failure>>,
    /// What was said of tasks for the record.
    pub(super) recorded: BTreeMap<TaskId, Recorded>,
    /// Calls that a process was sent, unless it said that they may go again.
    sent_to: BTreeSet<(TaskId, u64)>,
    /// The last call that a caller pushed to a lane of an actor.
    pub(super) pushed: BTreeMap<(u64, ActorId, u16), u64>,
}

/// The newest attempt of a task, for who looks at the record.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Recorded {
    attempt: u16,
    is_sent: bool,
    has_failed: bool,
    /// It is a constructor, and has returned.
    pub(super) constructed: bool,
}

/// The world as one process sees it.
pub(super) struct Side<'a> {
    pub(super) net: &'a mut Net,
    pub(super) from: u64,
}

impl Net {
    /// A worker says that it could not begin, or that it raised: it has put that on record, and
    /// the call may be pushed again, behind others.
    pub(super) fn may_go_again(&mut self, caller: u64, token: u64) {
        if let Some(task) = self.tasks.get(&(caller, token)).copied() {
            self.recorded.entry(task).or_default().has_failed = true;
            self.sent_to.retain(|(sent, _)| *sent != task);
            self.forget_order(caller, task.actor());
        }
    }

    /// What a caller pushes to an actor next may come in any order.
    pub(super) fn forget_order(&mut self, caller: u64, actor: ActorId) {
        self.pushed.retain(|(from, of, _), _| (*from, *of) != (caller, actor));
    }
}

impl Outbox for Side<'_> {
    fn push_task(&mut self, peer: ProcessId, mut task: frame::Task<'_>, claimable: bool) -> u64 {
        if claimable {
            self.net.numbers += 1;
            task.number = self.net.numbers;
            self.net.claims.insert(task.number);
        } else {
            let serial = u64::from_le_bytes(task.args.try_into().expect("a serial"));
            let (actor, lane) = (task.id.actor(), task.lane);
            let last = match call_order(actor) {
                CallOrder::All => self.net.pushed.insert((self.from, actor, 0), serial),
                CallOrder::Lane => self.net.pushed.insert((self.from, actor, lane), serial),
                CallOrder::Free => None,
            };
            assert!(last < Some(serial), "O-6: call {serial} pushed after {last:?}");
            assert!(self.net.sent_to.insert((task.id, peer.0)), "O-9: {} goes twice", task.id);
            assert_eq!(task.incarnation, self.net.node.incarnation_at(actor, peer.0), "O-9");
        }
        let recorded = self.net.recorded.entry(task.id).or_default();
        assert!(!recorded.is_sent, "sent, and not back when it is sent again: {recorded:?}");
        recorded.is_sent = true;
        self.net.tasks.insert((self.from, task.token), task.id);
        let number = task.number;
        self.send(peer, &Frame::Task(task));
        number
    }

    fn take_back(&mut self, _peer: ProcessId, number: u64) -> bool {
        self.net.claims.remove(&number)
    }

    fn send(&mut self, peer: ProcessId, frame: &Frame<'_>) {
        // An actor may call itself; nobody asks itself about references.
        let asks = matches!(frame, Frame::Borrow(_) | Frame::Release(_) | Frame::WantObject(_));
        assert!(peer.0 != self.from || !asks, "{frame:?} to itself");
        if self.net.dead.contains(&peer.0) {
            self.net.node.tell_of_death(self.from, peer.0);
            return;
        }
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.net.channels.entry((self.from, peer.0)).or_default().push_back(bytes);
    }

    fn set_demand(&mut self, shape: u32, requested_total: u64, _tasks: &str) {
        self.net.node.demand.entry((self.from, shape)).or_default().0 = requested_total;
    }

    fn return_lease(&mut self, lease: u64) {
        self.net.node.returned(lease, self.from);
    }

    fn near_shape(&mut self, _shape: u32, node: u32) {
        unreachable!("no argument here is worth going to {node} for");
    }

    fn take_stored(&mut self, origin: Origin) {
        let freed = self.net.extents.get(&origin.key.0);
        assert_eq!(freed, Some(&false), "{origin:?} is taken up before its end");
    }

    fn free_stored(&mut self, origin: Origin) {
        let freed = self.net.extents.insert(origin.key.0, true);
        assert_eq!(freed, Some(false), "{origin:?} is freed once");
    }

    fn task_changed(&mut self, attempt: Attempt, change: Change<'_>) {
        let recorded = self.net.recorded.entry(attempt.task).or_default();
        match change {
            Change::Ready => recorded.is_sent = false,
            Change::Answered(_) => assert!(!attempt.task.actor().is_home(), "no constructor"),
            Change::Failed { .. } => {
                assert!(!recorded.constructed, "it has returned: {recorded:?}");
                recorded.has_failed = true;
            }
            Change::Retried { .. } => {
                assert!(recorded.attempt < attempt.number, "{} after {recorded:?}", attempt.number);
                *recorded = Recorded { attempt: attempt.number, ..Recorded::default() };
            }
        }
    }

    fn unhandled(&mut self, failure: Arc<Failure>) {
        self.net.unhandled.push(failure);
    }

    fn object_ready(&mut self, key: ObjectKey) {
        self.net.ready.push(key);
    }

    fn create_actor(&mut self, actor: ActorId, constructor: frame::Task<'_>) {
        let mut bytes = Vec::new();
        Frame::Task(constructor).encode(&mut bytes);
        self.net.node.create(actor, self.from, bytes);
    }

    fn kill_actor(&mut self, actor: ActorId, _reason: &str) {
        self.net.node.kill(actor);
    }

    fn release_name(&mut self, _actor: ActorId) {}
}
