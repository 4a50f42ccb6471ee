//! The seam to a language: what the engine asks of whoever runs the functions.
//!
//! The engine takes calls, keeps functions and lanes, and tells owners; the language loads a
//! function, and calls it with a [`Call`], by which it answers now or later, from any thread.
//! What else there is of a call's life is on that handle: a call that yields, or is told how far
//! its reader is, says and hears it there. Python is the first language.

use std::sync::Arc;

use oxiray_ids::{ActorId, TaskId};
use oxiray_owner::Failure;
use oxiray_wire::control::StartActor;

use crate::call::{Call, Raised};

/// A function as a worker has it.
pub struct Loaded<F> {
    /// For the language.
    pub function: F,
    /// What people call it.
    pub name: Arc<str>,
    /// The worker exits after so many calls; 0: never.
    pub max_calls: u64,
}

/// How an actor's calls are to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Serving {
    /// One after the other in the main thread.
    InTurn,
    /// In threads: as many at once as each lane's limit says. The first lane is for calls that
    /// name none.
    Threads(Vec<u32>),
    /// On event loops of the language's own, one for each lane: each begins calls and goes on, as
    /// many at once as the lane's limit says.
    Loops(Vec<u32>),
}

/// A language, as one thread of a worker speaks it.
pub trait Language {
    /// A function that was loaded, or a method that was found.
    type Function;

    /// Sleeps by `sleep`; meanwhile other threads of the language run.
    fn asleep<T: Send>(&mut self, sleep: impl FnOnce() -> T + Send) -> T;

    /// Makes a function of what its owner shipped; `name` is for the error.
    fn load(&mut self, payload: &[u8], name: &str) -> Result<Loaded<Self::Function>, Raised>;

    /// Finds a method of the actor that this process is.
    fn method(&mut self, name: &str) -> Result<Loaded<Self::Function>, Raised>;

    /// Calls a function, which people call `name` in this call, and answers `call` in the end.
    fn call(&mut self, function: &Self::Function, name: &Arc<str>, call: Call);

    /// Nobody wants a call any more that a loop of this thread runs: it is to end soon.
    fn cancel(&mut self, task: TaskId);

    /// Who reads what a call yields that a loop of this thread runs is further, or gone: if the call
    /// waits for that, it is to look ([`Call::flow`]).
    fn read_on(&mut self, task: TaskId);

    /// Becomes an actor and answers `call`, or fails it: then why the process is to exit, and for
    /// the node the error that others get, if there is one. `payload` is the class.
    fn construct(
        &mut self,
        actor: ActorId,
        start: &StartActor,
        payload: &[u8],
        call: Call,
    ) -> Result<Serving, (String, Option<Vec<u8>>)>;

    /// The error that others get of an actor that could not be made for this reason.
    fn creation_error(&mut self, class_name: &str, reason: &str) -> Vec<u8>;

    /// Starts one more thread for a lane, which calls [`crate::serve_lane`]; or, of an actor whose
    /// calls run on loops, runs the loop of that lane.
    fn start_thread(&mut self, lane: usize);

    /// Runs the loop of the first lane until the process is to exit; why.
    fn run_loop(&mut self) -> String;

    /// Works for a job from now on: its modules are found in these places; `settings` are JSON.
    fn join_job(&mut self, places: Vec<String>, settings: &str);

    /// Imports a module that calls are likely to need.
    fn preload(&mut self, module: &str);

    /// Nobody waits for this thread: a moment for what can be done at any time.
    fn rest(&mut self);

    /// Says that a task of ours failed, and that nobody has looked at its error.
    fn tell(&mut self, failure: &Failure);

    /// Says a sentence of the engine's own where this process prints.
    fn warn(&mut self, text: &str);

    /// Collects garbage.
    fn collect(&mut self);

    /// The process is about to exit.
    fn end(&mut self);
}
