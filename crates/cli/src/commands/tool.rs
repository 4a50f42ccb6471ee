//! Questions to the control service.

use std::io;
use std::net::ToSocketAddrs;
use std::time::Duration;

use oxiray_net::{Bulk, LinkError};
use oxiray_session::Started;
use oxiray_wire::cluster::{
    FromControl, Hello, Purpose, State, ToControl, from_control::Body, to_control,
};
use oxiray_wire::control::Empty;
use prost::Message;

use crate::commands::home::security;
use crate::commands::refuse;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection of a tool.
pub(crate) struct Tool {
    connection: Bulk,
    address: String,
}

impl Tool {
    /// Connects to the control service of a node's cluster.
    pub(crate) fn connect(started: &Started) -> io::Result<Self> {
        let address = started.address.clone();
        let failed = |error: LinkError| unreachable(&address, &error);
        let mut resolved =
            address.to_socket_addrs().map_err(|error| unreachable(&address, &error))?;
        let Some(socket) = resolved.next() else {
            return refuse(format!("{address} has no address"));
        };
        let security = security(&started.keyring)?;
        let mut connection = Bulk::connect(socket, &security, PATIENCE).map_err(failed)?;
        let mut hello = Hello { version: oxiray_wire::VERSION, ..Hello::default() };
        hello.set_purpose(Purpose::Tool);
        connection.send_frame(&[&hello.encode_to_vec()]).map_err(failed)?;
        Ok(Self { connection, address })
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

    fn ask<T>(
        &mut self,
        question: to_control::Body,
        wanted: impl Fn(Body) -> Option<T>,
    ) -> io::Result<T> {
        let failed = |error: LinkError| unreachable(&self.address, &error);
        let question = ToControl::from(question).encode_to_vec();
        self.connection.send_frame(&[&question]).map_err(failed)?;
        let mut frame = Vec::new();
        loop {
            self.connection.recv_frame(&mut frame).map_err(failed)?;
            match FromControl::decode(&frame[..]).map_err(io::Error::other)?.body {
                Some(Body::Refused(text)) => return refuse(text.text),
                Some(body) => {
                    if let Some(found) = wanted(body) {
                        return Ok(found);
                    }
                }
                None => {}
            }
        }
    }
}

fn unreachable(address: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("the control service at {address} cannot be asked: {error}"))
}
