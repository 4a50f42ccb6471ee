//! What processes hear: from their node, as `crates/worker/src/control.rs` takes it in, and from
//! each other, as `crates/worker/src/runtime.rs` does.

use oxiray_ids::{ActorId, JobId, Origin, ProcessId, StoreKey};
use oxiray_owner::ActorEnd;
use oxiray_wire::control::{self, ActorPhase, ActorState, MemoryEnd, from_node, to_node};
use oxiray_wire::frame::{Frame, task_number};

use crate::broken::Broken;
use crate::outbox::Peer;
use crate::process::Queued;
use crate::world::World;

impl World {
    /// A process hears from its node.
    pub(crate) fn process_hears(&mut self, id: ProcessId, body: from_node::Body) {
        use from_node::Body;
        if !self.lives(id) {
            return;
        }
        match body {
            Body::Granted(granted) => {
                self.report.grants += 1;
                let (shape, worker) = (granted.shape_key as u32, ProcessId(granted.worker));
                self.with(id, |owner, out| {
                    out.io.on_granted(granted.shape_key);
                    owner.on_granted(shape, granted.lease, worker, Vec::new(), out);
                });
            }
            Body::Reclaim(_) => self.with(id, |owner, out| owner.on_reclaim(out)),
            Body::ChannelOpened(opened) => {
                let peer = ProcessId(opened.peer);
                self.with(id, |owner, out| {
                    owner.on_channel(peer);
                    out.open(peer);
                });
                self.drain(id, peer);
            }
            Body::ProcessDied(died) => self.hears_of_death(id, ProcessId(died.process)),
            Body::NodeLost(lost) => {
                self.with(id, |owner, out| owner.on_node_lost(lost.node, &lost.reason, out));
            }
            Body::NodeDrains(drains) => {
                self.with(id, |owner, out| owner.on_node_drains(drains.node, out));
            }
            Body::ObjectMoved(moved) => {
                let place = |at: Option<oxiray_wire::cluster::Origin>| {
                    let at = at.unwrap_or_default();
                    Origin { node: at.node, key: StoreKey(at.key) }
                };
                let (from, to) = (place(moved.from), place(moved.to));
                self.with(id, |owner, out| owner.on_moved(from, to, out));
            }
            Body::Unschedulable(failed) => {
                let shape = failed.shape_key as u32;
                self.with(id, |owner, out| {
                    owner.on_unschedulable(shape, failed.code(), &failed.reason, out);
                });
            }
            Body::ActorState(state) => self.hears_of_actor(id, state),
            Body::GroupState(state) => self.hears_of_group(&state),
            Body::StartActor(start) => self.process_mut(id).start = Some(start),
            Body::JoinJob(config) => {
                self.process_mut(id).job = JobId::from_slice(&config.job).unwrap_or(JobId::NIL);
            }
            Body::Exit(_) => self.process_mut(id).exit = true,
            Body::Allocated(answer) => {
                let room = answer.refused.map_or(Ok(answer.key), Err);
                self.room_came(id, answer.request, room);
            }
            Body::Fetched(answer) => {
                self.look_came(id, answer.request, answer.refused.map_or(Ok(None), Err));
            }
            Body::Pulled(answer) => {
                let key = answer.refused.map_or(Ok(Some(answer.key)), Err);
                self.look_came(id, answer.request, key);
            }
            Body::NamedActor(found) => self.name_came(id, &found),
            _ => {}
        }
        self.go_on(id);
    }

    pub(crate) fn process_mut(&mut self, id: ProcessId) -> &mut crate::process::Process {
        self.processes.get_mut(&id).expect("it lives")
    }

    fn hears_of_death(&mut self, id: ProcessId, peer: ProcessId) {
        self.drain(id, peer);
        if !self.lives(id) {
            return;
        }
        let process = self.process_mut(id);
        process.io.peers.insert(peer, Peer::Dead);
        process.queue.retain(|queued| queued.giver != peer);
        self.with(id, |owner, out| owner.on_process_died(peer, MemoryEnd::Not, "it died", out));
        self.forget_peer(id, peer);
        let seen = control::Peer { process: peer.0 };
        self.tell_node(id, to_node::Body::DeathSeen(seen));
    }

    fn hears_of_actor(&mut self, id: ProcessId, state: ActorState) {
        let actor = ActorId::from_slice(&state.actor).expect("an id");
        let wrong = u64::from(self.is_broken(Broken::Incarnations));
        let (phase, incarnation) = (state.phase(), state.incarnation().saturating_add(wrong));
        if phase == ActorPhase::Alive {
            let at = ProcessId(state.process);
            return self.with(id, |owner, out| owner.on_actor_alive(actor, at, incarnation, out));
        }
        if phase == ActorPhase::Pending {
            return;
        }
        if phase == ActorPhase::Dead {
            self.process_mut(id).io.constructors.remove(&actor);
        }
        // What it had answered before it died still counts.
        if let Ok(Some(peer)) = self.processes[&id].owner.actor_peer(actor) {
            self.drain(id, peer);
        }
        let failure = state.failure_code();
        let ActorState { reason, creation_error, class_name, .. } = state;
        let end =
            ActorEnd { class_name, reason: reason.clone(), creation_error, failure, during: None };
        self.with(id, |owner, out| match phase {
            ActorPhase::Dead => owner.on_actor_dead(actor, incarnation, end, out),
            _ => owner.on_actor_restarting(actor, incarnation, &reason, out),
        });
    }

    /// A process hears from another.
    pub(crate) fn on_frame(&mut self, id: ProcessId, peer: ProcessId, bytes: Vec<u8>) {
        if let Some(number) = task_number(&bytes) {
            return self.process_mut(id).queue.push_back(Queued { giver: peer, number, bytes });
        }
        match Frame::decode(&bytes).expect("a frame") {
            Frame::Constructor(_, task) => self.constructor_came(id, peer, task.to_vec()),
            Frame::ActorUnreferenced(_) => self.process_mut(id).unreferenced = true,
            frame => self.with(id, |owner, out| match frame {
                Frame::Answer(answer) => owner.on_answer(peer, answer, out),
                Frame::WantObject(id) => owner.on_want(peer, id, out),
                Frame::Object(id, value) => owner.on_object(id, value, out),
                Frame::Borrow(id) => owner.on_borrow(peer, id, out),
                Frame::Borrowed(id) => owner.on_borrowed(id, out),
                Frame::Release(id) => owner.on_release(peer, id, out),
                Frame::SettledArgs(token) => owner.on_settled_args(peer, token, out),
                Frame::SettledReturns(token, item) => {
                    owner.on_settled_returns(peer, token, item, out);
                }
                Frame::Yield(item) => owner.on_yield(peer, item, out),
                Frame::Blocked => owner.on_blocked(peer, out),
                Frame::Unblocked => owner.on_unblocked(peer, out),
                Frame::WantConstructor(actor) => out.send_constructor(peer, actor),
                Frame::FreeObject(id) => owner.on_free(id, out),
                Frame::TakenBack(number) => owner.on_taken_back(peer, number, out),
                Frame::Entrust(id, value) => owner.on_entrusted(peer, id, value, out),
                frame => unreachable!("{frame:?} is not for {id}"),
            }),
        }
    }
}
