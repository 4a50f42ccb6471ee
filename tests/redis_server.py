"""A real Redis for tests, of Debian's package `redis-server`, on a port of its own. Without it,
tests are skipped; with CI set that is an error.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest
from conftest import wait_until

PASSWORD = "not/to-be.seen"
PASSWORD_IN_URL = "not%2Fto-be.seen"


def free_port():
    """One that the system gives to nobody, also while a server that had it is away."""
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Redis:
    """A server that keeps nothing on disk, with a directory of its own: on this machine, or on the
    host whose address and command prefix are given."""

    def __init__(self, password="", tls=None, ip="127.0.0.1", prefix=()):
        self.ip = ip
        self.prefix = list(prefix)
        self.folder = tempfile.mkdtemp(prefix="redis-", dir="/tmp")
        self.port = free_port()
        self.at = f"{ip}:{self.port}"
        secret = f":{PASSWORD_IN_URL}@" if password else ""
        self.url = f"{'rediss' if tls else 'redis'}://{secret}{self.at}/0"
        self.arguments = [
            "--bind",
            ip,
            "--protected-mode",
            "no",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self.arguments += ["--dir", self.folder, "--daemonize", "no"]
        if tls:
            self.arguments += ["--port", "0", "--tls-port", str(self.port)]
            self.arguments += ["--tls-cert-file", tls[0], "--tls-key-file", tls[1]]
            self.arguments += ["--tls-auth-clients", "no"]
        else:
            self.arguments += ["--port", str(self.port)]
        if password:
            self.arguments += ["--requirepass", password]
        self.process = None
        self.start()

    def start(self):
        # It ends with this program, however that ends.
        prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        self.process = subprocess.Popen(
            [*prefix, *self.prefix, "redis-server", *self.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self.answers, 20, "Redis starts")

    def answers(self):
        if self.prefix:
            return b"PONG" in self.command("ping")
        try:
            socket.create_connection((self.ip, self.port), 1).close()
        except OSError:
            return False
        return True

    def command(self, *words):
        """What the server's own client prints, from where the server is."""
        client = [*self.prefix, "redis-cli", "-h", self.ip, "-p", str(self.port), *words]
        return subprocess.run(client, capture_output=True, timeout=10).stdout

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        """With all that it has."""
        self.process.kill()
        self.process.wait()

    def end(self):
        self.kill()
        shutil.rmtree(self.folder)


@pytest.fixture
def redis():
    """Starts servers."""
    servers = []

    def start(**options):
        if not shutil.which("redis-server"):
            missing = "redis-server is not installed: apt-get install redis-server"
            pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
        servers.append(Redis(**options))
        return servers[-1]

    yield start
    for server in servers:
        server.end()
