//! How a node shows that it is of the cluster, and how it knows others that are.
//!
//! 1. **Authority.** Each secret gives an Ed25519 key (by HKDF) and so a certificate authority,
//!    byte for byte the same wherever it is derived. No authority is ever sent or stored.
//! 2. **Leaf.** Each process makes itself a key at its start and signs its certificate by the
//!    authority of the *current* secret. Keys never leave the process.
//! 3. **Both ways.** Both sides show a certificate. It is good if it leads to the authority of any
//!    secret on the keyring. The name in it is the same for all: having the token is membership.
//! 4. **Rotation.** The current authority is also signed by each previous one, and those
//!    signatures are shown along. So a node that knows only the previous secret accepts one that
//!    has the new one; the other way it is 3. Whoever has the old secret could sign anything that
//!    old nodes accept anyhow, so this gives nothing away.
//! 5. **Time** does not matter: everything is valid from 1975 to 4096, because clocks of machines
//!    differ, and a certificate lives only as long as its process. What ends membership is
//!    dropping the secret.
//! 6. **No resumption.** No tickets: each connection proves membership anew.

use std::sync::Arc;

use rcgen::{KeyPair, PKCS_ED25519};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::authority::{Authority, failed};
use crate::error::NetError;
use crate::keyring::Keyring;

/// The protocol both sides must name in the handshake. Changes when frames do.
pub const ALPN: &[u8] = b"oxiray/1";

/// The name in every node's certificate.
pub const SERVER_NAME: &str = "oxiray.cluster";

const SALT: &[u8] = b"oxiray cluster authority";

/// How a node's connections are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Encrypted, and only with nodes of the cluster.
    Tls(Identity),
    /// Not at all: whoever reaches the port is a member, and whoever is on the way can read.
    Insecure,
}

impl Security {
    /// For a connection that was accepted; `None` if it stays plain.
    pub(crate) fn server(&self) -> Result<Option<rustls::Connection>, rustls::Error> {
        let Self::Tls(identity) = self else { return Ok(None) };
        Ok(Some(ServerConnection::new(identity.server.clone())?.into()))
    }

    /// For a connection that this side makes; `None` if it stays plain.
    pub(crate) fn client(&self) -> Result<Option<rustls::Connection>, rustls::Error> {
        let Self::Tls(identity) = self else { return Ok(None) };
        let name = ServerName::try_from(SERVER_NAME).expect("a constant that is a name");
        Ok(Some(ClientConnection::new(identity.client.clone(), name)?.into()))
    }
}

/// What a node shows to others and asks of them.
#[derive(Clone, Debug)]
pub struct Identity {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Identity {
    /// A new one for this process.
    pub fn new(keyring: &Keyring) -> Result<Self, NetError> {
        let derived = keyring.secrets().map(|secret| Authority::derive(SALT, secret.bytes()));
        let authorities: Vec<_> = derived.collect::<Result<_, _>>()?;
        let (current, previous) = authorities.split_first().expect("there is a current secret");
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots.add(authority.certificate.clone()).map_err(failed)?;
        }
        let roots = Arc::new(roots);
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(failed)?;
        let mut chain = vec![current.sign_leaf(SERVER_NAME, &key)?];
        for authority in previous {
            chain.push(authority.vouch_for(current)?);
        }
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Self {
            server: Arc::new(server_config(roots.clone(), chain.clone(), key.clone_key())?),
            client: Arc::new(client_config(roots, chain, key)?),
        })
    }

    /// For connections that were accepted.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// For connections that this side makes.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        self.client.clone()
    }
}

fn server_config(
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, NetError> {
    let members = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_client_cert_verifier(members.map_err(failed)?)
        .with_single_cert(chain, key)
        .map_err(failed)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client_config(
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, NetError> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(failed)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// AES before ChaCha20, which is a third as fast where processors know AES.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites =
        vec![cipher_suite::TLS13_AES_128_GCM_SHA256, cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..default_provider() })
}

#[cfg(test)]
mod tests;
