//! References that cross processes.
//!
//! Whoever gives a reference away holds it until its owner knows the receiver:
//!
//! - With a task's arguments: the submitter holds them while the task runs. The
//!   answer lists what the worker goes on holding. If the submitter owns it, it
//!   counts the worker as a borrower then and there; otherwise it holds on until
//!   the worker has registered with the owner and says `SettledArgs`.
//! - With a task's returns: the worker holds what they contain until the
//!   submitter has registered with the owners and says `SettledReturns`.
//! - With an object's value: the object holds what it contains, and the
//!   receiver does not let go of the object before it has registered.
//!
//! A borrower says `Release` when nothing in it counts on the reference.
//! Messages between two processes keep their order.

use oxiray_ids::{ObjectId, ProcessId};
use oxiray_wire::frame::{Answer, FailureCode, Frame, RefName, Value};

use crate::object::{Content, Object, ObjectKey, Registration, Settle};
use crate::owner::{Held, Outbox, Owner};

impl Owner {
    /// A reference that came in by name, counted once more.
    pub fn adopt(&mut self, name: RefName) -> ObjectKey {
        if let Some(key) = self.by_id.get(&name.id) {
            let key = *key;
            self.add_ref(key);
            return key;
        }
        let owner = (name.owner != self.process).then_some(name.owner);
        let mut object = Object::new(name.id, owner);
        object.named = true;
        match owner {
            // It says that it is ours, and we have forgotten it.
            None => object.content = Some(lost()),
            Some(owner) if self.dead.contains(&owner) => object.content = Some(owner_died()),
            Some(_) => {}
        }
        self.failures += u64::from(object.content.is_some());
        let key = self.insert(object);
        self.by_id.insert(name.id, key);
        key
    }

    /// A reference that was read from bytes, counted once more. What came with
    /// a task or value is known already and held for us; anything else came out
    /// of band, and its owner is told at once.
    pub fn read_ref(&mut self, name: RefName, out: &mut impl Outbox) -> ObjectKey {
        if let Some(key) = self.by_id.get(&name.id).copied() {
            self.add_ref(key);
            return key;
        }
        let key = self.adopt(name);
        self.register(key, None, out);
        key
    }

    /// Counts on the object of this id, if one is held here. It is rarely asked for: those whose
    /// names never left this process are looked for one by one.
    pub fn find_ref(&mut self, id: ObjectId) -> Option<ObjectKey> {
        let is_it = |(_, object): &(usize, &Object)| object.id == id && object.is_held();
        let held = || self.objects.iter().find(is_it).map(|(index, _)| ObjectKey(index as u32));
        let key = self.by_id.get(&id).copied().or_else(held)?;
        self.add_ref(key);
        Some(key)
    }

    /// Tells the owner of a foreign object that we hold it. With `settle`, says
    /// whether the owner's confirmation must be waited for.
    fn register(&mut self, key: ObjectKey, settle: Option<Settle>, out: &mut impl Outbox) -> bool {
        let object = &mut self.objects[key.index()];
        // The dead confirm nothing.
        let Some(owner) = object.owner.filter(|owner| !self.dead.contains(owner)) else {
            return false;
        };
        if object.registration == Registration::Unknown {
            object.registration = Registration::Told;
            let id = object.id;
            out.send(owner, &Frame::Borrow(id));
        }
        let object = &mut self.objects[key.index()];
        match settle {
            Some(settle) if object.registration == Registration::Told => {
                object.rare().settles.push(settle);
                true
            }
            _ => false,
        }
    }

    /// A process gives us the content of a task it pushed: references in it,
    /// each counted once until [`Self::end_task`].
    pub fn begin_task(&mut self, names: impl Iterator<Item = RefName>) -> Vec<ObjectKey> {
        names.map(|name| self.adopt(name)).collect()
    }

    /// A task pushed by `giver` ended here: which of its references go on being held.
    pub fn end_task(
        &mut self,
        giver: ProcessId,
        token: u64,
        mut held: Vec<ObjectKey>,
        out: &mut impl Outbox,
    ) -> Vec<ObjectId> {
        // The task's counts go first: a reference that came twice is not held for that.
        for key in &held {
            self.objects[key.index()].refs -= 1;
        }
        held.sort_unstable();
        held.dedup();
        let mut retained = Vec::new();
        for key in &held {
            let object = &mut self.objects[key.index()];
            // The giver must also hold what protects references that we took out of it.
            let unsettled = object.rare.as_ref().is_some_and(|rare| rare.unsettled > 0);
            if (object.refs == 0 && !unsettled) || object.registration == Registration::Known {
                continue;
            }
            let id = object.id;
            if object.owner == Some(giver) {
                // It counts us when it reads the answer, or has been told before that.
                if object.registration == Registration::Unknown {
                    object.registration = Registration::Known;
                    retained.push(id);
                }
            } else if self.register(*key, Some(Settle::Args { giver, token }), out) {
                retained.push(id);
                *self.settling_args.entry((giver, token, 0)).or_insert(0) += 1;
            }
        }
        for key in held {
            self.free_if_unused(key, out);
        }
        retained
    }

    /// References inside what we return to `receiver`: held until it says so.
    /// `item`: which of those that the call yields; 0: its answer.
    pub fn hand_over(&mut self, receiver: ProcessId, token: u64, item: u32, keys: Vec<ObjectKey>) {
        if self.dead.contains(&receiver) {
            // It will not say so: they go with the next tick.
            self.orphans.extend(keys);
        } else if !keys.is_empty() {
            self.handed_over.insert((receiver, token, item), keys);
        }
    }

    /// The answer of `peer` lists what it goes on holding: count it, or hold on for it.
    pub(crate) fn keep_for_borrower(&mut self, peer: ProcessId, answer: &Answer<'_>) {
        for id in &answer.retained {
            let Some(key) = self.by_id.get(id).copied() else {
                continue;
            };
            if self.objects[key.index()].owner.is_none() {
                let borrowers = &mut self.objects[key.index()].rare().borrowers;
                if !borrowers.contains(&peer) {
                    borrowers.push(peer);
                }
            } else {
                self.add_ref(key);
                self.held_for_args.entry((peer, answer.token, 0)).or_default().push(key);
            }
        }
    }

    /// Lets go what an answer hands over and nobody takes up; or an item that was yielded.
    pub(crate) fn decline_contained(
        peer: ProcessId,
        token: u64,
        item: u32,
        values: &[Value<'_>],
        out: &mut impl Outbox,
    ) {
        if values.iter().any(|value| !value.contained.is_empty()) {
            out.send(peer, &Frame::SettledReturns(token, item));
        }
    }

    /// Takes up the references in an answer, or in an item, and tells their owners.
    pub(crate) fn receive_contained(
        &mut self,
        peer: ProcessId,
        token: u64,
        item: u32,
        values: &[Value<'_>],
        out: &mut impl Outbox,
    ) -> Vec<Vec<ObjectKey>> {
        if values.iter().all(|value| value.contained.is_empty()) {
            return Vec::new();
        }
        let mut pending = 0;
        let contained = values
            .iter()
            .map(|value| {
                let mut keys = Vec::with_capacity(value.contained.len());
                for name in &value.contained {
                    let key = self.adopt(*name);
                    keys.push(key);
                    // What the giver owns it reads in order: no need to wait for its word.
                    let settle = (name.owner != peer).then_some(Settle::Returns {
                        giver: peer,
                        token,
                        item,
                    });
                    pending += u32::from(self.register(key, settle, out));
                }
                keys
            })
            .collect();
        if pending == 0 {
            out.send(peer, &Frame::SettledReturns(token, item));
        } else {
            self.settling_returns.insert((peer, token, item), pending);
        }
        contained
    }

    /// The owner sent a value that we wanted.
    pub fn on_object(&mut self, id: ObjectId, value: Value<'_>, out: &mut impl Outbox) {
        let Some(key) = self.by_id.get(&id).copied() else {
            return;
        };
        let object = &self.objects[key.index()];
        // What is ours nobody else gives a value.
        if object.content.is_some() || object.owner.is_none() {
            return;
        }
        let mut contained = Vec::with_capacity(value.contained.len());
        for name in &value.contained {
            let inner = self.adopt(*name);
            contained.push(inner);
            if self.register(inner, Some(Settle::Outer(key)), out) {
                self.objects[key.index()].rare().unsettled += 1;
            }
        }
        if !contained.is_empty() {
            self.objects[key.index()].rare().contained = contained;
        }
        self.complete(key, Content::from_body(&value.body), out);
    }

    /// Gives an object of ours to another process to own: our reference to it,
    /// counted once. `contained` as in [`Self::put`]. Until it
    /// [is settled](Self::is_settled) nobody else may hear of it: its owner
    /// might not know it yet.
    pub fn entrust(
        &mut self,
        id: ObjectId,
        to: ProcessId,
        content: Content,
        contained: Vec<ObjectKey>,
        out: &mut impl Outbox,
    ) -> ObjectKey {
        if to == self.process {
            return self.put(id, content, contained);
        }
        let mut object = Object::new(id, Some(to));
        object.named = true;
        let dead = self.dead.contains(&to);
        object.registration = if dead { Registration::Unknown } else { Registration::Told };
        object.content = Some(if dead { owner_died() } else { content });
        self.stamp += 1;
        object.stamp = self.stamp;
        if !contained.is_empty() {
            // Ours until the new owner has registered with theirs, and after that a
            // part of the value that we have.
            object.rare().contained = contained;
        }
        let key = self.insert(object);
        self.by_id.insert(id, key);
        if !dead {
            let contained = self.names_of_contained(key);
            let body = self.content(key).expect("just given").as_body();
            out.send(to, &Frame::Entrust(id, Value { body, contained }));
        }
        key
    }

    /// Whether the owner of an object knows that we hold it, or can never know.
    pub fn is_settled(&self, key: ObjectKey) -> bool {
        self.objects[key.index()].registration != Registration::Told
    }

    /// Another process made an object for us to own, and holds it.
    pub fn on_entrusted(
        &mut self,
        peer: ProcessId,
        id: ObjectId,
        value: Value<'_>,
        out: &mut impl Outbox,
    ) {
        if self.by_id.contains_key(&id) {
            // Ids are used once: that is no new object.
            return out.send(peer, &Frame::Borrowed(id));
        }
        let content = Content::from_body(&value.body);
        if let Content::Stored { origin, .. } = content {
            out.take_stored(origin);
        }
        let keys: Vec<ObjectKey> = value.contained.iter().map(|name| self.adopt(*name)).collect();
        let outer = self.put(id, content, keys.clone());
        self.name(outer);
        self.objects[outer.index()].rare().borrowers.push(peer);
        self.objects[outer.index()].rare().entrusted_by = Some(peer);
        for inner in keys {
            if self.register(inner, Some(Settle::Outer(outer)), out) {
                self.objects[outer.index()].rare().unsettled += 1;
            }
        }
        self.confirm_entrusted(outer, out);
        self.drop_ref(outer, out);
    }

    /// Says to whoever entrusted an object to us that it may let go, once
    /// everything in it is ours to hold.
    fn confirm_entrusted(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        let object = &mut self.objects[key.index()];
        let Some(rare) = &mut object.rare else { return };
        if rare.unsettled == 0
            && let Some(peer) = rare.entrusted_by.take()
        {
            out.send(peer, &Frame::Borrowed(object.id));
        }
    }

    /// Frees an object's value, whoever holds references to it.
    pub fn free_value(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        let object = &mut self.objects[key.index()];
        if let Some(owner) = object.owner {
            out.send(owner, &Frame::FreeObject(object.id));
        }
        // What is not there yet cannot be freed: its task goes on.
        let Some(content) = &mut object.content else { return };
        if matches!(content, Content::Failed(_)) {
            return;
        }
        let old = std::mem::replace(content, freed());
        let ours = object.owner.is_none();
        let contained = object.rare.as_mut().map(|rare| std::mem::take(&mut rare.contained));
        self.failures += 1;
        if let (true, Content::Stored { origin, .. }) = (ours, old) {
            out.free_stored(origin);
        }
        for inner in contained.unwrap_or_default() {
            self.drop_ref(inner, out);
        }
    }

    /// A borrower wants the value of one of ours freed.
    pub fn on_free(&mut self, id: ObjectId, out: &mut impl Outbox) {
        if let Some(key) = self.by_id.get(&id).copied() {
            self.free_value(key, out);
        }
    }

    /// Another process holds one of ours.
    pub fn on_borrow(&mut self, peer: ProcessId, id: ObjectId, out: &mut impl Outbox) {
        if let Some(key) = self.by_id.get(&id) {
            let borrowers = &mut self.objects[key.index()].rare().borrowers;
            if !borrowers.contains(&peer) {
                borrowers.push(peer);
            }
        }
        out.send(peer, &Frame::Borrowed(id));
    }

    /// Another process no longer holds one of ours.
    pub fn on_release(&mut self, peer: ProcessId, id: ObjectId, out: &mut impl Outbox) {
        if let Some(key) = self.by_id.get(&id).copied() {
            self.objects[key.index()].rare().borrowers.retain(|other| *other != peer);
            self.free_if_unused(key, out);
        }
    }

    /// A borrower wants the value of one of ours.
    pub fn on_want(&mut self, peer: ProcessId, id: ObjectId, out: &mut impl Outbox) {
        let Some(key) = self.by_id.get(&id).copied() else {
            let body = lost();
            let value = Value { body: body.as_body(), contained: Vec::new() };
            return out.send(peer, &Frame::Object(id, value));
        };
        if self.content(key).is_some() {
            self.send_value(peer, key, out);
        } else {
            self.objects[key.index()].rare().remote_waiters.push(peer);
            self.want(key, out);
        }
    }

    /// An owner confirmed that it counts us.
    pub fn on_borrowed(&mut self, id: ObjectId, out: &mut impl Outbox) {
        let Some(key) = self.by_id.get(&id).copied() else {
            return;
        };
        let object = &mut self.objects[key.index()];
        object.registration = Registration::Known;
        self.settle_all(key, out);
        self.free_if_unused(key, out);
    }

    fn settle_all(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        let Some(rare) = &mut self.objects[key.index()].rare else {
            return;
        };
        for settle in std::mem::take(&mut rare.settles) {
            match settle {
                Settle::Args { giver, token } => {
                    if count_down(&mut self.settling_args, (giver, token, 0)) {
                        out.send(giver, &Frame::SettledArgs(token));
                    }
                }
                Settle::Returns { giver, token, item } => {
                    if count_down(&mut self.settling_returns, (giver, token, item)) {
                        out.send(giver, &Frame::SettledReturns(token, item));
                    }
                }
                Settle::Outer(outer) => {
                    self.objects[outer.index()].rare().unsettled -= 1;
                    self.confirm_entrusted(outer, out);
                    self.free_if_unused(outer, out);
                }
            }
        }
    }

    /// A worker has registered everything it retained of a task of ours.
    pub fn on_settled_args(&mut self, peer: ProcessId, token: u64, out: &mut impl Outbox) {
        for key in self.held_for_args.remove(&(peer, token, 0)).unwrap_or_default() {
            self.drop_ref(key, out);
        }
    }

    /// A submitter has registered everything in our answer, or in an item that we yielded.
    pub fn on_settled_returns(
        &mut self,
        peer: ProcessId,
        token: u64,
        item: u32,
        out: &mut impl Outbox,
    ) {
        for key in self.handed_over.remove(&(peer, token, item)).unwrap_or_default() {
            self.drop_ref(key, out);
        }
    }

    /// A process is gone: nothing is held for it any more, and what it owned is lost.
    pub(crate) fn forget_borrower(&mut self, peer: ProcessId, out: &mut impl Outbox) {
        let mut released = Vec::new();
        for held in [&mut self.held_for_args, &mut self.handed_over] {
            held.retain(|(other, ..), keys| {
                let stays = *other != peer;
                if !stays {
                    released.append(keys);
                }
                stays
            });
        }
        self.settling_args.retain(|(giver, ..), _| *giver != peer);
        self.settling_returns.retain(|(giver, ..), _| *giver != peer);
        for key in released {
            self.drop_ref(key, out);
        }
        let known: Vec<ObjectKey> = self.by_id.values().copied().collect();
        for key in known {
            let Some(object) = self.objects.get_mut(key.index()) else {
                continue;
            };
            if object.owner == Some(peer) {
                // No message to it will be answered: settle what waits for its word.
                object.registration = Registration::Unknown;
                if let Some(Content::Stored { .. }) = object.content {
                    // The store frees what the dead owned.
                    object.content = Some(owner_died());
                    self.failures += 1;
                }
                self.settle_all(key, out);
                // Settling may have freed what contained it, and it with that.
                if self.objects.get(key.index()).is_some_and(|object| object.content.is_none()) {
                    self.complete(key, owner_died(), out);
                }
                self.free_if_unused(key, out);
            } else if object.rare.is_some() {
                let rare = object.rare();
                rare.borrowers.retain(|other| *other != peer);
                rare.remote_waiters.retain(|other| *other != peer);
                self.free_if_unused(key, out);
            }
        }
    }
}

fn lost() -> Content {
    Content::failed(FailureCode::ObjectLost, "its owner no longer knows this object")
}

fn freed() -> Content {
    Content::failed(FailureCode::ObjectFreed, "its value was freed by internal.free()")
}

fn owner_died() -> Content {
    Content::failed(FailureCode::OwnerDied, "the process that created this object has died")
}

fn count_down(map: &mut Held<u32>, key: (ProcessId, u64, u32)) -> bool {
    let Some(count) = map.get_mut(&key) else {
        return false;
    };
    *count -= 1;
    let done = *count == 0;
    if done {
        map.remove(&key);
    }
    done
}
