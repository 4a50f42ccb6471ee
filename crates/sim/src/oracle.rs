//! What must come out: the bodies of [`crate::program`] without a cluster.

use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::plan::Menu;
use crate::program::{Engine, Given, Job, Made, Order, Parcel, Trouble, body};

/// What programs take the end of an actor for whose constructor raised.
pub(crate) const BROKEN: u64 = 0xb20;

/// What an object turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A value, and what the references in it turn out to be.
    Value { number: u64, inner: Vec<Rc<Fate>> },
    /// Its task raises.
    Raised(u64),
    /// Its actor cannot be made.
    Broken,
}

/// What an actor's constructor makes; `None`: it raises.
pub(crate) type ActorFate = Option<u64>;

/// An engine in which everything is known at once.
pub(crate) struct Oracle {
    pub(crate) menu: Menu,
}

type Foreseen = Order<Rc<Fate>, ActorFate>;

impl Oracle {
    /// What the returns of a task turn out to be.
    pub(crate) fn task(&self, order: Foreseen) -> Vec<Rc<Fate>> {
        // What raises may be tried again, if it may be tried again at all.
        let attempt = u16::from(order.retries != 0);
        self.returns(order, 0, attempt)
    }

    /// What a constructor makes.
    pub(crate) fn actor(&self, order: Foreseen) -> ActorFate {
        self.run(order, 0, 1).ok().map(|made| made.sum)
    }

    /// What the returns of a call turn out to be.
    pub(crate) fn call(&self, actor: ActorFate, order: Foreseen) -> Vec<Rc<Fate>> {
        match actor {
            Some(state) => self.returns(order, state, 1),
            None => (0..order.returns).map(|_| Rc::new(Fate::Broken)).collect(),
        }
    }

    fn returns(&self, order: Foreseen, state: u64, attempt: u16) -> Vec<Rc<Fate>> {
        let count = order.returns as usize;
        match self.run(order, state, attempt) {
            Ok(made) => {
                let values = made.values.into_iter().map(|(parcel, _)| parcel);
                let fate = |Parcel { number, inner }| Rc::new(Fate::Value { number, inner });
                values.map(fate).collect()
            }
            Err(failed) => vec![failed; count],
        }
    }

    fn run(&self, order: Foreseen, state: u64, attempt: u16) -> Result<Made<Rc<Fate>>, Rc<Fate>> {
        let Order { job, returns, values, nested, handles, .. } = order;
        let mut parcels = Vec::with_capacity(values.len());
        for value in values {
            match &*value {
                Fate::Value { number, inner } => {
                    parcels.push(Parcel { number: *number, inner: inner.clone() });
                }
                // The first argument that failed is what its task fails with.
                Fate::Raised(_) | Fate::Broken => return Err(value),
            }
        }
        let given = Given { job, returns, attempt, state, values: parcels, nested, handles };
        let mut engine = Oracle { menu: self.menu };
        let future = pin!(body(&mut engine, self.menu, given));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(made)) => Ok(made),
            Poll::Ready(Err(Trouble::Raised(number))) => Err(Rc::new(Fate::Raised(number))),
            Poll::Ready(Err(Trouble::Fault)) => unreachable!("nothing breaks in the oracle"),
            Poll::Pending => unreachable!("the oracle waits for nothing"),
        }
    }
}

/// A job whose constructor or method is called by whoever makes named actors.
pub(crate) fn plain_job(seed: u64) -> Job {
    Job { seed, depth: 0, steps: 0, quiet: true }
}

impl Engine for Oracle {
    type Ref = Rc<Fate>;
    type Handle = ActorFate;

    fn goes_on(&self) -> bool {
        false
    }

    async fn sleep(&mut self, _ns: u64) {}

    async fn put(&mut self, parcel: Parcel<Rc<Fate>>, _stored: bool) -> Option<Rc<Fate>> {
        Some(Rc::new(Fate::Value { number: parcel.number, inner: parcel.inner }))
    }

    async fn submit(&mut self, order: Foreseen) -> Vec<Rc<Fate>> {
        self.task(order)
    }

    async fn create(&mut self, order: Foreseen) -> ActorFate {
        self.actor(order)
    }

    async fn call(&mut self, handle: &ActorFate, order: Foreseen) -> Vec<Rc<Fate>> {
        Oracle::call(self, *handle, order)
    }

    async fn get(&mut self, reference: &Rc<Fate>) -> Result<Parcel<Rc<Fate>>, Trouble> {
        match &**reference {
            Fate::Value { number, inner } => Ok(Parcel { number: *number, inner: inner.clone() }),
            Fate::Raised(number) => Err(Trouble::Raised(*number)),
            Fate::Broken => Err(Trouble::Raised(BROKEN)),
        }
    }

    async fn drop(&mut self, _reference: Rc<Fate>) {}
}
