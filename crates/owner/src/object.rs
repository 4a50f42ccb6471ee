//! Objects, their values and counts.
//!
//! An object's count is one number for everything in this process that needs
//! it: Python references, tasks that take it as an argument, objects that
//! contain it, hand-overs to other processes. (Zero-copy views do not count:
//! they hold the bytes, in the store, whatever becomes of the object.) Other processes that
//! hold it are `borrowers`. Its value goes when both are gone (O-3), and what is left of it when
//! no recipe takes it: see `lineage`.

use std::sync::{Arc, OnceLock};

use oxiray_ids::{ObjectId, Origin, ProcessId};
use oxiray_wire::frame::{Body, FailureCode, Frame, RefName, Value};
use smallvec::SmallVec;

use crate::lineage::{Gone, LET_GO, NoRecipe};
use crate::owner::{Outbox, Owner};
use crate::task::TaskKey;

/// Bytes that are usually few.
pub type SmallBytes = SmallVec<[u8; 24]>;

/// Names an object of this process. Valid while the holder counts on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ObjectKey(pub u32);

impl ObjectKey {
    /// Of no object.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why an object has no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What kind of failure.
    pub code: FailureCode,
    /// In words. Of an exception: which tasks it ran through, see [`Owner::handed_on`].
    pub message: String,
    /// A serialised exception, where there is one.
    pub data: Arc<[u8]>,
    /// Set once somebody has looked at it, or was told that nobody did. All objects that failed
    /// for one reason share it: the returns of a task, and of those that took them.
    seen: Arc<OnceLock<()>>,
}

impl Failure {
    /// One that nobody has looked at yet.
    pub fn new(code: FailureCode, message: impl Into<String>, data: impl Into<Arc<[u8]>>) -> Self {
        Self { code, message: message.into(), data: data.into(), seen: Arc::default() }
    }

    /// The same failure, told in other words: who has seen either has seen both.
    pub(crate) fn reworded(&self, message: String) -> Self {
        Self { message, ..self.clone() }
    }

    /// Somebody knows of it from now on; whether nobody did before.
    pub fn see(&self) -> bool {
        self.seen.set(()).is_ok()
    }

    /// Whether it is an error of the task itself. What happened to its actor, its owner or its
    /// session is heard of elsewhere, and who cancels a task knows.
    fn is_of_task(&self) -> bool {
        use FailureCode::{OutOfMemory, TaskError, WorkerCrashed};
        matches!(self.code, TaskError | WorkerCrashed | OutOfMemory)
    }
}

/// Whether no other object failed for this reason.
fn is_last(failure: &Arc<Failure>) -> bool {
    Arc::strong_count(failure) == 1 && Arc::strong_count(&failure.seen) == 1
}

/// What an object turned out to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A small value.
    Inline(SmallBytes),
    /// A large value, in the store.
    Stored {
        /// Its name there.
        origin: Origin,
        /// Bytes.
        len: u64,
    },
    /// No value.
    Failed(Arc<Failure>),
}

impl Content {
    /// Copies a value out of a frame.
    pub fn from_body(body: &Body<'_>) -> Self {
        match *body {
            Body::Inline(bytes) => Content::Inline(SmallBytes::from_slice(bytes)),
            Body::Stored { origin, len } => Content::Stored { origin, len },
            Body::Failed { code, message, data } => {
                Content::Failed(Arc::new(Failure::new(code, message, data)))
            }
        }
    }

    /// The value as a frame carries it.
    pub fn as_body(&self) -> Body<'_> {
        match self {
            Content::Inline(bytes) => Body::Inline(bytes),
            Content::Stored { origin, len } => Body::Stored { origin: *origin, len: *len },
            Content::Failed(failure) => {
                Body::Failed { code: failure.code, message: &failure.message, data: &failure.data }
            }
        }
    }

    /// A failure without an exception of its own.
    pub fn failed(code: FailureCode, message: impl Into<String>) -> Self {
        Content::Failed(Arc::new(Failure::new(code, message, Vec::new())))
    }
}

/// Whether the owner of a foreign object knows that we hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Registration {
    /// Whoever gave it to us holds it for us.
    Unknown,
    /// Told, not yet confirmed.
    Told,
    /// The owner counts us.
    Known,
}

/// Something that waits for the owner to confirm a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settle {
    /// Arguments of a task that `giver` pushed to us.
    Args { giver: ProcessId, token: u64 },
    /// The answer of a worker to a task of ours, or an item of it.
    Returns { giver: ProcessId, token: u64, item: u32 },
    /// A foreign object that contains this one.
    Outer(ObjectKey),
}

/// What few objects have.
#[derive(Default)]
pub(crate) struct Rare {
    pub(crate) contained: Vec<ObjectKey>,
    pub(crate) borrowers: Vec<ProcessId>,
    pub(crate) remote_waiters: Vec<ProcessId>,
    pub(crate) settles: Vec<Settle>,
    pub(crate) unsettled: u32,
    /// Who entrusted it to us and waits until nothing in it is unsettled.
    pub(crate) entrusted_by: Option<ProcessId>,
    /// Where it was created, if that is recorded.
    pub(crate) call_site: Option<Box<str>>,
    /// It is known how to make it again.
    pub(crate) has_recipe: bool,
    /// If not, why.
    pub(crate) no_recipe: NoRecipe,
    /// Recipes that take it as an argument.
    pub(crate) recipes: u32,
    /// Whether it has no value because that is gone, and is not being made again yet.
    pub(crate) gone: Gone,
}

pub(crate) struct Object {
    pub(crate) id: ObjectId,
    pub(crate) refs: u32,
    /// `None`: us.
    pub(crate) owner: Option<ProcessId>,
    pub(crate) registration: Registration,
    /// Known by id, because its name has left or entered this process.
    pub(crate) named: bool,
    /// The owner was asked for the value.
    pub(crate) wanted: bool,
    /// Somebody outside wants to hear when it is ready.
    pub(crate) watched: bool,
    /// Order of completion.
    pub(crate) stamp: u64,
    pub(crate) content: Option<Content>,
    pub(crate) dependents: SmallVec<[TaskKey; 2]>,
    /// The task that is to return it, or did: see [`Owner::maker`].
    pub(crate) maker: Option<TaskKey>,
    pub(crate) rare: Option<Box<Rare>>,
}

impl Object {
    pub(crate) fn new(id: ObjectId, owner: Option<ProcessId>) -> Self {
        Self {
            id,
            refs: 1,
            owner,
            registration: Registration::Unknown,
            named: false,
            wanted: false,
            watched: false,
            stamp: 0,
            content: None,
            dependents: SmallVec::new(),
            maker: None,
            rare: None,
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Whether anything counts on it (O-3). While its owner's confirmation is on
    /// the way it stays, or that would be taken for the answer to a later question.
    pub(crate) fn is_held(&self) -> bool {
        self.refs > 0
            || self.registration == Registration::Told
            || self.rare.as_ref().is_some_and(|rare| {
                !rare.borrowers.is_empty() || rare.unsettled > 0 || !rare.settles.is_empty()
            })
    }
}

impl Owner {
    /// Makes an object of ours that already has its value, counted once.
    /// `contained` are references inside it; it takes over one count of each.
    pub fn put(&mut self, id: ObjectId, content: Content, contained: Vec<ObjectKey>) -> ObjectKey {
        let mut object = Object::new(id, None);
        object.content = Some(content);
        self.stamp += 1;
        object.stamp = self.stamp;
        if !contained.is_empty() {
            object.rare().contained = contained;
        }
        self.insert(object)
    }

    /// Makes an object of ours whose value this process will say by [`Self::keep_promise`].
    /// Counted twice: once for that.
    pub fn promise(&mut self, id: ObjectId) -> ObjectKey {
        let mut object = Object::new(id, None);
        object.refs = 2;
        self.insert(object)
    }

    /// The value of an object that was promised. Its count for this goes.
    pub fn keep_promise(&mut self, key: ObjectKey, content: Content, out: &mut impl Outbox) {
        self.complete(key, content, out);
        self.drop_ref(key, out);
    }

    pub(crate) fn insert(&mut self, object: Object) -> ObjectKey {
        ObjectKey(self.objects.insert(object) as u32)
    }

    /// The id of an object.
    pub fn id_of(&self, key: ObjectKey) -> ObjectId {
        self.objects[key.index()].id
    }

    /// The content of an object, if it has one yet.
    pub fn content(&self, key: ObjectKey) -> Option<&Content> {
        self.objects[key.index()].content.as_ref()
    }

    /// When an object was completed, in order; `None` while it is not.
    pub fn completed(&self, key: ObjectKey) -> Option<u64> {
        let object = &self.objects[key.index()];
        object.content.as_ref().map(|_| object.stamp)
    }

    /// How many objects have failed so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// The references inside an object.
    pub fn contained(&self, key: ObjectKey) -> &[ObjectKey] {
        self.objects[key.index()].rare.as_ref().map_or(&[], |rare| &rare.contained)
    }

    /// Counts once more on an object.
    pub fn add_ref(&mut self, key: ObjectKey) {
        self.objects[key.index()].refs += 1;
    }

    /// Counts once less; frees what nothing counts on any more.
    pub fn drop_ref(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        let object = &mut self.objects[key.index()];
        object.refs -= 1;
        if object.refs == 0 {
            self.free_if_unused(key, out);
        }
    }

    /// Asks to be told of the object's completion through [`Outbox::object_ready`].
    /// `false`: it is complete already.
    pub fn watch(&mut self, key: ObjectKey, out: &mut impl Outbox) -> bool {
        self.want(key, out);
        let object = &mut self.objects[key.index()];
        object.watched = object.content.is_none();
        object.watched
    }

    /// Makes sure that an object that others make or know is on its way to us.
    pub fn want(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        let object = &mut self.objects[key.index()];
        if let (Some(owner), None, false) = (object.owner, &object.content, object.wanted) {
            object.wanted = true;
            out.send(owner, &Frame::WantObject(object.id));
        } else if object.rare.as_ref().is_some_and(|rare| rare.gone == Gone::Yes) {
            self.make_again([key], LET_GO, out);
        }
    }

    /// Gives an object its content and tells everyone who waits for it.
    pub(crate) fn complete(&mut self, key: ObjectKey, content: Content, out: &mut impl Outbox) {
        self.stamp += 1;
        let object = &mut self.objects[key.index()];
        if object.content.is_some() {
            // It was made again for the sake of another return of its task.
            if let (None, Content::Stored { origin, .. }) = (object.owner, content) {
                out.free_stored(origin);
            }
            return;
        }
        self.failures += u64::from(matches!(content, Content::Failed(_)));
        object.content = Some(content);
        object.stamp = self.stamp;
        if std::mem::take(&mut object.watched) {
            out.object_ready(key);
        }
        let dependents = std::mem::take(&mut object.dependents);
        let waiters = match &mut object.rare {
            Some(rare) => std::mem::take(&mut rare.remote_waiters),
            None => Vec::new(),
        };
        for waiter in waiters {
            self.send_value(waiter, key, out);
        }
        // Not by recursion: a failure runs down a chain of tasks of any length.
        self.woken.extend(dependents);
        if !self.waking {
            self.waking = true;
            while let Some(task) = self.woken.pop_front() {
                self.argument_ready(task, out);
            }
            self.waking = false;
        }
    }

    /// Sends an object's value, with the names of what it contains, to a borrower.
    pub(crate) fn send_value(&mut self, peer: ProcessId, key: ObjectKey, out: &mut impl Outbox) {
        let contained = self.names_of_contained(key);
        let object = &self.objects[key.index()];
        let content = object.content.as_ref().expect("sent when complete");
        if let Content::Failed(failure) = content {
            failure.see();
        }
        let body = content.as_body();
        out.send(peer, &Frame::Object(object.id, Value { body, contained }));
    }

    /// The names of what an object contains, now known to the world.
    pub(crate) fn names_of_contained(&mut self, key: ObjectKey) -> Vec<RefName> {
        let count = self.contained(key).len();
        (0..count).map(|index| self.name(self.contained(key)[index])).collect()
    }

    /// The name of an object for another process. From now on it is known by id.
    pub fn name(&mut self, key: ObjectKey) -> RefName {
        let this = self.process;
        let object = &mut self.objects[key.index()];
        let name = RefName { id: object.id, owner: object.owner.unwrap_or(this) };
        if !object.named {
            object.named = true;
            // Somebody may have named it before we did, and was told that there is none.
            if let Some(taken_for_it) = self.by_id.insert(object.id, key) {
                self.objects[taken_for_it.index()].named = false;
            }
        }
        name
    }

    /// Frees an object that nothing in this process and no borrower counts on.
    pub(crate) fn free_if_unused(&mut self, key: ObjectKey, out: &mut impl Outbox) {
        self.free_unused(SmallVec::from_slice(&[key]), out);
    }

    /// Likewise, of several.
    pub(crate) fn free_unused(
        &mut self,
        mut unused: SmallVec<[ObjectKey; 4]>,
        out: &mut impl Outbox,
    ) {
        while let Some(key) = unused.pop() {
            // It may have gone with something that contained it.
            let Some(object) = self.objects.get(key.index()).filter(|object| !object.is_held())
            else {
                continue;
            };
            if object.rare.as_ref().is_some_and(|rare| rare.recipes > 0) {
                self.release_value(key, &mut unused, out);
                continue;
            }
            let object = self.objects.remove(key.index());
            if object.named {
                self.by_id.remove(&object.id);
            }
            match object.owner {
                Some(owner) if object.registration != Registration::Unknown => {
                    out.send(owner, &Frame::Release(object.id));
                }
                Some(_) => {}
                None => match object.content {
                    Some(Content::Stored { origin, .. }) => out.free_stored(origin),
                    // Its last holder tells of an error that others hold as well.
                    Some(Content::Failed(failure))
                        if failure.is_of_task() && is_last(&failure) && failure.see() =>
                    {
                        out.unhandled(failure);
                    }
                    _ => {}
                },
            }
            if object.id.index() == 0 {
                self.on_handle_gone(object.id.task().actor(), object.owner.is_none(), out);
            }
            if let Some(rare) = object.rare {
                if rare.has_recipe {
                    self.release_recipe(object.id, &mut unused);
                }
                for inner in rare.contained {
                    self.objects[inner.index()].refs -= 1;
                    unused.push(inner);
                }
            }
        }
    }
}
