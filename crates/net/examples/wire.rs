//! How fast bytes get from one machine to another with nothing but sockets, or sockets and TLS,
//! in between: the limit for transfers of objects. `bench/wire_rows.py` runs it.
//!
//! `wire serve IP:PORT tcp|tls` says the address and the token to give to
//! `wire fetch ADDRESS TOKEN CONNECTIONS [ROOM [PART]]`, which for each number it reads fetches so
//! many bytes over all connections together, and says how many seconds that took, and for how many
//! its threads had a processor. Each connection has `ROOM` bytes of memory, and asks for `PART`
//! bytes at once.

use std::io::{BufRead, stdin};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use std::{env, thread};

use oxiray_net::{Bulk, Identity, Keyring, Secret, Security};

const PIECE: usize = 4 << 20;
/// What the engine asks for at once.
const PART: usize = 8 << 20;
const PLAIN: &str = "-";
const TIMEOUT: Duration = Duration::from_secs(20);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", address, kind] => serve(address, kind),
        ["fetch", address, token, connections, ref rest @ ..] => {
            let connections = connections.parse().expect("how many connections");
            let number = |at: usize, usual| {
                rest.get(at).map_or(usual, |text| text.parse().expect("a number of bytes"))
            };
            fetch(address, token, connections, number(0, PIECE), number(1, PART));
        }
        _ => panic!("serve IP:PORT tcp|tls, or fetch ADDRESS TOKEN CONNECTIONS [ROOM [PART]]"),
    }
}

fn security(token: &str) -> Security {
    match token {
        PLAIN => Security::Insecure,
        _ => {
            let secret = Secret::parse(token).expect("a token");
            Security::Tls(Identity::new(&Keyring::new(secret)).expect("an identity"))
        }
    }
}

fn serve(address: &str, kind: &str) {
    let token = if kind == "tls" { Secret::generate().to_string() } else { PLAIN.to_owned() };
    let security = security(&token);
    let listener = TcpListener::bind(address).expect("a port");
    println!("{} {token}", listener.local_addr().expect("its address"));
    for stream in listener.incoming() {
        let (stream, security) = (stream.expect("a connection"), security.clone());
        thread::spawn(move || {
            let mut bulk = Bulk::accept(stream, &security, TIMEOUT).expect("hands shaken");
            bulk.set_timeout(None).expect("a socket");
            let piece = vec![7; PIECE];
            let mut request = Vec::new();
            while bulk.recv_frame(&mut request).is_ok() {
                let mut left = usize::from_le_bytes(request[..].try_into().expect("eight bytes"));
                while left > 0 {
                    let count = left.min(PIECE);
                    bulk.write_all(&piece[..count]).expect("written");
                    left -= count;
                }
            }
        });
    }
}

fn fetch(address: &str, token: &str, connections: usize, room: usize, part: usize) {
    let address: SocketAddr = address.parse().expect("an address");
    let security = security(token);
    let mut all: Vec<(Bulk, Vec<u8>)> = (0..connections)
        .map(|_| (Bulk::connect(address, &security, TIMEOUT).expect("a connection"), vec![1; room]))
        .collect();
    for line in stdin().lock().lines() {
        let bytes: usize = line.expect("a line").trim().parse().expect("how many bytes");
        let share = bytes / connections;
        let start = Instant::now();
        let busy: f64 = thread::scope(|scope| {
            let readers: Vec<_> = all
                .iter_mut()
                .map(|(bulk, room)| scope.spawn(move || read(bulk, room, part, share)))
                .collect();
            readers.into_iter().map(|reader| reader.join().expect("read")).sum()
        });
        println!("{:.6} {busy:.6}", start.elapsed().as_secs_f64());
    }
}

fn read(bulk: &mut Bulk, room: &mut [u8], part: usize, mut left: usize) -> f64 {
    let mut at = 0;
    while left > 0 {
        let mut part = left.min(part);
        left -= part;
        bulk.send_frame(&[&part.to_le_bytes()]).expect("asked");
        while part > 0 {
            let count = part.min(room.len() - at);
            bulk.read_exact(&mut room[at..at + count]).expect("read");
            part -= count;
            at = (at + count) % room.len();
        }
    }
    cpu()
}

/// Seconds for which this thread had a processor.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
