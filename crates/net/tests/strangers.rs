//! Who is not of the cluster gets nothing, and is told why.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use oxiray_net::{ALPN, Identity, Keyring, LinkError, SERVER_NAME, Secret, Security};
use rustls::client::Resumption;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use support::{End, accept_one, drive, listener, member, new_cluster, pair, refusal};

/// Drives both sides until both have ended, with a frame of each on its way.
fn refusals(client: &Security, server: &Security) -> (End, End) {
    let (mut client, mut server) = pair(client, server);
    client.send(b"secret of the client");
    server.send(b"secret of the server");
    drive(&mut client, &mut server, |client, server| client.end.is_some() && server.end.is_some());
    assert!(client.frames.is_empty() && server.frames.is_empty());
    (client, server)
}

#[test]
fn another_token_is_refused_by_both() {
    let (mut client, mut server) = refusals(&new_cluster(), &new_cluster());
    let words = refusal(&mut client);
    assert!(words.contains("not of this cluster: its token differs"), "{words}");
    let words = refusal(&mut server);
    assert!(words.contains("its token differs"), "{words}");
    assert!(!server.link.is_established());
}

/// Here the client accepts the server, and believes to be done before it is refused.
#[test]
fn a_client_that_only_accepts_is_refused() {
    let (cluster, mut config) = accepting();
    let other = Identity::new(&Keyring::new(Secret::generate())).unwrap();
    config.client_auth_cert_resolver = other.client_config().client_auth_cert_resolver.clone();
    let words = stranger_to(&cluster, config);
    assert!(words.contains("not of this cluster: its token differs"), "{words}");
}

#[test]
fn rotation_is_seamless_until_the_old_token_is_dropped() {
    let old = Keyring::new(Secret::generate());
    let mut new = old.clone();
    new.rotate();
    let (old, both) = (member(&old), member(&new));
    for (client, server) in [(&old, &both), (&both, &old)] {
        let (mut client, mut server) = pair(client, server);
        client.send(b"hello");
        server.send(b"hello");
        drive(&mut client, &mut server, |client, server| {
            client.frames.len() == 1 && server.frames.len() == 1
        });
    }
    new.drop_previous();
    let new = member(&new);
    refusals(&old, &new);
    refusals(&new, &old);
}

#[test]
fn tls_and_plain_do_not_mix() {
    let cluster = new_cluster();
    let (mut client, mut server) = refusals(&cluster, &Security::Insecure);
    assert!(refusal(&mut client).contains("--insecure"));
    assert!(refusal(&mut server).contains("--insecure"));
    let (mut client, mut server) = refusals(&Security::Insecure, &cluster);
    assert!(refusal(&mut client).contains("--insecure"));
    assert!(refusal(&mut server).contains("--insecure"));
}

/// What the server says of a client with this configuration.
fn stranger_to(cluster: &Security, config: ClientConfig) -> String {
    let listener = listener();
    let address = listener.local_addr();
    let client = std::thread::spawn(move || {
        let name = SERVER_NAME.try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        let frame = [&[5, 0, 0, 0], &b"hello"[..]].concat();
        let _ = stream.write_all(&frame);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    let mut server = End::new(accept_one(&listener, cluster));
    server.send(b"secret of the server");
    server.end = Some(server.run_to_end());
    assert!(server.frames.is_empty());
    let words = refusal(&mut server);
    drop(server);
    assert!(client.join().unwrap().is_empty());
    words
}

/// A configuration that accepts the cluster, whatever it shows itself.
fn accepting() -> (Security, ClientConfig) {
    let identity = Identity::new(&Keyring::new(Secret::generate())).unwrap();
    let config = ClientConfig::clone(&identity.client_config());
    (Security::Tls(identity), config)
}

#[test]
fn no_certificate_is_refused() {
    let (cluster, mut config) = accepting();
    config.client_auth_cert_resolver = Arc::new(NoCertificate);
    let words = stranger_to(&cluster, config);
    assert!(words.contains("shows no certificate"), "{words}");
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn a_self_signed_certificate_is_refused() {
    let (cluster, config) = accepting();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([SERVER_NAME.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = config.crypto_provider().clone();
    let certified =
        rustls::sign::CertifiedKey::from_der(vec![certificate], key, &provider).unwrap();
    let mut config = config;
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    let words = stranger_to(&cluster, config);
    assert!(words.contains("not of this cluster: its token differs"), "{words}");
}

#[test]
fn another_protocol_is_refused() {
    for protocols in [vec![b"h2".to_vec()], vec![b"oxiray/2".to_vec()], vec![]] {
        let (cluster, mut config) = accepting();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = protocols;
        let words = stranger_to(&cluster, config);
        assert!(words.contains("another protocol"), "{words}");
    }
    assert_eq!(ALPN, b"oxiray/1");
}

/// What a server says of a client that sends these bytes.
fn raw(security: &Security, bytes: &[u8]) -> LinkError {
    let listener = listener();
    let mut client = TcpStream::connect(listener.local_addr()).unwrap();
    let mut server = End::new(accept_one(&listener, security));
    client.write_all(bytes).unwrap();
    let error = server.run_to_end();
    assert!(server.frames.is_empty() && !server.link.is_established());
    error
}

#[test]
fn bytes_that_are_no_handshake_are_refused() {
    for security in [new_cluster(), Security::Insecure] {
        for bytes in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0; 64], &[0xff; 64]] {
            let error = raw(&security, bytes);
            assert!(matches!(error, LinkError::Refused(_)), "{error}");
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever a stranger sends, it gets no frame across.
    #[test]
    fn random_bytes_get_nowhere(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2000)) {
        let cluster = new_cluster();
        let listener = listener();
        let mut client = TcpStream::connect(listener.local_addr()).unwrap();
        let mut server = End::new(accept_one(&listener, &cluster));
        client.write_all(&bytes).unwrap();
        drop(client);
        server.run_to_end();
        proptest::prop_assert!(server.frames.is_empty() && !server.link.is_established());
    }
}

/// Exercises L-2; that no memory is set aside is told by `frame`'s own tests.
#[test]
fn a_frame_of_four_gigabytes_is_refused() {
    let listener = listener();
    let mut client = TcpStream::connect(listener.local_addr()).unwrap();
    let mut server = End::new(accept_one(&listener, &Security::Insecure));
    client.write_all(b"oxiray/1\xff\xff\xff\xff").unwrap();
    let error = server.run_to_end();
    assert!(matches!(error, LinkError::BadFrame { length: 0xffff_ffff }), "{error}");
}
