"""Five hosts of a cluster: each a network namespace with a node, joined by our switch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from conftest import is_alive, processes_under
from machines import PROGRAM, Machine

from .schedule import COUNT, HEAD
from .switch import MTU

PREFIX = "oxchaos-"
PORT = 6379
WORKER = "ray::"
LOGS = ("oxirayd.log", "oxirayd.err", "control.log", "control.err")
# The least that a node takes.
STORE = 80 * 2**20
# Where sessions and spilled objects are, so that it can be full.
DISK = 1024 * 2**20
TESTS = Path(__file__).parent.parent


class NoHosts(Exception):
    """Hosts cannot be had here; the text says why."""


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise NoHosts(f"`ip {' '.join(arguments)}` says: {done.stderr.strip()}")
    return done.stdout


class Network:
    """Namespaces and the switch between them, for as long as the `with` lasts."""

    def __init__(self, seed):
        self.seed = seed
        self.name = f"{PREFIX}{os.getpid()}"
        self.switch = None
        self.lock = threading.Lock()
        self.count = 0

    def __enter__(self):
        if os.geteuid() != 0:
            raise NoHosts("network namespaces need root")
        if not shutil.which("ip"):
            raise NoHosts("there is no `ip`: install iproute2")
        if not os.path.exists("/dev/net/tun"):
            raise NoHosts("there is no /dev/net/tun")
        remove_old()
        try:
            self.build()
        except (NoHosts, OSError, subprocess.SubprocessError) as error:
            self.__exit__()
            raise NoHosts(str(error)) from None
        return self

    def build(self):
        for number in range(1, COUNT + 1):
            ip("netns", "add", f"{self.name}-{number}")
        given = (self.name, COUNT, self.seed)
        # Before all others: what it delays is no fault of ours.
        self.switch = subprocess.Popen(
            [*("nice", "-n", "-10", sys.executable, "-m", "chaos.switch"), *map(str, given)],
            cwd=TESTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if not self.switch.stdout.readline():
            raise NoHosts("the switch did not start")
        for number in range(1, COUNT + 1):
            host = f"{self.name}-{number}"
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "link", "set", "cable", "mtu", str(MTU), "txqueuelen", "5000", "up")
            ip("-n", host, "addr", "add", f"{address(number)}/24", "dev", "cable")

    def trouble(self, *pairs, **what):
        """Something is wrong on the way from one host to another (None: any) until it is ended."""
        with self.lock:
            self.count += 1
            name = str(self.count)
            for number, (source, to) in enumerate(pairs):
                ends = {"from": source, "to": to}
                ends = {end: host for end, host in ends.items() if host is not None}
                self.tell({"name": f"{name}.{number}", **ends, **what})

        def end():
            with self.lock:
                for number in range(len(pairs)):
                    self.tell({"name": f"{name}.{number}", "end": True})

        return end

    def tell(self, order):
        self.switch.stdin.write(json.dumps(order) + "\n")
        self.switch.stdin.flush()
        if not self.switch.stdout.readline():
            raise RuntimeError("the switch has ended")

    def __exit__(self, *_):
        if self.switch:
            self.switch.stdin.close()
            self.switch.wait(10)
        remove(self.name)


def address(number):
    return f"10.79.0.{number}"


def namespaces():
    names = (line.split()[0] for line in ip("netns", "list").splitlines())
    return [name for name in names if name.startswith(PREFIX)]


def remove(network):
    for name in namespaces():
        if name.rpartition("-")[0] == network:
            ip("netns", "del", name)


def remove_old():
    """Removes what killed runs have left."""
    for network in {name.rpartition("-")[0] for name in namespaces()}:
        if not Path("/proc", network.removeprefix(PREFIX)).exists():
            remove(network)


class Host(Machine):
    """A machine with a disk of its own, whose services can be started again."""

    def __init__(self, network, number, head):
        super().__init__(address(number), ["ip", "netns", "exec", f"{network.name}-{number}"])
        self.number = number
        self.head = head
        # Seen by all that starts later; propagated into the namespaces of `ip netns exec`.
        self.disk = self.base
        options = ("-o", f"size={DISK}")
        subprocess.run(["mount", "-t", "tmpfs", *options, "none", self.disk], check=True)
        self.base = self.environment["OXIRAY_TMPDIR"] = os.path.join(self.disk, "t")
        os.mkdir(self.base, 0o700)
        self.environment["PYTHONPATH"] = str(TESTS)
        self.token = ""

    def start_arguments(self):
        offer = ["--num-cpus=4", "--num-gpus=0", f"--object-store-memory={STORE}"]
        offer += ['--resources={"slot": 4}', f"--node-ip-address={self.ip}"]
        if self.number == HEAD:
            return ["start", "--head", f"--port={PORT}", "--include-dashboard=false", *offer]
        return ["start", f"--address={self.head.ip}:{PORT}", *offer]

    def start(self, timeout=60):
        """Starts what does not run; the command's words if that failed."""
        token = {"OXIRAY_TOKEN": self.head.token} if self.number != HEAD else {}
        try:
            done = subprocess.run(
                [*self.prefix, PROGRAM, *self.start_arguments()],
                env={**self.environment, **token},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return f"`oxiray start` did not end within {timeout} s"
        if done.returncode == 0 and self.number == HEAD and not self.token:
            self.token = self("token").stdout.strip()
        return done.stderr.strip() if done.returncode else ""

    def services(self):
        """The pids of those that run, by name."""
        found = {}
        try:
            records = list(Path(self.base, "started").iterdir())
        except OSError:
            records = []
        for record in records:
            try:
                fields = dict(line.split("=", 1) for line in record.read_text().splitlines())
            except (OSError, ValueError):
                continue  # being written
            for name in ("node", "control"):
                pid = fields.get(f"{name}_pid", "").split()[:1]
                if pid and pid[0] != "0" and is_alive(pid[0]) and _is_ours(pid[0], self.base):
                    found[name] = int(pid[0])
        return found

    def wanted(self):
        return {"node", "control"} if self.number == HEAD else {"node"}

    def tree(self):
        """Its processes but for drivers and commands: services, zygotes and workers, by kind."""
        services = self.services()
        zygotes = children(services.get("node"))
        # Workers outlive their zygote: they are known by their titles.
        here = processes_under(self.base).items()
        workers = [pid for pid, command in here if command.startswith(WORKER)]
        found = {"service": services.values(), "zygote": zygotes, "worker": workers}
        return {kind: sorted(pids) for kind, pids in found.items()}

    def keep_logs(self, directory):
        """Copies what its services have written."""
        for path in Path(self.base).glob("**/*"):
            if path.name in LOGS:
                name = "-".join(path.relative_to(self.base).parts)
                Path(directory).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, Path(directory, f"host{self.number}-{name}"))

    def end(self):
        """Stops everything: what is left, in words."""
        trouble = []
        try:
            super().end()
        except (AssertionError, OSError) as error:
            trouble.append(f"host {self.number}: {error}")
        subprocess.run(["umount", "-l", self.disk], capture_output=True)
        shutil.rmtree(self.disk, ignore_errors=True)
        return trouble


def _is_ours(pid, base):
    try:
        return f"OXIRAY_TMPDIR={base}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def children(pid):
    """Of all threads of a process; empty if it is gone."""
    found = []
    if pid:
        for thread in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += map(int, thread.read_text().split())
            except OSError:
                continue
    return sorted(found)


def send(pids, which):
    """A signal to processes, of which some may have gone; those that were there."""
    there = []
    for pid in pids:
        try:
            os.kill(pid, which)
            there.append(pid)
        except ProcessLookupError:
            continue
    return there


def resume_all(hosts):
    """Nobody stays stopped, whatever happened."""
    for host in hosts.values():
        send(processes_under(host.base), signal.SIGCONT)
