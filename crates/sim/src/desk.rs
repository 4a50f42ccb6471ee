//! Where a program that runs in a process asks for what it wants: the [`Engine`] of processes.
//!
//! A program is a future. It is polled when what it asked for is there; everything that it asks
//! for goes through one [`Exchange`], so that the world can end a process at any point by
//! dropping it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use oxiray_ids::{ActorId, Origin, ProcessId};
use oxiray_owner::{Content, ObjectKey};
use oxiray_wire::frame::{FailureCode, RefName};

use crate::parcel::{self, Written};
use crate::plan::Menu;
use crate::program::{Engine, Given, Job, Order, Parcel, Trouble, body};

/// A handle of an actor, as a process has it.
pub(crate) type Handle = (ObjectKey, ActorId);
/// What a process submits.
pub(crate) type Submission = Order<ObjectKey, Handle>;

/// Something that a program asks for.
#[derive(Debug)]
pub(crate) enum Request {
    Sleep(u64),
    /// Keys for names that were read.
    Read(Vec<RefName>),
    /// A key for the handle of an actor that was read.
    Meet(RefName),
    /// Writes a value to the store, for another process to own or for this one.
    Store(Vec<u8>, Option<ProcessId>),
    /// Writes a value with references in it: its bytes.
    Write(Parcel<ObjectKey>),
    Put(Content, Vec<ObjectKey>),
    Submit(Submission),
    Create(Submission, Option<String>),
    Call(Handle, Submission),
    Get(ObjectKey),
    Look(Origin, u64),
    Drop(ObjectKey),
}

/// What it is given.
#[derive(Debug)]
pub(crate) enum Reply {
    Done,
    Keys(Vec<ObjectKey>),
    /// `None`: another has the name.
    Made(Option<Handle>),
    Content(Result<Content, FailureCode>),
    Bytes(Result<Vec<u8>, Unread>),
}

/// Why there are no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// As it was to be.
    Raised(u64),
    /// Something broke.
    Fault,
    /// It was lost with its node.
    NodeLeft,
}

#[derive(Default)]
pub(crate) struct Exchange {
    pub(crate) request: Option<Request>,
    pub(crate) reply: Option<Reply>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// With a number, and a value each return.
    Done(u64, Vec<(Content, Vec<ObjectKey>)>),
    Raised(u64),
    Fault,
    /// An argument was lost with its node.
    ArgumentLost,
}

/// A program under way.
pub(crate) type Running = Pin<Box<dyn Future<Output = Ended>>>;

/// The engine of a process.
pub(crate) struct Desk {
    exchange: Rc<RefCell<Exchange>>,
    goes_on: bool,
}

/// A task as its worker has it, before its arguments are read.
pub(crate) struct Arrived {
    pub(crate) job: Job,
    pub(crate) returns: u32,
    pub(crate) attempt: u16,
    pub(crate) state: u64,
    pub(crate) values: Vec<Content>,
    pub(crate) nested: Vec<RefName>,
    pub(crate) handles: Vec<RefName>,
    /// Who will own what it returns.
    pub(crate) giver: ProcessId,
}

impl Desk {
    pub(crate) fn new(exchange: Rc<RefCell<Exchange>>, goes_on: bool) -> Self {
        Self { exchange, goes_on }
    }

    async fn ask(&self, request: Request) -> Reply {
        self.exchange.borrow_mut().request = Some(request);
        poll_fn(|_| match self.exchange.borrow_mut().reply.take() {
            Some(reply) => Poll::Ready(reply),
            None => Poll::Pending,
        })
        .await
    }

    async fn keys(&self, request: Request) -> Vec<ObjectKey> {
        match self.ask(request).await {
            Reply::Keys(keys) => keys,
            reply => unreachable!("{reply:?} is no keys"),
        }
    }

    async fn bytes(&self, request: Request) -> Result<Parcel<ObjectKey>, Unread> {
        let bytes = match self.ask(request).await {
            Reply::Bytes(bytes) => bytes?,
            reply => unreachable!("{reply:?} is no bytes"),
        };
        let Written { number, inner } = parcel::read(&bytes);
        let inner = self.keys(Request::Read(inner)).await;
        Ok(Parcel { number, inner })
    }

    /// A content for a value, in the store if it is large.
    async fn content(
        &self,
        parcel: Parcel<ObjectKey>,
        stored: bool,
        owner: Option<ProcessId>,
    ) -> Option<Content> {
        let bytes = match self.ask(Request::Write(parcel)).await {
            Reply::Bytes(Ok(bytes)) => bytes,
            reply => unreachable!("{reply:?} is no bytes"),
        };
        if !stored {
            return Some(Content::Inline(bytes.as_slice().into()));
        }
        match self.ask(Request::Store(bytes, owner)).await {
            Reply::Content(content) => content.ok(),
            reply => unreachable!("{reply:?} is no content"),
        }
    }

    /// An actor with a name, if nobody else has that.
    pub(crate) async fn create_named(&self, order: Submission, name: String) -> Option<Handle> {
        match self.ask(Request::Create(order, Some(name))).await {
            Reply::Made(handle) => handle,
            reply => unreachable!("{reply:?} is no handle"),
        }
    }

    /// Runs a task that came: reads its arguments, does what it is to do, writes what it returns.
    pub(crate) async fn run(mut self, menu: Menu, task: Arrived) -> Ended {
        let Arrived { job, returns, attempt, state, giver, .. } = task;
        let mut values = Vec::with_capacity(task.values.len());
        for content in task.values {
            let read = match content {
                Content::Inline(bytes) => {
                    let Written { number, inner } = parcel::read(&bytes);
                    let inner = self.keys(Request::Read(inner)).await;
                    Ok(Parcel { number, inner })
                }
                Content::Stored { origin, len } => self.bytes(Request::Look(origin, len)).await,
                Content::Failed(_) => unreachable!("a failed argument fails its task"),
            };
            match read {
                Ok(value) => values.push(value),
                Err(Unread::NodeLeft) => return Ended::ArgumentLost,
                Err(_) => return Ended::Fault,
            }
        }
        let nested = self.keys(Request::Read(task.nested)).await;
        let mut handles = Vec::new();
        for name in task.handles {
            let key = self.keys(Request::Meet(name)).await[0];
            handles.push((key, name.id.task().actor()));
        }
        let given = Given { job, returns, attempt, state, values, nested, handles };
        match body(&mut self, menu, given).await {
            Ok(made) => {
                let mut contents = Vec::with_capacity(made.values.len());
                for (parcel, stored) in made.values {
                    let inner = parcel.inner.clone();
                    match self.content(parcel, stored, Some(giver)).await {
                        Some(content) => contents.push((content, inner)),
                        None => return Ended::Fault,
                    }
                }
                Ended::Done(made.sum, contents)
            }
            Err(Trouble::Raised(number)) => Ended::Raised(number),
            Err(Trouble::Fault) => Ended::Fault,
        }
    }
}

impl Engine for Desk {
    type Ref = ObjectKey;
    type Handle = Handle;

    fn goes_on(&self) -> bool {
        self.goes_on
    }

    async fn sleep(&mut self, ns: u64) {
        self.ask(Request::Sleep(ns)).await;
    }

    async fn put(&mut self, parcel: Parcel<ObjectKey>, stored: bool) -> Option<ObjectKey> {
        let inner = parcel.inner.clone();
        let content = self.content(parcel, stored, None).await?;
        Some(self.keys(Request::Put(content, inner)).await[0])
    }

    async fn submit(&mut self, order: Submission) -> Vec<ObjectKey> {
        self.keys(Request::Submit(order)).await
    }

    async fn create(&mut self, order: Submission) -> Handle {
        match self.ask(Request::Create(order, None)).await {
            Reply::Made(Some(handle)) => handle,
            reply => unreachable!("{reply:?} is no handle"),
        }
    }

    async fn call(&mut self, handle: &Handle, order: Submission) -> Vec<ObjectKey> {
        self.keys(Request::Call(*handle, order)).await
    }

    async fn get(&mut self, reference: &ObjectKey) -> Result<Parcel<ObjectKey>, Trouble> {
        self.bytes(Request::Get(*reference)).await.map_err(|unread| match unread {
            Unread::Raised(number) => Trouble::Raised(number),
            Unread::Fault | Unread::NodeLeft => Trouble::Fault,
        })
    }

    async fn drop(&mut self, reference: ObjectKey) {
        self.ask(Request::Drop(reference)).await;
    }
}
