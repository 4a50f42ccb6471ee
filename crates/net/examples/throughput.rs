//! How fast bytes get across on this machine, by `Bulk` and by rustls' own stream.
//!
//! `cargo run --release -p oxiray-net --example throughput [GiB]`

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use oxiray_net::{Bulk, Identity, Keyring, SERVER_NAME, Secret, Security};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

const PIECE: usize = 4 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() {
    let gib: usize = std::env::args().nth(1).map_or(4, |text| text.parse().expect("GiB"));
    let pieces = gib * 1024 / 4;
    let identity = Identity::new(&Keyring::new(Secret::generate())).expect("an identity");
    let tls = Security::Tls(identity.clone());
    for round in 1..=3 {
        println!("round {round}");
        measure(
            "  plain Bulk       ",
            pieces,
            |a| send(a, &Security::Insecure),
            |s| receive(s, &Security::Insecure),
        );
        measure(
            "  rustls, 16 KiB   ",
            pieces,
            |a| stream_out(a, &identity),
            |s| stream_in(s, &identity, 16 << 10),
        );
        measure(
            "  rustls, 4 MiB    ",
            pieces,
            |a| stream_out(a, &identity),
            |s| stream_in(s, &identity, PIECE),
        );
        measure("  TLS Bulk         ", pieces, |a| send(a, &tls), |s| receive(s, &tls));
    }
}

/// Moves so many pieces from one thread to another; neither connecting nor shaking hands counts.
fn measure<O: FnMut(&[u8]), I: FnMut(&mut [u8])>(
    name: &str,
    pieces: usize,
    sender: impl FnOnce(SocketAddr) -> O + Send,
    receiver: impl FnOnce(TcpStream) -> I,
) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let mut write = sender(address);
            let piece = vec![7; PIECE];
            write(&piece);
            let start = cpu();
            (0..pieces).for_each(|_| write(&piece));
            cpu() - start
        });
        let mut read = receiver(listener.accept().expect("a connection").0);
        let mut piece = vec![0; PIECE];
        read(&mut piece);
        let (start, busy) = (Instant::now(), cpu());
        (0..pieces).for_each(|_| read(&mut piece));
        let gb = (pieces * PIECE) as f64 / 1e9;
        let rate = gb / start.elapsed().as_secs_f64();
        let receiving = (cpu() - busy) / gb;
        let sending = sending.join().expect("sent") / gb;
        println!(
            "{name} {rate:.2} GB/s; seconds of processor per GB: {sending:.2} to send, \
             {receiving:.2} to receive"
        );
    });
}

/// Seconds for which this thread had a processor: tells more than the rate if others want it, too.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn send(address: SocketAddr, security: &Security) -> impl FnMut(&[u8]) {
    let mut bulk = Bulk::connect(address, security, TIMEOUT).expect("a connection");
    move |piece| bulk.write_all(piece).expect("written")
}

fn receive(stream: TcpStream, security: &Security) -> impl FnMut(&mut [u8]) {
    let mut bulk = Bulk::accept(stream, security, TIMEOUT).expect("a connection");
    move |piece| bulk.read_exact(piece).expect("read")
}

fn stream_out(address: SocketAddr, identity: &Identity) -> impl FnMut(&[u8]) {
    let name = SERVER_NAME.try_into().expect("a name");
    let connection = ClientConnection::new(identity.client_config(), name).expect("a client");
    let socket = TcpStream::connect(address).expect("a connection");
    let mut stream = StreamOwned::new(connection, socket);
    move |piece| stream.write_all(piece).expect("written")
}

fn stream_in(stream: TcpStream, identity: &Identity, step: usize) -> impl FnMut(&mut [u8]) {
    let connection = ServerConnection::new(identity.server_config()).expect("a server");
    let mut stream = StreamOwned::new(connection, stream);
    move |piece| piece.chunks_mut(step).for_each(|part| stream.read_exact(part).expect("read"))
}
