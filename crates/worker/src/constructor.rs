//! Constructors of actors: asked for, begun, and kept for when their creators are gone.
//!
//! What may outlive its creator is kept by the control service, as keys and values in parts of
//! [`PART`] bytes. It is whole: large arguments are objects of the creator's and go with it, so
//! that their bytes are kept in their stead. (A reference inside an argument stays one; what it
//! names is its owner's.) The parts are put before the key that says how many there are: who finds
//! that one finds all. All of it is put before the actor is asked for (`keeping`), so that it does
//! not matter whether the creator is there when a worker comes free. Only what could not be kept
//! then, an argument that was computed later and is large, is kept by its worker.

use std::sync::Arc;

use oxiray_events::Label;
use oxiray_ids::{ActorId, ProcessId, TaskId};
use oxiray_owner::{Outbox, Target, TaskSpec};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{KEPT_ACTORS, Kv, KvVerb};
use oxiray_wire::control::{self, StartActor, to_node};
use oxiray_wire::frame::{Body, Frame};

use crate::call::Call;
use crate::io::Io;
use crate::keeping::Large;
use crate::lane::Queued;
use crate::runtime::Runtime;
use crate::store::Look;

/// Bytes of a value of the key-value table: a packet takes them.
const PART: usize = 64 << 10;

/// Constructors up to this many bytes, with their classes and arguments, are kept.
pub(crate) const MOST_KEPT: usize = 64 << 20;

/// Why a constructor is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotKept {
    #[error("its class and arguments are {} MiB, and at most {} MiB are kept", .0 >> 20, MOST_KEPT >> 20)]
    TooLarge(usize),
    #[error("its arguments cannot be read")]
    Unreadable,
}

impl Runtime {
    /// Tells the node how the constructor of our actor ended.
    pub fn actor_created(&self, actor: ActorId, error: Vec<u8>) {
        let created = control::ActorCreated { actor: actor.0.to_vec(), error };
        self.lock().io.tell_node(to_node::Body::ActorCreated(created));
    }

    /// Makes an actor, as `wanted` says to the node. `spec` is its constructor, `by` the call that
    /// makes it, where several run in this process.
    pub fn create_actor(
        &self,
        actor: ActorId,
        wanted: control::CreateActor,
        spec: TaskSpec,
        by: Option<TaskId>,
    ) {
        let large = {
            let state = &mut *self.lock();
            let name = format!("{}.__init__", wanted.class_name).into();
            if let (true, Target::Constructor { class, .. }) = (wanted.detached, &spec.target)
                && let Some((class, _)) = state.shipped.get(class)
            {
                state.io.keeping.begin(actor, class.clone());
            }
            state.io.placements.insert(actor, wanted);
            state.set_now(monotonic_ns());
            state.submit(spec, Label::from(&name), by);
            state.io.wake_peers();
            state.io.keeping.end()
        };
        if let Some(large) = large {
            self.keep_large(actor, large);
        }
    }

    /// Keeps what has to be read first, and has its actor made. One that cannot be kept depends on
    /// us; its worker says so.
    fn keep_large(&self, actor: ActorId, large: Large) {
        let Large { asked: (mut message, bytes), class } = large;
        let kept = self.keep_constructor(actor, &bytes, &class);
        let io = &mut self.lock().io;
        match kept {
            Ok(()) => {
                message.kept = true;
                io.tell_node(to_node::Body::CreateActor(message));
            }
            Err(_) => io.ask_for_actor(actor, (message, bytes)),
        }
    }

    /// Keeps the constructor of an actor, which may outlive its creator.
    pub(crate) fn keep_constructor(
        &self,
        actor: ActorId,
        task: &[u8],
        class: &[u8],
    ) -> Result<(), NotKept> {
        let task = self.whole_task(task, MOST_KEPT.saturating_sub(class.len()))?;
        self.lock().io.keep(actor, &task, class);
        Ok(())
    }

    /// The frame of a constructor with the bytes of its large arguments in it, if they are not
    /// more than `most`.
    fn whole_task(&self, bytes: &[u8], most: usize) -> Result<Vec<u8>, NotKept> {
        let mut looks: Vec<Option<Look>> = Vec::new();
        let Ok(Frame::Task(mut task)) = Frame::decode(bytes) else {
            return Err(NotKept::Unreadable);
        };
        let large = |body: &Body<'_>| if let Body::Stored { len, .. } = body { *len } else { 0 };
        let outside: u64 = task.values.iter().map(|value| large(&value.body)).sum();
        let len = bytes.len().saturating_add(usize::try_from(outside).unwrap_or(usize::MAX));
        if len > most {
            return Err(NotKept::TooLarge(len));
        }
        for value in &task.values {
            looks.push(match value.body {
                Body::Stored { origin, len } => {
                    let look = self.look_at(origin, len, None, || false);
                    Some(look.map_err(|_| NotKept::Unreadable)?)
                }
                _ => None,
            });
        }
        for (value, look) in task.values.iter_mut().zip(&looks) {
            if let Some(look) = look {
                value.body = Body::Inline(look.bytes());
            }
        }
        let mut whole = Vec::with_capacity(len);
        Frame::Task(task).encode(&mut whole);
        Ok(whole)
    }

    fn get_kept(&self, key: Vec<u8>) -> Option<Vec<u8>> {
        let (verb, namespace) = (KvVerb::Get as i32, KEPT_ACTORS.to_owned());
        self.key_value(Kv { verb, namespace, key, ..Kv::default() }, || false)?.value
    }

    /// A constructor that was kept, and its class.
    fn kept_constructor(&self, actor: ActorId) -> Option<(Vec<u8>, Vec<u8>)> {
        let head = self.get_kept(actor.0.to_vec())?;
        let (parts, task_len) = head.split_first_chunk()?;
        let (parts, task_len) = (u32::from_le_bytes(*parts), task_len.try_into().ok()?);
        let mut task = Vec::new();
        for part in 0..parts {
            task.extend(self.get_kept(part_key(actor, part))?);
        }
        let task_len = u32::from_le_bytes(task_len) as usize;
        let class = (task_len <= task.len()).then(|| task.split_off(task_len))?;
        Some((task, class))
    }

    /// Asks the creator of an actor for its constructor, and begins it.
    pub(crate) fn begin_constructor(
        self: &Arc<Self>,
        actor: ActorId,
        start: &StartActor,
    ) -> Option<Call> {
        let giver = ProcessId(start.creator);
        let restarts = u16::try_from(start.restarts).unwrap_or(u16::MAX);
        let queued = |bytes| Queued { peer: giver, number: 0, lane: 0, bytes };
        if start.kept {
            let (bytes, class) = self.kept_constructor(actor)?;
            let state = &mut *self.lock();
            let call = Call::begin(self, state, queued(bytes), restarts)?;
            state.arrived.insert(call.function, class.into());
            return Some(call);
        }
        {
            let state = &mut *self.lock();
            state.io.send(giver, &Frame::WantConstructor(actor));
            state.io.wake_peers();
        }
        let mut call = None;
        self.wait_until(
            None,
            || false,
            |state| {
                let Some(bytes) = state.executor.constructor.take() else { return false };
                call = Call::begin(self, state, queued(bytes), restarts);
                true
            },
        );
        call
    }
}

impl Io {
    /// Keeps a whole constructor and its class.
    pub(crate) fn keep(&self, actor: ActorId, task: &[u8], class: &[u8]) {
        let mut parts = 0_u32;
        for part in [task, class].concat().chunks(PART) {
            self.put_kept(part_key(actor, parts), part.to_vec());
            parts += 1;
        }
        let head = [parts.to_le_bytes(), (task.len() as u32).to_le_bytes()].concat();
        self.put_kept(actor.0.to_vec(), head);
    }

    /// Nobody waits for the answer.
    fn put_kept(&self, key: Vec<u8>, value: Vec<u8>) {
        let (verb, namespace) = (KvVerb::Put as i32, KEPT_ACTORS.to_owned());
        let put = Kv { verb, namespace, key, value: Some(value), wide: true, ..Kv::default() };
        self.tell_node(to_node::Body::Kv(put));
    }
}

/// The key of a part of what is kept for an actor.
fn part_key(actor: ActorId, part: u32) -> Vec<u8> {
    [&actor.0[..], &part.to_be_bytes()].concat()
}
