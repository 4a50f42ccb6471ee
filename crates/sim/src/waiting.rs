//! How programs wait: for time, for values, for their node; and how they lend their CPUs meanwhile,
//! as `crates/worker/src/runtime.rs` and `crates/python/src/access.rs` do it.

use oxiray_ids::{ActorId, ObjectId, Origin, ProcessId};
use oxiray_owner::{Content, ObjectKey, Outbox};
use oxiray_wire::control::{Empty, to_node};
use oxiray_wire::frame::{FailureCode, Frame};

use crate::desk::{Reply, Unread};
use crate::happening::Happening;
use crate::plan::{MILLISECOND, SECOND};
use crate::world::World;

/// A task that waits longer than this lends its CPUs.
const BLOCKED_AFTER: u64 = MILLISECOND;
/// How long other news of a value whose node has left are waited for.
const MAKE_AGAIN_WITHIN: u64 = 10 * SECOND;

/// What a look is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Argument,
    Get(ObjectKey),
}

/// What the program of a process waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    Nothing,
    /// That time passes.
    Sleep,
    /// An object is complete.
    Complete(ObjectKey),
    /// It is known that an object is not at this node any more.
    Elsewhere(ObjectKey, u32),
    /// The node's word on an object of the store.
    Look {
        origin: Origin,
        len: u64,
        purpose: Purpose,
        request: u64,
    },
    /// Room in the store.
    Room {
        request: u64,
        bytes: Vec<u8>,
        owner: ProcessId,
    },
    /// A name for an actor.
    Name(ActorId),
    /// What its actor is made from.
    Constructor,
}

impl World {
    pub(crate) fn wait_for(&mut self, id: ProcessId, waiting: Waiting) -> u64 {
        let process = self.process_mut(id);
        process.waiting = waiting;
        process.wait += 1;
        process.wait
    }

    /// A wait of a program is over.
    pub(crate) fn reply(&mut self, id: ProcessId, reply: Reply) {
        self.process_mut(id).waiting = Waiting::Nothing;
        self.poll(id, Some(reply));
    }

    /// The time that a program slept for has passed.
    pub(crate) fn wake(&mut self, id: ProcessId, wait: u64) {
        if self.lives(id) && self.processes[&id].wait == wait {
            self.end_lending_cpus(id);
            match self.processes[&id].waiting {
                Waiting::Sleep => self.reply(id, Reply::Done),
                // It is still where it cannot be read.
                Waiting::Elsewhere(key, _) => {
                    let id_of = self.processes[&id].owner.id_of(key);
                    self.judge_fault(FailureCode::ObjectLost, id_of, "its node left");
                    self.reply(id, Reply::Bytes(Err(Unread::Fault)));
                }
                _ => {}
            }
            self.take_work(id);
        }
    }

    /// What a program waits for may be there by now.
    pub(crate) fn advance(&mut self, id: ProcessId) {
        if !self.lives(id) {
            return;
        }
        let reply = match self.processes[&id].waiting {
            Waiting::Complete(key) => self.get_goes_on(id, key),
            Waiting::Elsewhere(key, node) => self.elsewhere(id, key, node),
            _ => None,
        };
        if let Some(reply) = reply {
            self.reply(id, reply);
        }
    }

    pub(crate) fn get_goes_on(&mut self, id: ProcessId, key: ObjectKey) -> Option<Reply> {
        let content = self.processes[&id].owner.content(key).cloned();
        let Some(content) = content else {
            self.with(id, |owner, out| owner.want(key, out));
            return None;
        };
        self.end_lending_cpus(id);
        self.process_mut(id).waiting = Waiting::Nothing;
        let object = self.processes[&id].owner.id_of(key);
        match content {
            Content::Inline(bytes) => Some(self.got(object, Ok(bytes.to_vec()))),
            Content::Failed(failure) => {
                let unread = self.judge(object, &failure);
                Some(self.got(object, Err(unread)))
            }
            Content::Stored { origin, len } => self.look(id, origin, len, Purpose::Get(key)),
        }
    }

    /// A value was at a node that has left: whether something else is known of it by now.
    pub(crate) fn elsewhere(&mut self, id: ProcessId, key: ObjectKey, node: u32) -> Option<Reply> {
        if self.process_mut(id).owner.is_still_at(key, node) {
            return None;
        }
        self.wait_for(id, Waiting::Complete(key));
        let reply = self.get_goes_on(id, key);
        if reply.is_none() {
            self.lend_soon(id);
        }
        reply
    }

    pub(crate) fn got(&mut self, object: ObjectId, read: Result<Vec<u8>, Unread>) -> Reply {
        self.progress();
        if let Ok(bytes) = &read {
            self.check_value(object, bytes);
        }
        self.report.gets += 1;
        self.report.faults += u64::from(read == Err(Unread::Fault));
        Reply::Bytes(read)
    }

    /// A look at an object of `node` has ended.
    pub(crate) fn looked(
        &mut self,
        id: ProcessId,
        node: u32,
        purpose: Purpose,
        read: Result<Vec<u8>, Unread>,
    ) -> Option<Reply> {
        match (purpose, read) {
            (Purpose::Get(key), Err(Unread::NodeLeft)) => {
                // That it is not there any more comes first; then it may take its time.
                let wait = self.wait_for(id, Waiting::Elsewhere(key, node));
                self.agenda.add(self.now + MAKE_AGAIN_WITHIN, Happening::Wake(id, wait));
                self.lend_soon(id);
                self.elsewhere(id, key, node)
            }
            (Purpose::Get(key), read) => {
                let object = self.processes[&id].owner.id_of(key);
                Some(self.got(object, read))
            }
            (Purpose::Argument, read) => Some(Reply::Bytes(read)),
        }
    }

    pub(crate) fn lend_soon(&mut self, id: ProcessId) {
        let process = &self.processes[&id];
        if process.execution.is_some() && process.lent.is_none() {
            self.agenda.add(self.now + BLOCKED_AFTER, Happening::Lend(id, process.wait));
        }
    }

    /// A task has waited for long: it lends its CPUs, and what is queued behind it may go.
    pub(crate) fn lend_cpus(&mut self, id: ProcessId, wait: u64) {
        let Some(process) = self.processes.get_mut(&id).filter(|process| !process.leaves) else {
            return;
        };
        let waits = matches!(process.waiting, Waiting::Complete(_) | Waiting::Elsewhere(..));
        let (true, Some(execution), None) = (waits, &process.execution, &process.lent) else {
            return;
        };
        if process.wait != wait {
            return;
        }
        let queued = process.queue.iter().map(|queued| queued.giver);
        let mut told: Vec<ProcessId> =
            queued.chain([execution.giver]).chain(process.answered).collect();
        told.sort_unstable();
        told.dedup();
        process.lent = Some(told.clone());
        self.machines[process.machine].has_lent = true;
        self.vacate(id);
        self.with(id, |_, out| {
            out.io.tell_node(to_node::Body::Blocked(Empty {}));
            told.iter().for_each(|peer| out.send(*peer, &Frame::Blocked));
        });
    }

    pub(crate) fn end_lending_cpus(&mut self, id: ProcessId) {
        if let Some(told) = self.process_mut(id).lent.take() {
            self.with(id, |_, out| {
                out.io.tell_node(to_node::Body::Unblocked(Empty {}));
                told.iter().for_each(|peer| out.send(*peer, &Frame::Unblocked));
            });
        }
    }
}
