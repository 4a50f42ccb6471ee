//! Constructors of actors: asked for, begun, and kept for when their creators are gone.

use std::sync::Arc;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_owner::Outbox;
use oxiray_wire::cluster::{KEPT_ACTORS, Kv, KvVerb};
use oxiray_wire::control::{self, StartActor, to_node};
use oxiray_wire::frame::Frame;

use crate::call::Call;
use crate::lane::Queued;
use crate::runtime::Runtime;

/// Constructors up to this many bytes, with their classes, are kept.
const MOST_KEPT: usize = 100 << 10;

impl Runtime {
    /// Tells the node how the constructor of our actor ended.
    pub fn actor_created(&self, actor: ActorId, error: Vec<u8>) {
        let created = control::ActorCreated { actor: actor.0.to_vec(), error };
        self.lock().io.tell_node(to_node::Body::ActorCreated(created));
    }

    /// Keeps the constructor of an actor, which may outlive its creator, if it is not large.
    pub(crate) fn keep_constructor(&self, actor: ActorId, call: &Call, class: &[u8]) {
        let task = call.bytes();
        if task.len() + class.len() > MOST_KEPT {
            return;
        }
        let mut value = (task.len() as u32).to_le_bytes().to_vec();
        value.extend_from_slice(task);
        value.extend_from_slice(class);
        let (namespace, key) = (KEPT_ACTORS.to_owned(), actor.0.to_vec());
        let verb = KvVerb::Put as i32;
        let put = Kv { verb, namespace, key, value: Some(value), wide: true, ..Kv::default() };
        // Nobody waits for the answer.
        self.lock().io.tell_node(to_node::Body::Kv(put));
    }

    /// A constructor that was kept, and its class.
    fn kept_constructor(&self, actor: ActorId) -> Option<(Vec<u8>, Vec<u8>)> {
        let (namespace, key) = (KEPT_ACTORS.to_owned(), actor.0.to_vec());
        let get = Kv { verb: KvVerb::Get as i32, namespace, key, ..Kv::default() };
        let value = self.key_value(get, || false)?.value?;
        let (len, rest) = value.split_first_chunk()?;
        let (task, class) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        Some((task.to_vec(), class.to_vec()))
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
