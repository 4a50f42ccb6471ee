//! In what a connection is spoken: TLS where it comes from another machine, for whoever is on the
//! way could read the token. What stays on this machine may be plain, as a tunnel's end is.

use std::io;

use axum::http::StatusCode;
use oxiray_net::{Plaque, front_config};
use oxiray_session::Session;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::guard::Verdict;

/// How TLS begins: a record of a handshake. No request of HTTP does.
const HANDSHAKE: u8 = 0x16;

/// What is said to one who came without TLS.
pub(crate) const BARE: Verdict = Verdict::Refuse(
    StatusCode::BAD_REQUEST,
    "From other machines the dashboard speaks TLS only: use https:// instead of http://. \
     (OXIRAY_DASHBOARD_PLAIN=1 where the cluster is started allows both.)",
);

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct Door {
    /// None: it is served on loopback alone.
    tls: Option<TlsAcceptor>,
    is_plain_allowed: bool,
}

/// How a connection is to be served.
pub(crate) enum Way {
    Tls(TlsAcceptor),
    Plain,
    /// Plain, where it must not be: it is told so.
    Bare,
}

/// How a request came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spoken {
    Tls,
    Plain,
    Bare,
}

impl Door {
    /// That of a session's dashboard.
    pub(crate) fn of(session: &Session, token: &str) -> io::Result<Self> {
        let tls = match session.dashboard_tls()? {
            None => None,
            Some((certificate, key)) => {
                let config = front_config(token, &Plaque { certificate, key });
                Some(TlsAcceptor::from(config.map_err(io::Error::other)?))
            }
        };
        Ok(Self { tls, is_plain_allowed: oxiray_settings::DASHBOARD_PLAIN.is_on() })
    }

    /// One that is served on loopback alone.
    #[cfg(test)]
    pub(crate) fn local() -> Self {
        Self { tls: None, is_plain_allowed: false }
    }

    /// Waits for the first byte, where that matters.
    pub(crate) async fn way(&self, stream: &TcpStream) -> io::Result<Way> {
        let Some(tls) = &self.tls else {
            return Ok(Way::Plain);
        };
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] == HANDSHAKE {
            return Ok(Way::Tls(tls.clone()));
        }
        let is_here = stream.local_addr()?.ip().to_canonical().is_loopback();
        Ok(if is_here || self.is_plain_allowed { Way::Plain } else { Way::Bare })
    }
}
