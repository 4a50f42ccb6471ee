//! `oxirayd control`: the control service of a cluster, one thread around the pure
//! core of `oxiray_control`. It is a process of its own, so that its end, and its
//! start on the same store, are noticed by nobody's tasks.
//!
//! What an event changes is written to the store before anything that it says is
//! sent. While the store cannot be written to, what was to be said waits; members
//! are still asked whether they are there, and answer.
//!
//! - `ground`: what it has before it has a state: its port, its log
//! - `waiting`: a standby, until it takes over
//! - `reign`: whether the state is still this service's; what it does when that is not sure
//! - `peers`: connections; `writer`: the thread that writes to the store

mod ground;
mod peers;
mod reign;
mod waiting;
mod writer;

use std::io;
use std::path::Path;
use std::time::Duration;

use oxiray_control::{Change, Control, Event, Health, Now, Outbox, PeerId, Record};
use oxiray_net::{Identity, Keyring, Security};
use oxiray_persist::{Head, Persist};
use oxiray_sys::clock::{monotonic_ns, wall_ns};
use oxiray_sys::machine::random_bytes;
use oxiray_wire::cluster::{ControlConfig, Tokens, from_control};
use oxiray_wire::control::Text;
use prost::Message;

use crate::poller::Token;
use ground::Ground;
use reign::Reign;
use writer::{Outcome, Writer};

/// Runs the service that the file at `path` describes. Says how it went in one line
/// on standard output: `ready ADDRESS`, or `error WHY`. `again`: it reigned before, and
/// waits now.
pub fn run(path: &Path, again: bool) -> io::Result<()> {
    let config = std::fs::read(path)
        .and_then(|bytes| ControlConfig::decode(&bytes[..]).map_err(io::Error::other));
    let ready = config.and_then(|config| match config.standby {
        true => {
            waiting::Waiting::start(config, again).map(|waiting| Ready::Waits(Box::new(waiting)))
        }
        false => Service::start(config).map(|service| Ready::Reigns(Box::new(service))),
    });
    crate::daemon::tell_starter(match &ready {
        Ok(Ready::Waits(waiting)) => Ok(waiting.address().to_owned()),
        Ok(Ready::Reigns(service)) => Ok(service.ground.address.clone()),
        Err(error) => Err(error.to_string()),
    })?;
    match ready? {
        Ready::Reigns(service) => service.run(),
        Ready::Waits(waiting) => match waiting.run()? {
            Some((ground, store)) => reign::take_over(ground, store),
            None => Ok(()),
        },
    }
}

/// A control service that was started.
enum Ready {
    Reigns(Box<Service>),
    Waits(Box<waiting::Waiting>),
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
    ground: Ground,
    control: Control,
    /// Where the state is kept, in words.
    store: String,
    writer: Writer,
    /// What is to be said once what is being written is kept; `None`: nothing is.
    writing: Option<Vec<Said>>,
    /// How many batches that takes: more than one if the store has lost everything.
    batches: usize,
    /// What waits behind that, in order.
    waiting: Asked,
    ended: bool,
    reign: Reign,
}

fn now() -> Now {
    Now { ns: monotonic_ns(), wall_ms: wall_ns() / 1_000_000 }
}

impl Service {
    fn start(config: ControlConfig) -> io::Result<Self> {
        let mut ground = Ground::new(config)?;
        let mut store = oxiray_persist::open(&ground.config.store).map_err(io::Error::other)?;
        let records = store.load().map_err(io::Error::other)?;
        // Not before: the one that is known may have the state.
        ground.be_known()?;
        Self::on(ground, store, records)
    }

    /// Begins with what is kept.
    fn on(ground: Ground, store: Box<dyn Persist>, records: Vec<Record>) -> io::Result<Self> {
        let mut asked = Asked::default();
        let mut control = match Control::restore(records, now()).map_err(io::Error::other)? {
            Some(control) => control,
            None => Control::new(random_bytes()?, now(), &mut asked),
        };
        if let Some(health) = &ground.config.health {
            control.set_health(Health::new(health).map_err(io::Error::other)?);
        }
        control.set_heads(vec![ground.address.clone()], &mut asked);
        let description = store.describe();
        control.set_store(&description, "");
        let head = Head { address: ground.address.clone(), version: oxiray_wire::VERSION };
        let writer = Writer::start(store, head)?;
        ground.poller.add(writer.bell(), Token::Disk)?;
        let mut service = Self {
            ground,
            control,
            store: description,
            writer,
            writing: None,
            batches: 0,
            waiting: Asked::default(),
            ended: false,
            reign: Reign::default(),
        };
        service.ground.peers.welcome();
        service.carry_out(asked);
        tracing::info!(address = service.ground.address, "the control service is there");
        Ok(service)
    }

    fn run(mut self) -> io::Result<()> {
        let mut tokens = Vec::new();
        while !self.ended {
            let timeout = self.timeout();
            self.ground.poller.wait(timeout, &mut tokens);
            // Before anything that came is heard: it may have been long ago.
            self.mind_reign();
            for &token in &tokens {
                self.on_token(token);
            }
            self.on_time();
            for over in self.ground.peers.flush(&self.ground.poller) {
                self.event(over);
            }
        }
        tracing::info!("the control service ends");
        self.writer.finish();
        self.reign.end(self.ground)
    }

    fn timeout(&self) -> Option<Duration> {
        let core = self.control.next_wakeup().filter(|_| !self.reign.has_lapsed());
        let times = [core, self.ground.peers.next_wakeup(), self.next_reign_wakeup()];
        let next = times.into_iter().flatten().min()?;
        Some(Duration::from_nanos(next.saturating_sub(monotonic_ns()).max(1_000_000)))
    }

    fn on_time(&mut self) {
        let ns = monotonic_ns();
        if !self.reign.has_lapsed() && self.control.next_wakeup().is_some_and(|at| ns >= at) {
            self.event(Event::Tick);
        }
        self.ground.peers.on_time(ns, &self.ground.poller);
    }

    fn on_token(&mut self, token: Token) {
        match token {
            Token::Termination => self.ended = true,
            Token::Starter => self.ended = crate::shell::starter_is_gone(),
            Token::Listener => self.ground.greet(),
            Token::Disk => self.on_writer(),
            Token::NetListener => self.ground.peers.on_listener(&self.ground.poller),
            Token::NetLink(slot) => {
                let mut events = Vec::new();
                self.ground.peers.on_link(slot, &self.ground.poller, &mut events);
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
                Said::Send(peers, body) if is_urgent(&body) => {
                    self.ground.peers.send(&peers, *body)
                }
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
                    tracing::error!(why, "the state is another's");
                    self.ended = true;
                    self.reign.lose(why);
                }
                Outcome::Heads(all) => self.on_heads(all),
                Outcome::Trouble(why) => self.control.set_store(&self.store, &why),
                Outcome::Recovered => self.control.set_store(&self.store, ""),
            }
        }
    }

    fn say(&mut self, messages: Vec<Said>) {
        for said in messages {
            match said {
                Said::Send(peers, body) => self.ground.peers.send(&peers, *body),
                Said::Close(peer) => self.ground.peers.close(peer),
                Said::Rotate(peer) => self.rotate(peer),
            }
        }
    }

    /// Makes a new secret, which all members hear of before the old one is given up.
    fn rotate(&mut self, asker: PeerId) {
        match self.new_tokens() {
            Ok(tokens) => {
                let all: Vec<PeerId> = self.control.node_peers().chain([asker]).collect();
                self.ground.peers.send(&all, from_control::Body::Tokens(tokens));
            }
            Err(text) => {
                self.ground.peers.send(&[asker], from_control::Body::Refused(Text { text }));
            }
        }
    }

    fn new_tokens(&mut self) -> Result<Tokens, String> {
        if self.ground.config.keyring.is_empty() {
            return Err("this cluster is insecure: it has no token to change".into());
        }
        let path = Path::new(&self.ground.config.keyring);
        let mut keyring = Keyring::load(path).map_err(|error| error.to_string())?;
        keyring.rotate();
        keyring.previous.truncate(1);
        let identity = Identity::new(&keyring).map_err(|error| error.to_string())?;
        keyring.save(path).map_err(|error| error.to_string())?;
        self.ground.peers.set_security(Security::Tls(identity));
        Ok(Tokens { tokens: keyring.secrets().map(ToString::to_string).collect() })
    }
}

fn is_urgent(body: &from_control::Body) -> bool {
    matches!(body, from_control::Body::Ping(_) | from_control::Body::State(_))
}
