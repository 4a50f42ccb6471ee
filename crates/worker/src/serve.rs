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
use crate::lane::News;
use crate::language::{Language, Loaded, Serving};
use crate::lend;
use crate::port::Descriptor;
use crate::runtime::Runtime;

/// Idle time after which a fresh worker imports what the driver has imported.
const PRELOAD_AFTER: Duration = Duration::from_millis(30);

/// Runs in the main thread of a worker until it is to exit.
pub fn serve(runtime: &Arc<Runtime>, language: &mut impl Language) {
    lend::runs_calls_here();
    let mut server = Server::new(runtime.clone());
    let mut preload = runtime.identity.preload.clone();
    let reason = loop {
        let work = runtime.take_work().map_or_else(
            || {
                let soon = || monotonic_ns() + PRELOAD_AFTER.as_nanos() as u64;
                let deadline = (!preload.is_empty()).then(soon);
                language.rest();
                language.asleep(|| runtime.next_work(deadline))
            },
            Ok,
        );
        let Ok(work) = work else {
            // Only to save time later: whoever needs it sees the error.
            std::mem::take(&mut preload).iter().for_each(|module| language.preload(module));
            continue;
        };
        if let Some(reason) = server.work(language, work) {
            break reason;
        }
    };
    language.end();
    runtime.announce_exit(&reason);
}

/// Runs in a thread of a lane, as long as the process.
pub fn serve_lane(runtime: &Arc<Runtime>, lane: usize, language: &mut impl Language) {
    lend::runs_calls_here();
    let mut server = Server::new(runtime.clone());
    let mut was_stirred = true;
    loop {
        let (call, grows) = runtime.take_call(lane, was_stirred);
        was_stirred = false;
        if grows {
            language.start_thread(lane);
        }
        match call {
            Some(call) => server.call(language, call),
            None => {
                language.rest();
                was_stirred = language.asleep(|| runtime.sleep_in_lane(lane));
            }
        }
    }
}

/// Begins the calls of a lane for a loop of the language, in the loop's thread.
pub struct LoopServer<F> {
    server: Server<F>,
    lane: usize,
}

impl<F> LoopServer<F> {
    /// For the calling thread.
    pub fn new(runtime: &Arc<Runtime>, lane: usize) -> Self {
        lend::runs_calls_here();
        Self { server: Server::new(runtime.clone()), lane }
    }

    /// Readable while there is something to do.
    pub fn descriptor(&self) -> Option<Descriptor> {
        self.server.runtime.lane_descriptor(self.lane)
    }

    /// Does all that there is to do now; why the process is to exit, if it is.
    pub fn turn(&mut self, language: &mut impl Language<Function = F>) -> Option<String> {
        let runtime = self.server.runtime.clone();
        runtime.answer_door(self.lane);
        for (task, news) in runtime.take_news(self.lane) {
            match news {
                News::Unwanted => language.cancel(task),
                News::Read => language.read_on(task),
            }
        }
        loop {
            let work = match self.lane {
                0 => runtime.take_work(),
                lane => runtime.take_call(lane, false).0.map(Work::Call),
            };
            let Some(work) = work else {
                language.rest();
                return None;
            };
            let reason = self.server.work(language, work);
            if reason.is_some() {
                return reason;
            }
        }
    }
}

/// What a thread that serves knows.
struct Server<F> {
    runtime: Arc<Runtime>,
    functions: HashMap<FunctionId, Known<F>, RandomState>,
    /// By name.
    methods: HashMap<String, Loaded<F>, RandomState>,
}

struct Known<F> {
    loaded: Loaded<F>,
    calls: u64,
}

impl<F> Server<F> {
    fn new(runtime: Arc<Runtime>) -> Self {
        Self { runtime, functions: HashMap::default(), methods: HashMap::default() }
    }

    /// Does what is to be done; why the process is to exit, if it is.
    fn work(&mut self, language: &mut impl Language<Function = F>, work: Work) -> Option<String> {
        match work {
            Work::Call(call) => self.call(language, call),
            Work::StartActor(start) => match self.construct(language, &start) {
                Ok(Serving::Loops(_)) => return Some(language.run_loop()),
                Ok(_) => {}
                Err(reason) => return Some(reason),
            },
            Work::JoinJob(config) => language.join_job(config.sys_path, &config.settings),
            Work::Grow(lane) => language.start_thread(lane),
            Work::Tell(failure) => language.tell(&failure),
            Work::Collect => language.collect(),
            Work::Exit(reason) => return Some(reason),
        }
        None
    }

    fn call(&mut self, language: &mut impl Language<Function = F>, call: Call) {
        let function = call.function;
        if !function.is_nil() {
            return match self.load(language, &call, function) {
                Ok(()) => self.call_function(language, function, call),
                Err(raised) => {
                    let name = call.name().into();
                    call.fail(&name, raised)
                }
            };
        }
        let name = call.name();
        if !self.methods.contains_key(name) {
            match language.method(name) {
                Ok(method) => _ = self.methods.insert(name.to_owned(), method),
                Err(raised) => {
                    let name = name.into();
                    return call.fail(&name, raised);
                }
            }
        }
        let Loaded { function, name, .. } = &self.methods[name];
        language.call(function, name, call);
    }

    fn load(
        &mut self,
        language: &mut impl Language<Function = F>,
        call: &Call,
        id: FunctionId,
    ) -> Result<(), Raised> {
        if self.functions.contains_key(&id) {
            return Ok(());
        }
        let payload = self.fetch(language, call, id)?;
        let loaded = language.load(&payload, call.name())?;
        self.functions.insert(id, Known { loaded, calls: 0 });
        // It may run for long.
        language.rest();
        call.note_call();
        Ok(())
    }

    fn fetch(
        &self,
        language: &mut impl Language<Function = F>,
        call: &Call,
        id: FunctionId,
    ) -> Result<Arc<[u8]>, Raised> {
        let (runtime, giver) = (&self.runtime, call.giver);
        let fetched = language.asleep(|| runtime.fetch_function(giver, id));
        fetched.map_err(Raised::without_exception)
    }

    fn call_function(
        &mut self,
        language: &mut impl Language<Function = F>,
        id: FunctionId,
        call: Call,
    ) {
        let Some(Known { loaded, calls }) = self.functions.get_mut(&id) else {
            unreachable!("just loaded")
        };
        *calls += 1;
        // A method is known by its class, too.
        let is_method = !call.id.actor().is_home();
        let name = match is_method || call.is_named(&loaded.name) || call.is_named("") {
            true => loaded.name.clone(),
            false => call.name().into(),
        };
        language.call(&loaded.function, &name, call);
        if loaded.max_calls > 0 && *calls >= loaded.max_calls {
            self.runtime.retire(format!("it ran {} {calls} times (max_calls)", loaded.name));
        }
    }

    /// Becomes an actor: how its calls are served; else why not.
    fn construct(
        &mut self,
        language: &mut impl Language<Function = F>,
        start: &StartActor,
    ) -> Result<Serving, String> {
        let Some(actor) = ActorId::from_slice(&start.actor) else {
            return Err("it was told to become an actor without an id".into());
        };
        let runtime = self.runtime.clone();
        let begun = language.asleep(|| runtime.begin_constructor(actor, start));
        let Some(call) = begun else {
            if !start.kept {
                return Err("the constructor's arguments are damaged".into());
            }
            // Else it would be tried for ever.
            let text = "the process that made this actor is gone, and its class and arguments \
                        were not kept";
            runtime.actor_created(actor, language.creation_error(&start.class_name, text));
            return Err(text.into());
        };
        let class = call.function;
        let payload = self.fetch(language, &call, class).map_err(|raised| raised.text)?;
        // What was kept is whole, and is kept as long as the actor lives.
        if start.keep && !start.kept {
            let task = call.bytes();
            let kept = language.asleep(|| runtime.keep_constructor(actor, task, &payload));
            if let Err(why) = kept {
                let class = &start.class_name;
                language.warn(&format!(
                    "The detached actor {class} is started again only while the process that made \
                     it lives: {why}."
                ));
            }
        }
        match language.construct(actor, start, &payload, call) {
            Ok(serving) => {
                let opened = match &serving {
                    Serving::InTurn => Ok(()),
                    Serving::Threads(limits) => runtime.open_lanes(Runner::Threads, limits),
                    Serving::Loops(limits) => runtime.open_lanes(Runner::Loops, limits),
                };
                opened.map_err(|error| format!("its lanes could not be opened: {error}"))?;
                if let Serving::Loops(limits) = &serving {
                    (1..limits.len()).for_each(|lane| language.start_thread(lane));
                }
                runtime.actor_created(actor, Vec::new());
                language.rest();
                Ok(serving)
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
