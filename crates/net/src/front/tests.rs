//! What the dashboard shows, as clients with the token, with another, and with the certificate see it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection, Stream};

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Asks a server with `TOKEN` by a name, trusting one certificate; what comes back, or why not.
fn ask(name: &str, trusted: Vec<u8>) -> Result<String, String> {
    let plaque = Plaque::generate(&["head.lab".into(), "127.0.0.1".into()]).unwrap();
    ask_one_with(&plaque, name, trusted)
}

fn ask_one_with(plaque: &Plaque, name: &str, trusted: Vec<u8>) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = front_config(TOKEN, plaque).unwrap();
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut tls = ServerConnection::new(config).unwrap();
        let mut stream = Stream::new(&mut tls, &mut socket);
        let _ = stream.write_all(b"hello").and_then(|()| stream.flush());
        tls.send_close_notify();
        let _ = tls.complete_io(&mut socket);
    });
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(trusted)).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut said = [0; 5];
    let read = Stream::new(&mut tls, &mut socket).read_exact(&mut said);
    drop(socket);
    server.join().unwrap();
    read.map(|()| String::from_utf8_lossy(&said).into_owned()).map_err(|error| error.to_string())
}

#[test]
fn who_has_the_token_knows_the_server() {
    let authority = front_authority(TOKEN).unwrap();
    assert_eq!(authority, front_authority(TOKEN).unwrap());
    assert_eq!(ask(FRONT_NAME, authority).as_deref(), Ok("hello"));
}

#[test]
fn a_server_without_the_token_is_refused() {
    let refusal = ask(FRONT_NAME, front_authority("another token").unwrap()).unwrap_err();
    assert!(refusal.contains("certificate"), "{refusal}");
}

#[test]
fn others_trust_what_they_were_given_by_its_names() {
    let plaque = Plaque::generate(&["head.lab".into(), "127.0.0.1".into(), "ünlesbar".into()]);
    let plaque = plaque.unwrap();
    let trusted = CertificateDer::from_pem_slice(plaque.certificate.as_bytes()).unwrap().to_vec();
    for name in ["head.lab", "127.0.0.1"] {
        assert_eq!(ask_one_with(&plaque, name, trusted.clone()).as_deref(), Ok("hello"), "{name}");
    }
    assert!(ask_one_with(&plaque, "other.lab", trusted).is_err());
    assert!(ask("head.lab", front_authority(TOKEN).unwrap()).is_err());
}
