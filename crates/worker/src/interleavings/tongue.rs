//! The language of the worker: its functions do what their argument says.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use oxiray_ids::{ActorId, TaskId};
use oxiray_owner::{Content, Failure};
use oxiray_wire::control::StartActor;

use shuttle::rand::{Rng, thread_rng};

use crate::call::{Call, Raised};
use crate::language::{Language, Loaded, Serving};
use crate::runtime::{Runtime, State, Waited};
use crate::serve::{LoopServer, serve_lane};
use crate::sync::{AtomicBool, Ordering, thread};

/// Answers.
pub(super) const RETURN: u8 = 0;
/// Is let go, without an answer.
pub(super) const LET_GO: u8 = 1;
/// Is answered by another thread.
pub(super) const HAND_OVER: u8 = 2;
/// Sleeps until [`Asked::open`], and answers.
pub(super) const SLEEP: u8 = 3;
/// Wherever calls run at once: answers once the next one has begun.
pub(super) const MEET: u8 = 4;

/// What is known of all calls.
#[derive(Default)]
pub(super) struct Asked {
    /// How often each was begun.
    pub(super) begun: [AtomicU32; 8],
    running: AtomicU32,
    pub(super) most_running: AtomicU32,
    is_open: AtomicBool,
    /// Whether the loop reads for itself, now and then.
    pub(super) reads: AtomicBool,
    /// What other threads of the program have for the loop; and what its descriptor says of it.
    soon: AtomicU32,
    pipe: AtomicBool,
    heard: AtomicU32,
}

impl Asked {
    pub(super) fn times(&self, serial: u8) -> u32 {
        self.begun[usize::from(serial)].load(Ordering::SeqCst)
    }

    /// What sleeps may go on; somebody rings for it.
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// As `call_soon_threadsafe` does; and sleeps until the loop has heard.
    pub(super) fn call_soon(&self, runtime: &Runtime) {
        let serial = self.soon.fetch_add(1, Ordering::SeqCst) + 1;
        if !runtime.call_loop() {
            self.pipe.store(true, Ordering::SeqCst);
        }
        while self.heard.load(Ordering::SeqCst) < serial {
            thread::yield_now();
        }
    }

    fn takes_pipe(&self) -> bool {
        self.pipe.swap(false, Ordering::SeqCst)
    }

    /// The loop looks at it whenever it is awake.
    fn hear_soon(&self) {
        self.heard.fetch_max(self.soon.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn begin(&self, serial: u8) {
        self.begun[usize::from(serial)].fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
    }

    fn answer(&self, name: &Arc<str>, call: Call, serial: u8) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        call.succeed(name, &[(Content::Inline([serial].as_slice().into()), Vec::new())]);
    }
}

pub(super) struct Tongue {
    runtime: Arc<Runtime>,
    asked: Arc<Asked>,
    served: Serving,
    /// Calls of a loop that were begun and not answered.
    begun: Vec<(Arc<str>, Call, u8)>,
}

impl Tongue {
    pub(super) fn new(runtime: &Arc<Runtime>, asked: &Arc<Asked>, served: Serving) -> Self {
        Self { runtime: runtime.clone(), asked: asked.clone(), served, begun: Vec::new() }
    }

    /// As a loop that reads for itself does; whether it is to take its turn.
    fn read_or_sleep(&self) -> bool {
        let found = match self.begun.is_empty() {
            true => self.runtime.sleep_in_loop(None, || false),
            false => self.runtime.look_in_loop(),
        };
        found.turn
    }

    /// As a call that gets something does; it runs, so its CPUs must be its own before and after.
    fn sleep(&self) {
        let done = |_: &mut State| self.asked.is_open.load(Ordering::SeqCst);
        assert_eq!(self.runtime.wait_until(None, || false, done), Waited::Done);
        assert!(!self.runtime.lock().executor.lending.is_lent(), "B-1");
    }
}

fn is_readable(door: &mut File) -> bool {
    match door.read(&mut [0; 8]) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
        Err(error) => unreachable!("{error}"),
    }
}

impl Language for Tongue {
    type Function = ();

    fn asleep<T: Send>(&mut self, sleep: impl FnOnce() -> T + Send) -> T {
        sleep()
    }

    fn load(&mut self, payload: &[u8], _name: &str) -> Result<Loaded<()>, Raised> {
        assert_eq!(payload, b"a function");
        Ok(Loaded { function: (), name: "call".into(), max_calls: 0 })
    }

    fn method(&mut self, name: &str) -> Result<Loaded<()>, Raised> {
        Ok(Loaded { function: (), name: name.into(), max_calls: 0 })
    }

    fn call(&mut self, (): &(), name: &Arc<str>, call: Call) {
        let &[what, serial] = call.args() else { unreachable!("two bytes") };
        self.asked.begin(serial);
        let (asked, name) = (self.asked.clone(), name.clone());
        match what {
            // Others may be begun before it is answered: see `run_loop`.
            RETURN if matches!(self.served, Serving::Loops(_)) => {
                self.begun.push((name, call, serial));
            }
            RETURN => asked.answer(&name, call, serial),
            LET_GO => {
                asked.running.fetch_sub(1, Ordering::SeqCst);
                drop(call);
            }
            HAND_OVER => _ = thread::spawn(move || asked.answer(&name, call, serial)),
            MEET => {
                while asked.times(serial + 1) == 0 {
                    thread::yield_now();
                }
                asked.answer(&name, call, serial);
            }
            _ => {
                self.sleep();
                asked.answer(&name, call, serial);
            }
        }
    }

    fn cancel(&mut self, task: TaskId) {
        let at = self.begun.iter().position(|(_, call, _)| call.id == task);
        if let Some((name, call, _)) = at.map(|at| self.begun.remove(at)) {
            self.asked.running.fetch_sub(1, Ordering::SeqCst);
            call.end_cancelled(&name);
        }
    }

    fn read_on(&mut self, _task: TaskId) {}

    fn construct(
        &mut self,
        _actor: ActorId,
        _start: &StartActor,
        _payload: &[u8],
        call: Call,
    ) -> Result<Serving, (String, Option<Vec<u8>>)> {
        call.succeed(&"Actor.__init__".into(), &[]);
        Ok(self.served.clone())
    }

    fn creation_error(&mut self, _class_name: &str, reason: &str) -> Vec<u8> {
        reason.into()
    }

    fn start_thread(&mut self, lane: usize) {
        let mut other = Self::new(&self.runtime, &self.asked, self.served.clone());
        let runtime = self.runtime.clone();
        // As long as the process: nobody waits for its end, which shuttle lets only futures be.
        drop(shuttle::future::spawn(async move { serve_lane(&runtime, lane, &mut other) }));
    }

    /// Sleeps on its descriptor alone, as an event loop does; or reads for itself, for as long as it
    /// likes.
    fn run_loop(&mut self) -> String {
        let mut server = LoopServer::new(&self.runtime, 0);
        let descriptor = server.descriptor().expect("it is of a loop");
        let mut door = File::from(descriptor.as_fd().try_clone_to_owned().expect("a descriptor"));
        loop {
            let reads = self.asked.reads.load(Ordering::SeqCst) && thread_rng().gen_bool(0.7);
            let is_rung = match reads {
                true => self.read_or_sleep(),
                false => {
                    // Who called it while it read is not heard otherwise.
                    let is_called = self.runtime.cease_to_read_in_loop();
                    is_called || self.asked.takes_pipe() || is_readable(&mut door)
                }
            };
            self.asked.hear_soon();
            if is_rung && let Some(reason) = server.turn(self) {
                return reason;
            }
            // A coroutine that is done.
            if !self.begun.is_empty() {
                let (name, call, serial) = self.begun.remove(0);
                self.asked.answer(&name, call, serial);
                // One that reads does it before it sleeps.
                if !reads {
                    self.runtime.tell_answers();
                }
            }
            thread::yield_now();
        }
    }

    fn join_job(&mut self, _places: Vec<String>, _settings: &str) {}

    fn preload(&mut self, _module: &str) {}

    fn rest(&mut self) {}

    fn tell(&mut self, _failure: &Failure) {}

    fn warn(&mut self, text: &str) {
        unreachable!("{text}");
    }

    fn collect(&mut self) {}

    fn end(&mut self) {}
}
