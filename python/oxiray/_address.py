"""Which of the nodes that `oxiray start` has started on this machine an address means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import _native, _settings

# How long a try to reach a head may take, to say what is wrong.
_PATIENCE_S = 2.0


class StartedNode(NamedTuple):
    address: str  # of the control service
    node_address: str
    node_id: str
    session_dir: str
    is_head: bool
    # Where control services of its cluster are or were: any of them names the cluster.
    heads: Sequence[str] = ()


def running() -> list[StartedNode]:
    """The nodes that run, the latest last."""
    return [StartedNode(**fields) for fields in _native.started_nodes()]


def resolve(address: str | None) -> StartedNode | None:
    """The node of this machine to connect to; None: a session of one's own is to be started."""
    address = address or _settings.text("OXIRAY_ADDRESS") or None
    if address == "local":
        return None
    if address is None or address == "auto":
        nodes = running()
        if nodes:
            # Heads first where one cluster has several nodes here; of several clusters the latest.
            latest = [node for node in nodes if node.address == nodes[-1].address]
            return next((node for node in latest if node.is_head), latest[0])
        if address is None:
            return None
        raise ConnectionError(
            "Could not find any running Ray instance: no node of a cluster runs on this machine "
            f"(looked in {_native.sessions_folder()}). Start one with `oxiray start --head`, or "
            "join one with `oxiray start --address=HOST:PORT`; or leave the address out, and "
            "init() starts a session of its own."
        )
    if "://" in address:
        raise ConnectionError(
            f"init(address={address!r}): Ray Client is not supported, and not needed: run the "
            "program on a machine of the cluster, or let this machine join it with `oxiray start "
            '--address=HOST:PORT`, and connect with init(address="auto").'
        )
    host, port = _split(address)
    here = [node for node in running() if _is_same(host, port, node)]
    if here:
        return next((node for node in here if node.is_head), here[0])
    raise ConnectionError(_why_not(address, host, port))


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(
            f'init(address={address!r}) must be "auto", "local" or "HOST:PORT", such as '
            '"10.0.0.1:6379"'
        )
    return host, int(port)


def _is_same(host: str, port: int, node: StartedNode) -> bool:
    here = node.is_head and host in ("localhost", "127.0.0.1", "::1")
    if here and port == _split(node.address)[1]:
        return True
    places = [_split(address) for address in (node.address, *node.heads)]
    hosts = {its_host for its_host, its_port in places if its_port == port}
    return host in hosts or any(_ips(host) & _ips(its_host) for its_host in hosts)


def _ips(host: str) -> set[str]:
    import socket

    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host.strip("[]"), None)}
    except OSError:
        return set()


def _why_not(address: str, host: str, port: int) -> str:
    import socket

    try:
        socket.create_connection((host.strip("[]"), port), _PATIENCE_S).close()
    except OSError as error:
        return (
            f"init(address={address!r}): nobody answers there ({error}). Is the head running, and "
            "is this its address? `oxiray status` on the head machine tells. Once it is, this "
            f"machine joins with `oxiray start --address={address} --token=...`."
        )
    return (
        f"init(address={address!r}): this machine is not part of the cluster there. Run `oxiray "
        f"start --address={address} --token=...` here first; `oxiray token --show-command` on the "
        "head machine prints the whole command."
    )
