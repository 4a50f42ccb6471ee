//! What workers do, as `crates/worker/src/executor.rs` and `crates/python/src/execute.rs` do it:
//! take a task, run it, answer; become an actor; exit.

use std::sync::Arc;

use oxiray_ids::{ActorId, ObjectId, ProcessId};
use oxiray_node::Event;
use oxiray_owner::{Content, Failure, ObjectKey, Outbox};
use oxiray_wire::control::{ActorCreated, StartAnswer, Text, to_node};
use oxiray_wire::frame::{Answer, FailureCode, Frame, Outcome, Value, task_incarnation};

use crate::broken::Broken;
use crate::desk::{Arrived, Ended};
use crate::happening::Happening;
use crate::parcel::{self, Arguments};
use crate::plan::MILLISECOND;
use crate::process::{Execution, Queued, Thread};
use crate::shapes::cpus_of_kind;
use crate::waiting::Waiting;
use crate::world::World;

/// The exception of a task, as bytes: what it raised, as it was to, or that something broke.
pub(crate) fn exception(raised: Option<u64>) -> Vec<u8> {
    raised.map_or_else(|| b"fault".to_vec(), |number| number.to_le_bytes().to_vec())
}

fn raised(number: Option<u64>) -> Content {
    Content::Failed(Arc::new(Failure::new(FailureCode::TaskError, "", exception(number))))
}

impl World {
    /// A worker that a machine asked for is there, or fails to be.
    pub(crate) fn worker_starts(&mut self, machine: usize, environment: u32) {
        if !self.machines[machine].alive {
            return;
        }
        if self.random.once_in(self.plan.start_fails_once_in) {
            let reason = "bad luck".into();
            return self.event(machine, Event::StartFailed { environment, reason });
        }
        self.add_process(machine, None, environment);
    }

    /// An idle worker takes its next task, or exits.
    pub(crate) fn take_work(&mut self, id: ProcessId) {
        loop {
            let Some(process) = self.processes.get_mut(&id) else { return };
            let idle = process.thread.is_none() && process.waiting == Waiting::Nothing;
            if process.driver.is_some() || process.leaves || !idle {
                return;
            }
            if let Some(start) = process.start.take() {
                let actor = ActorId::from_slice(&start.actor).expect("an id");
                let incarnation = start.incarnation();
                let declined = process.owner.is_counted_on();
                assert!(start.asks || !declined, "{id} owns something and has not worked");
                if start.asks {
                    let answer = StartAnswer { actor: start.actor, declined };
                    self.tell_node(id, to_node::Body::StartAnswer(answer));
                }
                if declined {
                    continue;
                }
                let process = self.process_mut(id);
                assert!(process.actor.is_none(), "{id} is made an actor twice");
                process.actor = Some((actor, None));
                process.incarnation = incarnation;
                process.waiting = Waiting::Constructor;
                let before = self.incarnations.insert(actor, id);
                assert_eq!(before, None, "S-4: {actor} lives already, and is made at {id}");
                self.history.live(actor, incarnation);
                self.occupy(id, 1);
                let creator = ProcessId(start.creator);
                return self.with(id, |_, out| out.send(creator, &Frame::WantConstructor(actor)));
            }
            let has_job = !process.job.is_nil();
            let Some(queued) = has_job.then(|| self.next_queued(id)).flatten() else {
                break;
            };
            // Its owner may have taken it back.
            let process = &self.processes[&id];
            let way = process.io.way_from(queued.giver);
            if queued.number != 0 && !self.rings.claim(way, queued.number) {
                continue;
            }
            let is_meant = task_incarnation(&queued.bytes) == Some(process.incarnation);
            if is_meant || self.is_broken(Broken::Incarnations) {
                self.may_run_again(id, &queued);
                return self.begin_task(id, queued, None);
            }
            self.refuse(id, &queued);
        }
        let process = &self.processes[&id];
        let unneeded = process.exit && process.owner.counts() == (0, 0);
        // Not while somebody still takes over references from it.
        let unreferenced = process.unreferenced && process.owner.owes_nothing();
        if unneeded || unreferenced {
            self.note_exit(id);
            self.with(id, |owner, out| owner.end_idle_leases(out));
            self.process_mut(id).leaves = true;
            let text = Text { text: "it was not needed any more".into() };
            self.tell_node(id, to_node::Body::Exiting(text));
            self.agenda.add(self.now + MILLISECOND, Happening::ProcessEnds(id, "exit code 0"));
        }
    }

    /// An actor ends, and what it made as one ends with it.
    pub(crate) fn note_exit(&mut self, id: ProcessId) {
        let process = &self.processes[&id];
        let was_owner = process.owner.counts() != (0, 0);
        self.faults.exits += u64::from(process.actor.is_some() && was_owner);
    }

    /// The constructor that a worker asked for.
    pub(crate) fn constructor_came(&mut self, id: ProcessId, giver: ProcessId, bytes: Vec<u8>) {
        let process = self.process_mut(id);
        if process.waiting == Waiting::Constructor {
            process.waiting = Waiting::Nothing;
            let actor = process.actor.map(|(actor, _)| actor);
            self.begin_task(id, Queued { giver, number: 0, bytes }, actor);
        }
    }

    /// A call that is for another incarnation of the actor is not begun.
    fn refuse(&mut self, id: ProcessId, queued: &Queued) {
        let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else {
            panic!("{id} got a task that is none");
        };
        let (failure, outcome) = (raised(None), Outcome::Unread);
        let values = [Value { body: failure.as_body(), contained: Vec::new() }].into();
        let (token, retained) = (task.token, Vec::new());
        let answer = Answer { token, outcome, ran_ns: 0, values, retained };
        self.with(id, |_, out| out.send(queued.giver, &Frame::Answer(answer)));
    }

    fn begin_task(&mut self, id: ProcessId, queued: Queued, constructs: Option<ActorId>) {
        let Ok(Frame::Task(task)) = Frame::decode(&queued.bytes) else {
            panic!("{id} got a task that is none");
        };
        let giver = queued.giver;
        let contained = task.values.iter().flat_map(|value| value.contained.iter());
        let names: Vec<_> = task.nested.iter().chain(contained).copied().collect();
        let held = self.with(id, |owner, _| owner.begin_task(names.into_iter()));
        let Arguments { job, nested, handles } = parcel::read_arguments(task.args);
        let started = self.now;
        let process = self.process_mut(id);
        let is_task = process.actor.is_none();
        let lives_as = (!is_task).then_some((process.incarnation, task.incarnation));
        let state = process.actor.and_then(|(_, state)| state).unwrap_or(0);
        let attempt = if is_task { task.attempt } else { 1 };
        process.execution = Some(Execution {
            giver,
            token: task.token,
            held,
            task: task.id,
            returns: task.returns.in_answer(),
            flaky: is_task && job.is_flaky() && task.attempt == 0,
            constructs,
            started,
        });
        if constructs.is_none() {
            self.history.begin(id, task.id, lives_as);
        }
        if is_task {
            let kind = self.kinds.get(&task.id).copied().unwrap_or(0);
            self.occupy(id, cpus_of_kind(kind));
        }
        if self.random.once_in(self.plan.crash_once_in) {
            let within = 3 * self.plan.menu.task_time.1;
            let at = self.now + self.random.between(0, within);
            self.agenda.add(at, Happening::Crash(id));
        }
        let values = task.values.iter().map(|value| Content::from_body(&value.body)).collect();
        let returns = task.returns.in_answer();
        let arrived = Arrived { job, returns, attempt, state, values, nested, handles, giver };
        let menu = self.plan.menu;
        self.begin_thread(id, false, |desk| Box::pin(desk.run(menu, arrived)));
    }

    /// The program of a process has ended.
    pub(crate) fn thread_ends(&mut self, id: ProcessId, thread: Thread, ended: Ended) {
        self.progress();
        let Some(execution) = self.process_mut(id).execution.take() else {
            // It held what it held to the end.
            self.let_go(id, thread);
            return self.driver_is_done(id);
        };
        self.vacate(id);
        let (outcome, values) = match ended {
            Ended::Done(sum, values) => {
                if let Some((_, state)) = &mut self.process_mut(id).actor
                    && execution.constructs.is_some()
                {
                    *state = Some(sum);
                }
                (Outcome::Done, values)
            }
            Ended::Raised(number) => {
                let again = if execution.flaky { Outcome::Retryable } else { Outcome::Raised };
                (again, vec![(raised(Some(number)), Vec::new())])
            }
            Ended::ArgumentLost if execution.constructs.is_none() => {
                (Outcome::Retryable, vec![(raised(None), Vec::new())])
            }
            Ended::Fault | Ended::ArgumentLost => {
                (Outcome::Raised, vec![(raised(None), Vec::new())])
            }
        };
        if outcome == Outcome::Done {
            self.check_returns(&execution, &values);
        }
        // What it returns is counted before what it held goes.
        for key in values.iter().flat_map(|(_, inner)| inner) {
            self.process_mut(id).owner.add_ref(*key);
        }
        self.keep_some(id, &thread);
        self.let_go(id, thread);
        let error = match (&values.first(), outcome) {
            (Some((Content::Failed(failure), _)), Outcome::Raised) => failure.data.to_vec(),
            _ => Vec::new(),
        };
        let constructs = execution.constructs;
        let values = if constructs.is_some() { Vec::new() } else { values };
        self.answer(id, execution, outcome, values);
        if let Some(actor) = constructs {
            self.tell_created(id, actor, outcome, error);
        } else {
            self.report.tasks += 1;
            self.report.tasks_done_at = self.now;
        }
    }

    fn tell_created(&mut self, id: ProcessId, actor: ActorId, outcome: Outcome, error: Vec<u8>) {
        let failed = outcome != Outcome::Done;
        let created = ActorCreated { actor: actor.0.to_vec(), error };
        self.tell_node(id, to_node::Body::ActorCreated(created));
        if failed {
            self.process_mut(id).leaves = true;
            let end = Happening::ProcessEnds(id, "its constructor raised an exception");
            self.agenda.add(self.now + MILLISECOND, end);
        }
    }

    fn answer(
        &mut self,
        id: ProcessId,
        execution: Execution,
        outcome: Outcome,
        values: Vec<(Content, Vec<ObjectKey>)>,
    ) {
        let Execution { giver, token, held, started, task, .. } = execution;
        self.history.end(id, task, outcome);
        let ran_ns = self.now - started;
        self.process_mut(id).answered = Some(giver);
        self.with(id, |owner, out| {
            let retained: Vec<ObjectId> = owner.end_task(giver, token, held, out);
            let mut handed_over = Vec::new();
            let named = values.iter().map(|(content, keys)| {
                handed_over.extend_from_slice(keys);
                let contained = keys.iter().map(|key| owner.name(*key)).collect();
                Value { body: content.as_body(), contained }
            });
            let values = named.collect();
            owner.hand_over(giver, token, 0, handed_over);
            out.send(giver, &Frame::Answer(Answer { token, outcome, ran_ns, values, retained }));
        });
    }

    /// Now and then a worker keeps references of its tasks, as globals and actors do.
    fn keep_some(&mut self, id: ProcessId, thread: &Thread) {
        if !self.random.once_in(2) {
            for key in std::mem::take(&mut self.process_mut(id).kept) {
                self.with(id, |owner, out| owner.drop_ref(key, out));
            }
        }
        let values = |key: &&ObjectKey| self.processes[&id].owner.id_of(**key).index() != 0;
        let first = thread.refs.iter().find(values).copied();
        let keeps = self.random.once_in(4) && self.done_at.is_none();
        if let Some(key) = first.filter(|_| keeps) {
            let process = self.process_mut(id);
            process.owner.add_ref(key);
            process.kept.push(key);
        }
    }

    /// A program is gone: what it held and looked at goes.
    fn let_go(&mut self, id: ProcessId, thread: Thread) {
        for slot in thread.looks {
            self.end_look(id, slot);
        }
        for key in thread.refs {
            self.with(id, |owner, out| owner.drop_ref(key, out));
        }
    }

    /// S-3: what runs never exceeds what its machine has, but where tasks lent their CPUs and have
    /// them back while others still use them.
    fn occupy(&mut self, id: ProcessId, cpus: u64) {
        let process = self.process_mut(id);
        process.cpus = cpus;
        let at = process.machine;
        let machine = &mut self.machines[at];
        machine.used += cpus;
        assert!(
            machine.used <= machine.cpus() || machine.has_lent,
            "S-3: {id} is one too many at node {}: {:?}",
            machine.number(),
            machine.node.as_ref().map(oxiray_node::Node::load)
        );
    }

    /// A process does nothing more, or lends the CPUs of what it does.
    pub(crate) fn vacate(&mut self, id: ProcessId) {
        if let Some(process) = self.processes.get_mut(&id) {
            self.machines[process.machine].used -= std::mem::take(&mut process.cpus);
        }
    }
}
