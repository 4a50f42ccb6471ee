//! The connection with the control service: made, lost, made again. When, and what is said
//! over it, the core decides; with whom, where there are several that might reign, `heads`.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use oxiray_net::{Link, LinkError, Links, Security};
use oxiray_wire::cluster::{
    FromControl, Hello, Join, Purpose, ToControl, Welcome, from_control, to_control,
};
use oxiray_wire::control::Empty;
use prost::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Whose;
use super::heads::Heads;
use crate::poller::Poller;

/// How long joining may take.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// Between two attempts to join where all that answer wait to take over, in nanoseconds.
const JOIN_AGAIN: i64 = 100_000_000;

/// The connection with the control service.
pub(crate) struct Uplink {
    heads: Heads,
    /// By which the node joined, until it is in the table.
    first: Option<Link>,
    /// Where it is there, if there is one.
    slot: Option<usize>,
    /// Why there is none, until that was said.
    not_made: Option<String>,
}

/// Resolves and connects; `Err` is a sentence for the user.
fn connect(address: &str, security: &Security, purpose: Purpose) -> Result<Link, String> {
    let mut link = Link::connect(resolve(address)?, security)
        .map_err(|error| format!("cannot connect to {address}: {error}"))?;
    link.send(&[&hello(purpose)]).map_err(|error| error.to_string())?;
    Ok(link)
}

/// What is said first over a connection.
fn hello(purpose: Purpose) -> Vec<u8> {
    let mut hello = Hello { version: oxiray_wire::VERSION, ..Hello::default() };
    hello.set_purpose(purpose);
    hello.encode_to_vec()
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

/// Waits before asking again: a standby that takes over tells no stranger.
fn pause() {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: JOIN_AGAIN }));
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
        let address = address.split(',').next().unwrap_or(address);
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

    /// Joins a cluster, or says why not. `addresses` are those of control services, with commas;
    /// one that waits to take over says where others are.
    pub(crate) fn join(
        addresses: &str,
        security: &Security,
        join: &Join,
    ) -> Result<(Self, Welcome), String> {
        let mut known: Vec<String> = addresses.split(',').map(str::to_owned).collect();
        let until = Instant::now() + JOIN_WITHIN;
        loop {
            let (mut trouble, mut waits) = (None, None);
            let mut next = 0;
            while let Some(address) = known.get(next).cloned() {
                next += 1;
                let question = to_control::Body::Join(join.clone());
                match ask(&address, security, Purpose::Control, question) {
                    Ok((link, from_control::Body::Welcome(welcome))) => {
                        let heads = Heads::joined_at(address, link.peer_addr());
                        let (first, slot, not_made) = (Some(link), None, None);
                        return Ok((Self { heads, first, slot, not_made }, welcome));
                    }
                    Ok((_, from_control::Body::Standby(heads))) => {
                        waits = Some(address);
                        let is_new = |other: &String| !known.contains(other);
                        let new: Vec<String> = heads.addresses.into_iter().filter(is_new).collect();
                        known.extend(new);
                    }
                    Ok((_, from_control::Body::Refused(text))) => return Err(text.text),
                    Ok(_) => {
                        trouble = Some(format!(
                            "the service at {address} answered something else than expected"
                        ));
                    }
                    Err(why) => trouble = trouble.or(Some(why)),
                }
            }
            match waits {
                // Somebody is about to reign.
                Some(_) if Instant::now() < until => pause(),
                Some(address) => {
                    return Err(format!(
                        "the control service at {address} waits to take over, and the one that \
                         reigns is not to be reached: {}",
                        trouble.unwrap_or_else(|| "nobody does".into())
                    ));
                }
                None => return Err(trouble.unwrap_or_else(|| "no address".into())),
            }
        }
    }

    /// Puts the connection by which the node joined among the others.
    pub(super) fn attach(&mut self, links: &mut Links<Whose>, poller: &Poller) -> io::Result<()> {
        if let Some(link) = self.first.take() {
            self.slot = Some(links.adopt(link, Whose::Control, poller)?);
        }
        Ok(())
    }

    /// Says something, if there is a connection.
    pub(super) fn say(&mut self, message: &ToControl, links: &mut Links<Whose>) {
        if let Some(slot) = self.slot
            && let Err(error) = links.send(slot, &[&message.encode_to_vec()])
        {
            tracing::error!(%error, "a message to the control service is lost");
        }
    }

    /// Ends the connection, and writes what was said before, as far as that takes no long.
    pub(super) fn finish(&mut self, links: &mut Links<Whose>, poller: &Poller) {
        let Some((mut link, _)) = self.slot.take().and_then(|slot| links.end(slot, poller)) else {
            return;
        };
        let until = Instant::now() + Duration::from_millis(500);
        while link.flush().is_ok() && link.wants_write() && Instant::now() < until {
            sleep(&link, until);
        }
    }

    /// The connection is over.
    pub(super) fn on_lost(&mut self) {
        self.slot = None;
    }

    /// Why the last connection could not be made, once.
    pub(super) fn not_made(&mut self) -> Option<String> {
        self.not_made.take()
    }

    /// Ends the connection of a node that lives. When the other side sees the end, be it long after,
    /// it has read that before.
    fn part(&mut self, links: &mut Links<Whose>, poller: &Poller) {
        self.say(&ToControl::from(to_control::Body::Parting(Empty {})), links);
        if let Some((mut link, _)) = self.slot.take().and_then(|slot| links.end(slot, poller)) {
            // If it cannot be written, the connection is over in any case.
            _ = link.flush();
        }
    }

    /// Makes a new connection, over which `join` is said first.
    pub(super) fn dial(&mut self, join: Join, links: &mut Links<Whose>, poller: &Poller) {
        self.part(links, poller);
        let (address, resolved) = self.heads.next();
        let hello = hello(Purpose::Control);
        match links.connect(resolved, &hello, Whose::Control, poller) {
            Ok(slot) => {
                self.slot = Some(slot);
                self.say(&ToControl::from(to_control::Body::Join(join)), links);
            }
            Err(error) => {
                self.not_made = Some(format!("cannot connect to {address}: {error}"));
            }
        }
    }

    /// Who was dialled last is the one: all that may be, if it said so, the one first.
    pub(super) fn settle(&mut self, all: &[String]) -> Vec<String> {
        self.heads.settle(all)
    }
}
