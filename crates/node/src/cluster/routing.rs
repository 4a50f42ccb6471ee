//! Actors and their names, by way of the control service: it knows where each
//! actor is, and places those that are new.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{ActorNews, NodeInfo, OfProcess, between_nodes, to_control};
use oxiray_wire::control::to_node::Body;
use oxiray_wire::control::{Actor, ActorPhase, ActorState, CreateActor, Query, Topic, from_node};

use super::tell;
use crate::demand::LeaseId;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::Watched;

/// What only the control service can answer.
fn is_for_control(body: &Body) -> bool {
    matches!(
        body,
        Body::CreateActor(_)
            | Body::WatchActor(_)
            | Body::KillActor(_)
            | Body::NameActor(_)
            | Body::FindActor(_)
            | Body::ListActors(_)
            | Body::ReleaseName(_)
            | Body::CreateGroup(_)
            | Body::WatchGroup(_)
            | Body::RemoveGroup(_)
            | Body::FindGroups(_)
    ) || matches!(body, Body::Query(query) if is_of_cluster(query))
}

/// What actor is to be made, if one is.
fn created(body: &Body) -> Option<&CreateActor> {
    match body {
        Body::CreateActor(create) => Some(create),
        _ => None,
    }
}

/// The number of a question that is asked again when its answer may be lost.
fn request_of(body: &Body) -> Option<u64> {
    match body {
        Body::NameActor(asked) | Body::FindActor(asked) => Some(asked.request),
        Body::ListActors(asked) => Some(asked.request),
        Body::FindGroups(asked) => Some(asked.request),
        _ => None,
    }
}

/// Whether a question is about the cluster as a whole, rather than one of its nodes.
fn is_of_cluster(query: &Query) -> bool {
    matches!(query.topic(), Topic::Nodes | Topic::Jobs | Topic::Actors | Topic::Groups)
}

impl Node {
    /// Passes a message of a process of ours on to the control service, if it is
    /// for that; gives it back if not.
    pub(crate) fn route(
        &mut self,
        from: ProcessId,
        body: Body,
        now: u64,
        out: &mut impl Outbox,
    ) -> Option<Body> {
        if !is_for_control(&body) {
            return Some(body);
        }
        if matches!(body, Body::Query(_)) {
            self.tell_load_now(now, out);
        }
        match &body {
            // Answered from what is known here, once that is.
            Body::WatchGroup(group) => {
                self.on_watch_group(from, group, out);
                return None;
            }
            Body::CreateGroup(create) => self.on_create_group(from, create, &body),
            Body::RemoveGroup(group) => self.on_remove_group(from, group, &body),
            _ => {}
        }
        let member = &mut self.member;
        let process = self.processes.get_mut(&from).expect("a message has a sender");
        let mut watch = |id: &[u8]| {
            let id = ActorId::from_slice(id)?;
            process.watched.entry(id).or_default();
            Some(id)
        };
        match &body {
            Body::CreateActor(create) => {
                if let Some(id) = watch(&create.actor) {
                    member.creating.insert(id, (from, body.clone()));
                }
            }
            Body::WatchActor(actor) => _ = watch(&actor.actor),
            Body::KillActor(actor) => {
                if let Some(id) = ActorId::from_slice(&actor.actor).filter(|_| actor.no_restart) {
                    member.killing.insert(id, (from, body.clone()));
                }
            }
            _ => {
                if let Some(request) = request_of(&body) {
                    member.asked.insert((from, request), body.clone());
                }
            }
        }
        // A question that waits is asked with all others when it is there again, and so not kept twice (U-3).
        if request_of(&body).is_none() || self.is_control_there() {
            self.tell_control_of(from, body, out);
        }
        None
    }

    /// Passes on to another node what a process of ours says to it.
    pub(crate) fn pass_on(
        &mut self,
        from: ProcessId,
        node: u32,
        body: Body,
        out: &mut impl Outbox,
    ) {
        if self.member.infos.contains_key(&node) {
            self.introduce(from, node, out);
            let message = Some(body.into());
            let said = OfProcess { process: from.0, message, ..OfProcess::default() };
            tell(node, between_nodes::Body::OfProcess(said), out);
        }
    }

    /// The control service, or another node, passes on what a process said.
    pub(crate) fn on_routed(&mut self, said: OfProcess, now: u64, out: &mut impl Outbox) {
        let from = ProcessId(said.process);
        let Some(body) = said.message.and_then(|message| message.body) else {
            return;
        };
        // A kill needs nobody to answer to.
        if let Body::KillActor(actor) = &body {
            return self.on_kill_actor(actor, out);
        }
        // The control service may not have heard yet that the creator is gone.
        let is_gone = |create: &CreateActor| said.gone || (create.kept && !self.may_live(from));
        if let Some(create) = created(&body).filter(|create| is_gone(create)) {
            let about = said.about.unwrap_or_default();
            let job = self.learn_job(&about);
            let life = (said.stay, said.restarts);
            return self.on_create_actor(from, create.clone(), life, job, out);
        }
        if self.is_elsewhere(from) {
            if !self.get_to_know(from, out) {
                return;
            }
            if let Some(about) = said.about.as_ref().filter(|about| about.process == said.process) {
                self.admit_foreign(about);
            }
        }
        if !self.processes.contains_key(&from) {
            return;
        }
        match body {
            Body::CreateActor(create) => {
                self.tell_load_again();
                let job = self.processes[&from].job;
                self.on_create_actor(from, create, (said.stay, said.restarts), job, out);
            }
            Body::WatchActor(actor) => self.on_watch_actor(from, &actor.actor, out),
            body => self.on_own_message(from, body, now, out),
        }
    }

    /// Whether a process is here, or of a node that would say if it is gone.
    fn may_live(&self, id: ProcessId) -> bool {
        match self.is_elsewhere(id) {
            true => self.member.infos.contains_key(&id.node()),
            false => self.processes.contains_key(&id),
        }
    }

    /// Another node, or the control service (node 0), tells a process of ours something.
    pub(crate) fn on_answered(
        &mut self,
        node: u32,
        to: ProcessId,
        mut body: from_node::Body,
        now: u64,
        out: &mut impl Outbox,
    ) {
        if self.is_elsewhere(to) || !self.processes.contains_key(&to) {
            return;
        }
        if let from_node::Body::ActorState(state) = &mut body
            && !self.on_actor_news(node, to, state, out)
        {
            return;
        }
        match &mut body {
            from_node::Body::Granted(granted) => {
                let worker = ProcessId(granted.worker);
                if !self.get_to_know(worker, out) {
                    return; // Its node left; what it was asked for was placed anew.
                }
                self.on_granted_elsewhere(node, to, granted.shape_key, LeaseId(granted.lease));
                self.ensure_channel(to, worker, out);
            }
            // There will be none of those that were asked for, there or elsewhere.
            from_node::Body::Unschedulable(failed) => self.abandon(to, failed.shape_key, out),
            from_node::Body::Listing(listing) => self.say_why_they_wait(&mut listing.actors),
            from_node::Body::NamedActor(found) => self.forget_question(to, found.request),
            from_node::Body::ActorNames(names) => self.forget_question(to, names.request),
            from_node::Body::Groups(found) => self.forget_question(to, found.request),
            from_node::Body::ProcessDied(died) => {
                return self.on_foreign_ended(died.clone(), now, out);
            }
            _ => {}
        }
        out.send(to, body);
    }

    fn forget_question(&mut self, from: ProcessId, request: u64) {
        self.member.asked.remove(&(from, request));
    }

    /// The control service will see to the end of an actor.
    pub(crate) fn on_kill_heard(&mut self, id: &[u8]) {
        if let Some(id) = ActorId::from_slice(id) {
            self.member.killing.remove(&id);
        }
    }

    /// News of an actor elsewhere for a process of ours; false: it is old.
    fn on_actor_news(
        &mut self,
        node: u32,
        to: ProcessId,
        state: &mut ActorState,
        out: &mut impl Outbox,
    ) -> bool {
        let Some(id) = ActorId::from_slice(&state.actor) else {
            return false;
        };
        // Its word is the last one, though it may have missed how often the actor was started again.
        if node == 0 && state.phase() == ActorPhase::Dead {
            let watched = self.processes.get(&to).and_then(|process| process.watched.get(&id));
            state.restarts = state.restarts.max(watched.map_or(0, |watched| watched.restarts));
        }
        if !self.note_heard(to, id, node, state) {
            return false;
        }
        if state.phase() == ActorPhase::Alive {
            let worker = ProcessId(state.process);
            if self.is_elsewhere(worker) && !self.get_to_know(worker, out) {
                return false; // Its node left; the control service says what follows.
            }
            self.ensure_channel(to, worker, out);
        }
        true
    }

    /// A process of ours hears from `node` how an actor fares; false: it knew.
    pub(crate) fn note_heard(
        &mut self,
        to: ProcessId,
        id: ActorId,
        node: u32,
        state: &ActorState,
    ) -> bool {
        self.member.creating.remove(&id);
        let Some(process) = self.processes.get_mut(&to) else {
            return false;
        };
        let known = process.watched.get(&id).map_or(0, |watched| watched.incarnation());
        let is_old = match state.phase() {
            ActorPhase::Restarting => state.incarnation() <= known,
            _ => state.incarnation() < known,
        };
        if is_old {
            return false;
        }
        if state.phase() == ActorPhase::Dead {
            process.watched.remove(&id);
            return true;
        }
        // What the control service says is said before the actor has a node.
        let worker = (state.phase() == ActorPhase::Alive).then_some(ProcessId(state.process));
        let watched = Watched { node, stay: state.stay, restarts: state.restarts, worker };
        process.watched.insert(id, watched);
        true
    }

    /// Asks again for news of actors that were at `node`, or of all.
    pub(crate) fn watch_again(&mut self, node: Option<u32>, out: &mut impl Outbox) {
        let mut again = Vec::new();
        let infos = &self.member.infos;
        let drains = |node: u32| infos.get(&node).is_some_and(NodeInfo::is_draining);
        for (&id, process) in &self.processes {
            // One that was not answered yet may have been passed on to that node; and so may one
            // that was at a node which drains.
            let lost = |watched: &Watched| {
                let may_have_gone = watched.node == 0 || drains(watched.node);
                node.is_none_or(|node| watched.node == node || may_have_gone)
            };
            let actors = process.watched.iter();
            again.extend(actors.filter(|(_, w)| lost(w)).map(|(actor, w)| (id, *actor, *w)));
        }
        for (process, actor, Watched { stay, restarts, .. }) in again {
            let actor = Actor { actor: actor.0.to_vec(), ..Actor::default() };
            let watch = self.of_process(process, Body::WatchActor(actor));
            // What its node may have told its watchers alone (C-11).
            let watch = OfProcess { stay, restarts, ..watch };
            self.tell_control(to_control::Body::OfProcess(watch), out);
        }
    }

    /// Tells the control service how an actor of this node fares.
    pub(crate) fn tell_of_actor(&mut self, news: ActorNews, out: &mut impl Outbox) {
        self.tell_control(to_control::Body::ActorNews(news), out);
    }
}
