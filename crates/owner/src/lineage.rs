//! Making objects again whose values are gone: values and recipes are counted apart.
//!
//! What a task returned to the store of another node can be lost with that node. So its owner
//! keeps the *recipe*: the task, with the names of its arguments. Their values it does not keep: a
//! value goes when nobody needs it, and what remains of its object is its name, for the recipes
//! that take it, and its own recipe. Making an object again so goes down the chain as deep as it
//! must. Each step is a run more of its task, and counts as a retry.
//!
//! Values that were put have no recipe, nor has what an actor returned, nor a task that may not
//! run again. Small values stay: they are a part of the recipes that take them. References to what
//! others own stay, too: only they can make it again, and only while somebody holds it.
//!
//! - **L-1** A recipe is kept while an object that it makes is known, and not longer.
//! - **L-2** When a node is gone, every object that was there has another way to its value, or a
//!   failure.
//! - **L-3** An object that nothing but recipes counts on has no value in the store, unless it is
//!   what a task returned that has no recipe itself: it ran here before anything could be lost, or
//!   may not run again. (What was put goes: who puts a value holds it while it may be needed.)
//! - **L-4** Recipes have at most so many bytes; the oldest go first.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ObjectId, PUT_INDEX, TaskId};
use oxiray_wire::frame::FailureCode;
use smallvec::SmallVec;

use crate::object::{Content, Failure, Object, ObjectKey, Rare};
use crate::owner::{Outbox, Owner};
use crate::task::{Place, ReturnKeys, Target, TaskKey, TaskSpec};

/// Ray's.
const MAX_LINEAGE_BYTES: usize = 1 << 30;

/// What a recipe takes beside its arguments, about.
const RECIPE_BYTES: usize = 400;

/// Why an object that was not lost has no value.
pub(crate) const LET_GO: &str = "its value was let go as nothing needed it any more";

/// How objects were made.
struct Recipe {
    spec: TaskSpec,
    /// Places of its returns; one that is gone may be another's now.
    returns: ReturnKeys,
    /// ReturnKeys that need it.
    needed: u32,
    bytes: usize,
    age: u64,
}

/// All recipes.
pub(crate) struct Lineage {
    /// Tasks run at other nodes, so that something can be lost.
    pub(crate) is_spread: bool,
    recipes: BTreeMap<TaskId, Recipe>,
    by_age: BTreeMap<u64, TaskId>,
    ages: u64,
    bytes: usize,
    most_bytes: usize,
}

impl Default for Lineage {
    fn default() -> Self {
        Self {
            is_spread: false,
            recipes: BTreeMap::new(),
            by_age: BTreeMap::new(),
            ages: 0,
            bytes: 0,
            most_bytes: MAX_LINEAGE_BYTES,
        }
    }
}

impl Lineage {
    fn insert(&mut self, mut recipe: Recipe) {
        self.ages += 1;
        recipe.age = self.ages;
        self.bytes += recipe.bytes;
        self.by_age.insert(recipe.age, recipe.spec.id);
        self.recipes.insert(recipe.spec.id, recipe);
    }

    fn remove(&mut self, task: TaskId) -> Option<Recipe> {
        let recipe = self.recipes.remove(&task)?;
        self.bytes -= recipe.bytes;
        self.by_age.remove(&recipe.age);
        Some(recipe)
    }

    pub(crate) fn validate(&self, owner: &Owner) {
        assert_eq!(self.by_age.len(), self.recipes.len(), "L-4");
        assert_eq!(self.bytes, self.recipes.values().map(|recipe| recipe.bytes).sum(), "L-4");
        assert!(self.bytes <= self.most_bytes, "L-4");
        let mut taken: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        for recipe in self.recipes.values() {
            let made = recipe.returns.iter().zip(1..).filter(|(key, index)| {
                let object = owner.objects.get(key.index());
                let object = object.filter(|object| object.id == recipe.spec.id.object(*index));
                object.is_some_and(|object| object.rare.as_ref().is_some_and(|r| r.has_recipe))
            });
            assert_eq!(made.count(), recipe.needed as usize, "L-1");
            let arguments = recipe.spec.refs.iter().chain(&recipe.spec.nested);
            arguments.for_each(|key| *taken.entry(*key).or_default() += 1);
        }
        for (index, object) in &owner.objects {
            let taken = taken.get(&ObjectKey(index as u32)).copied().unwrap_or(0);
            let counted = object.rare.as_ref().map_or(0, |rare| rare.recipes);
            assert!(object.owner.is_some() || counted == taken, "L-1");
            let is_stored = matches!(object.content, Some(Content::Stored { .. }));
            assert!(object.is_held() || !is_stored || object.is_only_value(), "L-3");
        }
    }
}

/// Whether an object has lost its value, or was made to let it go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Gone {
    #[default]
    No,
    /// And nobody makes it again.
    Yes,
    /// It is about to be made again, or to fail.
    Claimed,
}

/// Why an object has no recipe.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum NoRecipe {
    #[default]
    Never,
    /// Its task has been run as often as it may be.
    Tried,
    /// The oldest recipes went.
    Forgotten,
}

impl Object {
    /// Whether a task returned it that cannot be run again, so that recipes need its value.
    fn is_only_value(&self) -> bool {
        let returned = self.id.index() != PUT_INDEX && self.id.task().actor().is_home();
        let can_be_made = |rare: &Rare| rare.has_recipe || rare.no_recipe == NoRecipe::Forgotten;
        returned && !self.rare.as_deref().is_some_and(can_be_made)
    }
}

impl Owner {
    /// How many recipes are kept.
    #[cfg(test)]
    pub(crate) fn recipes(&self) -> usize {
        self.lineage.recipes.len()
    }

    /// How many bytes recipes may have.
    pub fn set_max_lineage_bytes(&mut self, bytes: usize) {
        self.lineage.most_bytes = bytes;
    }

    /// A task has ended: keeps how its returns were made, if they may need it, and lets go of the
    /// references that are not needed for that.
    #[inline]
    pub(crate) fn keep_recipe(
        &mut self,
        spec: TaskSpec,
        returns: ReturnKeys,
        out: &mut impl Outbox,
    ) {
        let needed = if self.lineage.is_spread { self.need_recipe(&spec, &returns) } else { 0 };
        if needed == 0 {
            for key in spec.refs.iter().chain(&spec.nested).chain(&spec.handle) {
                self.drop_ref(*key, out);
            }
            return;
        }
        let mut bytes = RECIPE_BYTES + spec.args.len() + size_of_val(&returns[..]);
        let mut let_go: SmallVec<[ObjectKey; 4]> = SmallVec::new();
        for key in spec.refs.iter().chain(&spec.nested) {
            let object = &mut self.objects[key.index()];
            if object.owner.is_none() {
                object.rare().recipes += 1;
                let_go.push(*key);
            }
            if let Some(Content::Inline(value)) = &object.content {
                bytes += value.len();
            }
        }
        let task = spec.id;
        let made = returns.clone();
        self.lineage.insert(Recipe { spec, returns, needed, bytes, age: 0 });
        let_go.iter().for_each(|key| self.drop_ref(*key, out));
        // Now that they can be made again, values that only recipes hold go (L-3).
        for key in made {
            if self.objects.get(key.index()).is_some_and(|object| object.id.task() == task) {
                self.free_if_unused(key, out);
            }
        }
        self.forget_old_recipes(out);
    }

    /// Marks returns that are in a store as made by a recipe: how many.
    fn need_recipe(&mut self, spec: &TaskSpec, returns: &[ObjectKey]) -> u32 {
        if !matches!(spec.target, Target::Function { .. }) {
            return 0;
        }
        let mut needed = 0;
        for (key, index) in returns.iter().zip(1..) {
            let object = self.objects.get_mut(key.index());
            let Some(object) = object.filter(|object| object.id == spec.id.object(index)) else {
                continue;
            };
            if matches!(object.content, Some(Content::Stored { .. })) {
                let rare = object.rare();
                rare.has_recipe = spec.retries != 0;
                if spec.attempt > 0 {
                    rare.no_recipe = NoRecipe::Tried;
                }
                needed += u32::from(spec.retries != 0);
            }
        }
        needed
    }

    /// The oldest recipes go until the rest has room (L-4).
    fn forget_old_recipes(&mut self, out: &mut impl Outbox) {
        while self.lineage.bytes > self.lineage.most_bytes {
            let Some(recipe) = self.lineage.by_age.values().next().copied() else {
                return;
            };
            let Some(recipe) = self.lineage.remove(recipe) else { return };
            for (key, index) in recipe.returns.iter().zip(1..) {
                let object = self.objects.get_mut(key.index());
                if let Some(object) = object.filter(|o| o.id == recipe.spec.id.object(index)) {
                    let rare = object.rare();
                    (rare.has_recipe, rare.no_recipe) = (false, NoRecipe::Forgotten);
                }
            }
            let mut unused = SmallVec::new();
            self.leave_recipe(&recipe.spec, &mut unused);
            self.free_unused(unused, out);
        }
    }

    /// An object is gone; with the last that needs it, its recipe is (L-1).
    pub(crate) fn release_recipe(&mut self, id: ObjectId, unused: &mut SmallVec<[ObjectKey; 4]>) {
        let Some(recipe) = self.lineage.recipes.get_mut(&id.task()) else {
            return;
        };
        recipe.needed -= 1;
        if recipe.needed == 0
            && let Some(recipe) = self.lineage.remove(id.task())
        {
            self.leave_recipe(&recipe.spec, unused);
        }
    }

    /// A recipe takes its arguments no more: which may be unused now.
    fn leave_recipe(&mut self, spec: &TaskSpec, unused: &mut SmallVec<[ObjectKey; 4]>) {
        for key in spec.refs.iter().chain(&spec.nested) {
            let object = &mut self.objects[key.index()];
            match object.owner {
                None => object.rare().recipes -= 1,
                Some(_) => object.refs -= 1,
            }
            unused.push(*key);
        }
    }

    /// Lets go of the value of an object that only recipes take (L-3).
    pub(crate) fn release_value(
        &mut self,
        key: ObjectKey,
        unused: &mut SmallVec<[ObjectKey; 4]>,
        out: &mut impl Outbox,
    ) {
        let object = &mut self.objects[key.index()];
        let Some(Content::Stored { origin, .. }) = object.content else {
            return;
        };
        if object.is_only_value() {
            return;
        }
        object.content = None;
        let rare = object.rare();
        rare.gone = Gone::Yes;
        let contained = std::mem::take(&mut rare.contained);
        out.free_stored(origin);
        for inner in contained {
            self.objects[inner.index()].refs -= 1;
            unused.push(inner);
        }
    }

    /// A node is gone, and every object in its store (L-2). The ends of its processes were told
    /// before: what they had answered has been read.
    pub fn on_node_lost(&mut self, node: u32, reason: &str, out: &mut impl Outbox) {
        let text = format!("the node where it was has left the cluster: {reason}");
        let was_there = |object: &Object| matches!(object.content, Some(Content::Stored { origin, .. }) if origin.node == node);
        let lost: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|(_, object)| was_there(object))
            .map(|(index, _)| ObjectKey(index as u32))
            .collect();
        let mut pending: BTreeSet<ObjectKey> = BTreeSet::new();
        for key in &lost {
            let object = &mut self.objects[key.index()];
            if object.owner.is_some_and(|owner| self.dead.contains(&owner)) {
                object.content = Some(Content::failed(FailureCode::ObjectLost, &*text));
                self.failures += 1;
                continue;
            }
            object.content = None;
            object.wanted = false;
            if object.owner.is_none() {
                object.rare().gone = Gone::Yes;
            }
            pending.insert(*key);
        }
        self.wait_again(&pending);
        self.end_all_waits_aside(out);
        let (ours, theirs): (Vec<_>, Vec<_>) = pending.into_iter().partition(|key| {
            self.objects.get(key.index()).is_some_and(|object| object.owner.is_none())
        });
        self.make_again(ours, &text, out);
        for key in theirs {
            if self.objects.get(key.index()).is_none_or(|object| object.content.is_some()) {
                continue;
            }
            // Its owner makes it again, or says that it cannot.
            let inner = self.objects[key.index()].rare.as_mut();
            let inner = inner.map(|rare| std::mem::take(&mut rare.contained));
            self.want(key, out);
            for inner in inner.unwrap_or_default() {
                self.drop_ref(inner, out);
            }
        }
    }

    /// Tasks that are not under way and take one of these wait for it.
    pub(crate) fn wait_again(&mut self, pending: &BTreeSet<ObjectKey>) {
        if pending.is_empty() {
            return;
        }
        let mut missing: Vec<(TaskKey, ObjectKey)> = Vec::new();
        for (index, task) in &self.tasks {
            // Who has it finds out, and it goes back: see `await_arguments`.
            let here = matches!(task.place, Place::Waiting(_) | Place::Ready);
            let lost = task.spec.refs.iter().filter(|key| here && pending.contains(*key));
            missing.extend(lost.map(|argument| (TaskKey(index as u32), *argument)));
        }
        for (key, argument) in missing {
            self.count_missing(key, argument);
        }
        let Self { shapes, tasks, .. } = self;
        for shape in shapes {
            shape.ready.retain(|key| tasks[key.0 as usize].place == Place::Ready);
        }
    }

    /// Has objects of ours made again that have no value and that nobody makes, and whatever is
    /// needed for that; not by recursion: chains are of any length. Those that cannot be made
    /// again fail; `text` says why they have no value.
    pub(crate) fn make_again(
        &mut self,
        keys: impl IntoIterator<Item = ObjectKey>,
        text: &str,
        out: &mut impl Outbox,
    ) {
        let mut left: Vec<(ObjectKey, &str)> = Vec::new();
        keys.into_iter().for_each(|key| self.claim(key, text, &mut left));
        while let Some((key, text)) = left.pop() {
            let Some(object) = self.objects.get_mut(key.index()) else { continue };
            let id = object.id;
            // It may be made by now, for the sake of another return of its task.
            if object.rare().gone != Gone::Claimed {
                continue;
            }
            object.rare().gone = Gone::No;
            if self.is_yielded_again(key, out) {
                continue;
            }
            match self.lineage.remove(id.task()) {
                Some(recipe) => self.run_again(recipe, &mut left, out),
                None => {
                    let failure = self.unrecoverable(key, text);
                    self.complete(key, failure, out);
                }
            }
        }
    }

    /// Somebody sees to an object from now on.
    fn claim<'a>(&mut self, key: ObjectKey, text: &'a str, left: &mut Vec<(ObjectKey, &'a str)>) {
        if let Some(object) = self.objects.get_mut(key.index())
            && let Some(rare) = &mut object.rare
            && rare.gone == Gone::Yes
        {
            rare.gone = Gone::Claimed;
            left.push((key, text));
        }
    }

    /// Runs a task again whose returns are gone. Its arguments that are gone, too, are left.
    fn run_again(
        &mut self,
        recipe: Recipe,
        left: &mut Vec<(ObjectKey, &str)>,
        out: &mut impl Outbox,
    ) {
        let Recipe { mut spec, returns, .. } = recipe;
        let Target::Function { shape, .. } = spec.target else {
            return;
        };
        spec.retries -= i32::from(spec.retries > 0);
        let made = returns.len() as u32 - 1;
        let (returns, lost) = self.claim_returns(&spec, returns);
        for key in spec.refs.iter().chain(&spec.nested) {
            let object = &mut self.objects[key.index()];
            if object.owner.is_none() {
                object.refs += 1;
                object.rare().recipes -= 1;
            }
        }
        spec.refs.iter().for_each(|key| self.claim(*key, LET_GO, left));
        let key = self.insert_task(spec, returns);
        if self.is_stream(key) {
            self.reopen_stream(key, made, lost);
        }
        let is_ready = self.await_arguments(key, out);
        self.next_attempt(key, out);
        if is_ready {
            self.enqueue(key, shape, out);
        }
    }

    /// The returns of a task that is run again, one count each; and, of a stream, the items that are
    /// to come again.
    fn claim_returns(
        &mut self,
        spec: &TaskSpec,
        known: SmallVec<[ObjectKey; 1]>,
    ) -> (SmallVec<[ObjectKey; 1]>, Vec<ObjectKey>) {
        let in_answer = spec.returns.in_answer();
        let (mut returns, mut items) = (SmallVec::new(), Vec::new());
        for (key, index) in known.into_iter().zip(1..) {
            let id = spec.id.object(index);
            let found = self.objects.get_mut(key.index()).filter(|object| object.id == id);
            if let Some(object) = found {
                let is_gone = object.content.is_none();
                object.refs += u32::from(index <= in_answer || is_gone);
                let rare = object.rare();
                (rare.has_recipe, rare.gone) = (false, Gone::No);
                match index <= in_answer {
                    true => returns.push(key),
                    false => items.extend(is_gone.then_some(key)),
                }
            } else if index <= in_answer {
                // Nobody knows it: what it will be is freed at once.
                returns.push(self.insert(Object::new(id, None)));
            }
        }
        (returns, items)
    }

    fn unrecoverable(&self, key: ObjectKey, text: &str) -> Content {
        let object = &self.objects[key.index()];
        let why = match object.rare.as_ref().map(|rare| rare.no_recipe) {
            _ if object.id.index() == PUT_INDEX => {
                "it was put, by put() or as a large argument, and only what tasks return is made \
                 again"
            }
            Some(NoRecipe::Forgotten) => {
                "how it was made has been forgotten, as that of much else takes more than \
                 max_lineage_bytes (RAY_max_lineage_bytes)"
            }
            Some(NoRecipe::Tried) => {
                "its task has been run again as often as its max_retries allows"
            }
            _ => "its task may not be run again (max_retries=0, or a call of an actor)",
        };
        let message = format!("{text}; it cannot be made again: {why}");
        let id = object.id.0.to_vec();
        Content::Failed(std::sync::Arc::new(Failure::new(FailureCode::Unrecoverable, message, id)))
    }
}
