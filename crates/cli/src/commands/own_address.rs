//! The address of this machine by which others reach it. Nothing is sent to find it out.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Any address that is far away.
const FAR: &str = "8.8.8.8:53";

/// The address from which `target` is reached; where there is no way to it, one of a network that
/// this machine is in, or loopback.
pub(super) fn towards(target: &str) -> IpAddr {
    let targets = target.to_socket_addrs().into_iter().flatten();
    let found = targets.into_iter().find_map(from);
    found.unwrap_or_else(|| of_networks(&fs::read_to_string("/proc/net/route").unwrap_or_default()))
}

/// The address from which anything far away is reached, or likewise.
pub(super) fn own() -> IpAddr {
    towards(FAR)
}

/// The kernel chooses it when a socket is connected.
fn from(target: SocketAddr) -> Option<IpAddr> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Of a machine without a default route: its address in the first network of the kernel's table.
fn of_networks(table: &str) -> IpAddr {
    let mut networks = networks(table);
    let found = networks.find_map(|network| {
        let neighbour = Ipv4Addr::from(u32::from(network) | 1);
        from((neighbour, 9).into()).filter(|ip| !ip.is_loopback())
    });
    found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The networks of `/proc/net/route`, whose numbers are in the byte order of the machine.
fn networks(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        let (interface, destination) = (words.next()?, words.next()?);
        let destination = u32::from_str_radix(destination, 16).ok()?;
        let network = Ipv4Addr::from(destination.to_ne_bytes());
        (interface != "lo" && !network.is_unspecified() && !network.is_loopback())
            .then_some(network)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_from_the_kernels_table() {
        let table = "Iface\tDestination\tGateway\tFlags\n\
                     eth0\t00000000\t0102000A\t0003\n\
                     eth0\t0002000A\t00000000\t0001\n\
                     lo\t0000007F\t00000000\t0001\n";
        let found: Vec<Ipv4Addr> = networks(table).collect();
        assert_eq!(found, [Ipv4Addr::new(10, 0, 2, 0)]);
        assert_eq!(of_networks("Iface\tDestination\n"), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
}
