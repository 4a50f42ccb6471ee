//! `oxirayd control`: the control service of a cluster, one thread around the pure
//! core of `oxiray_control`. It is a process of its own, so that its end, and its
//! start on the same store, are noticed by nobody's tasks.
//!
//! What an event changes is written to the store before anything that it says is
//! sent. While the store cannot be written to, what was to be said waits; members
//! are still asked whether they are there, and answer.

mod peers;
mod writer;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use oxiray_control::{Change, Control, Event, Now, Outbox, PeerId};
use oxiray_net::{Identity, Keyring, Listener, Security};
use oxiray_session::listen_as_control;
use oxiray_sys::clock::{monotonic_ns, wall_ns};
use oxiray_sys::{packet, termination};
use oxiray_wire::cluster::{ControlConfig, Tokens, from_control};
use oxiray_wire::control::Text;
use prost::Message;
use rustix::fs::Mode;

use crate::daemon::{allow_many_descriptors, log_to};
use crate::poller::{Poller, Token};
use oxiray_sys::machine::random_bytes;
use peers::Peers;
use writer::{Outcome, Writer};

/// Runs the service that the file at `path` describes. Says how it went in one line
/// on standard output: `ready ADDRESS`, or `error WHY`.
pub fn run(path: &Path) -> io::Result<()> {
    let started = std::fs::read(path)
        .and_then(|bytes| ControlConfig::decode(&bytes[..]).map_err(io::Error::other))
        .and_then(Service::start);
    crate::daemon::tell_starter(match &started {
        Ok(service) => Ok(service.address.clone()),
        Err(error) => Err(error.to_string()),
    })?;
    started?.run()
}

/// What an event asked for, in order.
#[derive(Default)]
struct Asked {
    changes: Vec<Change>,
    messages: Vec<Said>,
}

enum Said {
    /// To each of these.
    Send(Vec<PeerId>, Box<from_control::Body>),
    Close(PeerId),
    Rotate(PeerId),
}

impl Outbox for Asked {
    fn send(&mut self, to: PeerId, body: from_control::Body) {
        self.messages.push(Said::Send(vec![to], Box::new(body)));
    }

    fn send_all(&mut self, to: Vec<PeerId>, body: from_control::Body) {
        self.messages.push(Said::Send(to, Box::new(body)));
    }

    fn close(&mut self, peer: PeerId) {
        self.messages.push(Said::Close(peer));
    }

    fn persist(&mut self, change: Change) {
        self.changes.push(change);
    }

    fn rotate(&mut self, peer: PeerId) {
        self.messages.push(Said::Rotate(peer));
    }

    fn note(&mut self, text: String) {
        tracing::info!("{text}");
    }
}

struct Service {
    address: String,
    config: ControlConfig,
    control: Control,
    /// Where the state is kept, in words.
    store: String,
    writer: Writer,
    poller: Poller,
    /// By which commands know that this runs, and who it is.
    known_by: OwnedFd,
    peers: Peers,
    /// What is to be said once what is being written is kept; `None`: nothing is.
    writing: Option<Vec<Said>>,
    /// How many batches that takes: more than one if the store has lost everything.
    batches: usize,
    /// What waits behind that, in order.
    waiting: Asked,
    ended: bool,
    /// Why the state is another's now.
    lost: Option<String>,
}

fn now() -> Now {
    Now { ns: monotonic_ns(), wall_ms: wall_ns() / 1_000_000 }
}

impl Service {
    fn start(config: ControlConfig) -> io::Result<Self> {
        allow_many_descriptors();
        // All of its files are for its owner alone, those of its store too; it starts no program.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let home = Path::new(&config.home);
        log_to(&home.join("control.log"))?;
        let security = match config.keyring.as_str() {
            "" => Security::Insecure,
            path => {
                let keyring = Keyring::load(Path::new(path)).map_err(io::Error::other)?;
                Security::Tls(Identity::new(&keyring).map_err(io::Error::other)?)
            }
        };
        let listen: SocketAddr = config
            .listen
            .parse()
            .map_err(|_| io::Error::other(format!("{} is not an address", config.listen)))?;
        let listener = Listener::bind(listen).map_err(io::Error::other)?;
        let mut store = oxiray_persist::open(&config.store).map_err(io::Error::other)?;
        let records = store.load().map_err(io::Error::other)?;
        let mut asked = Asked::default();
        let mut control = match Control::restore(records, now()).map_err(io::Error::other)? {
            Some(control) => control,
            None => Control::new(random_bytes()?, now(), &mut asked),
        };
        let description = store.describe();
        control.set_store(&description, "");
        let writer = Writer::start(store)?;
        let known_by = listen_as_control(home)?;
        packet::set_nonblocking(&known_by)?;
        let poller = Poller::new()?;
        let termination = termination::termination_pipe()?;
        poller.add(&termination, Token::Termination)?;
        // Polled until this process ends.
        std::mem::forget(termination);
        poller.add(&listener, Token::NetListener)?;
        poller.add(&known_by, Token::Listener)?;
        poller.add(writer.bell(), Token::Disk)?;
        if oxiray_settings::END_WITH_STDIN.is_on() {
            poller.add(rustix::stdio::stdin(), Token::Starter)?;
        }
        // A port that was to be any is known now.
        let port = listener.local_addr().port();
        let address = match config.address.rsplit_once(':') {
            Some((host, _)) => format!("{host}:{port}"),
            None => listener.local_addr().to_string(),
        };
        let peers = Peers::new(security, listener);
        let mut service = Self {
            address,
            config,
            control,
            store: description,
            writer,
            poller,
            known_by,
            peers,
            writing: None,
            batches: 0,
            waiting: Asked::default(),
            ended: false,
            lost: None,
        };
        service.carry_out(asked);
        tracing::info!(address = service.address, "the control service is there");
        Ok(service)
    }

    fn run(mut self) -> io::Result<()> {
        let mut tokens = Vec::new();
        while !self.ended {
            let timeout = self.timeout();
            self.poller.wait(timeout, &mut tokens);
            for &token in &tokens {
                self.on_token(token);
            }
            self.on_time();
            for peer in self.peers.flush(&self.poller) {
                self.event(Event::Closed(peer));
            }
        }
        tracing::info!("the control service ends");
        self.writer.finish();
        self.lost.map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    fn timeout(&self) -> Option<Duration> {
        let times = [self.control.next_wakeup(), self.peers.next_wakeup()];
        let next = times.into_iter().flatten().min()?;
        Some(Duration::from_nanos(next.saturating_sub(monotonic_ns()).max(1_000_000)))
    }

    fn on_time(&mut self) {
        let ns = monotonic_ns();
        if self.control.next_wakeup().is_some_and(|at| ns >= at) {
            self.event(Event::Tick);
        }
        self.peers.on_time(ns, &self.poller);
    }

    fn on_token(&mut self, token: Token) {
        match token {
            Token::Termination => self.ended = true,
            Token::Starter => self.ended = crate::shell::starter_is_gone(),
            // Whoever came knows by now what they wanted to.
            Token::Listener => drop(packet::accept(&self.known_by)),
            Token::Disk => self.on_writer(),
            Token::NetListener => self.peers.on_listener(&self.poller),
            Token::NetLink(slot) => {
                let mut events = Vec::new();
                self.peers.on_link(slot, &self.poller, &mut events);
                events.into_iter().for_each(|event| self.event(event));
            }
            _ => {}
        }
    }

    fn event(&mut self, event: Event) {
        let mut asked = Asked::default();
        self.control.on_event(event, now(), &mut asked);
        self.carry_out(asked);
    }

    /// Says what an event asked for, after what it changed has been kept.
    fn carry_out(&mut self, mut asked: Asked) {
        if self.writing.is_none() && asked.changes.is_empty() {
            return self.say(asked.messages);
        }
        self.waiting.changes.append(&mut asked.changes);
        for said in asked.messages {
            match said {
                // That we are there, and how it stands, is said whatever the store does.
                Said::Send(peers, body) if is_urgent(&body) => self.peers.send(&peers, *body),
                said => self.waiting.messages.push(said),
            }
        }
        self.write_waiting();
    }

    /// Has everything written that waits, unless something is being written.
    fn write_waiting(&mut self) {
        while self.writing.is_none()
            && (!self.waiting.changes.is_empty() || !self.waiting.messages.is_empty())
        {
            let Asked { changes, messages } = std::mem::take(&mut self.waiting);
            match changes.is_empty() {
                true => self.say(messages),
                false => {
                    self.writing = Some(messages);
                    self.write(changes);
                }
            }
        }
    }

    fn write(&mut self, changes: Vec<Change>) {
        self.batches += 1;
        self.writer.write(changes);
    }

    fn on_writer(&mut self) {
        for outcome in self.writer.outcomes() {
            match outcome {
                Outcome::Written => {
                    self.batches -= 1;
                    if self.batches == 0 {
                        let messages = self.writing.take().unwrap_or_default();
                        self.say(messages);
                        self.write_waiting();
                    }
                }
                Outcome::Emptied { batch } => {
                    tracing::error!("the store has lost everything; all is written anew");
                    self.batches -= usize::from(batch);
                    self.writing.get_or_insert_default();
                    let all = self.control.records().into_iter().map(Change::Put).collect();
                    self.write(all);
                }
                Outcome::Lost(why) => {
                    tracing::error!(why, "the control service ends: its state is another's");
                    (self.ended, self.lost) = (true, Some(why));
                }
                Outcome::Trouble(why) => self.control.set_store(&self.store, &why),
                Outcome::Recovered => self.control.set_store(&self.store, ""),
            }
        }
    }

    fn say(&mut self, messages: Vec<Said>) {
        for said in messages {
            match said {
                Said::Send(peers, body) => self.peers.send(&peers, *body),
                Said::Close(peer) => self.peers.close(peer),
                Said::Rotate(peer) => self.rotate(peer),
            }
        }
    }

    /// Makes a new secret, which all members hear of before the old one is given up.
    fn rotate(&mut self, asker: PeerId) {
        match self.new_tokens() {
            Ok(tokens) => {
                let all: Vec<PeerId> = self.control.node_peers().chain([asker]).collect();
                self.peers.send(&all, from_control::Body::Tokens(tokens));
            }
            Err(text) => {
                self.peers.send(&[asker], from_control::Body::Refused(Text { text }));
            }
        }
    }

    fn new_tokens(&mut self) -> Result<Tokens, String> {
        if self.config.keyring.is_empty() {
            return Err("this cluster is insecure: it has no token to change".into());
        }
        let path = Path::new(&self.config.keyring);
        let mut keyring = Keyring::load(path).map_err(|error| error.to_string())?;
        keyring.rotate();
        keyring.previous.truncate(1);
        let identity = Identity::new(&keyring).map_err(|error| error.to_string())?;
        keyring.save(path).map_err(|error| error.to_string())?;
        self.peers.set_security(Security::Tls(identity));
        Ok(Tokens { tokens: keyring.secrets().map(ToString::to_string).collect() })
    }
}

fn is_urgent(body: &from_control::Body) -> bool {
    matches!(body, from_control::Body::Ping(_) | from_control::Body::State(_))
}
