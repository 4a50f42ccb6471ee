"""Hosts for the rows about clusters: network namespaces, joined by a switch, on this machine.

They share its processors, so what is measured is the cost of the way, not of a wire.
"""

import os
import shutil
import subprocess
from pathlib import Path

PREFIX = "oxbench-"
# The one for the driver and the head, and as many as a row has bundles for.
COUNT = 8
TIMEOUT_SECONDS = 20


class NoHosts(Exception):
    """Hosts cannot be had here; the text says why."""


def address(number: int) -> str:
    return f"10.78.0.{number}"


def at(network: str, number: int) -> list[str]:
    """What a command is to begin with to run on a host."""
    return ["ip", "netns", "exec", f"{network}-{number}"]


def ip(*arguments: str) -> str:
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    if done.returncode:
        raise NoHosts(f"`ip {' '.join(arguments)}` says: {done.stderr.strip()}")
    return done.stdout


class Network:
    """A switch and the hosts on it, for as long as the `with` lasts."""

    def __init__(self) -> None:
        self.name = f"{PREFIX}{os.getpid()}"

    def __enter__(self) -> "Network":
        if os.geteuid() != 0:
            raise NoHosts("network namespaces need root")
        if not shutil.which("ip"):
            raise NoHosts("there is no `ip`: install iproute2")
        remove_old()
        try:
            self.build()
        except (NoHosts, OSError, subprocess.SubprocessError) as error:
            remove(self.name)
            raise NoHosts(str(error)) from None
        return self

    def __exit__(self, *_: object) -> None:
        remove(self.name)

    def build(self) -> None:
        switch = f"{self.name}-0"
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for number in range(1, COUNT + 1):
            host, port = f"{self.name}-{number}", f"port{number}"
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
            cable = ("type", "veth", "peer", "name", "cable", "netns", host)
            ip("-n", switch, "link", "add", port, *cable)
            ip("-n", switch, "link", "set", port, "master", "bridge", "up")
            ip("-n", host, "addr", "add", f"{address(number)}/24", "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")
            # Ray finds its own address by looking for a way to the rest of the world.
            ip("-n", host, "route", "add", "default", "dev", "cable")
        # `exec` needs more than `add` does.
        subprocess.run(
            [*at(self.name, 1), "true"], check=True, capture_output=True, timeout=TIMEOUT_SECONDS
        )


def namespaces() -> list[str]:
    names = (line.split()[0] for line in ip("netns", "list").splitlines())
    return [name for name in names if name.startswith(PREFIX)]


def remove(network: str) -> None:
    for name in namespaces():
        if name.rpartition("-")[0] == network:
            ip("netns", "del", name)


def remove_old() -> None:
    """Removes what killed runs have left."""
    for network in {name.rpartition("-")[0] for name in namespaces()}:
        if not Path("/proc", network.removeprefix(PREFIX)).exists():
            remove(network)
