//! A certificate authority that a secret gives: an Ed25519 key by HKDF, byte for byte the same
//! wherever it is derived. None is ever sent or stored.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, SerialNumber, date_time_ymd,
};
use ring::{digest, hkdf};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::error::NetError;

/// An Ed25519 private key in PKCS#8 is this and then its 32 bytes (RFC 8410, section 7).
const PKCS8_ED25519: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// What a secret signs by.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    params: CertificateParams,
    pub(crate) certificate: CertificateDer<'static>,
}

impl Authority {
    /// That of a secret; `salt` says what for.
    pub(crate) fn derive(salt: &[u8], secret: &[u8]) -> Result<Self, NetError> {
        let mut pkcs8 = [0; 48];
        pkcs8[..16].copy_from_slice(&PKCS8_ED25519);
        pkcs8[16..].copy_from_slice(&seed(salt, secret));
        let pkcs8 = PrivatePkcs8KeyDer::from(&pkcs8[..]);
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519).map_err(failed)?;
        // Named after its public key, so that a certificate of another cluster is told by its
        // issuer, not by a signature that does not fit.
        let hash = digest::digest(&digest::SHA256, key.public_key_raw());
        let id: String = hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut params = params(&format!("oxiray cluster {id}"));
        params.serial_number = Some(SerialNumber::from(1u64));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).map_err(failed)?.der().clone();
        Ok(Self { issuer: Issuer::new(params.clone(), key), params, certificate })
    }

    /// The certificate of this process, by a name that is the same wherever it runs.
    pub(crate) fn sign_leaf(
        &self,
        name: &str,
        key: &KeyPair,
    ) -> Result<CertificateDer<'static>, NetError> {
        let mut params = params("oxiray node");
        let name = name.try_into().map_err(failed)?;
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name)];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        Ok(params.signed_by(key, &self.issuer).map_err(failed)?.der().clone())
    }

    /// Says that who follows this authority may follow that one, too.
    pub(crate) fn vouch_for(&self, other: &Self) -> Result<CertificateDer<'static>, NetError> {
        let signed = other.params.signed_by(other.issuer.key(), &self.issuer);
        Ok(signed.map_err(failed)?.der().clone())
    }
}

/// What all certificates have in common.
pub(crate) fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    // Clocks of machines differ; see 5 of `identity`.
    params.not_before = date_time_ymd(1975, 1, 1);
    params.not_after = date_time_ymd(4096, 1, 1);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The seed of the authority's key.
pub(crate) fn seed(salt: &[u8], secret: &[u8]) -> [u8; 32] {
    let mut seed = [0; 32];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[b"ed25519 seed 1"], hkdf::HKDF_SHA256)
        .and_then(|material| material.fill(&mut seed))
        .expect("as long as the hash");
    seed
}

pub(crate) fn failed(error: impl std::fmt::Display) -> NetError {
    NetError::Certificate { reason: error.to_string() }
}
