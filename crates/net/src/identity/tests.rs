//! Handshakes in memory: no sockets, any clock. Numbers are those of the module's documentation.

use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

use super::*;
use crate::authority::seed;
use crate::secret::Secret;

/// Both sides of a handshake, to its end or to the first error of each.
fn shake(client: &Identity, server: &Identity) -> [Result<(), rustls::Error>; 2] {
    let mut sides = [
        Security::Tls(client.clone()).client().unwrap().unwrap(),
        Security::Tls(server.clone()).server().unwrap().unwrap(),
    ];
    let mut ends = [Ok(()), Ok(())];
    for _ in 0..10 {
        for from in 0..2 {
            let mut bytes = Vec::new();
            while sides[from].wants_write() {
                sides[from].write_tls(&mut bytes).unwrap();
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() && ends[1 - from].is_ok() {
                sides[1 - from].read_tls(&mut rest).unwrap();
                ends[1 - from] = sides[1 - from].process_new_packets().map(|_| ());
            }
        }
    }
    assert!(ends.iter().any(Result::is_err) || !sides.iter().any(|side| side.is_handshaking()));
    ends
}

fn agree(one: &Identity, other: &Identity) -> bool {
    let ways = [shake(one, other), shake(other, one)];
    let good = ways.iter().filter(|ends| ends.iter().all(Result::is_ok)).count();
    assert_ne!(good, 1, "what goes one way goes the other: {ways:?}");
    good == 2
}

#[derive(Debug)]
struct Clock(u64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

fn at(identity: &Identity, seconds: u64) -> Identity {
    let mut server = ServerConfig::clone(&identity.server);
    server.time_provider = Arc::new(Clock(seconds));
    let mut client = ClientConfig::clone(&identity.client);
    client.time_provider = Arc::new(Clock(seconds));
    Identity { server: Arc::new(server), client: Arc::new(client) }
}

/// Exercises 1.
#[test]
fn an_authority_is_the_same_everywhere() {
    let secret = Secret::generate();
    let certificate =
        |secret: &Secret| Authority::derive(SALT, secret.bytes()).unwrap().certificate;
    assert_eq!(certificate(&secret), certificate(&Secret::parse(&secret.to_string()).unwrap()));
    assert_ne!(certificate(&secret), certificate(&Secret::generate()));
}

/// Exercises 1: what is derived must not change between versions that are to talk.
#[test]
fn derivation_is_fixed() {
    let token = format!("oxiray-{}{}", "00".repeat(32), "66687aad");
    let hex: String = seed(SALT, Secret::parse(&token).unwrap().bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // HMAC-SHA256 by Python's standard library, after RFC 5869.
    assert_eq!(hex, "cd8caa09e13271cc8239290072ea01266470e53dff0baad40a0c9748443f70a1");
}

/// Exercises 2 and 3.
#[test]
fn the_token_is_membership() {
    let keyring = Keyring::new(Secret::generate());
    let one = Identity::new(&keyring).unwrap();
    let other = Identity::new(&keyring).unwrap();
    let stranger = Identity::new(&Keyring::new(Secret::generate())).unwrap();
    assert!(agree(&one, &other));
    assert!(!agree(&one, &stranger));
}

/// Exercises 4: old and new understand each other until the old secret is dropped.
#[test]
fn rotation_leaves_nobody_out() {
    let first = Keyring::new(Secret::generate());
    let mut second = first.clone();
    second.rotate();
    let mut third = second.clone();
    third.rotate();
    let mut last = third.clone();
    last.drop_previous();
    let [first, second, third, last] =
        [first, second, third, last].map(|keyring| Identity::new(&keyring).unwrap());
    assert!(agree(&first, &second));
    assert!(agree(&first, &third));
    assert!(agree(&second, &third));
    assert!(agree(&third, &last));
    assert!(!agree(&first, &last));
    // `second` shows a certificate of a secret that `last` has dropped.
    assert!(!agree(&second, &last));
}

/// Exercises 5.
#[test]
fn clocks_do_not_matter() {
    let keyring = Keyring::new(Secret::generate());
    let identity = Identity::new(&keyring).unwrap();
    let year = 365 * 24 * 3600;
    let early = at(&identity, 6 * year);
    let late = at(&identity, 2000 * year);
    assert!(agree(&early, &late));
    assert!(!agree(&early, &at(&identity, 4 * year)), "the clock of this test is looked at");
}

/// Exercises 6.
#[test]
fn nothing_is_resumed() {
    let identity = Identity::new(&Keyring::new(Secret::generate())).unwrap();
    for _ in 0..2 {
        assert!(shake(&identity, &identity).iter().all(Result::is_ok));
    }
    assert_eq!(identity.server.send_tls13_tickets, 0);
    assert!(!identity.server.session_storage.can_cache());
}
