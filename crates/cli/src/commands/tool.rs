//! Questions to the control service.

use std::collections::VecDeque;
use std::io;
use std::net::ToSocketAddrs;
use std::time::Duration;

use oxiray_net::{Bulk, LinkError, Security};
use oxiray_session::Started;
use oxiray_wire::cluster::{
    Drain, FromControl, Hello, NodeInfo, Purpose, State, ToControl, from_control::Body, to_control,
};
use oxiray_wire::control::Empty;
use prost::Message;

use crate::commands::home::security;
use crate::commands::refuse;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection of a tool, with the control service that reigns.
pub(crate) struct Tool {
    connection: Bulk,
    address: String,
    /// Where else it may be: who answers may only wait.
    rest: VecDeque<String>,
    asked: Vec<String>,
    security: Security,
}

impl Tool {
    /// Connects to the control service of a node's cluster.
    pub(crate) fn connect(started: &Started) -> io::Result<Self> {
        let security = security(&started.keyring)?;
        let mut rest = VecDeque::from(started.heads());
        let (connection, address) = connect_first(&mut rest, &security)?;
        let asked = vec![address.clone()];
        Ok(Self { connection, address, rest, asked, security })
    }

    /// Who answered waits to take over: turns to another.
    fn turn(&mut self, others: Vec<String>) -> io::Result<()> {
        let is_new = |other: &String| !self.asked.contains(other) && !self.rest.contains(other);
        let new: Vec<String> = others.into_iter().filter(is_new).collect();
        self.rest.extend(new);
        if self.rest.is_empty() {
            return refuse(format!(
                "the control service at {} waits to take over, and none is known that reigns: try \
                 again in a few seconds",
                self.address
            ));
        }
        (self.connection, self.address) = connect_first(&mut self.rest, &self.security)?;
        self.asked.push(self.address.clone());
        Ok(())
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Everything the control service knows.
    pub(crate) fn see(&mut self) -> io::Result<State> {
        self.ask(to_control::Body::See(Empty {}), |body| match body {
            Body::State(state) => Some(state),
            _ => None,
        })
    }

    /// Has the secret changed. The new tokens, the current one first.
    pub(crate) fn rotate(&mut self) -> io::Result<Vec<String>> {
        self.ask(to_control::Body::Rotate(Empty {}), |body| match body {
            Body::Tokens(tokens) => Some(tokens.tokens),
            _ => None,
        })
    }

    /// Has a node leave in an orderly way: which it is.
    pub(crate) fn drain(&mut self, wanted: Drain) -> io::Result<NodeInfo> {
        self.ask(to_control::Body::Drain(wanted), |body| match body {
            Body::Drains(said) => said.info,
            _ => None,
        })
    }

    fn ask<T>(
        &mut self,
        question: to_control::Body,
        wanted: impl Fn(Body) -> Option<T>,
    ) -> io::Result<T> {
        let question = ToControl::from(question).encode_to_vec();
        loop {
            match self.ask_once(&question, &wanted)? {
                Answer::Found(found) => return Ok(found),
                Answer::Waits(others) => self.turn(others)?,
            }
        }
    }

    fn ask_once<T>(
        &mut self,
        question: &[u8],
        wanted: impl Fn(Body) -> Option<T>,
    ) -> io::Result<Answer<T>> {
        let failed = |error: LinkError| unreachable(&self.address, &error);
        self.connection.send_frame(&[question]).map_err(failed)?;
        let mut frame = Vec::new();
        loop {
            self.connection.recv_frame(&mut frame).map_err(failed)?;
            match FromControl::decode(&frame[..]).map_err(io::Error::other)?.body {
                Some(Body::Refused(text)) => return refuse(text.text),
                Some(Body::Standby(heads)) => return Ok(Answer::Waits(heads.addresses)),
                Some(body) => {
                    if let Some(found) = wanted(body) {
                        return Ok(Answer::Found(found));
                    }
                }
                None => {}
            }
        }
    }
}

enum Answer<T> {
    Found(T),
    /// Who was asked waits to take over; the others are there.
    Waits(Vec<String>),
}

/// Connects to the first of these that is there.
fn connect_first(places: &mut VecDeque<String>, security: &Security) -> io::Result<(Bulk, String)> {
    let mut trouble = None;
    while let Some(address) = places.pop_front() {
        match connect(&address, security) {
            Ok(connection) => return Ok((connection, address)),
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    Err(trouble.unwrap_or_else(|| io::Error::other("no control service is known")))
}

fn connect(address: &str, security: &Security) -> io::Result<Bulk> {
    let failed = |error: LinkError| unreachable(address, &error);
    let mut resolved = address.to_socket_addrs().map_err(|error| unreachable(address, &error))?;
    let Some(socket) = resolved.next() else {
        return refuse(format!("{address} has no address"));
    };
    let mut connection = Bulk::connect(socket, security, PATIENCE).map_err(failed)?;
    let mut hello = Hello { version: oxiray_wire::VERSION, ..Hello::default() };
    hello.set_purpose(Purpose::Tool);
    connection.send_frame(&[&hello.encode_to_vec()]).map_err(failed)?;
    Ok(connection)
}

fn unreachable(address: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("the control service at {address} cannot be asked: {error}"))
}
