//! The loop of the node service: turns what happens into events of the core.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use oxiray_channel::LeaseEnd;
use oxiray_events::{EventLog, Role};
use oxiray_ids::ProcessId;
use oxiray_node::{Event, Node, Outbox};
use oxiray_session::Session;
use oxiray_sys::clock::monotonic_ns;
use oxiray_sys::control_group::USUAL_ROOT;
use oxiray_sys::machine::own_memory;
use oxiray_wire::control::{NodeConfig, Registered, ToNode, from_node, to_node::Body};
use prost::Message;

use crate::connection::Received;
use crate::departure::Departing;
use crate::event_budget::{Budget, EventBudget};
use crate::event_logs::EventLogs;
use crate::io::{Ending, Io};
use crate::memory_watch::MemoryWatch;
use crate::net::bridge::Outgoing;
use crate::poller::Token;
use crate::warmer::Warmer;

/// Packets read from one process before others have their turn.
const PACKETS_IN_A_ROW: usize = 64;

/// The shared memory that every process maps, and what to say with it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bells: OwnedFd,
    pub(crate) arena: OwnedFd,
    pub(crate) table: OwnedFd,
    /// All but the process's own numbers.
    pub(crate) registered: Registered,
}

/// The node service.
pub(crate) struct Shell {
    pub(crate) node: Node,
    pub(crate) io: Io,
    pub(crate) shared: Shared,
    pub(crate) listener: OwnedFd,
    pub(crate) memory_watch: MemoryWatch,
    warmer: Warmer,
    /// Where processes see when this node's lease ends,
    pub(crate) lease_end: LeaseEnd,
    /// and whether it had the last time.
    pub(crate) was_fenced: bool,
    pub(crate) departing: Vec<Departing>,
    /// What this service itself records, made when there is something.
    events: Option<EventLog>,
    pub(crate) event_logs: EventLogs,
    event_budget: EventBudget,
    pub(crate) zygote_died_at: Option<u64>,
    /// Frames of processes of nodes that are about to join.
    pub(crate) early: BTreeMap<u32, Vec<Outgoing>>,
}

impl Shell {
    pub(crate) fn new(
        node: Node,
        io: Io,
        shared: Shared,
        listener: OwnedFd,
        warmer: Warmer,
        lease_end: LeaseEnd,
    ) -> Self {
        let now = monotonic_ns();
        let memory_watch = memory_watch(io.config.memory_usage_threshold, now);
        let session = io.session.path();
        let event_logs = EventLogs::new(session);
        let event_budget = EventBudget::new(session, Budget::from_environment(), now);
        Self {
            node,
            io,
            shared,
            listener,
            memory_watch,
            warmer,
            lease_end,
            was_fenced: false,
            departing: Vec::new(),
            events: None,
            event_logs,
            event_budget,
            zygote_died_at: None,
            early: BTreeMap::new(),
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.node.on_event(event, monotonic_ns(), &mut self.io);
        self.hear_own_control();
    }

    /// Runs until the session ends; what is needed to begin again, if it is to.
    pub(crate) fn run(mut self) -> Option<(NodeConfig, Session)> {
        // The first event of all lets the core start its workers.
        self.event(Event::Tick);
        let mut tokens = Vec::new();
        loop {
            while let Some(failure) = self.io.failures.pop() {
                self.event(failure);
            }
            if let Some(ending) = self.io.ending {
                self.find_readers();
                self.departing.iter().for_each(Departing::kill);
                self.record_last();
                return self.io.finish(ending);
            }
            let timeout = self.timeout();
            self.sleep(timeout, &mut tokens);
            for &token in &tokens {
                self.on_token(token);
                if self.io.ending.is_some() {
                    break;
                }
            }
            self.on_time();
            self.flush_network();
            self.show_lease();
            self.warmer.follow(self.node.store_reached());
        }
    }

    /// Sleeps until something happens; processes that write to those of other nodes
    /// know that they must wake us.
    fn sleep(&mut self, timeout: Option<Duration>, tokens: &mut Vec<Token>) {
        let Io { poller, reach, .. } = &mut self.io;
        let Some(net) = reach.net() else {
            return poller.wait(timeout, tokens);
        };
        let news = net.bridge.begin_sleep();
        poller.wait(if news { Some(Duration::ZERO) } else { timeout }, tokens);
        net.bridge.end_sleep();
        if net.bridge.has_news() && !tokens.contains(&Token::Gateway) {
            tokens.push(Token::Gateway);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let departing = self.departing.iter().map(|departing| departing.until);
        let watch = [self.memory_watch.next(), self.event_budget.next()];
        let network = self.next_network_wakeup();
        let next = departing.chain(watch).chain(self.node.next_wakeup()).chain(network).min()?;
        // Never less than a moment: a time in the past must not become a spin.
        Some(Duration::from_nanos(next.saturating_sub(monotonic_ns()).max(1_000_000)))
    }

    fn on_time(&mut self) {
        let now = monotonic_ns();
        if self.node.next_wakeup().is_some_and(|at| now >= at) {
            self.event(Event::Tick);
        }
        if let Some(shortage) = self.memory_watch.look(now)
            && let Some((process, reason)) = self.node.choose_to_end(shortage, own_memory)
        {
            tracing::warn!(process = process.0, "{reason}");
            self.memory_watch.told_to_end(process, now);
            self.event(Event::OutOfMemory { process, reason, over_limit: false });
        }
        self.end_overdue(now);
        self.on_network_time(now);
        let Self { event_budget, event_logs, events, io, node, .. } = self;
        event_budget.look(now, event_logs, |gone| {
            own_log(events, io.session.path(), node.gateway()).dropped(gone.bytes, gone.until);
        });
    }

    /// The log of this service, as of now.
    pub(crate) fn record(&mut self) -> &mut EventLog {
        own_log(&mut self.events, self.io.session.path(), self.node.gateway())
    }

    fn on_token(&mut self, token: Token) {
        match token {
            Token::Listener => self.on_connect(),
            Token::Termination => self.io.ending = Some(Ending::Signal),
            Token::DriverEnded => {
                if let Some(&slot) = self.io.by_process.get(&self.io.driver) {
                    // What it said last counts, `Stop` above all.
                    while self.io.ending.is_none() && self.read_packets(slot) {}
                    self.close(slot);
                }
            }
            Token::Zygote(environment) => self.on_zygote(environment),
            Token::Disk => {
                for news in self.io.disk.news() {
                    self.event(Event::Disk(news));
                }
            }
            Token::Files => {
                for (asker, part) in self.io.files.answers() {
                    self.io.send(asker, from_node::Body::FilePart(part));
                }
            }
            Token::Connection(slot) => {
                self.io.flush(slot);
                self.read_packets(slot);
            }
            Token::NetListener | Token::NetLink(_) | Token::Gateway | Token::Transfers => {
                self.on_network(token)
            }
            Token::Starter => {
                if starter_is_gone() {
                    self.io.ending = Some(Ending::Signal);
                }
            }
            Token::Dashboard => {
                if let Some(port) = &mut self.io.dashboard {
                    port.on_connection(&self.io.poller);
                }
            }
            Token::DashboardEnded => {
                if let Some(port) = &mut self.io.dashboard {
                    port.on_end(&self.io.poller);
                }
            }
            Token::Output(slot, stream) => self.on_output(slot, stream),
        }
    }

    fn on_output(&mut self, slot: usize, stream: usize) {
        self.find_reader(slot);
        self.io.read_output(slot, stream, false);
        self.io.tidy_output(slot);
    }

    /// Reads what workers have printed until now.
    pub(crate) fn read_ready_output(&mut self) {
        let mut tokens = Vec::new();
        self.io.poller.wait(Some(Duration::ZERO), &mut tokens);
        for token in tokens {
            if let Token::Output(slot, stream) = token {
                self.on_output(slot, stream);
            }
        }
    }

    /// Whoever a worker's output is for may have changed since it was read last.
    fn find_reader(&mut self, slot: usize) {
        let reader = self.io.outputs.get(slot).and_then(|output| output.process);
        let reader = reader.and_then(|process| self.node.reader_of(process));
        if let (Some(reader), Some(output)) = (reader, self.io.outputs.get_mut(slot)) {
            output.reader = Some(reader);
        }
    }

    fn find_readers(&mut self) {
        let slots: Vec<usize> = self.io.outputs.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.find_reader(slot);
        }
    }

    /// Reads what is there, up to a limit. False when nothing is left.
    pub(crate) fn read_packets(&mut self, slot: usize) -> bool {
        for _ in 0..PACKETS_IN_A_ROW {
            let Some(connection) = self.io.connections.get(slot) else {
                return false;
            };
            let (len, fds) = match connection.receive(&mut self.io.buffer) {
                Received::Packet(len, fds) => (len, fds),
                Received::Nothing => return false,
                Received::End => {
                    self.close(slot);
                    return false;
                }
            };
            let pid = connection.pid;
            let process = connection.process;
            let body = ToNode::decode(&self.io.buffer[..len]).ok().and_then(|m| m.body);
            match (process, body) {
                (Some(process), Some(body)) => {
                    if matches!(body, Body::Stop(_)) {
                        self.find_readers();
                        self.io.read_all_output(Some(process));
                    }
                    self.event(Event::Message(process, body));
                }
                (None, Some(Body::Register(register))) => {
                    self.on_register(slot, &register, fds);
                }
                _ => {
                    tracing::warn!(pid, "a message was not understood; the connection is closed");
                    self.close(slot);
                    return false;
                }
            }
            if self.io.ending.is_some() {
                return false;
            }
        }
        true
    }
}

/// What looks at the memory, as this process's settings have it.
fn memory_watch(threshold: f64, now: u64) -> MemoryWatch {
    let refresh = oxiray_settings::MEMORY_MONITOR_REFRESH_MS.count().unwrap_or_else(|malformed| {
        tracing::warn!("{malformed}");
        oxiray_settings::MEMORY_MONITOR_REFRESH_MS.default_count()
    });
    let groups_at = oxiray_settings::CGROUP_ROOT.path().unwrap_or_else(|| USUAL_ROOT.into());
    MemoryWatch::new(threshold, refresh, Path::new(&groups_at), now)
}

/// Whether standard input, by which whoever started this holds it, has been closed.
pub(crate) fn starter_is_gone() -> bool {
    !matches!(rustix::io::read(rustix::stdio::stdin(), &mut [0; 64]), Ok(1..))
}

/// The log of this service, which is made when there is something to record.
fn own_log<'a>(
    events: &'a mut Option<EventLog>,
    session: &Path,
    own: ProcessId,
) -> &'a mut EventLog {
    let log = events.get_or_insert_with(|| EventLog::new(session, own, Role::Node));
    log.set_now(monotonic_ns());
    log
}
