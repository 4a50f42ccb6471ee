//! The state of a node, and which part of it an event concerns.

use std::collections::{BTreeMap, VecDeque};

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_scheduler::Ledger;
use oxiray_store::{Keeper, Table};
use oxiray_wire::control::to_node::Body;
use oxiray_wire::control::{JobConfig, ProcessDied, ProcessInfo, ProcessKind, Text, from_node};

use crate::actors::Actor;
use crate::cluster::{Draining, Member, Uplink};
use crate::deaths::Deaths;
use crate::demand::{Lease, LeaseId};
use crate::environments::{EnvironmentId, Environments};
use crate::event::{AdmitError, Admitted, Event, Outbox, Setup};
use crate::groups::Groups;
use crate::kv::Questions;
use crate::pool::Pool;
use crate::process::{Farewell, Process, Role};
use crate::reports::Round;
use crate::schedule::Schedule;
use crate::slots::Slots;
use crate::storage::{OwnNews, keeper};

/// One machine's node service, without its input and output.
#[derive(Debug)]
pub struct Node {
    pub(crate) setup: Setup,
    /// Its own among the nodes of its cluster.
    pub(crate) number: u32,
    /// What it knows of its cluster.
    pub(crate) member: Member,
    pub(crate) uplink: Uplink,
    /// It is to leave.
    pub(crate) draining: Option<Draining>,
    pub(crate) jobs: BTreeMap<JobId, JobConfig>,
    pub(crate) last_job: u32,
    /// A program or a task has run here.
    pub(crate) has_worked: bool,
    pub(crate) kv_questions: Questions,
    /// What the store has said to the node itself.
    pub(crate) own_news: VecDeque<OwnNews>,
    pub(crate) ledger: Ledger,
    pub(crate) keeper: Keeper,
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    last_process: u32,
    pub(crate) bells: Slots,
    pub(crate) leases: BTreeMap<LeaseId, Lease>,
    pub(crate) last_lease: u64,
    pub(crate) actors: BTreeMap<ActorId, Actor>,
    pub(crate) deaths: Deaths,
    /// The last that died, without their last lines, to answer late questions.
    pub(crate) dead_processes: VecDeque<ProcessDied>,
    /// The last of this node that ended, for people.
    pub(crate) ended_processes: VecDeque<ProcessInfo>,
    pub(crate) pool: Pool,
    pub(crate) environments: Environments,
    pub(crate) rounds: BTreeMap<u64, Round>,
    pub(crate) last_round: u64,
    pub(crate) schedule: Schedule,
    pub(crate) groups: Groups,
}

impl Node {
    /// A node without processes. The first [`Event`] starts its workers.
    pub fn new(setup: Setup, table: Table) -> Self {
        let number = setup.member.number;
        let mut bells = Slots::default();
        let gateway = bells.take();
        let mut keeper = Keeper::new(setup.store_size, table, setup.store_patience);
        keeper.on_own_row(ProcessId::new(number, 0), gateway);
        Self {
            number,
            member: Member::new(setup.member.clone(), gateway),
            uplink: Uplink::new(setup.asked_at),
            draining: None,
            jobs: BTreeMap::new(),
            last_job: 0,
            has_worked: false,
            kv_questions: Questions::default(),
            own_news: VecDeque::new(),
            ledger: Ledger::new(&setup.resources),
            keeper,
            processes: BTreeMap::new(),
            last_process: 0,
            bells,
            leases: BTreeMap::new(),
            last_lease: LeaseId::first_of(number),
            actors: BTreeMap::new(),
            deaths: Deaths::default(),
            dead_processes: VecDeque::new(),
            ended_processes: VecDeque::new(),
            pool: Pool::default(),
            environments: Environments::default(),
            rounds: BTreeMap::new(),
            last_round: 0,
            schedule: Schedule::default(),
            groups: Groups::default(),
            setup,
        }
    }

    /// The node service itself, as other nodes' processes find it.
    pub fn gateway(&self) -> ProcessId {
        ProcessId::new(self.number, 0)
    }

    /// Place of the gateway among the bells.
    pub fn gateway_bell(&self) -> u32 {
        self.member.gateway
    }

    /// Gives a new process its numbers; a worker says of which environment it is.
    /// [`Event::Ready`] follows once it knows them.
    pub fn admit(
        &mut self,
        kind: ProcessKind,
        pid: u32,
        job: JobConfig,
        environment: u32,
    ) -> Result<Admitted, AdmitError> {
        let environment = EnvironmentId(environment);
        if !self.environments.is_known(environment) {
            return Err(AdmitError::UnknownEnvironment(environment.0));
        }
        let bell = match kind {
            ProcessKind::Observer => None,
            _ if self.bells.len() >= self.setup.max_processes => {
                // The gateway has one, too.
                let limit = self.setup.max_processes - 1;
                let limited_by = self.setup.limited_by.clone();
                return Err(AdmitError::TooManyProcesses { limit, limited_by });
            }
            _ => Some(self.bells.take()),
        };
        self.last_process += 1;
        let process = ProcessId::new(self.number, self.last_process);
        if let Some(bell) = bell {
            self.keeper.on_process(process, bell);
        }
        let job = match kind {
            ProcessKind::Driver => Some(self.begin_job(process, job)),
            _ => self.setup.job,
        };
        let known = Process { environment, ..Process::new(pid, kind, bell, job) };
        self.processes.insert(process, known);
        Ok(Admitted { process, bell: bell.unwrap_or(u32::MAX), job })
    }

    /// Takes in one event. `now` is in nanoseconds of a clock that never goes back.
    pub fn on_event(&mut self, event: Event, now: u64, out: &mut impl Outbox) {
        self.mind_lease(now, out);
        match event {
            Event::Ready(process) => self.on_ready(process, now, out),
            Event::Message(from, body) => self.on_message(from, body, now, out),
            Event::Ended { process, reason, last_lines } => {
                self.on_ended(process, &reason, last_lines, now, out);
            }
            Event::OutOfMemory { process, reason, over_limit } => {
                self.on_out_of_memory(process, reason, over_limit, out);
            }
            Event::StartFailed { environment, reason } => {
                self.on_start_failed(EnvironmentId(environment), &reason, now, out);
            }
            Event::Template(environment, result) => {
                self.on_template(environment, result, now, out);
            }
            Event::TemplateSays(environment, text) => {
                self.tell_of_template(EnvironmentId(environment), &text, out);
            }
            Event::Tick => {
                self.retire_idle_workers(now, out);
                self.end_unused_templates(now, out);
                let (keeper, mut counter) = keeper!(self, out);
                keeper.on_tick(now, &mut counter);
                self.mind_uplink(now, out);
            }
            Event::Disk(news) => self.on_disk(news, now, out),
            Event::FromPeer(node, body) => self.on_peer(node, body, now, out),
            Event::FromControl(body) => self.on_control(body, now, out),
            Event::ControlLost => self.on_control_lost(now),
            Event::FrameCame { from, to } => self.on_frame_came(from, to, out),
            Event::PeerLost(node, reason) => self.on_peer_lost(node, &reason, now, out),
            Event::PeerAway(node) => self.on_peer_away(node, out),
            Event::PeerBack(node) => self.on_peer_back(node, out),
            Event::PeerLives(node) => self.on_peer_lives(node, out),
            Event::Transferred(key, result) => self.on_transferred(key, result, now, out),
        }
        self.settle_own_news(now, out);
        self.mind_draining(now, out);
        self.schedule(now, out);
        self.tell_load(now, out);
        #[cfg(debug_assertions)]
        self.validate();
    }

    fn on_message(&mut self, from: ProcessId, body: Body, now: u64, out: &mut impl Outbox) {
        let Some(process) = self.processes.get_mut(&from) else {
            return;
        };
        if process.kind == ProcessKind::Observer
            && !matches!(body, Body::Query(_) | Body::ReadFile(_) | Body::KillActor(_))
        {
            return;
        }
        if let Some(body) = self.route(from, body, now, out) {
            self.on_own_message(from, body, now, out);
        }
    }

    /// A message of a process for this node itself.
    pub(crate) fn on_own_message(
        &mut self,
        from: ProcessId,
        body: Body,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let Some(process) = self.processes.get_mut(&from) else {
            return;
        };
        match body {
            Body::SetDemand(demand) => self.on_set_demand(from, demand, out),
            Body::ReturnLease(lease) => self.on_return_lease(from, LeaseId(lease.lease), now, out),
            Body::Blocked(_) => self.on_blocked(from, true),
            Body::Unblocked(_) => self.on_blocked(from, false),
            Body::Connect(peer) => self.on_connect(from, ProcessId(peer.process), out),
            Body::ActorCreated(created) => self.on_actor_created(from, created, out),
            Body::StartAnswer(answer) => self.on_start_answer(from, &answer, now, out),
            body @ (Body::Allocate(_)
            | Body::Free(_)
            | Body::Unpinned(_)
            | Body::Fetch(_)
            | Body::Withdraw(_)
            | Body::DeathSeen(_)
            | Body::WantSlab(_)
            | Body::ReturnSlab(_)
            | Body::Pull(_)
            | Body::OwnAt(_)
            | Body::FreeAt(_)) => match elsewhere(&body, self.number) {
                Some(node) => self.pass_on(from, node, body, out),
                None => self.on_store_message(from, body, now, out),
            },
            Body::Query(query) => self.on_query(from, query, out),
            Body::ReadFile(wanted) => self.on_read_file(from, wanted, out),
            Body::ObjectReport(report) => self.on_report(from, report, out),
            Body::Kv(question) => self.on_kv(from, question, out),
            Body::TaskReport(report) => self.on_task_report(from, report, out),
            Body::Failing(text) => {
                process.farewell.get_or_insert(Farewell::of(text.text));
            }
            Body::Exiting(text) => {
                let farewell = Farewell { intended: true, ..Farewell::of(text.text) };
                process.farewell.get_or_insert(farewell);
                if process.role == Role::Idle {
                    process.role = Role::Leaving;
                    self.pool.forget(from);
                }
            }
            Body::Stop(failure) => {
                if process.kind == ProcessKind::Driver {
                    let intended = failure.text.is_empty();
                    let reason =
                        if intended { "it ended its session".into() } else { failure.text };
                    let farewell = Farewell { intended, ..Farewell::of(reason) };
                    process.farewell.get_or_insert(farewell);
                    match self.setup.job {
                        Some(_) => out.shut_down(true),
                        None => out.send(from, from_node::Body::Stopped(Text::default())),
                    }
                }
            }
            // The control service's to answer; but another node may say anything.
            Body::CreateActor(_)
            | Body::WatchActor(_)
            | Body::KillActor(_)
            | Body::NameActor(_)
            | Body::FindActor(_)
            | Body::ReleaseName(_)
            | Body::ListActors(_)
            | Body::CreateGroup(_)
            | Body::WatchGroup(_)
            | Body::RemoveGroup(_)
            | Body::FindGroups(_) => {}
            // The shell takes the first one; another means nothing.
            Body::Register(_) => {}
        }
    }

    fn on_ready(&mut self, id: ProcessId, now: u64, out: &mut impl Outbox) {
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        process.started = now;
        if process.is_worker() && process.role == Role::None {
            process.role = Role::Idle;
            process.idle_since = now;
            self.pool.arrived(id, process.environment);
        } else if process.kind == ProcessKind::Driver
            && let Some(job) = self.job_of(id)
        {
            self.tell_of_job(job, out);
        }
        self.tell_if_warm(out);
    }

    /// Lends or takes back the CPUs of what a worker does.
    fn on_blocked(&mut self, worker: ProcessId, blocked: bool) {
        let allocation = match self.processes[&worker].role {
            Role::Leased(lease) => self.leases.get_mut(&lease).map(|lease| {
                lease.blocked = blocked;
                &mut lease.allocation
            }),
            Role::Actor(actor) => {
                self.actors.get_mut(&actor).and_then(|actor| actor.allocation.as_mut())
            }
            _ => None,
        };
        match allocation {
            Some(allocation) if blocked => self.ledger.lend_cpus(allocation),
            Some(allocation) => self.ledger.take_back_cpus(allocation),
            None => {}
        }
    }

    /// Kills a process whose end then has this reason.
    pub(crate) fn end_process(&mut self, id: ProcessId, reason: String, out: &mut impl Outbox) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.farewell = Some(Farewell::of(reason));
            out.kill(id);
        }
    }

    /// Says a sentence to every driver.
    pub(crate) fn warn(&self, text: &str, out: &mut impl Outbox) {
        for (&id, process) in &self.processes {
            if process.kind == ProcessKind::Driver {
                let text = oxiray_wire::control::Text { text: text.to_owned() };
                out.send(id, from_node::Body::Warning(text));
            }
        }
    }

    /// What the store holds now. Looks at every object.
    pub fn store_usage(&self) -> oxiray_store::Usage {
        self.keeper.usage()
    }

    /// Nothing of the arena above this was ever used.
    pub fn store_reached(&self) -> u64 {
        self.keeper.reached()
    }

    /// Workers that hold a lease or are an actor, with their process ids.
    pub fn busy_workers(&self) -> impl Iterator<Item = (ProcessId, u32)> {
        let busy = |process: &Process| matches!(process.role, Role::Leased(_) | Role::Actor(_));
        let busy = self.processes.iter().filter(move |(_, process)| busy(process));
        busy.map(|(&id, process)| (id, process.pid))
    }
}

/// The other node that a message about the store is for, if it is.
fn elsewhere(body: &Body, here: u32) -> Option<u32> {
    let node = match body {
        Body::OwnAt(at) | Body::FreeAt(at) => at.node,
        Body::DeathSeen(dead) => ProcessId(dead.process).node(),
        _ => here,
    };
    (node != here).then_some(node)
}
