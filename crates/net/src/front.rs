//! What the dashboard shows to clients beyond this machine, which are no nodes.
//!
//! 1. **Who has the token knows the server.** As the nodes' secret does, the dashboard's token gives
//!    a certificate authority, the same wherever it is derived. A client that was given the token
//!    asks for [`FRONT_NAME`], is shown a certificate by that authority, and says the token to nobody
//!    who has none. So an address with its token is all that is handed around.
//! 2. **Others** (browsers, curl, Prometheus) derive nothing, and browsers know no Ed25519. Whoever
//!    asks for another name is shown a certificate that signs itself ([`Plaque`]), which a session
//!    makes once: it can be looked at, copied, and trusted by hand.
//! 3. A client shows no certificate: it is known by the token, which it says once all is encrypted.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SanType};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;

use crate::authority::{Authority, failed, params};
use crate::error::NetError;

/// The name by which a client that has the token asks for the dashboard.
pub const FRONT_NAME: &str = "oxiray.dashboard";

const SALT: &[u8] = b"oxiray dashboard authority";

/// The certificate, in DER, by which a client with this token knows the dashboard.
pub fn front_authority(token: &str) -> Result<Vec<u8>, NetError> {
    Ok(Authority::derive(SALT, token.as_bytes())?.certificate.to_vec())
}

/// A certificate that signs itself, and its key; both in PEM.
#[derive(Clone)]
pub struct Plaque {
    /// To be shown to anybody.
    pub certificate: String,
    /// To be shown to nobody.
    pub key: String,
}

impl Plaque {
    /// A new one for a server that is called by these names and addresses.
    pub fn generate(names: &[String]) -> Result<Self, NetError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = params("oxiray dashboard");
        for name in names {
            let named = match name.parse() {
                Ok(address) => Some(SanType::IpAddress(address)),
                // What is no name in ASCII nobody asks for.
                Err(_) => name.as_str().try_into().ok().map(SanType::DnsName),
            };
            params.subject_alt_names.extend(named);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        })
    }
}

/// How the dashboard with this token answers whom.
pub fn front_config(token: &str, plaque: &Plaque) -> Result<Arc<ServerConfig>, NetError> {
    let authority = Authority::derive(SALT, token.as_bytes())?;
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(failed)?;
    let by_token = certified(
        authority.sign_leaf(FRONT_NAME, &key)?,
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
    )?;
    let by_itself = certified(
        CertificateDer::from_pem_slice(plaque.certificate.as_bytes()).map_err(failed)?,
        PrivateKeyDer::from_pem_slice(plaque.key.as_bytes()).map_err(failed)?,
    )?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ByName { by_token, by_itself }));
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// See 1 and 2.
#[derive(Debug)]
struct ByName {
    by_token: Arc<CertifiedKey>,
    by_itself: Arc<CertifiedKey>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(match hello.server_name() {
            Some(FRONT_NAME) => self.by_token.clone(),
            _ => self.by_itself.clone(),
        })
    }
}

fn certified(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, NetError> {
    CertifiedKey::from_der(vec![certificate], key, &default_provider())
        .map(Arc::new)
        .map_err(failed)
}

fn pem(what: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {what}-----")];
    let pieces =
        text.as_bytes().chunks(64).map(|piece| String::from_utf8_lossy(piece).into_owned());
    lines.extend(pieces);
    lines.push(format!("-----END {what}-----\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests;
