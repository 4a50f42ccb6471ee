"""The zygote by itself, with the test as its node service."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys

import pytest


@pytest.fixture
def zygote(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = theirs.fileno()
    # A session without a node service: workers it forks end at once with an error.
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$0" -m oxiray._zygote 3<&{descriptor}', sys.executable],
        env={
            **os.environ,
            "OXIRAY_SESSION_DIR": str(tmp_path / "nowhere"),
            "OXIRAY_SYS_PATH": json.dumps([path for path in sys.path if path]),
            "OXIRAY_DRIVER_MODULES": "",
        },
        pass_fds=[descriptor],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    theirs.close()
    ours.settimeout(20)
    yield process, ours
    ours.close()
    assert process.wait(timeout=10) == 0


def test_forks_and_reports_every_end(zygote):
    _, ours = zygote
    for _ in range(20):
        ours.send(b"fork")
    forked, ended = set(), set()
    while len(ended) < 20:
        word, pid, *_ = ours.recv(100).split()
        (forked if word == b"forked" else ended).add(int(pid))
    assert forked == ended and len(forked) == 20


def test_survives_a_fork_that_is_refused(zygote):
    """Few processes are allowed for a while, as `ulimit -u` would; root has no such limit."""
    process, ours = zygote
    ours.send(b"fork")
    assert ours.recv(100).startswith(b"forked ")
    assert ours.recv(100).startswith(b"exit ")
    if os.geteuid() == 0:
        pytest.skip("no limit of processes holds for root")
    resource.prlimit(process.pid, resource.RLIMIT_NPROC, (0, resource.RLIM_INFINITY))
    ours.send(b"fork")
    assert ours.recv(100) == b"refused %d" % errno.EAGAIN
    resource.prlimit(
        process.pid, resource.RLIMIT_NPROC, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    ours.send(b"fork")
    assert ours.recv(100).startswith(b"forked ")


def test_ignores_interrupts_and_unknown_packets(zygote):
    process, ours = zygote
    ours.send(b"fork")
    assert ours.recv(100).startswith(b"forked ")
    process.send_signal(signal.SIGINT)
    ours.send(b"what?")
    assert ours.recv(100).startswith(b"exit ")
    ours.send(b"fork")
    assert ours.recv(100).startswith(b"forked ")


def test_ends_with_its_socket(zygote):
    pass  # the fixture checks it
