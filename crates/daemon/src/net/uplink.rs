//! The connection with the control service: made, lost, made again. When, and what is said
//! over it, the core decides.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use oxiray_net::{Link, LinkError, Security};
use oxiray_wire::cluster::{
    FromControl, Hello, Join, Purpose, ToControl, Welcome, from_control, to_control,
};
use prost::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Incoming;
use crate::poller::{Poller, Token};

/// How long joining may take.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// The connection with the control service.
pub(crate) struct Uplink {
    address: String,
    resolved: SocketAddr,
    /// Once there is one.
    link: Option<Link>,
    /// Why there is none, until that was said.
    lost: Option<String>,
    writes: bool,
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
                    link: Some(link),
                    lost: None,
                    writes: false,
                };
                Ok((uplink, welcome))
            }
            from_control::Body::Refused(text) => Err(text.text),
            _ => Err(format!("the service at {address} answered something else than expected")),
        }
    }

    /// Says something, if there is a connection.
    pub(crate) fn say(&mut self, message: &ToControl) {
        if let Some(link) = &mut self.link
            && let Err(error) = link.send(&[&message.encode_to_vec()])
        {
            tracing::error!(%error, "a message to the control service is lost");
        }
    }

    /// Writes what was said, as far as that takes no long.
    pub(crate) fn finish(&mut self) {
        let until = Instant::now() + Duration::from_millis(500);
        while let Some(link) = &mut self.link
            && link.flush().is_ok()
            && link.wants_write()
            && Instant::now() < until
        {
            sleep(link, until);
        }
    }

    /// Is to be polled: right after joining.
    pub(crate) fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.link.as_ref().map_or(Ok(()), |link| poller.add(link, Token::Control))
    }

    /// Writes what was said; says that there is no connection, if that is new.
    pub(crate) fn flush(&mut self, poller: &Poller, incoming: &mut Vec<Incoming>) {
        if let Some(link) = &mut self.link {
            // An error shows when the connection is read.
            let _ = link.flush();
            if link.wants_write() != self.writes {
                self.writes = link.wants_write();
                poller.want_write(&*link, Token::Control, self.writes);
            }
        }
        incoming.extend(self.lost.take().map(Incoming::ControlLost));
    }

    /// Reads what has come.
    pub(crate) fn on_ready(&mut self, poller: &Poller, incoming: &mut Vec<Incoming>) {
        let Some(link) = &mut self.link else {
            return;
        };
        let result = link.on_ready(&mut |frame| {
            if let Ok(FromControl { body: Some(body) }) = FromControl::decode(frame) {
                incoming.push(Incoming::Control(Box::new(body)));
            }
            ControlFlow::Continue(())
        });
        if let Err(error) = result {
            self.hang_up(poller);
            incoming.push(Incoming::ControlLost(error.to_string()));
        }
    }

    fn hang_up(&mut self, poller: &Poller) {
        if let Some(link) = self.link.take() {
            poller.remove(&link);
        }
    }

    /// Makes a new connection, over which `join` is said first.
    pub(crate) fn dial(&mut self, join: Join, security: &Security, poller: &Poller) {
        self.hang_up(poller);
        // Where it was: to ask for its name again could take long.
        let (at, purpose) = (self.resolved, Purpose::Control);
        let dialled = connect_to(at, &self.address, security, purpose).and_then(|mut link| {
            let join = ToControl::from(to_control::Body::Join(join)).encode_to_vec();
            link.send(&[&join]).map_err(|error| error.to_string())?;
            poller.add(&link, Token::Control).map_err(|error| error.to_string())?;
            poller.want_write(&link, Token::Control, true);
            Ok(link)
        });
        match dialled {
            Ok(link) => (self.link, self.writes) = (Some(link), true),
            Err(why) => self.lost = Some(why),
        }
    }
}
