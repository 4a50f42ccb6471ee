//! What workers do, as `worker::executor` does it: begin, sleep, answer.

use oxiray_ids::{ActorId, ObjectId, ProcessId};
use oxiray_wire::frame::{Answer, Body, FailureCode, Frame, Outcome, Returns, Value, task_token};

use super::world::{Queued, Running, World};
use crate::cancel::cancelled;
use crate::object::Content;
use crate::owner::Outbox;

/// How a task ends. References are places among the worker's own.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) contains: Vec<usize>,
    pub(super) stored: bool,
    /// Of one that raises: so many values were made before, at most.
    pub(super) made: u32,
    pub(super) ran_ns: u64,
}

impl Ending {
    pub(super) fn done() -> Self {
        let (outcome, contains) = (Outcome::Done, Vec::new());
        Self { outcome, contains, stored: false, made: 0, ran_ns: 1_000 }
    }
}

impl World {
    /// Reads an argument of the running task.
    pub(super) fn take_argument(&mut self, process: u64, place: usize) {
        self.with(process, |process, out| {
            let Some(running) = &process.running else { return };
            if !running.held.is_empty() {
                process.read(running.held[place % running.held.len()], out);
            }
        });
    }

    /// An idle process takes its next task; an actor without handles ends.
    pub(super) fn begin_next(&mut self, process: u64) {
        let state = self.processes.get_mut(&process).expect("alive");
        if state.running.is_some() {
            return;
        }
        while let Some(queued) = state.queue.pop_front() {
            let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else { unreachable!() };
            let (number, id) = (task.number, task.id);
            drop(task);
            if number == 0 || self.net.claims.remove(&number) {
                if let Some((begun, most)) = self.begun.get_mut(&id) {
                    *begun += 1;
                    assert!(*begun <= *most, "O-1: run more often than it may be");
                }
                return self.begin(process, queued, None);
            }
        }
        if state.unreferenced {
            self.end_process(process, true);
        }
    }

    pub(super) fn begin(&mut self, process: u64, queued: Queued, constructs: Option<ActorId>) {
        self.with(process, |process, out| {
            let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else { unreachable!() };
            let contained = task.values.iter().flat_map(|value| value.contained.iter());
            let names: Vec<_> = task.nested.iter().chain(contained).copied().collect();
            let lost = |value: &Value<'_>| match value.body {
                Body::Stored { origin, .. } => out.net.lost.contains(&origin.node),
                _ => false,
            };
            process.running = Some(Running {
                unread: task.values.iter().any(lost),
                giver: queued.giver,
                token: task.token,
                id: task.id,
                returns: task.returns,
                cancelled: false,
                yielded: 0,
                read: 0,
                no_reader: false,
                held: process.owner.begin_task(names.into_iter()),
                constructs,
            });
        });
    }

    /// A worker hears that nobody wants a task any more, as `worker::executor` does it.
    pub(super) fn stop(&mut self, giver: u64, process: u64, token: u64) {
        let state = self.processes.get_mut(&process).expect("alive");
        if let Some(running) = &mut state.running {
            running.cancelled |= (running.giver, running.token) == (giver, token);
        }
        let is_meant =
            |queued: &Queued| queued.giver == giver && task_token(&queued.bytes) == Some(token);
        let Some(at) = state.queue.iter().position(is_meant) else { return };
        let queued = state.queue.remove(at).expect("just found");
        let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else { unreachable!() };
        if task.number != 0 && !self.net.claims.remove(&task.number) {
            return;
        }
        self.with(process, |process, out| {
            let contained = task.values.iter().flat_map(|value| value.contained.iter());
            let names: Vec<_> = task.nested.iter().chain(contained).copied().collect();
            let held = process.owner.begin_task(names.into_iter());
            let retained = process.owner.end_task(ProcessId(giver), token, held, out);
            let failure = cancelled(task.id, task.name);
            let values = [Value { body: failure.as_body(), contained: Vec::new() }].into();
            let outcome = Outcome::Cancelled;
            let answer = Answer { token, outcome, ran_ns: 0, values, retained };
            out.send(ProcessId(giver), &Frame::Answer(answer));
        });
        self.obey_node();
    }

    pub(super) fn block(&mut self, process: u64) {
        self.with(process, |process, out| {
            let (Some(running), None) = (&process.running, &process.blocked) else { return };
            let mut told: Vec<u64> = process.queue.iter().map(|queued| queued.giver).collect();
            told.push(running.giver);
            told.sort_unstable();
            told.dedup();
            told.iter().for_each(|peer| out.send(ProcessId(*peer), &Frame::Blocked));
            process.blocked = Some(told);
        });
    }

    pub(super) fn unblock(&mut self, process: u64) {
        self.with(process, |process, out| {
            for peer in process.blocked.take().unwrap_or_default() {
                out.send(ProcessId(peer), &Frame::Unblocked);
            }
        });
    }

    /// The running task ends, as `worker::executor` does it.
    pub(super) fn answer(&mut self, process: u64, ending: &Ending) {
        self.unblock(process);
        if ending.outcome == Outcome::Done && !self.yield_rest(process, ending) {
            return;
        }
        let gathered = self.gather(process);
        let state = self.processes.get_mut(&process).expect("alive");
        let Some(running) = state.running.take() else { return };
        let outcome = match running.unread && running.constructs.is_none() {
            true => Outcome::Unread,
            false if running.cancelled && ending.outcome != Outcome::Done => Outcome::Cancelled,
            false => ending.outcome,
        };
        if outcome == Outcome::Unread
            && let Some((begun, _)) = self.begun.get_mut(&running.id)
        {
            *begun -= 1;
        }
        let well = outcome == Outcome::Done;
        let made = match (outcome, running.returns) {
            (Outcome::Raised | Outcome::Retryable, Returns::Fixed(count)) => ending.made.min(count),
            _ => 0,
        };
        // All values may be made before it raises: then nobody hears of that.
        let count = match running.returns.in_answer() {
            returns if well => returns,
            returns => (made + 1).min(returns.max(1)),
        };
        let ids: Vec<ObjectId> =
            (1..=running.returns.in_answer()).map(|i| running.id.object(i)).collect();
        let mut values = Vec::new();
        for index in 0..count {
            let places: &[usize] = if index == 0 { &ending.contains } else { &[] };
            let mut inner = self.processes.get_mut(&process).expect("alive").counted(places, true);
            inner.extend(gathered.iter().filter(|_| index == 0));
            let (fine, cyclic): (Vec<_>, Vec<_>) = inner.into_iter().partition(|key| {
                let inner = self.processes[&process].owner.id_of(*key);
                ids.iter().all(|outer| self.contain(*outer, inner))
            });
            self.with(process, |process, out| {
                cyclic.iter().for_each(|key| process.owner.drop_ref(*key, out));
            });
            let content = match well || index < made {
                true => self.content(process, ids[index as usize], ending.stored),
                false => Content::failed(FailureCode::TaskError, "raised"),
            };
            values.push((content, fine));
        }
        self.with(process, |process, out| {
            let (giver, token) = (ProcessId(running.giver), running.token);
            let retained = process.owner.end_task(giver, token, running.held, out);
            let mut handed_over = Vec::new();
            let named = values.iter().map(|(content, keys)| {
                handed_over.extend_from_slice(keys);
                let contained = keys.iter().map(|key| process.owner.name(*key)).collect();
                Value { body: content.as_body(), contained }
            });
            let values = named.collect();
            process.owner.hand_over(giver, token, 0, handed_over);
            let ran_ns = ending.ran_ns;
            out.send(giver, &Frame::Answer(Answer { token, outcome, ran_ns, values, retained }));
        });
        if let Some(actor) = running.constructs {
            self.net.recorded.entry(running.id).or_default().constructed = well;
            self.net.node.constructed(actor, well);
        }
        self.obey_node();
    }
}
