//! A standby: a control service that waits until nobody uses the state any more, and takes it over.
//!
//! A thread looks at the store; meanwhile whoever connects hears at once that this one only waits, and
//! where else to look.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use oxiray_persist::{Head, Persist, PersistError, Standby};
use oxiray_sys::eventfd;
use oxiray_wire::cluster::{ControlConfig, Purpose, from_control, to_control};
use oxiray_wire::control::Empty;
use parking_lot::Mutex;

use super::ground::{Ground, security};
use crate::net::uplink::ask;
use crate::poller::Token;

/// How often to look whether somebody uses the state.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it is said that this one waits.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(1);
/// A head that does not answer for so long, and yet has the state, is out of reach.
const HEAD_PATIENCE: Duration = Duration::from_secs(3);
/// How often to look whether the tokens were changed.
const TOKENS_EVERY: Duration = Duration::from_secs(1);

/// What the thread has to say.
enum News {
    /// Where all are that reign or wait.
    Heads(Vec<String>),
    /// The state is ours.
    Ours(Box<Standby>),
}

/// A standby.
pub(super) struct Waiting {
    ground: Ground,
    lookout: Lookout,
    tokens_of: Option<SystemTime>,
}

impl Waiting {
    /// Begins to wait, or says why that is of no use. `again`: it reigned before, so that nothing is
    /// to be checked, and the store may be away.
    pub(super) fn start(config: ControlConfig, again: bool) -> io::Result<Self> {
        let mut ground = Ground::new(config)?;
        let mut standby = Standby::new(&ground.config.store).map_err(io::Error::other)?;
        let mut heads = Vec::new();
        if !again {
            let reigning = check(&ground, &mut standby)?;
            heads = standby.announce(&ground.address).map_err(io::Error::other)?;
            heads.sort_by_key(|address| Some(address) != reigning.as_ref());
        }
        ground.be_known()?;
        ground.peers.send_away(heads);
        let lookout = Lookout::start(standby, ground.address.clone())?;
        ground.poller.add(&*lookout.bell, Token::Disk)?;
        tracing::info!(address = ground.address, "waits to take over");
        let tokens_of = written(&ground);
        Ok(Self { ground, lookout, tokens_of })
    }

    pub(super) fn address(&self) -> &str {
        &self.ground.address
    }

    /// Waits. The state, when it is ours; none: this one was asked to end.
    pub(super) fn run(mut self) -> io::Result<Option<(Ground, Box<dyn Persist>)>> {
        let mut tokens = Vec::new();
        loop {
            self.ground.poller.wait(Some(TOKENS_EVERY), &mut tokens);
            for token in std::mem::take(&mut tokens) {
                match token {
                    Token::Termination => return Ok(None),
                    Token::Starter if crate::shell::starter_is_gone() => return Ok(None),
                    Token::Disk => {
                        if let Some(standby) = self.hear() {
                            tracing::info!("nobody uses the state: this one takes over");
                            self.mind_tokens();
                            self.ground.poller.remove(&*self.lookout.bell);
                            return Ok(Some((self.ground, standby.into_store())));
                        }
                    }
                    token => self.on_connection(token),
                }
            }
            self.mind_tokens();
            let now = oxiray_sys::clock::monotonic_ns();
            self.ground.peers.on_time(now, &self.ground.poller);
            // Nobody is known, so that nobody's end matters.
            self.ground.peers.flush(&self.ground.poller);
        }
    }

    fn on_connection(&mut self, token: Token) {
        let Ground { peers, poller, .. } = &mut self.ground;
        match token {
            Token::Listener => self.ground.greet(),
            Token::NetListener => peers.on_listener(poller),
            Token::NetLink(slot) => peers.on_link(slot, poller, &mut Vec::new()),
            _ => {}
        }
    }

    /// What the thread has said; the state, if that is ours.
    fn hear(&mut self) -> Option<Box<Standby>> {
        let mut ours = None;
        for news in self.lookout.news() {
            match news {
                News::Heads(heads) => self.ground.peers.send_away(heads),
                News::Ours(standby) => ours = Some(standby),
            }
        }
        ours
    }

    /// This machine's node keeps the tokens when they are changed: who has the new one may come.
    fn mind_tokens(&mut self) {
        let written = written(&self.ground);
        if written == self.tokens_of {
            return;
        }
        match self.ground.load_tokens() {
            Ok(()) => self.tokens_of = written,
            Err(error) => tracing::warn!(%error, "the changed tokens cannot be read yet"),
        }
    }
}

/// When the tokens were written.
fn written(ground: &Ground) -> Option<SystemTime> {
    std::fs::metadata(Path::new(&ground.config.keyring)).and_then(|it| it.modified()).ok()
}

/// Why this one could not take over, if that can be seen now; else who reigns.
fn check(ground: &Ground, standby: &mut Standby) -> io::Result<Option<String>> {
    let Some(Head { address, version }) = standby.reigning().map_err(io::Error::other)? else {
        return Ok(None);
    };
    if version != oxiray_wire::VERSION {
        return Err(io::Error::other(format!(
            "the control service at {address} speaks version {version} of the protocol, and this \
             one version {}: install the same version of Oxiray on all machines",
            oxiray_wire::VERSION
        )));
    }
    let see = to_control::Body::See(Empty {});
    match ask(&address, &security(&ground.config)?, Purpose::Tool, see) {
        Ok((_, from_control::Body::Refused(text))) => Err(io::Error::other(text.text)),
        Ok(_) => Ok(Some(address)),
        // It may have ended just now: then there is nobody to ask.
        Err(why) => match standby.is_held_for(HEAD_PATIENCE).map_err(io::Error::other)? {
            true => Err(io::Error::other(why)),
            false => Ok(None),
        },
    }
}

/// The thread that looks at the store.
struct Lookout {
    news: Arc<Mutex<Vec<News>>>,
    bell: Arc<OwnedFd>,
    /// Nothing is ever sent: the thread ends when this does.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lookout {
    fn start(standby: Standby, address: String) -> io::Result<Self> {
        let (news, bell) = (Arc::default(), Arc::new(eventfd::new()?));
        let (stop, stopped) = mpsc::channel();
        let said = Said { news: Arc::clone(&news), bell: Arc::clone(&bell) };
        let run = move || look(standby, &address, &stopped, &said);
        let thread = thread::Builder::new().name("oxiray-store".into()).spawn(run)?;
        Ok(Self { news, bell, stop: Some(stop), thread: Some(thread) })
    }

    fn news(&self) -> Vec<News> {
        eventfd::quiet(&self.bell);
        std::mem::take(&mut *self.news.lock())
    }
}

impl Drop for Lookout {
    /// What the thread has goes with it: nobody is to be sent here any more.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Said {
    news: Arc<Mutex<Vec<News>>>,
    bell: Arc<OwnedFd>,
}

impl Said {
    fn say(&self, news: News) {
        self.news.lock().push(news);
        eventfd::ring(&self.bell);
    }
}

fn look(mut standby: Standby, address: &str, stopped: &Receiver<()>, said: &Said) {
    oxiray_sys::process::block_signals_in_this_thread();
    let mut trouble: Option<String> = None;
    let (mut announced, mut heard): (Option<Instant>, Vec<String>) = (None, Vec::new());
    while matches!(stopped.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout)) {
        let mut attempt = || -> Result<bool, PersistError> {
            if announced.is_none_or(|at| at.elapsed() >= ANNOUNCE_EVERY) {
                let heads = standby.announce(address)?;
                announced = Some(Instant::now());
                if heads != heard {
                    heard.clone_from(&heads);
                    said.say(News::Heads(heads));
                }
            }
            standby.attempt()
        };
        match attempt() {
            Ok(true) => return said.say(News::Ours(Box::new(standby))),
            Ok(false) => trouble = None,
            Err(error) => {
                let why = error.to_string();
                if trouble.as_ref() != Some(&why) {
                    tracing::error!(why, "the store cannot be looked at");
                    trouble = Some(why);
                }
            }
        }
    }
}
