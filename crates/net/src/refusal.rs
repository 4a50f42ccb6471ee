//! What a connection has to begin with, and why it is refused, in words that say what to do.

use rustls::{AlertDescription, CertificateError, Connection, Error, PeerIncompatible};

use crate::error::LinkError;
use crate::identity::ALPN;

/// The error of a handshake, or of a record after it, in plain words.
pub(crate) fn in_plain_words(error: &Error) -> String {
    use AlertDescription as Alert;
    let words = match error {
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => {
            "the other side is not of this cluster: its token differs; run `oxiray token` on the \
             head machine and start this node with what it says"
        }
        Error::AlertReceived(Alert::UnknownCA | Alert::BadCertificate | Alert::DecryptError) => {
            "the other side does not take this node for one of its cluster: its token differs; run \
             `oxiray token` on the head machine and start this node with what it says"
        }
        Error::NoCertificatesPresented => {
            "the other side is not of this cluster: it shows no certificate"
        }
        Error::AlertReceived(Alert::CertificateRequired) => {
            "the other side wants a certificate, and this side showed none"
        }
        Error::NoApplicationProtocol | Error::AlertReceived(Alert::NoApplicationProtocol) => {
            "the other side speaks another protocol: it is no oxiray node, or one of a version \
             that does not fit; run the same version everywhere"
        }
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        )
        | Error::AlertReceived(Alert::ProtocolVersion) => {
            "the other side does not speak TLS 1.3: it is no oxiray node"
        }
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => {
            "the other side does not speak TLS: it is no oxiray node, or was started with \
             --insecure; start all nodes with it, or none"
        }
        other => return format!("the secure connection failed: {other}"),
    };
    words.to_owned()
}

/// What each side sends first on a connection without TLS, so that no side waits for frames from
/// one that speaks something else.
pub(crate) const GREETING: &[u8; 8] = b"oxiray/1";

/// Whether the first bytes of a connection without TLS, as far as they have come, are a greeting.
pub(crate) fn check_greeting(begun: &[u8]) -> Result<(), LinkError> {
    if GREETING.starts_with(begun) {
        return Ok(());
    }
    Err(LinkError::Refused(
        "the other side does not speak oxiray without TLS: it is no oxiray node, or was not \
         started with --insecure; start all nodes with it, or none"
            .to_owned(),
    ))
}

/// Whether both sides named the protocol. A side that names none gets through rustls' handshake.
pub(crate) fn check_protocol(tls: &Connection) -> Result<(), LinkError> {
    if tls.alpn_protocol() == Some(ALPN) {
        return Ok(());
    }
    Err(LinkError::Refused(in_plain_words(&Error::NoApplicationProtocol)))
}
