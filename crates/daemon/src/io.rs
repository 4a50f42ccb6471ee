//! Does what the core asks for: sends, makes channels, starts and kills.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_node::{Endpoint, Event, Outbox, Transfer};
use oxiray_store::Extent;
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{
    BetweenNodes, ForProcess, Join, NodeInfo, Tokens, between_nodes, to_control,
};
use oxiray_wire::control::{
    Amount, ChannelOpened, FromNode, Log, NodeConfig, ReadFile, Text, from_node::Body,
};
use prost::Message;
use slab::Slab;

use crate::activation::DashboardPort;
use crate::connection::Connection;
use crate::disk::Disk;
use crate::enforcement::Enforcement;
use crate::files::Files;
use crate::limits::named;
use crate::log_expiry::EndedLogs;
use crate::log_file::Limits;
use crate::net::bridge::Outgoing;
use crate::output::{Output, Progress};
use crate::poller::{Poller, Token};
use crate::reach::Reach;
use crate::rejoining;
use crate::zygote::Zygote;
use oxiray_session::Session;

/// Printed lines are not sent on while this much waits for the driver: what
/// workers print must never fill this process.
const MOST_FOR_DRIVER: usize = 4 << 20;

/// Why everything ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The driver asked.
    Asked,
    /// The driver is gone.
    DriverGone,
    /// A signal.
    Signal,
    /// The cluster does not have this node any more.
    Excluded,
    /// The cluster gave this node up, and will have it as a new one.
    GivenUp,
}

/// What a process is told later.
#[derive(Default)]
pub(crate) struct HeldBack {
    /// Processes of other nodes whose last frames wait for room.
    channels: Vec<ProcessId>,
    messages: Vec<Body>,
}

/// Everything the shell does with the operating system.
pub(crate) struct Io {
    pub(crate) poller: Poller,
    pub(crate) session: Session,
    pub(crate) config: NodeConfig,
    pub(crate) connections: Slab<Connection>,
    pub(crate) by_process: BTreeMap<ProcessId, usize>,
    pub(crate) outputs: Slab<Output>,
    pub(crate) log_limits: Limits,
    pub(crate) ended_logs: EndedLogs,
    /// By the number of their environment.
    pub(crate) zygotes: BTreeMap<u32, Zygote>,
    /// What failed within the core's call: it hears of it afterwards.
    pub(crate) failures: Vec<Event>,
    /// The driver that the session ends with, if it does.
    pub(crate) driver: ProcessId,
    pub(crate) reach: Reach,
    /// What processes are told once they have read what others said before they died.
    pub(crate) held_back: BTreeMap<ProcessId, HeldBack>,
    pub(crate) disk: Disk,
    pub(crate) files: Files,
    /// The dashboard's port, if it has one.
    pub(crate) dashboard: Option<DashboardPort>,
    /// What sees that workers take no more than they asked for, if that is wanted.
    pub(crate) enforcement: Option<Enforcement>,
    /// What is said to whoever keeps the record of the end.
    pub(crate) recorded: Option<(ProcessId, Vec<Body>)>,
    pub(crate) ending: Option<Ending>,
    /// Why, for drivers; empty: they know.
    pub(crate) last_words: String,
    /// What the control service is told of that.
    leaves_because: String,
    unsent_lines: usize,
    encoded: Vec<u8>,
    pub(crate) buffer: Vec<u8>,
}

impl Io {
    pub(crate) fn new(
        poller: Poller,
        session: Session,
        config: NodeConfig,
        disk: Disk,
        files: Files,
        reach: Reach,
    ) -> Self {
        Self {
            poller,
            session,
            config,
            connections: Slab::new(),
            by_process: BTreeMap::new(),
            outputs: Slab::new(),
            log_limits: Limits::from_environment(),
            ended_logs: EndedLogs::default(),
            zygotes: BTreeMap::new(),
            failures: Vec::new(),
            driver: ProcessId(u64::MAX),
            reach,
            held_back: BTreeMap::new(),
            disk,
            files,
            dashboard: None,
            enforcement: None,
            recorded: None,
            ending: None,
            last_words: String::new(),
            leaves_because: "it was stopped".into(),
            unsent_lines: 0,
            encoded: Vec::new(),
            buffer: vec![0; 256 * 1024],
        }
    }

    /// Sends over the connection in `slot`.
    pub(crate) fn send_to(&mut self, slot: usize, body: Body, fds: &[BorrowedFd<'_>]) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        self.encoded.clear();
        let message = FromNode::from(body);
        message.encode(&mut self.encoded).expect("a vector grows as needed");
        if self.encoded.len() > oxiray_sys::packet::MAX_PACKET {
            // Whoever receives it could not read it. A fault of ours: answers are bounded.
            return tracing::error!(bytes = self.encoded.len(), "a message is too large");
        }
        match connection.send(&self.encoded, fds) {
            Ok(false) => {}
            Ok(true) => {
                self.poller.want_write(connection.socket(), Token::Connection(slot), true);
            }
            // The peer's end shows when its socket is read. One that lives on
            // without its message would wait for ever, so it must not.
            Err(error) => {
                tracing::warn!(pid = connection.pid, %error, "a message could not be sent");
                let gone = io::ErrorKind::BrokenPipe;
                if error.kind() != gone && connection.output.is_some() {
                    connection.kill();
                }
            }
        }
    }

    /// The connections of drivers.
    fn drivers(&self) -> Vec<usize> {
        let drivers = self.connections.iter().filter(|(_, connection)| connection.is_driver);
        drivers.map(|(slot, _)| slot).collect()
    }

    /// Sends queued packets of a connection.
    pub(crate) fn flush(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        if connection.queued_bytes() > 0 && connection.flush() {
            self.poller.want_write(connection.socket(), Token::Connection(slot), false);
        }
    }

    /// Starts the zygote of the node's own environment if there is none.
    pub(crate) fn ensure_zygote(&mut self) -> io::Result<&mut Zygote> {
        if !self.zygotes.contains_key(&0) {
            self.start_zygote(0, "")?;
        }
        Ok(self.zygotes.get_mut(&0).expect("there is one now"))
    }

    fn start_zygote(&mut self, number: u32, environment: &str) -> io::Result<()> {
        let zygote = Zygote::start(&self.config, &self.session.logs(), number, environment)?;
        self.poller.add(zygote.socket(), Token::Zygote(number))?;
        tracing::info!(pid = zygote.pid(), environment = number, "zygote started");
        self.zygotes.insert(number, zygote);
        Ok(())
    }

    /// Reads a worker's stream: once, or until nothing is left now.
    pub(crate) fn read_output(&mut self, slot: usize, stream: usize, all: bool) {
        let Some(mut output) = self.outputs.get_mut(slot) else {
            return;
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut logs = Vec::new();
        // Even "all" ends: a worker may print faster than this reads.
        for _ in 0..if all { 64 } else { 1 } {
            let pipe = output.pipe(stream).map(|pipe| pipe.try_clone_to_owned());
            match output.read(stream, &mut buffer[..64 * 1024], &mut |log| logs.push(log)) {
                Progress::More => {}
                Progress::Nothing => break,
                Progress::Closed => {
                    if let Some(Ok(pipe)) = pipe {
                        self.poller.remove(pipe);
                    }
                    break;
                }
            }
            output = &mut self.outputs[slot];
        }
        self.buffer = buffer;
        self.send_logs(slot, logs);
    }

    /// Reads all that workers have printed, for `reader` or for everybody, with or without an end.
    pub(crate) fn read_all_output(&mut self, reader: Option<ProcessId>) {
        let wanted = self.outputs.iter().filter(|(_, o)| reader.is_none() || o.reader == reader);
        let slots: Vec<usize> = wanted.map(|(slot, _)| slot).collect();
        for slot in slots {
            for stream in 0..2 {
                self.read_output(slot, stream, true);
                self.end_line(slot, stream);
            }
        }
    }

    /// A line without an end is at its end: nothing more is read.
    fn end_line(&mut self, slot: usize, stream: usize) {
        let mut logs = Vec::new();
        if let Some(output) = self.outputs.get_mut(slot) {
            output.take(stream, None, &mut |log| logs.push(log));
        }
        self.send_logs(slot, logs);
    }

    fn send_logs(&mut self, slot: usize, logs: Vec<Log>) {
        if let Some(process) = self.outputs.get(slot).and_then(|output| output.reader) {
            for log in logs {
                self.send_log(process, log);
            }
        }
    }

    /// Wakes the processes for which frames came from other nodes.
    pub(crate) fn wake_written(&mut self) {
        if let Some(net) = self.reach.net_mut() {
            net.bridge.wake();
        }
    }

    /// Passes on frames to processes of other nodes.
    pub(crate) fn pass_on(&mut self, frames: Vec<Outgoing>) {
        if let Some(net) = self.reach.net_mut() {
            for (from, to, frame) in frames {
                net.pass(from.0, to.0, &frame, &self.poller);
            }
        }
    }

    /// Closes channels that waited for room, and says what was held back behind them.
    pub(crate) fn release_held(&mut self) {
        let locals: Vec<ProcessId> = self.held_back.keys().copied().collect();
        for local in locals {
            let (Some(net), Some(held)) = (self.reach.net_mut(), self.held_back.get_mut(&local))
            else {
                continue;
            };
            let mut outgoing = Vec::new();
            let lives = self.by_process.contains_key(&local);
            held.channels.retain(|foreign| match lives {
                true => !net.bridge.close((local, *foreign), &mut outgoing),
                false => {
                    net.bridge.forget((local, *foreign), &mut outgoing);
                    false
                }
            });
            let done = held.channels.is_empty();
            self.pass_on(outgoing);
            if done && let Some(held) = self.held_back.remove(&local) {
                for body in held.messages {
                    self.send(local, body);
                }
            }
        }
    }

    /// Sends what a worker printed to its driver, here or at another node.
    pub(crate) fn send_log(&mut self, reader: ProcessId, mut log: Log) {
        let Some(&slot) = self.by_process.get(&reader) else {
            if let Some(net) = self.reach.net() {
                log.host = net.host().to_owned();
                self.send(reader, Body::Log(log));
            }
            return;
        };
        if self.connections[slot].queued_bytes() > MOST_FOR_DRIVER {
            self.unsent_lines += log.lines.len();
            return;
        }
        if let Some(note) = self.note_of_unsent() {
            log.lines.insert(0, note);
        }
        self.send_to(slot, Body::Log(log), &[]);
    }

    /// Drops an output that can say nothing any more and belongs to nobody.
    pub(crate) fn tidy_output(&mut self, slot: usize) {
        if self.outputs.get(slot).is_some_and(|o| o.is_closed() && o.process.is_none()) {
            let output = self.outputs.remove(slot);
            self.ended_logs.add(output.pid(), output.closed_files());
        }
    }

    /// What stands in for lines that were not sent on, if any were not.
    fn note_of_unsent(&mut self) -> Option<String> {
        let unsent = std::mem::take(&mut self.unsent_lines);
        let logs = self.session.logs();
        (unsent > 0).then(|| {
            format!(
                "({unsent} lines were not shown because the driver did not keep up; {} has them)",
                logs.display()
            )
        })
    }

    /// Ends everything, and leaves nothing behind but what is kept of ended sessions; or the
    /// directory, emptied, of a node that is to begin again.
    pub(crate) fn finish(mut self, ending: Ending) -> Option<(NodeConfig, Session)> {
        self.read_all_output(None);
        let unsent = self.note_of_unsent();
        for slot in self.drivers() {
            if let Some(text) = unsent.clone() {
                self.send_to(slot, Body::Warning(Text { text }), &[]);
            }
            let text = self.last_words.clone();
            self.send_to(slot, Body::Stopped(Text { text }), &[]);
            // The driver waits for this; one that does not must not keep us.
            let until = Instant::now() + Duration::from_millis(500);
            while !self.connections[slot].flush() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for (_, connection) in &self.connections {
            if connection.output.is_some() {
                connection.kill_with_group();
            }
        }
        for zygote in std::mem::take(&mut self.zygotes).into_values() {
            zygote.end();
        }
        if let Some(dashboard) = self.dashboard.take() {
            dashboard.close();
        }
        if let Some(net) = self.reach.net_mut() {
            net.leave(&self.leaves_because, &self.poller);
        }
        if let Some(enforcement) = self.enforcement.take() {
            enforcement.end();
        }
        self.disk.close();
        tracing::info!(?ending, "session ended");
        rejoining::end_or_clear(ending, self.config, self.session)
    }
}

impl Outbox for Io {
    fn send(&mut self, to: ProcessId, body: Body) {
        if let Some((recorder, said)) = &mut self.recorded
            && *recorder == to
        {
            return said.push(body);
        }
        if let Some(held) = self.held_back.get_mut(&to) {
            return held.messages.push(body);
        }
        if let Some(&slot) = self.by_process.get(&to) {
            self.send_to(slot, body, &[]);
        } else if let Some(net) = self.reach.net_mut()
            && to.node() != net.number
        {
            let message = Some(FromNode::from(body));
            let said = between_nodes::Body::ForProcess(ForProcess { process: to.0, message });
            net.tell_peer(to.node(), &BetweenNodes::from(said), &self.poller);
        }
    }

    fn open_channel(&mut self, ends: [Endpoint; 2]) {
        let file: OwnedFd = match memory_file("oxiray-channel", oxiray_channel::CHANNEL_BYTES) {
            Ok(file) => file,
            Err(error) => {
                // Without it the two would wait for each other for ever.
                tracing::error!(%error, "no memory for a channel");
                self.kill(ends[1].process);
                return;
            }
        };
        for side in 0..2 {
            let (ours, peer) = (ends[side], ends[1 - side]);
            let opened = ChannelOpened {
                peer: peer.process.0,
                peer_bell: peer.bell,
                index: ours.index,
                peer_index: peer.index,
                side: side as u32,
                peer_pid: peer.pid,
            };
            if let Some(&slot) = self.by_process.get(&ours.process) {
                self.send_to(slot, Body::ChannelOpened(opened), &[file.as_fd()]);
            } else if let Some(net) = self.reach.net_mut()
                && ours.process.node() != net.number
            {
                let pair = (peer.process, ours.process);
                let there = (peer.bell, peer.index);
                if let Err(error) = net.bridge.open(pair, &file, side, ours.index, there) {
                    tracing::error!(%error, "no memory for a channel");
                }
            }
        }
    }

    fn start_worker(&mut self, environment: u32) {
        let started = match environment {
            0 => self.ensure_zygote().and_then(Zygote::fork),
            _ => match self.zygotes.get_mut(&environment) {
                Some(zygote) => zygote.fork(),
                None => Err(io::Error::other("its template is gone")),
            },
        };
        if let Err(error) = started {
            let reason = named(&self.config.python, &error).to_string();
            self.failures.push(Event::StartFailed { environment, reason });
        }
    }

    fn make_template(&mut self, environment: u32, text: &str) {
        if let Err(error) = self.start_zygote(environment, text) {
            let reason = named(&self.config.python, &error).to_string();
            self.failures.push(Event::Template(environment, Err(reason)));
        }
    }

    fn end_template(&mut self, environment: u32) {
        // Its workers are no part of its group, and live on.
        if let Some(zygote) = self.zygotes.remove(&environment) {
            self.poller.remove(zygote.socket());
            zygote.end();
        }
    }

    fn confine(&mut self, worker: ProcessId, amounts: &[Amount]) {
        if let (Some(enforcement), Some(&slot)) =
            (&mut self.enforcement, self.by_process.get(&worker))
        {
            enforcement.confine(worker, self.connections[slot].pid, amounts);
        }
    }

    fn kill(&mut self, process: ProcessId) {
        if let Some(&slot) = self.by_process.get(&process)
            && !self.connections[slot].is_driver
        {
            self.connections[slot].kill();
        }
    }

    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.disk.spill(batch);
    }

    fn restore(&mut self, key: StoreKey, extent: Extent) {
        self.disk.restore(key, extent);
    }

    fn forget_copy(&mut self, key: StoreKey) {
        self.disk.forget(key);
    }

    fn tell_peer(&mut self, node: u32, message: BetweenNodes) {
        if let Some(net) = self.reach.net_mut() {
            net.tell_peer(node, &message, &self.poller);
        }
    }

    fn tell_control(&mut self, body: to_control::Body) {
        self.reach.tell_control(body);
    }

    fn dial_control(&mut self, join: Join) {
        self.reach.dial_control(join, &self.poller);
    }

    fn add_node(&mut self, info: &NodeInfo) {
        if let Some(net) = self.reach.net_mut() {
            net.add_node(info);
        }
    }

    fn remove_node(&mut self, number: u32) {
        if let Some(net) = self.reach.net_mut() {
            net.remove_node(number, &self.poller);
        }
    }

    fn know_heads(&mut self, heads: &[String]) {
        self.settle_heads(heads);
    }

    fn change_tokens(&mut self, tokens: Tokens) {
        self.use_tokens(&tokens.tokens);
    }

    fn exclude(&mut self, why: String) {
        tracing::error!(why, "this node is no member any more");
        crate::complain(&format!("this node ends: {why}"));
        self.last_words = format!("this machine is no longer in the cluster: {why}");
        self.ending = Some(Ending::Excluded);
    }

    fn rejoin(&mut self, why: String) {
        tracing::error!(why, "given up; this node joins again as a new one");
        self.last_words = rejoining::last_words(&why);
        self.ending = Some(Ending::GivenUp);
    }

    fn leave(&mut self, why: String) {
        tracing::info!(why, "this node leaves");
        self.last_words = format!("this machine has left the cluster: {why}");
        self.leaves_because = why;
        self.ending = Some(Ending::Excluded);
    }

    fn close_channel(&mut self, local: ProcessId, foreign: ProcessId) {
        let mut outgoing = Vec::new();
        let lives = self.by_process.contains_key(&local);
        if let Some(net) = self.reach.net_mut() {
            if !lives {
                net.bridge.forget((local, foreign), &mut outgoing);
            } else if !net.bridge.close((local, foreign), &mut outgoing) {
                // What it still said comes first, and then that it is gone.
                self.held_back.entry(local).or_default().channels.push(foreign);
            }
        }
        self.pass_on(outgoing);
    }

    fn transfer(&mut self, transfer: Transfer) {
        if let Some(net) = self.reach.net_mut() {
            net.transfers.begin(transfer);
        }
    }

    fn lend(&mut self, grant: u64, extent: Extent) {
        if let Some(net) = self.reach.net() {
            net.transfers.lend(grant, extent);
        }
    }

    fn end_lending(&mut self, grant: u64) {
        if let Some(net) = self.reach.net() {
            net.transfers.end_lending(grant);
        }
    }

    fn tell_user(&mut self, text: String) {
        tracing::info!(text, "the object store says");
        if self.config.tell_spilling {
            for slot in self.drivers() {
                self.send_to(slot, Body::Warning(Text { text: text.clone() }), &[]);
            }
        }
    }

    fn read_file(&mut self, asker: ProcessId, wanted: ReadFile) {
        let mut pids = Vec::new();
        if Files::wants_processes(&wanted) {
            let registered = self.connections.iter().filter(|(_, other)| other.process.is_some());
            pids.extend(registered.map(|(_, other)| other.pid));
            pids.push(std::process::id());
        }
        self.files.read(asker, wanted, pids);
    }

    fn shut_down(&mut self, asked: bool) {
        let ending = if asked { Ending::Asked } else { Ending::DriverGone };
        self.ending.get_or_insert(ending);
    }
}
