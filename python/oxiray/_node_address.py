"""The address by which other machines reach this one."""

from __future__ import annotations

import socket

from . import _native

_LOOPBACK = "127.0.0.1"


def get_node_ip_address(address: str = "8.8.8.8:53") -> str:
    """The IP address of this node: in a session the one it is known by there.

    Before there is one, that of the interface by which `address` would be reached. Nothing is sent
    to find that out, and it need not exist.
    """
    if _native.is_running():
        known: str = _native.context()["address"].rpartition(":")[0].strip("[]")
        return known or _LOOPBACK
    host, _, port = address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host or address, int(port) if host else 1))
            found: str = probe.getsockname()[0]
            return found
        except (OSError, ValueError):
            pass
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return _LOOPBACK
