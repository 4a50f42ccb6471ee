//! The loops of a worker: take a call, hand it to the language, take the next.
//!
//! The main thread takes whatever is to be done. In an actor whose calls run in threads it begins
//! none itself: it starts and wakes the lanes' threads, each of which takes calls of its lane.
//! A thread takes a call only when it could run it at once, so that none waits with a thread that
//! waits for the language.

use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use oxiray_ids::{ActorId, FunctionId};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::control::StartActor;

use crate::call::{Call, Raised};
use crate::executor::{Runner, Work};
use crate::language::{Language, Loaded, Serving};
use crate::lend;
use crate::runtime::Runtime;

/// Idle time after which a fresh worker imports what the driver has imported.
const PRELOAD_AFTER: Duration = Duration::from_millis(30);

/// Runs in the main thread of a worker until it is to exit.
pub fn serve(runtime: &Arc<Runtime>, language: &mut impl Language) {
    lend::runs_calls_here();
    let mut server = Server::new(runtime.clone(), language);
    let mut preload = runtime.identity.preload.clone();
    loop {
        let work = runtime.take_work().map_or_else(
            || {
                let soon = || monotonic_ns() + PRELOAD_AFTER.as_nanos() as u64;
                let deadline = (!preload.is_empty()).then(soon);
                server.language.asleep(|| runtime.next_work(deadline))
            },
            Ok,
        );
        let Ok(work) = work else {
            // Only to save time later: whoever needs it sees the error.
            std::mem::take(&mut preload).iter().for_each(|module| server.language.preload(module));
            continue;
        };
        if let Some(reason) = server.work(work) {
            server.language.end();
            return runtime.announce_exit(&reason);
        }
    }
}

/// Runs in a thread of a lane, as long as the process.
pub fn serve_lane(runtime: &Arc<Runtime>, lane: usize, language: &mut impl Language) {
    lend::runs_calls_here();
    let mut server = Server::new(runtime.clone(), language);
    let mut was_stirred = true;
    loop {
        let (call, grows) = runtime.take_call(lane, was_stirred);
        was_stirred = false;
        if grows {
            server.language.start_thread(lane);
        }
        match call {
            Some(call) => server.call(call),
            None => was_stirred = server.language.asleep(|| runtime.sleep_in_lane(lane)),
        }
    }
}

/// What a thread that serves knows.
struct Server<'a, L: Language> {
    runtime: Arc<Runtime>,
    language: &'a mut L,
    functions: HashMap<FunctionId, Known<L::Function>, RandomState>,
    /// By name.
    methods: HashMap<String, Loaded<L::Function>, RandomState>,
}

struct Known<F> {
    loaded: Loaded<F>,
    calls: u64,
}

impl<'a, L: Language> Server<'a, L> {
    fn new(runtime: Arc<Runtime>, language: &'a mut L) -> Self {
        Self { runtime, language, functions: HashMap::default(), methods: HashMap::default() }
    }

    /// Does what is to be done; why the process is to exit, if it is.
    fn work(&mut self, work: Work) -> Option<String> {
        match work {
            Work::Call(call) => self.call(call),
            Work::StartActor(start) => return self.construct(&start).err(),
            Work::JoinJob(config) => self.language.join_job(config.sys_path),
            Work::Grow(lane) => self.language.start_thread(lane),
            Work::Tell(failure) => self.language.tell(&failure),
            Work::Collect => self.language.collect(),
            Work::Exit(reason) => return Some(reason),
        }
        None
    }

    fn call(&mut self, call: Call) {
        let function = call.function;
        if !function.is_nil() {
            return match self.load(&call, function) {
                Ok(()) => self.call_function(function, call),
                Err(raised) => {
                    let name = call.name().into();
                    call.fail(&name, raised)
                }
            };
        }
        let name = call.name();
        if !self.methods.contains_key(name) {
            match self.language.method(name) {
                Ok(method) => _ = self.methods.insert(name.to_owned(), method),
                Err(raised) => {
                    let name = name.into();
                    return call.fail(&name, raised);
                }
            }
        }
        let Loaded { function, name, .. } = &self.methods[name];
        self.language.call(function, name, call);
    }

    fn load(&mut self, call: &Call, id: FunctionId) -> Result<(), Raised> {
        if self.functions.contains_key(&id) {
            return Ok(());
        }
        let payload = self.fetch(call, id)?;
        let loaded = self.language.load(&payload, call.name())?;
        self.functions.insert(id, Known { loaded, calls: 0 });
        call.note_call();
        Ok(())
    }

    fn fetch(&mut self, call: &Call, id: FunctionId) -> Result<Arc<[u8]>, Raised> {
        let (runtime, giver) = (&self.runtime, call.giver);
        let fetched = self.language.asleep(|| runtime.fetch_function(giver, id));
        fetched.map_err(Raised::without_exception)
    }

    fn call_function(&mut self, id: FunctionId, call: Call) {
        let Some(Known { loaded, calls }) = self.functions.get_mut(&id) else {
            unreachable!("just loaded")
        };
        *calls += 1;
        let given = call.name();
        let name = match given.is_empty() || *given == *loaded.name {
            true => loaded.name.clone(),
            false => given.into(),
        };
        self.language.call(&loaded.function, &name, call);
        if loaded.max_calls > 0 && *calls >= loaded.max_calls {
            self.runtime.retire(format!("it ran {} {calls} times (max_calls)", loaded.name));
        }
    }

    /// Becomes an actor; else why not.
    fn construct(&mut self, start: &StartActor) -> Result<(), String> {
        let Some(actor) = ActorId::from_slice(&start.actor) else {
            return Err("it was told to become an actor without an id".into());
        };
        let runtime = self.runtime.clone();
        let begun = self.language.asleep(|| runtime.begin_constructor(actor, start));
        let Some(call) = begun else {
            if !start.kept {
                return Err("the constructor's arguments are damaged".into());
            }
            // Else it would be tried for ever.
            let text = "the process that made this actor is gone, and its class and \
                        arguments were too large to be kept (100 KB)";
            runtime.actor_created(actor, self.language.creation_error(&start.class_name, text));
            return Err(text.into());
        };
        let class = call.function;
        let payload = match self.fetch(&call, class) {
            Ok(payload) => payload,
            Err(raised) => return Err(raised.text),
        };
        if start.keep {
            runtime.keep_constructor(actor, &call, &payload);
        }
        match self.language.construct(actor, start, &payload, call) {
            Ok(serving) => {
                if let Serving::Threads(limits) = serving {
                    runtime.open_lanes(Runner::Threads, &limits);
                }
                runtime.actor_created(actor, Vec::new());
                Ok(())
            }
            Err((reason, error)) => {
                if let Some(error) = error {
                    runtime.actor_created(actor, error);
                }
                Err(reason)
            }
        }
    }
}
