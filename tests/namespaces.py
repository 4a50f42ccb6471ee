"""Hosts in network namespaces: each with a network of its own, joined by a switch.

They need root. With CI set that is no reason to skip.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import BASE, is_alive
from machines import Machine

PREFIX = "oxt-hosts-"
COUNT = 3
STORE = 600 * 2**20


def ip(*arguments, check=True):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20)
    if check and done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Network:
    """A switch, and hosts on it."""

    def __init__(self):
        self.name = f"{PREFIX}{os.getpid()}"
        self.switch = f"{self.name}-switch"
        self.prefix = {}

    def build(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "lo", "up")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number in range(1, COUNT + 1):
            host = f"{self.name}-{number}"
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
            cable = ("link", "add", f"port{number}", "type", "veth")
            ip("-n", self.switch, *cable, "peer", "name", "cable", "netns", host)
            ip("-n", self.switch, "link", "set", f"port{number}", "master", "bridge", "up")
            ip("-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")
            self.prefix[number] = ["ip", "netns", "exec", host]
        # The switch is a host, too, which is no node.
        ip("-n", self.switch, "addr", "add", f"{self.address(100)}/24", "dev", "bridge")
        # `exec` needs more than `add` does.
        subprocess.run([*self.prefix[1], "true"], check=True, capture_output=True, timeout=20)

    def outside(self):
        """A machine that no node is on."""
        return Machine(self.address(100), ["ip", "netns", "exec", self.switch])

    def address(self, number):
        return f"10.77.0.{number}"

    def pull(self, number):
        """The command that pulls the cable of a host."""
        return ["ip", "-n", self.switch, "link", "set", f"port{number}", "down"]

    def plug(self):
        for number in range(1, COUNT + 1):
            ip("-n", self.switch, "link", "set", f"port{number}", "up")

    def part(self, sender, receiver):
        """The command after which nothing that one host sends comes to another, and nobody says so:
        it sends it to a card that nobody has."""
        nobody = ("lladdr", "02:00:00:00:00:01", "nud", "permanent")
        neighbour = ("neigh", "replace", self.address(receiver), "dev", "cable", *nobody)
        return ["ip", "-n", f"{self.name}-{sender}", *neighbour]

    def unite(self):
        """All hosts reach each other again."""
        for sender in range(1, COUNT + 1):
            for receiver in range(1, COUNT + 1):
                neighbour = ("neigh", "del", self.address(receiver), "dev", "cable")
                ip("-n", f"{self.name}-{sender}", *neighbour, check=False)

    @contextlib.contextmanager
    def slow(self, number):
        """What a host sends has 50 MB/s, if the kernel can do that."""
        device = ("-n", f"{self.name}-{number}", "qdisc")
        rate = ("tbf", "rate", "400mbit", "burst", "1mb", "latency", "100ms")
        subprocess.run(["tc", *device, "add", "dev", "cable", "root", *rate])
        try:
            yield
        finally:
            subprocess.run(["tc", *device, "del", "dev", "cable", "root"])

    def carried(self, port="port"):
        """Bytes that the hosts, or the one at this port, have sent so far."""
        links = json.loads(ip("-j", "-s", "-n", self.switch, "link", "show"))
        return sum(
            link["stats64"]["rx"]["bytes"] for link in links if link["ifname"].startswith(port)
        )


def remove_networks(of_pid=None):
    """Removes the namespaces of a run; without one, of all runs that are over."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        pid = name.removeprefix(PREFIX).split("-")[0]
        if not name.startswith(PREFIX) or not pid.isdigit():
            continue
        if int(pid) == of_pid if of_pid else not is_alive(pid):
            processes = [int(pid) for pid in ip("netns", "pids", name, check=False).split()]
            folders = set(map(run_of, processes))
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            ip("netns", "del", name)
            for folder in folders - {None, BASE}:
                shutil.rmtree(folder, ignore_errors=True)


def run_of(process):
    """The directory of the test run that a process belongs to."""
    try:
        with open(f"/proc/{process}/environ") as file:
            found = re.search(r"(?:^|\0)OXIRAY_TMPDIR=(/tmp/oxt-[^/\0]+)/", file.read())
        return found and found[1]
    except OSError:
        return None


@pytest.fixture(scope="module")
def network():
    missing = None
    if os.geteuid() != 0:
        missing = "network namespaces need root"
    elif not shutil.which("ip"):
        missing = "there is no `ip`: apt-get install iproute2"
    network = Network()
    try:
        if missing is None:
            remove_networks()
            network.build()
    except (OSError, subprocess.SubprocessError) as error:
        missing = f"network namespaces cannot be had here: {error}"
    if missing is None:
        yield network
    if shutil.which("ip"):
        remove_networks(os.getpid())
    if missing and os.environ.get("CI") and os.geteuid() == 0:
        pytest.fail(f"with CI set this is an error: {missing}")
    if missing:
        pytest.skip(missing)


@pytest.fixture
def hosts(network):
    """A head and two more nodes, numbered from one."""
    machines = {n: Machine(network.address(n), network.prefix[n]) for n in network.prefix}
    size = ("--num-cpus=4", "--num-gpus=0", f"--object-store-memory={STORE}")
    try:
        machines[1].start_head(*size, f"--dashboard-host={machines[1].ip}")
        for number in range(2, COUNT + 1):
            machines[number].join(machines[1], *size)
        yield machines
    finally:
        network.plug()
        network.unite()
        trouble = []
        for number in sorted(machines, reverse=True):
            try:
                machines[number].end()
            except BaseException as error:
                trouble.append((number, error))
        assert not trouble, trouble
