//! The thread that listens to the node service.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oxiray_ids::{ActorId, Origin, ProcessId, StoreKey};
use oxiray_owner::ActorEnd;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::{packet, process};
use oxiray_wire::control::{
    self, ActorPhase, ActorState, FromNode, Lacking, ProcessDied, Refused, from_node, to_node,
};
use prost::Message;

use crate::fence::Fence;
use crate::logs::LogItem;
use crate::questions::Reply;
use crate::runtime::{Runtime, State};

/// Receives the next message of the node service.
pub(crate) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
) -> Option<(from_node::Body, Vec<OwnedFd>)> {
    loop {
        let (len, fds) = match packet::receive(socket, buffer) {
            // Too large to be one of ours; what follows it may be.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            received => received.ok()??,
        };
        // A message of a later version that we do not know is none of our business.
        if let Ok(FromNode { body: Some(body) }) = FromNode::decode(&buffer[..len]) {
            return Some((body, fds));
        }
    }
}

/// The same, for a process that may have to end before it hears anything.
fn receive_within(
    fence: Option<&Fence>,
    socket: &OwnedFd,
    buffer: &mut [u8],
) -> Option<(from_node::Body, Vec<OwnedFd>)> {
    if let Some(fence) = fence {
        fence.sleep(socket);
    }
    receive(socket, buffer)
}

/// Runs until the connection ends.
pub(crate) fn run(runtime: &Arc<Runtime>, socket: &OwnedFd) {
    process::block_signals_in_this_thread();
    let mut buffer = vec![0; packet::MAX_PACKET];
    let mut last_words = String::new();
    let mut fence = None;
    while let Some((body, fds)) = receive_within(fence.as_deref(), socket, &mut buffer) {
        match &body {
            from_node::Body::Stopped(why) => {
                last_words.clone_from(&why.text);
                break;
            }
            from_node::Body::StartActor(start) if start.fenced => {
                fence = Some(runtime.lock().io.fence.clone());
            }
            _ => {}
        }
        handle(runtime, body, fds);
    }
    let expected = runtime.leaving.load(Ordering::SeqCst);
    if !runtime.identity.is_driver {
        // A worker without its node service has no reason to be, nor has what it started.
        process::end_own_group(0);
    }
    let reason = match (expected, last_words.is_empty()) {
        (true, _) => "the session has been shut down".to_owned(),
        (false, false) => last_words,
        (false, true) => "the node service (oxirayd) has ended unexpectedly".to_owned(),
    };
    runtime.lock().stop(reason);
    runtime.logs.close();
    runtime.replies.close();
    runtime.bell().ring();
}

pub(crate) fn handle(runtime: &Arc<Runtime>, body: from_node::Body, fds: Vec<OwnedFd>) {
    use from_node::Body;
    match body {
        Body::Allocated(allocated) => {
            let room = match allocated.refused {
                None => runtime.store.granted(StoreKey(allocated.key)).ok_or_else(|| {
                    let text = "the node service granted memory that is not there";
                    Refused::new(Lacking::Object, text)
                }),
                Some(refused) => Err(refused),
            };
            return runtime.replies.put(allocated.request, Reply::Room(room));
        }
        Body::Fetched(fetched) => {
            let answer = fetched.refused.map_or(Ok(()), Err);
            return runtime.replies.put(fetched.request, Reply::Fetched(answer));
        }
        Body::SlabGranted(slab) => {
            let request = slab.request;
            runtime.store.on_slab(slab);
            return runtime.replies.put(request, Reply::Slab);
        }
        Body::Pulled(pulled) => {
            let answer = pulled.refused.map_or(Ok(StoreKey(pulled.key)), Err);
            return runtime.replies.put(pulled.request, Reply::Copied(answer));
        }
        Body::JoinJob(config) => runtime.join_job(config),
        Body::Kv(answer) if answer.request == 0 => return,
        Body::Kv(answer) => return runtime.replies.put(answer.request, Reply::Kv(answer)),
        Body::NamedActor(found) => {
            return runtime.replies.put(found.request, Reply::Named(found));
        }
        Body::ActorNames(names) => {
            return runtime.replies.put(names.request, Reply::Names(names.names));
        }
        Body::Groups(found) => {
            return runtime.replies.put(found.request, Reply::Groups(found));
        }
        Body::Trim(_) => {
            // Whoever asks waits for memory: not at every such word, but now and then.
            if runtime.store.trim() {
                let state = &mut *runtime.lock();
                state.executor.memory_is_short = true;
                runtime.call_main(state);
            }
            return;
        }
        Body::ReportTasks(query) => return runtime.report_tasks(&query),
        Body::ReportObjects(query) => return runtime.report_objects(query.request),
        Body::TaskReport(report) => {
            let text = report.tasks.into_iter().next().map(|task| task.text).unwrap_or_default();
            return runtime.replies.put(report.request, Reply::Reason(text));
        }
        Body::ClusterView(view) => return runtime.replies.add_view(view),
        Body::Log(log) => {
            return runtime.logs.push(LogItem::Printed {
                name: log.name,
                pid: log.pid,
                host: log.host,
                is_error: log.is_error,
                lines: log.lines,
            });
        }
        Body::Warning(warning) => {
            return runtime.logs.push(LogItem::Warning(warning.text));
        }
        body => {
            let state = &mut *runtime.lock();
            state.set_now(monotonic_ns());
            change_state(state, body, fds);
            state.collect_watched();
            state.io.wake_peers();
        }
    }
    runtime.bell().ring();
}

fn change_state(state: &mut State, body: from_node::Body, fds: Vec<OwnedFd>) {
    use from_node::Body;
    match body {
        Body::Granted(granted) => {
            let devices = granted.devices.into_iter().flat_map(|devices| devices.ids).collect();
            let worker = ProcessId(granted.worker);
            let shape = granted.shape_key as u32;
            let given = state.io.given_with(shape, devices).into_words();
            state.owner.on_granted(shape, granted.lease, worker, given, &mut state.io);
        }
        Body::Reclaim(_) => state.owner.on_reclaim(&mut state.io),
        Body::ChannelOpened(opened) => {
            if let Some(file) = fds.into_iter().next() {
                state.owner.on_channel(ProcessId(opened.peer));
                state.io.open(&opened, file);
                state.drain_peer(ProcessId(opened.peer));
            }
        }
        Body::ProcessDied(died) => on_process_died(state, &died),
        Body::StartActor(start) => state.executor.start = Some(start),
        Body::ActorState(actor) => on_actor_state(state, actor),
        Body::NodeLost(lost) => {
            state.owner.on_node_lost(lost.node, &lost.reason, &mut state.io);
        }
        Body::NodeDrains(drains) => {
            state.owner.on_node_drains(drains.node, &mut state.io);
        }
        Body::ObjectMoved(moved) => {
            let place = |at: Option<oxiray_wire::cluster::Origin>| {
                let at = at.unwrap_or_default();
                Origin { node: at.node, key: StoreKey(at.key) }
            };
            state.owner.on_moved(place(moved.from), place(moved.to), &mut state.io);
        }
        Body::Unschedulable(failed) => {
            let shape = failed.shape_key as u32;
            state.owner.on_unschedulable(shape, failed.code(), &failed.reason, &mut state.io);
        }
        Body::GroupState(group) => state.on_group_state(&group),
        Body::Exit(_) => state.executor.exit = true,
        Body::Warm(_) => state.warm = true,
        _ => {}
    }
}

fn on_process_died(state: &mut State, died: &ProcessDied) {
    let peer = ProcessId(died.process);
    state.drain_peer(peer);
    state.io.close(peer);
    state.executor.forget(peer);
    let mut message = format!("the worker process {} died: {}", died.pid, died.reason);
    if !died.last_lines.is_empty() {
        message.push_str("\nThe last lines it printed:\n");
        died.last_lines.iter().for_each(|line| message.push_str(&format!("    {line}\n")));
    }
    state.owner.on_process_died(peer, died.memory(), message.trim_end(), &mut state.io);
    state.io.forget_peer(peer);
    state.io.store.on_process_died(peer);
    // What it made for us and we have not heard of now we never will.
    state.io.tell_node(to_node::Body::DeathSeen(control::Peer { process: died.process }));
}

fn on_actor_state(state: &mut State, message: ActorState) {
    let Some(actor) = ActorId::from_slice(&message.actor) else {
        return;
    };
    let incarnation = message.incarnation();
    match ActorPhase::try_from(message.phase) {
        Ok(ActorPhase::Alive) => {
            let peer = ProcessId(message.process);
            state.owner.on_actor_alive(actor, peer, incarnation, &mut state.io);
        }
        Ok(ActorPhase::Dead) => {
            state.io.forget_actor(actor);
            // What it had answered before it died still counts.
            if let Ok(Some(peer)) = state.owner.actor_peer(actor) {
                state.drain_peer(peer);
            }
            let failure = message.failure_code();
            let ActorState { class_name, reason, creation_error, .. } = message;
            let end = ActorEnd { class_name, reason, creation_error, failure, during: None };
            state.owner.on_actor_dead(actor, incarnation, end, &mut state.io);
        }
        Ok(ActorPhase::Restarting) => {
            if let Ok(Some(peer)) = state.owner.actor_peer(actor) {
                state.drain_peer(peer);
            }
            let reason = &message.reason;
            state.owner.on_actor_restarting(actor, incarnation, reason, &mut state.io);
        }
        Ok(ActorPhase::Pending) | Err(_) => {}
    }
}

/// How long a driver waits for the node service to say that everything has stopped.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(3);
