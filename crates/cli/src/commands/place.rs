//! `HOST:PORT`: read, written, compared.

use std::io;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

/// Whether two addresses mean the same port of the same machine, however each of them calls it.
pub(super) fn is_same_place(one: &str, other: &str) -> bool {
    let (Ok((_, port)), Ok((_, other_port))) = (split(one), split(other)) else {
        return false;
    };
    if one == other || port != other_port {
        return one == other;
    }
    let resolve = |address: &str| -> Vec<IpAddr> {
        address.to_socket_addrs().into_iter().flatten().map(|address| address.ip()).collect()
    };
    let (ips, others) = (resolve(one), resolve(other));
    // What a socket can be bound to is an address of this machine.
    let is_here = |ips: &[IpAddr]| ips.iter().any(|ip| UdpSocket::bind((*ip, 0)).is_ok());
    ips.iter().any(|ip| others.contains(ip)) || (is_here(&ips) && is_here(&others))
}

/// An address of that port; IPv6 in brackets.
pub(super) fn with_port(ip: &str, port: u16) -> String {
    if ip.contains(':') && !ip.starts_with('[') {
        return format!("[{ip}]:{port}");
    }
    format!("{ip}:{port}")
}

/// Host and port.
pub(super) fn split(address: &str) -> io::Result<(String, u16)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| {
        Some((host.to_owned(), port.parse().ok()?)).filter(|(host, _)| !host.is_empty())
    });
    parts.ok_or_else(|| {
        io::Error::other(format!("the address {address:?} must be HOST:PORT, as 10.0.0.1:6379"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_the_same_by_each_of_its_names() {
        for same in ["127.0.0.1:6379", "localhost:6379", "127.0.0.2:6379", "0.0.0.0:6379"] {
            assert!(is_same_place("127.0.0.1:6379", same), "{same}");
        }
        // Addresses for documentation: no machine has them.
        assert!(is_same_place("192.0.2.1:6379", "192.0.2.1:6379"));
        for other in ["127.0.0.1:6380", "192.0.2.1:6379", "nonsense"] {
            assert!(!is_same_place("127.0.0.1:6379", other), "{other}");
        }
    }
}
