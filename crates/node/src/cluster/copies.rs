//! Objects that are brought here from other nodes: each once, however many ask.
//!
//! A copy is asked for at the node where the object was made, or where that node
//! says; room for it is waited for first, so that nobody holds bytes for us
//! meanwhile. Copies are the first to go when memory is short: they can be
//! brought again.

use std::collections::{BTreeMap, HashMap};

use oxiray_ids::{Origin, ProcessId, StoreKey};
use oxiray_store::Refusal;
use oxiray_wire::cluster::{self, Keys, Pull, PullAnswer, PullDone, between_nodes};
use oxiray_wire::control::{Lacking, PullObject, Refused, from_node};

use super::{draining, tell};
use crate::event::{Outbox, Transfer};
use crate::node::Node;
use crate::storage::{keeper, refused};

/// So often a copy is asked for anew when the bytes did not come.
const MOST_ATTEMPTS: u32 = 3;

/// How far a copy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Room is waited for.
    Room,
    /// There is room, and a node was asked.
    Asked(StoreKey, u32),
    /// Its bytes are coming from this node, by this grant.
    Coming(StoreKey, u32, u64),
    /// It can be looked at.
    Here(StoreKey),
}

#[derive(Debug)]
struct Copy {
    stage: Stage,
    len: u64,
    /// Who waits, by their own names.
    waiters: Vec<(ProcessId, u64)>,
    attempts: u32,
    /// Names it while it is asked for.
    request: u64,
    /// Its node is about to leave: once it is here, it is the object, of this owner.
    heir_of: Option<ProcessId>,
}

/// All copies of this node.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    by_origin: BTreeMap<Origin, Copy>,
    by_key: HashMap<StoreKey, Origin>,
    by_request: HashMap<u64, Origin>,
    last_request: u64,
    /// Whose bytes still come, but are not wanted any more: from which node, by which grant.
    unwanted: HashMap<StoreKey, (u32, u64)>,
}

impl Copies {
    /// The copy of an object, if it can be looked at.
    pub(super) fn complete(&self, origin: Origin) -> Option<StoreKey> {
        match self.by_origin.get(&origin)?.stage {
            Stage::Here(key) => Some(key),
            _ => None,
        }
    }
}

fn lost(text: impl Into<String>) -> Refused {
    Refused::new(Lacking::Object, text)
}

fn node_left() -> Refused {
    Refused::new(Lacking::Node, "the node where it was has left the cluster")
}

fn on_wire(origin: Origin) -> cluster::Origin {
    cluster::Origin { node: origin.node, key: origin.key.0 }
}

impl Node {
    /// A process wants an object of another node.
    pub(crate) fn on_want_copy(
        &mut self,
        from: ProcessId,
        wanted: &PullObject,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let refuse = |why: Refused, out: &mut dyn FnMut(from_node::Body)| {
            let refused = Some(why);
            let request = wanted.request;
            out(from_node::Body::Pulled(PullObject { request, refused, ..PullObject::default() }));
        };
        let origin = Origin { node: wanted.node, key: StoreKey(wanted.key) };
        if wanted.node == self.number {
            let why = lost("it was made at this node, and is not there any more");
            return refuse(why, &mut |body| out.send(from, body));
        }
        let member = &mut self.member;
        if let Some(copy) = member.copies.by_origin.get_mut(&origin) {
            match copy.stage {
                Stage::Here(key) => {
                    let (request, key) = (wanted.request, key.0);
                    let pulled = PullObject { request, key, ..PullObject::default() };
                    return out.send(from, from_node::Body::Pulled(pulled));
                }
                _ => return copy.waiters.push((from, wanted.request)),
            }
        }
        if !member.infos.contains_key(&origin.node) {
            return refuse(node_left(), &mut |body| out.send(from, body));
        }
        self.begin_copy(origin, wanted.len, vec![(from, wanted.request)], None, now, out);
    }

    fn begin_copy(
        &mut self,
        origin: Origin,
        len: u64,
        waiters: Vec<(ProcessId, u64)>,
        heir_of: Option<ProcessId>,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let (gateway, member) = (self.gateway(), &mut self.member);
        member.copies.last_request += 1;
        let request = member.copies.last_request;
        let copy = Copy { stage: Stage::Room, len, waiters, attempts: 0, request, heir_of };
        member.copies.by_origin.insert(origin, copy);
        member.copies.by_request.insert(request, origin);
        let (keeper, mut counter) = keeper!(self, out);
        keeper.on_allocate(gateway, request, len, gateway, now, &mut counter);
    }

    /// An object of a node that is about to leave is to be ours: brought here, if it is not yet.
    pub(super) fn copy_to_adopt(
        &mut self,
        origin: Origin,
        len: u64,
        owner: ProcessId,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let known = self.member.copies.by_origin.get_mut(&origin);
        match known.map(|copy| (copy.stage, &mut copy.heir_of)) {
            Some((Stage::Here(key), _)) => self.take_over(origin, key, owner, out),
            Some((_, heir_of)) => *heir_of = Some(owner),
            None => self.begin_copy(origin, len, Vec::new(), Some(owner), now, out),
        }
    }

    /// A copy is the object itself from now on, unless its owner is gone: then it stays one, and goes
    /// with the object.
    fn take_over(
        &mut self,
        origin: Origin,
        key: StoreKey,
        owner: ProcessId,
        out: &mut impl Outbox,
    ) {
        if !self.keeper.adopt(key, owner) {
            return draining::refuse(origin.node, origin.key.0, out);
        }
        let copies = &mut self.member.copies;
        copies.by_origin.remove(&origin);
        copies.by_key.remove(&key);
        self.tell_adopted(origin, key, owner, out);
    }

    /// The store has room for a copy, or has not.
    pub(crate) fn on_copy_room(
        &mut self,
        request: u64,
        answer: Result<StoreKey, Refusal>,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let member = &mut self.member;
        let wanted = member.copies.by_request.get(&request).copied();
        match (wanted, answer) {
            (Some(origin), Ok(key)) => {
                member.copies.by_key.insert(key, origin);
                self.ask_for_copy(origin, key, origin.node, now, out);
            }
            (Some(origin), Err(why)) => self.end_copy(origin, refused(why), now, out),
            (None, Ok(key)) => self.drop_copy_room(key, now, out),
            (None, Err(_)) => {}
        }
    }

    fn ask_for_copy(
        &mut self,
        origin: Origin,
        key: StoreKey,
        node: u32,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let number = self.number;
        let member = &mut self.member;
        // A node that was named by the origin may have left since.
        let gone = node == number || !member.infos.contains_key(&node);
        let node = if gone { origin.node } else { node };
        if node == number || !member.infos.contains_key(&node) {
            return self.end_copy(origin, node_left(), now, out);
        }
        let copy = member.copies.by_origin.get_mut(&origin).expect("is wanted");
        copy.stage = Stage::Asked(key, node);
        let pull = Pull { request: copy.request, origin: Some(on_wire(origin)) };
        tell(node, between_nodes::Body::Pull(pull), out);
    }

    /// A node lets us read an object, or sends us elsewhere, or refuses.
    pub(crate) fn on_pull_answer(
        &mut self,
        node: u32,
        answer: PullAnswer,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let done = |grant| PullDone { grant, complete: false };
        let member = &mut self.member;
        let copies = &mut member.copies;
        let origin = copies.by_request.get(&answer.request).copied();
        let Some((origin, copy)) =
            origin.and_then(|origin| Some((origin, copies.by_origin.get_mut(&origin)?)))
        else {
            if answer.grant != 0 {
                tell(node, between_nodes::Body::PullDone(done(answer.grant)), out);
            }
            return;
        };
        let key = match copy.stage {
            Stage::Asked(key, asked) if asked == node => key,
            // An answer to what was asked before a connection broke.
            _ => {
                if answer.grant != 0 {
                    tell(node, between_nodes::Body::PullDone(done(answer.grant)), out);
                }
                return;
            }
        };
        if let Some(refused) = answer.refused {
            // A node that was named by the origin may have let go of its copy.
            match node == origin.node {
                true => self.end_copy(origin, refused, now, out),
                false => self.ask_for_copy(origin, key, origin.node, now, out),
            }
        } else if answer.elsewhere != 0 {
            self.ask_for_copy(origin, key, answer.elsewhere, now, out);
        } else if answer.len != copy.len {
            tell(node, between_nodes::Body::PullDone(done(answer.grant)), out);
            self.end_copy(origin, lost("its length is not what it was said to be"), now, out);
        } else {
            copy.stage = Stage::Coming(key, node, answer.grant);
            let extent = self.keeper.extent(key);
            out.transfer(Transfer { node, grant: answer.grant, key, extent });
        }
    }

    /// The bytes of a copy are there, or will not be.
    pub(crate) fn on_transferred(
        &mut self,
        key: StoreKey,
        result: Result<(), String>,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let member = &mut self.member;
        let Some(origin) = member.copies.by_key.get(&key).copied() else {
            // Nobody wants it any more; the threads are done with its memory now.
            if let Some((node, grant)) = member.copies.unwanted.remove(&key) {
                let done = PullDone { grant, complete: false };
                tell(node, between_nodes::Body::PullDone(done), out);
            }
            return self.drop_copy_room(key, now, out);
        };
        let copy = member.copies.by_origin.get_mut(&origin).expect("has a key");
        let Stage::Coming(_, node, grant) = copy.stage else {
            return;
        };
        let complete = result.is_ok();
        tell(node, between_nodes::Body::PullDone(PullDone { grant, complete }), out);
        if let Err(why) = result {
            // The threads are done with its memory.
            copy.stage = Stage::Asked(key, node);
            copy.attempts += 1;
            if copy.attempts < MOST_ATTEMPTS {
                return self.ask_for_copy(origin, key, origin.node, now, out);
            }
            // Its node has left, or will be found to have.
            let why = Refused::new(Lacking::Node, why);
            return self.end_copy(origin, why, now, out);
        }
        copy.stage = Stage::Here(key);
        if node != origin.node {
            // It says when the object is freed, and only to those of whom it knows.
            let keys = Keys { keys: vec![origin.key.0], node: origin.node };
            tell(origin.node, between_nodes::Body::Holds(keys), out);
        }
        member.copies.by_request.remove(&copy.request);
        let (waiters, heir_of) = (std::mem::take(&mut copy.waiters), copy.heir_of);
        self.keeper.on_copied(key, now);
        for (to, request) in waiters {
            let pulled = PullObject { request, key: key.0, ..PullObject::default() };
            out.send(to, from_node::Body::Pulled(pulled));
        }
        if let Some(owner) = heir_of {
            self.take_over(origin, key, owner, out);
        }
    }

    /// A copy will not be.
    fn end_copy(&mut self, origin: Origin, why: Refused, now: u64, out: &mut impl Outbox) {
        let member = &mut self.member;
        let Some(copy) = member.copies.by_origin.remove(&origin) else {
            return;
        };
        member.copies.by_request.remove(&copy.request);
        if copy.heir_of.is_some() {
            draining::refuse(origin.node, origin.key.0, out);
        }
        for (to, request) in copy.waiters {
            let refused = Some(why.clone());
            let pulled = PullObject { request, refused, ..PullObject::default() };
            out.send(to, from_node::Body::Pulled(pulled));
        }
        match copy.stage {
            Stage::Room => {}
            Stage::Asked(key, _) | Stage::Here(key) => {
                member.copies.by_key.remove(&key);
                self.drop_copy_room(key, now, out);
            }
            // Threads are writing to its memory: `on_transferred` follows.
            Stage::Coming(key, node, grant) => {
                member.copies.by_key.remove(&key);
                member.copies.unwanted.insert(key, (node, grant));
            }
        }
    }

    fn drop_copy_room(&mut self, key: StoreKey, now: u64, out: &mut impl Outbox) {
        self.keeper.on_copied(key, now);
        let (keeper, mut counter) = keeper!(self, out);
        keeper.on_free(&[key], now, &mut counter);
    }

    /// The store let go of a copy, to have its memory.
    pub(crate) fn on_copy_gone(&mut self, key: StoreKey) {
        let copies = &mut self.member.copies;
        if let Some(origin) = copies.by_key.remove(&key) {
            copies.by_origin.remove(&origin);
        }
    }

    /// The node where objects were made has no more use for them.
    pub(crate) fn on_copies_freed(&mut self, freed: Keys, now: u64, out: &mut impl Outbox) {
        for key in freed.keys {
            let origin = Origin { node: freed.node, key: StoreKey(key) };
            self.end_copy(origin, lost("it was freed"), now, out);
        }
    }

    /// A node is gone: what was to come from it is asked for elsewhere, or is lost; and of its own
    /// objects nobody will say when they are freed.
    pub(crate) fn on_source_lost(&mut self, node: u32, now: u64, out: &mut impl Outbox) {
        let theirs = self.member.copies.by_origin.iter();
        let complete = |copy: &Copy| matches!(copy.stage, Stage::Here(_));
        let theirs: Vec<Origin> = theirs
            .filter(|(origin, copy)| origin.node == node && complete(copy))
            .map(|(origin, _)| *origin)
            .collect();
        for origin in theirs {
            self.end_copy(origin, node_left(), now, out);
        }
        let asked = |copy: &Copy| match copy.stage {
            Stage::Asked(key, source) if source == node => Some(key),
            _ => None,
        };
        let copies = self.member.copies.by_origin.iter();
        let again: Vec<(Origin, StoreKey)> =
            copies.filter_map(|(origin, copy)| Some((*origin, asked(copy)?))).collect();
        for (origin, key) in again {
            self.ask_for_copy(origin, key, origin.node, now, out);
        }
    }

    /// A process is gone, and waits for no copy.
    pub(crate) fn forget_copy_waiter(&mut self, process: ProcessId) {
        for copy in self.member.copies.by_origin.values_mut() {
            copy.waiters.retain(|(waiter, _)| *waiter != process);
        }
    }
}
