//! What functions, methods and programs do: one body for all of them, drawn from a seed.
//!
//! The body is written once, over an [`Engine`]. The engine of a process does what it asks for
//! with owners, nodes and stores; the [`crate::oracle`] says without any of them what must come
//! out. So every value that anybody gets can be told from a wrong one.

use crate::plan::Menu;
use crate::random::Random;

/// Functions that tasks may be calls of: their durations are learnt apart.
pub(crate) const FUNCTIONS: u32 = 3;
/// Kinds of tasks: see [`crate::shapes`].
pub(crate) const KINDS: usize = 4;

/// What a task is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// Everything it does follows from this and its arguments.
    pub(crate) seed: u64,
    /// Tasks of tasks of tasks, so many.
    pub(crate) depth: u8,
    pub(crate) steps: u8,
    /// It waits for nobody: a method that waited for another call of its actor would wait for ever.
    pub(crate) quiet: bool,
}

impl Job {
    /// Whether its first attempt raises what it may be tried again for.
    pub(crate) fn is_flaky(self) -> bool {
        !self.quiet && Random::new(self.seed ^ 0xf1a).once_in(12)
    }
}

/// A value, with the references in it.
#[derive(Clone, Debug)]
pub(crate) struct Parcel<R> {
    pub(crate) number: u64,
    pub(crate) inner: Vec<R>,
}

/// Why a reference has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// Its task raised this, as it was to.
    Raised(u64),
    /// Something broke.
    Fault,
}

/// A task, call or constructor to submit.
#[derive(Clone, Debug)]
pub(crate) struct Order<R, H> {
    pub(crate) job: Job,
    pub(crate) returns: u32,
    /// References whose values are arguments,
    pub(crate) values: Vec<R>,
    /// references inside arguments,
    pub(crate) nested: Vec<R>,
    /// and handles of actors.
    pub(crate) handles: Vec<H>,
    pub(crate) retries: i32,
    pub(crate) kind: usize,
    pub(crate) function: u32,
}

/// What a body is called with.
pub(crate) struct Given<R, H> {
    pub(crate) job: Job,
    pub(crate) returns: u32,
    /// How often it was tried before.
    pub(crate) attempt: u16,
    /// What the constructor of its actor made, of a method.
    pub(crate) state: u64,
    pub(crate) values: Vec<Parcel<R>>,
    pub(crate) nested: Vec<R>,
    pub(crate) handles: Vec<H>,
}

/// What a body returns: a number, and a value each return; whether that is large.
pub(crate) struct Made<R> {
    pub(crate) sum: u64,
    pub(crate) values: Vec<(Parcel<R>, bool)>,
    /// References that it was left with.
    pub(crate) refs: Vec<R>,
}

/// What a program may do.
pub(crate) trait Engine {
    type Ref: Clone;
    type Handle: Clone;
    /// Whether the program goes on after a fault: then nobody counts on what it returns.
    fn goes_on(&self) -> bool;
    async fn sleep(&mut self, ns: u64);
    async fn put(&mut self, parcel: Parcel<Self::Ref>, stored: bool) -> Option<Self::Ref>;
    async fn submit(&mut self, order: Order<Self::Ref, Self::Handle>) -> Vec<Self::Ref>;
    async fn create(&mut self, order: Order<Self::Ref, Self::Handle>) -> Self::Handle;
    async fn call(
        &mut self,
        handle: &Self::Handle,
        order: Order<Self::Ref, Self::Handle>,
    ) -> Vec<Self::Ref>;
    async fn get(&mut self, reference: &Self::Ref) -> Result<Parcel<Self::Ref>, Trouble>;
    async fn drop(&mut self, reference: Self::Ref);
}

/// Mixes two numbers into one that tells of both.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    Random::new(a.rotate_left(17) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).number()
}

/// The state of a body that runs.
struct Body<'e, E: Engine> {
    engine: &'e mut E,
    menu: Menu,
    job: Job,
    random: Random,
    sum: u64,
    refs: Vec<E::Ref>,
    handles: Vec<E::Handle>,
}

/// Runs a body to its end.
pub(crate) async fn body<E: Engine>(
    engine: &mut E,
    menu: Menu,
    given: Given<E::Ref, E::Handle>,
) -> Result<Made<E::Ref>, Trouble> {
    let Given { job, returns, attempt, state, values, mut nested, handles } = given;
    let mut random = Random::new(job.seed);
    let (low, high) = menu.task_time;
    engine.sleep(random.between(low, high)).await;
    let sum = values.iter().fold(mix(job.seed, state), |sum, value| mix(sum, value.number));
    if job.is_flaky() && attempt == 0 {
        return Err(Trouble::Raised(sum));
    }
    nested.extend(values.into_iter().flat_map(|value| value.inner));
    let mut body = Body { engine, menu, job, random, sum, refs: nested, handles };
    for _ in 0..job.steps {
        match body.step().await {
            Err(Trouble::Fault) if body.engine.goes_on() => {}
            step => step?,
        }
    }
    if !body.engine.goes_on() && body.random.once_in(menu.raise_once_in) {
        return Err(Trouble::Raised(body.sum));
    }
    Ok(body.make(returns))
}

impl<E: Engine> Body<'_, E> {
    async fn step(&mut self) -> Result<(), Trouble> {
        let deep = self.job.depth > 0;
        match self.random.between(0, 16) {
            0..=2 if deep => self.submit_one().await,
            3 if deep => self.chain().await,
            4 if deep => self.shuffle().await,
            5 if deep && self.menu.actors => self.create().await,
            6..=7 if deep && !self.handles.is_empty() => self.call().await,
            8..=11 if !self.job.quiet && !self.refs.is_empty() => return self.get_one().await,
            12..=13 if !self.menu.sturdy || deep => return self.put_one().await,
            14 if !self.refs.is_empty() => {
                let at = self.random.place(self.refs.len());
                let gone = self.refs.swap_remove(at);
                self.engine.drop(gone).await;
            }
            _ => {
                let ns = self.random.between(0, self.menu.task_time.1);
                self.engine.sleep(ns).await;
            }
        }
        Ok(())
    }

    fn some_refs(&mut self, most: u64) -> Vec<E::Ref> {
        let count = if self.refs.is_empty() { 0 } else { self.random.between(0, most + 1) };
        (0..count).map(|_| self.refs[self.random.place(self.refs.len())].clone()).collect()
    }

    fn order(&mut self, values: Vec<E::Ref>, returns: u32) -> Order<E::Ref, E::Handle> {
        let depth = self.job.depth.saturating_sub(if self.menu.sturdy { 9 } else { 1 });
        let random = &mut self.random;
        let steps = random.between(0, 1 + 2 * u64::from(depth) + 2) as u8;
        let job = Job { seed: random.number(), depth, steps, quiet: false };
        let retries = match random.between(0, 6) {
            _ if self.menu.sturdy => -1,
            0 => 0,
            1 => 1,
            2 => 3,
            _ => -1,
        };
        let special = random.once_in(self.menu.special_once_in);
        let kind = if special { 1 + random.place(KINDS - 1) } else { 0 };
        let function = random.place(FUNCTIONS as usize) as u32;
        let nested = self.some_refs(2);
        let given = depth > 0 && !self.handles.is_empty() && self.random.once_in(2);
        let at = given.then(|| self.random.place(self.handles.len()));
        let handles = at.map(|at| self.handles[at].clone()).into_iter().collect();
        Order { job, returns, values, nested, handles, retries, kind, function }
    }

    async fn submit_one(&mut self) {
        let values = self.some_refs(3);
        let returns = if self.random.once_in(4) { 2 } else { 1 };
        let order = self.order(values, returns);
        let made = self.engine.submit(order).await;
        self.refs.extend(made);
    }

    /// Each takes what the one before returns, which nobody else holds.
    async fn chain(&mut self) {
        let mut last: Option<E::Ref> = None;
        for _ in 0..self.random.between(2, 6) {
            let order = self.order(last.iter().cloned().collect(), 1);
            let mut made = self.engine.submit(order).await;
            if let Some(old) = std::mem::replace(&mut last, made.pop()) {
                self.engine.drop(old).await;
            }
        }
        self.refs.extend(last);
    }

    /// Some that return a part for each of some others.
    async fn shuffle(&mut self) {
        let (maps, reduces) = (self.random.between(2, 4), self.random.between(2, 4) as usize);
        let mut parts: Vec<Vec<E::Ref>> = Vec::new();
        for _ in 0..maps {
            let order = self.order(Vec::new(), reduces as u32);
            parts.push(self.engine.submit(order).await);
        }
        for which in 0..reduces {
            let values = parts.iter().map(|parts| parts[which].clone()).collect();
            let order = self.order(values, 1);
            let made = self.engine.submit(order).await;
            self.refs.extend(made);
        }
        for part in parts.into_iter().flatten() {
            self.engine.drop(part).await;
        }
    }

    async fn create(&mut self) {
        let values = self.some_refs(1);
        let mut order = self.order(values, 0);
        (order.job.quiet, order.job.steps) = (true, 0);
        order.kind = 0;
        let handle = self.engine.create(order).await;
        self.handles.push(handle);
    }

    async fn call(&mut self) {
        let at = self.random.place(self.handles.len());
        let handle = self.handles[at].clone();
        for _ in 0..self.random.between(1, 4) {
            let values = self.some_refs(2);
            let mut order = self.order(values, 1);
            (order.job.quiet, order.job.depth) = (true, 0);
            order.handles.clear();
            let made = self.engine.call(&handle, order).await;
            self.refs.extend(made);
        }
    }

    async fn get_one(&mut self) -> Result<(), Trouble> {
        let at = self.random.place(self.refs.len());
        let reference = self.refs[at].clone();
        match self.engine.get(&reference).await {
            Ok(parcel) => {
                self.sum = mix(self.sum, parcel.number);
                self.refs.extend(parcel.inner);
            }
            Err(Trouble::Raised(number)) => self.sum = mix(self.sum, !number),
            Err(Trouble::Fault) => return Err(Trouble::Fault),
        }
        Ok(())
    }

    async fn put_one(&mut self) -> Result<(), Trouble> {
        let inner = self.some_refs(2);
        let parcel = Parcel { number: self.sum, inner };
        let stored = self.random.once_in(self.menu.stored_once_in);
        match self.engine.put(parcel, stored).await {
            Some(made) => self.refs.push(made),
            None => return Err(Trouble::Fault),
        }
        Ok(())
    }

    fn make(&mut self, returns: u32) -> Made<E::Ref> {
        let values = (0..u64::from(returns)).map(|index| {
            let inner = self.some_refs(2);
            let stored = self.random.once_in(self.menu.stored_once_in);
            (Parcel { number: mix(self.sum, index), inner }, stored)
        });
        let values = values.collect();
        Made { sum: self.sum, values, refs: std::mem::take(&mut self.refs) }
    }
}
