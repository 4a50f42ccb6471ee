"""Where sessions live, which ports they take, and whether one works: a task is run in a new one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from .. import _native
from .finding import Finding, fine, trouble, warning

_CONTROL, _DASHBOARD = 6379, 8265
# The path of a Unix socket may have 107 bytes; a session's folder and its socket take up to 60.
_LONGEST_FOLDER = 107 - 60
_LEAST_ROOM = 200 << 20
_TRIAL_S = 60
_TRIAL = """
import sys, time
import oxiray
began = time.perf_counter()
oxiray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
@oxiray.remote
def answer():
    return 42
assert oxiray.get(answer.remote(), timeout=50) == 42
print(f"{time.perf_counter() - began:.2f}")
oxiray.shutdown()
"""


def check() -> Iterator[Finding]:
    yield folder(_native.sessions_folder())
    yield _loopback()
    yield port(_CONTROL, "oxiray start --head", "--port=0 takes any other")
    yield port(_DASHBOARD, "the dashboard", "the next free one is taken", is_taken_fine=True)
    yield trial()


def folder(path: str | bytes) -> Finding:
    path = os.fsdecode(path)
    change = "set OXIRAY_TMPDIR to a directory of your own with a short path"
    if len(os.fsencode(path)) > _LONGEST_FOLDER:
        return trouble("sessions", f"{path} is too long for sockets in it", change)
    there = path
    while not os.path.exists(there):
        there = os.path.dirname(there)
    try:
        os.rmdir(tempfile.mkdtemp(dir=there))
    except OSError as error:
        return trouble("sessions", f"{there} cannot be written to: {error.strerror}", change)
    room = shutil.disk_usage(there).free
    says = f"{path}, {_native.show_bytes(room)} free"
    if room < _LEAST_ROOM:
        return warning("sessions", says, f"logs and records go there: make room, or {change}")
    return fine("sessions", says)


def _loopback() -> Finding:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return trouble("loopback", f"127.0.0.1: {error}", "ip link set lo up")
    return fine("loopback", "127.0.0.1 can be listened on")


def port(number: int, whose: str, otherwise: str, is_taken_fine: bool = False) -> Finding:
    subject = f"port {number}"
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("0.0.0.0", number))
    except OSError as error:
        says = f"{whose} would take it, but: {error.strerror}"
        # Perhaps it is our own cluster.
        if is_taken_fine:
            return fine(subject, f"{says}; {otherwise}")
        return warning(subject, says, f"{otherwise}; `oxiray status` shows what of ours runs")
    return fine(subject, f"free, for {whose}")


def trial(code: str = _TRIAL) -> Finding:
    """In a folder of its own: sessions that were kept stay."""
    place = tempfile.mkdtemp(prefix="oxd-", dir="/tmp")
    environment = {**os.environ, "OXIRAY_TMPDIR": place, "OXIRAY_ADDRESS": "local"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TRIAL_S,
        )
    except subprocess.TimeoutExpired:
        return trouble("a task", f"did not end within {_TRIAL_S} s", _REPORT)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if done.returncode != 0:
        last = ["no reason given", *done.stderr.strip().splitlines()][-1]
        return trouble("a task", f"cannot be run: {last}", _REPORT)
    return fine("a task", f"was run in a session of its own, {done.stdout.strip()} s from init()")


_REPORT = "heed what is said above; if nothing is, report this with the output of `oxiray doctor`"
