//! By which names the dashboard may be called.
//!
//! A page of a stranger can have its own name lead to this machine ("DNS rebinding"); its scripts
//! would then be allowed to read what we answer. The browser still says which name it believes to
//! talk to, so names that are not ours get nothing. Addresses cannot be rebound.

use std::net::IpAddr;

/// The names that are ours.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Served at loopback alone.
    is_local: bool,
    /// Those it was given, beside `localhost`.
    names: Vec<String>,
}

impl Hosts {
    /// Bound at `address`, which it was asked for as `asked`, on the machine called `machine`.
    pub(crate) fn new(address: IpAddr, asked: &str, machine: &str) -> Self {
        let is_local = address.is_loopback();
        let mut names = vec![asked.to_ascii_lowercase()];
        if !is_local {
            names.push(machine.to_ascii_lowercase());
        }
        names.retain(|name| !name.is_empty());
        Self { is_local, names }
    }

    /// Whether the value of a header `Host`, `NAME` or `NAME:PORT`, names us. Any port does:
    /// it may have been forwarded.
    pub(crate) fn allow(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else {
            return false;
        };
        match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => !self.is_local || address.is_loopback(),
            Err(_) => {
                let name = name.to_ascii_lowercase();
                name == "localhost" || self.names.contains(&name)
            }
        }
    }
}

/// The part before the port.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "0"),
    };
    let is_v6 = name.starts_with('[') && name.ends_with(']');
    let is_whole = !name.is_empty() && (is_v6 || !name.contains([':', '[', ']', '@', '/']));
    (is_whole && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, asked: &str) -> Hosts {
        Hosts::new(address.parse().unwrap(), asked, "Machine")
    }

    #[test]
    fn loopback_is_called_by_its_own_names() {
        let hosts = hosts("127.0.0.1", "");
        let good = ["127.0.0.1:8265", "localhost", "LOCALHOST:9000", "[::1]:8265", "127.0.0.1"];
        assert!(good.iter().all(|host| hosts.allow(host)));
        let bad = [
            "evil.example:8265",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "10.0.0.1:8265",
            "machine:8265",
            "localhost:8265:1",
            "localhost:",
            "localhost:x",
            "[::1",
            "::1",
            "",
        ];
        for host in bad {
            assert!(!hosts.allow(host), "{host}");
        }
    }

    #[test]
    fn what_is_open_to_others_is_called_by_address_or_given_name() {
        let hosts = hosts("0.0.0.0", "head.lab");
        for host in ["10.0.0.1:8265", "head.lab:1", "machine", "localhost", "[2001:db8::1]:80"] {
            assert!(hosts.allow(host), "{host}");
        }
        assert!(!hosts.allow("evil.example") && !hosts.allow("head.lab.evil.example"));
    }
}
