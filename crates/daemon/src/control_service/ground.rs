//! What a control service has before it has a state: its configuration, its log, its port, and the
//! socket by which commands of its machine know it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use oxiray_net::{Identity, Keyring, Listener, Security};
use oxiray_session::listen_as_control;
use oxiray_sys::{packet, termination};
use oxiray_wire::cluster::ControlConfig;
use rustix::fs::Mode;

use super::peers::Peers;
use crate::daemon::log_to;
use crate::poller::{Poller, Token};

pub(super) struct Ground {
    pub(super) config: ControlConfig,
    /// Where others reach it.
    pub(super) address: String,
    pub(super) poller: Poller,
    pub(super) peers: Peers,
    /// By which commands know that this runs, and who it is.
    known_by: Option<OwnedFd>,
}

impl Ground {
    pub(super) fn new(config: ControlConfig) -> io::Result<Self> {
        crate::limits::raise();
        // All of its files are for its owner alone, those of its store too; it starts no program.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        log_to(&Path::new(&config.home).join("control.log"))?;
        let security = security(&config)?;
        let listen: SocketAddr = config
            .listen
            .parse()
            .map_err(|_| io::Error::other(format!("{} is not an address", config.listen)))?;
        let listener = Listener::bind(listen).map_err(io::Error::other)?;
        let poller = Poller::new()?;
        let termination = termination::termination_pipe()?;
        poller.add(&termination, Token::Termination)?;
        // Polled until this process ends.
        std::mem::forget(termination);
        poller.add(&listener, Token::NetListener)?;
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
        Ok(Self { config, address, poller, peers, known_by: None })
    }

    /// Commands of this machine find it from now on.
    pub(super) fn be_known(&mut self) -> io::Result<()> {
        let known_by = listen_as_control(Path::new(&self.config.home))?;
        packet::set_nonblocking(&known_by)?;
        self.poller.add(&known_by, Token::Listener)?;
        self.known_by = Some(known_by);
        Ok(())
    }

    /// Somebody came to see who this is, and knows by now.
    pub(super) fn greet(&self) {
        if let Some(known_by) = &self.known_by {
            drop(packet::accept(known_by));
        }
    }

    /// The tokens may have changed: connections from now on are protected by these.
    pub(super) fn load_tokens(&mut self) -> io::Result<()> {
        self.peers.set_security(security(&self.config)?);
        Ok(())
    }

    /// How a service is to be that goes on here, as a standby.
    pub(super) fn into_standby(mut self) -> ControlConfig {
        self.config.listen = self.peers.listener().local_addr().to_string();
        self.config.address = self.address;
        self.config.standby = true;
        self.config
    }
}

/// How connections are protected.
pub(super) fn security(config: &ControlConfig) -> io::Result<Security> {
    Ok(match config.keyring.as_str() {
        "" => Security::Insecure,
        path => {
            let keyring = Keyring::load(Path::new(path)).map_err(io::Error::other)?;
            Security::Tls(Identity::new(&keyring).map_err(io::Error::other)?)
        }
    })
}
