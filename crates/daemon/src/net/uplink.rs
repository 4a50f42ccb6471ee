//! The connection with the control service: joining it, losing it, finding it again.
//! What is said while it is away is said when it is there again.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use oxiray_net::{Link, LinkError, Security};
use oxiray_sys::clock::monotonic_ns;
use oxiray_wire::cluster::{
    FromControl, Hello, Join, Purpose, ToControl, Welcome, from_control, to_control,
};
use prost::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::poller::{Poller, Token};

/// How long joining may take.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// Between two attempts to find the control service again.
const TRY_EVERY: u64 = 100_000_000;
/// An attempt that takes longer is given up.
const ATTEMPT_WITHIN: u64 = 2_000_000_000;
/// A node that does not find it for so long ends.
const GIVE_UP_AFTER: u64 = 60_000_000_000;
/// A control service that says nothing for so long is not there: it pings twice a second.
const SILENT_AFTER: u64 = 5_000_000_000;

/// What the control service is to a node at the moment.
enum State {
    /// It answers.
    There(Link),
    /// It was asked to take us back.
    Asked(Link, u64),
    /// It is not to be reached; the next attempt is then.
    Away(u64),
}

/// The connection with the control service.
pub(crate) struct Uplink {
    address: String,
    resolved: SocketAddr,
    state: State,
    /// When it was lost.
    lost_at: Option<u64>,
    heard_at: u64,
    /// Said while it was away.
    backlog: Vec<ToControl>,
    polled: bool,
    writes: bool,
}

/// What the uplink has to say.
pub(crate) enum Heard {
    /// A message.
    Said(Box<from_control::Body>),
    /// We are members again: these are all.
    Back(Welcome),
    /// There is no way back, for this reason.
    Over(String),
}

/// Resolves and connects; `Err` is a sentence for the user.
fn connect(address: &str, security: &Security, purpose: Purpose) -> Result<Link, String> {
    connect_to(resolve(address)?, address, security, purpose)
}

fn connect_to(
    resolved: SocketAddr,
    address: &str,
    security: &Security,
    purpose: Purpose,
) -> Result<Link, String> {
    let mut link = Link::connect(resolved, security)
        .map_err(|error| format!("cannot connect to {address}: {error}"))?;
    let mut hello = Hello { version: oxiray_wire::VERSION, ..Hello::default() };
    hello.set_purpose(purpose);
    link.send(&[&hello.encode_to_vec()]).map_err(|error| error.to_string())?;
    Ok(link)
}

/// The address of `host:port`.
pub(crate) fn resolve(address: &str) -> Result<SocketAddr, String> {
    let mut found = address
        .to_socket_addrs()
        .map_err(|error| format!("{address} is not HOST:PORT of a machine: {error}"))?;
    found.next().ok_or_else(|| format!("{address} names no machine"))
}

fn nobody_there(address: &str, error: &LinkError) -> String {
    match error {
        LinkError::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => format!(
            "nobody is there at {address}: start the head with `oxiray start --head`, or check \
             the address and the port"
        ),
        LinkError::Refused(why) => format!(
            "the control service at {address} and this node do not accept each other: {why}"
        ),
        other => format!("cannot reach the control service at {address}: {other}"),
    }
}

/// Sleeps until a connection can go on.
fn sleep(link: &Link, until: Instant) {
    let mut flags = PollFlags::IN;
    flags.set(PollFlags::OUT, link.wants_write());
    let left = until.saturating_duration_since(Instant::now()).min(Duration::from_millis(200));
    let left = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()).max(1_000_000) };
    let fd = link.as_fd();
    let _ = poll(&mut [PollFd::new(&fd, flags)], Some(&left));
}

/// Asks a service something over a connection of its own, and waits for an answer.
pub(crate) fn ask(
    address: &str,
    security: &Security,
    purpose: Purpose,
    question: to_control::Body,
) -> Result<(Link, from_control::Body), String> {
    let mut link = connect(address, security, purpose)?;
    ask_over(&mut link, address, question).map(|answer| (link, answer))
}

fn ask_over(
    link: &mut Link,
    address: &str,
    question: to_control::Body,
) -> Result<from_control::Body, String> {
    let question = ToControl::from(question).encode_to_vec();
    link.send(&[&question]).map_err(|error| error.to_string())?;
    let until = Instant::now() + JOIN_WITHIN;
    let mut answer = None;
    loop {
        let progress = link.on_ready(&mut |frame| match FromControl::decode(frame) {
            Ok(FromControl { body: Some(from_control::Body::Ping(_)) }) => {
                ControlFlow::Continue(())
            }
            Ok(message) => {
                answer = message.body;
                ControlFlow::Break(())
            }
            Err(_) => ControlFlow::Break(()),
        });
        if let Some(answer) = answer {
            return Ok(answer);
        }
        progress.map_err(|error| nobody_there(address, &error))?;
        if Instant::now() >= until {
            return Err(format!(
                "the control service at {address} did not answer within {} s",
                JOIN_WITHIN.as_secs()
            ));
        }
        sleep(link, until);
    }
}

impl Uplink {
    /// The address from which this machine reaches the control service.
    pub(crate) fn local_ip(address: &str, security: &Security) -> Result<std::net::IpAddr, String> {
        let mut link = connect(address, security, Purpose::Control)?;
        let until = Instant::now() + JOIN_WITHIN;
        // Until the connection is made: the handshake begins to be read then.
        while link.wants_write() && !link.is_established() {
            link.on_ready(&mut |_| ControlFlow::Continue(()))
                .map_err(|error| nobody_there(address, &error))?;
            if Instant::now() >= until {
                return Err(format!("no answer from {address}"));
            }
            sleep(&link, until);
        }
        let name = rustix::net::getsockname(&link).map_err(|error| error.to_string())?;
        let name = SocketAddr::try_from(name).map_err(|error| error.to_string())?;
        Ok(name.ip())
    }

    /// Joins a cluster, or says why not.
    pub(crate) fn join(
        address: &str,
        security: &Security,
        join: Join,
    ) -> Result<(Self, Welcome), String> {
        let question = to_control::Body::Join(join);
        let (link, answer) = ask(address, security, Purpose::Control, question)?;
        match answer {
            from_control::Body::Welcome(welcome) => {
                let uplink = Self {
                    address: address.to_owned(),
                    resolved: link.peer_addr(),
                    state: State::There(link),
                    lost_at: None,
                    heard_at: monotonic_ns(),
                    backlog: Vec::new(),
                    polled: true,
                    writes: false,
                };
                Ok((uplink, welcome))
            }
            from_control::Body::Refused(text) => Err(text.text),
            _ => Err(format!("the service at {address} answered something else than expected")),
        }
    }

    /// Says something, now or when the control service is there again.
    pub(crate) fn say(&mut self, message: &ToControl) {
        match &mut self.state {
            State::There(link) => {
                if let Err(error) = link.send(&[&message.encode_to_vec()]) {
                    tracing::error!(%error, "a message to the control service is lost");
                }
            }
            State::Asked(..) | State::Away(_) => self.backlog.push(message.clone()),
        }
    }

    /// Writes what was said, as far as that takes no long.
    pub(crate) fn finish(&mut self) {
        let until = Instant::now() + Duration::from_millis(500);
        while let State::There(link) = &mut self.state
            && link.flush().is_ok()
            && link.wants_write()
            && Instant::now() < until
        {
            sleep(link, until);
        }
    }

    pub(crate) fn flush(&mut self, poller: &Poller) {
        if let State::There(link) | State::Asked(link, _) = &mut self.state {
            // An error shows when the connection is read.
            let _ = link.flush();
            if link.wants_write() != self.writes {
                self.writes = link.wants_write();
                poller.want_write(&*link, Token::Control, self.writes);
            }
        }
    }

    /// Reads what has come.
    pub(crate) fn on_ready(&mut self, poller: &Poller, heard: &mut Vec<Heard>) {
        let (State::There(link) | State::Asked(link, _)) = &mut self.state else {
            return;
        };
        let mut bodies = Vec::new();
        let result = link.on_ready(&mut |frame| {
            if let Ok(FromControl { body: Some(body) }) = FromControl::decode(frame) {
                bodies.push(body);
            }
            ControlFlow::Continue(())
        });
        self.heard_at = monotonic_ns();
        for body in bodies {
            self.on_message(body, heard);
        }
        if let Err(error) = result {
            self.lose(&error.to_string(), poller);
        }
    }

    fn on_message(&mut self, body: from_control::Body, heard: &mut Vec<Heard>) {
        match body {
            from_control::Body::Ping(empty) => {
                self.say(&ToControl::from(to_control::Body::Pong(empty)));
            }
            from_control::Body::Refused(text) => heard.push(Heard::Over(text.text)),
            from_control::Body::Welcome(welcome) => {
                let state = std::mem::replace(&mut self.state, State::Away(0));
                let (State::There(mut link) | State::Asked(mut link, _)) = state else {
                    return;
                };
                for message in std::mem::take(&mut self.backlog) {
                    let _ = link.send(&[&message.encode_to_vec()]);
                }
                self.state = State::There(link);
                self.lost_at = None;
                tracing::info!("the control service is there again");
                heard.push(Heard::Back(welcome));
            }
            body => heard.push(Heard::Said(Box::new(body))),
        }
    }

    fn lose(&mut self, why: &str, poller: &Poller) {
        if let State::There(link) | State::Asked(link, _) = &self.state
            && self.polled
        {
            poller.remove(link);
            self.polled = false;
        }
        let now = monotonic_ns();
        if self.lost_at.is_none() {
            tracing::warn!(why, "the control service is away");
            self.lost_at = Some(now);
        }
        self.state = State::Away(now + TRY_EVERY);
    }

    /// When [`Self::on_time`] is due.
    pub(crate) fn next_wakeup(&self) -> Option<u64> {
        Some(match &self.state {
            State::There(_) => self.heard_at + SILENT_AFTER,
            State::Asked(_, until) => *until,
            State::Away(at) => *at,
        })
    }

    /// Time has passed: looks for a control service that is away. `join` is what to
    /// say to it.
    pub(crate) fn on_time(
        &mut self,
        now: u64,
        security: &Security,
        poller: &Poller,
        join: impl FnOnce() -> Join,
        heard: &mut Vec<Heard>,
    ) {
        match &self.state {
            State::There(_) if now >= self.heard_at + SILENT_AFTER => {
                return self.lose("it says nothing", poller);
            }
            State::Asked(_, until) if now >= *until => return self.lose("no answer", poller),
            State::Away(at) if now >= *at => {}
            _ => return,
        }
        if let Some(lost_at) = self.lost_at
            && now >= lost_at + GIVE_UP_AFTER
        {
            let seconds = GIVE_UP_AFTER / 1_000_000_000;
            let text = format!("the control service has been away for {seconds} s");
            return heard.push(Heard::Over(text));
        }
        // Where it was: to ask for its name again could take long.
        let (at, purpose) = (self.resolved, Purpose::Control);
        let asked = connect_to(at, &self.address, security, purpose).and_then(|mut link| {
            let join = ToControl::from(to_control::Body::Join(join())).encode_to_vec();
            link.send(&[&join]).map_err(|error| error.to_string())?;
            poller.add(&link, Token::Control).map_err(|error| error.to_string())?;
            poller.want_write(&link, Token::Control, true);
            Ok(link)
        });
        self.heard_at = now;
        match asked {
            Ok(link) => {
                (self.polled, self.writes) = (true, true);
                self.state = State::Asked(link, now + ATTEMPT_WITHIN);
            }
            Err(_) => self.state = State::Away(now + TRY_EVERY),
        }
    }
}

impl AsFd for Uplink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.state {
            State::There(link) | State::Asked(link, _) => link.as_fd(),
            State::Away(_) => unreachable!("only asked for right after joining"),
        }
    }
}
